"""Searches for positions in a sorted array, and for the positions of nonzero elements."""

from libc.string cimport memset

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.search cimport record_contains, record_search
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.ops.arguments import check_array
from cyrt.ops.compact cimport positions_where
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.creation import asarray, full, weak_array
from cyrt.ops.elementwise cimport side_of
from cyrt.ops.promotion cimport is_number, kinds, python_number, promote, promote_number
from cyrt.ops.shapes cimport flat
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int BOOL = _dtype("bool").code, INT64 = _dtype("int64").code


cdef Array find_positions(Array x1, Array sorter, bint right, Array x2):
    cdef Operand[4] operands
    cdef Array result = new_array(device_of(x1), INT64, x2.ndim_, x2.dims)
    memset(operands, 0, sizeof(operands))
    x1, x2 = as_contiguous(x1), as_contiguous(x2)
    set_operand(&operands[0], result)
    set_operand(&operands[1], x1)
    set_operand(&operands[2], x2)
    if sorter is not None:
        sorter = as_contiguous(cast(sorter, INT64))
        set_operand(&operands[3], sorter)
    record_search(encoder_of(current_state(device_of(x1))), x1.code, operands, x1.count, x2.count,
                  right)
    return result


def searchsorted(x1, /, v, side="left", sorter=None):
    """Find the positions at which values would be inserted into a sorted array.

    Parameters
    ----------
    x1 : Array
        An array of one dimension and a real type, ascending, NaN last, as :func:`sort` returns it.
    v : Array, number or sequence of numbers
        Values of any shape; both arrays are cast to their common type. The position of an int that
        is out of range of x1's integer type is before or after all elements.
    side : {"left", "right"}
        Whether a value comes before the elements that equal it, or after them.
    sorter : Array, optional
        Indices that sort x1, such as those of :func:`argsort`. An index that is out of range is
        clipped to the range.

    Returns
    -------
    Array
        The positions, int64, of v's shape: for each value, the number of elements of x1 before it.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.searchsorted(cyrt.asarray([1, 3, 5]), cyrt.asarray([0, 3, 4]))
    Array([0, 1, 2], dtype=int64)
    """
    if recording and (is_followed(x1) or is_followed(v)):
        return record_call(searchsorted, (x1, v, side, sorter))
    cdef Array keys = check_array(x1, "searchsorted: x1"), values, order = None
    cdef int code
    if keys.ndim_ != 1:
        raise ValueError(f"searchsorted: x1: expected one dimension, got shape {shape_of(keys)}")
    if side != "left" and side != "right":
        raise ValueError(f"searchsorted: side: expected 'left' or 'right', got {show(side)}")
    if isinstance(v, (list, tuple)):
        try:
            v = weak_array(keys, v)
        except OverflowError:               # ints beyond x1's type
            v = asarray(v, device=device_of(keys))
    if is_number(v):
        v = python_number(v)
        beyond = side_of(keys.code, v) if type(v) is int and kinds[keys.code] in b"iu" else 0
        if beyond:
            return full((), keys.count if beyond > 0 else 0, dtype="int64",
                        device=device_of(keys))
        code = promote_number(keys.code, v)
        values = asarray(v, dtype=DTYPES[code], device=device_of(keys))
    else:
        values = check_array(v, "searchsorted: v")
        check_device(values, keys, "searchsorted: v")
        code = promote(keys.code, values.code)
    if sorter is not None:
        order = check_array(sorter, "searchsorted: sorter")
        check_device(order, keys, "searchsorted: sorter")
        if shape_of(order) != shape_of(keys) or DTYPES[order.code].kind not in "iu":
            raise ValueError(f"searchsorted: sorter: expected integers of shape {shape_of(keys)}, "
                             f"got {DTYPES[order.code]} of shape {shape_of(order)}")
    return find_positions(cast(keys, code), order, side == "right", cast(values, code))


def contains(x1, x2, invert):
    """Test which elements of x2 equal an element of x1, which is sorted; with `invert`, test which
    of them equal none."""
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(contains, (x1, x2, invert))
    cdef Operand[4] operands
    cdef Array keys = x1, values = as_contiguous(x2)
    cdef Array result = new_array(device_of(values), BOOL, values.ndim_, values.dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], keys)
    set_operand(&operands[2], values)
    record_contains(encoder_of(current_state(device_of(values))), values.code, operands, keys.count,
                    values.count, invert)
    return result


def nonzero(x, /):
    """Find the indices of the elements that are not zero; the call waits for their number.

    Parameters
    ----------
    x : Array
        An array of one dimension or more; NaN is not zero.

    Returns
    -------
    tuple of Array
        The indices along each dimension, int64, in C order of the elements.

    Raises
    ------
    ValueError
        x is 0-dimensional.

    Examples
    --------
    >>> import cyrt
    >>> (indices,) = cyrt.nonzero(cyrt.asarray([0, 7, 0, 5]))
    >>> indices
    Array([1, 3], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(nonzero, (x,))
    cdef Array array = check_array(x, "nonzero: x")
    cdef int d
    if array.ndim_ == 0:
        raise ValueError("nonzero: expected at least one dimension, got a 0-dimensional array")
    found = positions_where(cast(array, BOOL))
    indices = []
    for d in range(array.ndim_ - 1, 0, -1):
        size = max(array.dims[d], 1)
        indices.append(found % size)
        found = found // size
    indices.append(found)
    return tuple(reversed(indices))


def flatnonzero(x):
    """Find the positions, in C order, of the elements that are not zero: int64, one dimension."""
    return positions_where(cast(flat(check_array(x, "flatnonzero: x")), BOOL))
