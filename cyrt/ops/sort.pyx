"""Stable sorting along an axis."""

from libc.string cimport memcpy, memset

from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.sort cimport record_sort
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.builtin.top_k cimport TOP_K_MOST, record_top_k
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand
from cyrt.ops.arguments import axis_of, check_array, check_flags, int_of
from cyrt.ops.gather import take_along_axis
from cyrt.ops.shapes cimport axis_back, axis_last, flat
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int INT64 = _dtype("int64").code
cdef tuple KINDS = ("quicksort", "mergesort", "heapsort", "stable")


cdef Array sorted_along(Array x, int axis, bint indices, bint descending):
    cdef Operand[2] operands
    cdef Array rows = axis_last(x, axis), result
    cdef int ordinal = device_of(x)
    cdef long long n = rows.dims[rows.ndim_ - 1]
    result = new_array(ordinal, INT64 if indices else x.code, rows.ndim_, rows.dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], rows)
    record_sort(encoder_of(current_state(ordinal)), x.code, operands, rows.count // n if n else 0,
                n, indices, descending)
    return axis_back(result, axis)


cdef tuple selected_along(Array x, int axis, int k):
    """Return the k greatest elements and their indices; k is from 1 to TOP_K_MOST."""
    cdef Operand[3] operands
    cdef Array rows = axis_last(x, axis), values, indices
    cdef int ordinal = device_of(x)
    cdef long long n = rows.dims[rows.ndim_ - 1]
    cdef long long[MAX_NDIM] dims
    memcpy(dims, rows.dims, rows.ndim_ * sizeof(long long))
    dims[rows.ndim_ - 1] = k
    values = new_array(ordinal, x.code, rows.ndim_, dims)
    indices = new_array(ordinal, INT64, rows.ndim_, dims)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], values)
    set_operand(&operands[1], indices)
    set_operand(&operands[2], rows)
    record_top_k(encoder_of(current_state(ordinal)), x.code, operands, rows.count // n, n, k)
    return axis_back(values, axis), axis_back(indices, axis)


cdef tuple check_arguments(object x, object axis, object kind, object descending, object stable,
                           str name):
    """Check the arguments; return the array, flattened without an axis, and the axis."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"{name}: kind: expected one of {', '.join(KINDS)}, got {show(kind)}")
    check_flags(name, descending=descending, stable=stable is None or stable)
    if not isinstance(x, Array):
        check_array(x, f"{name}: x")
    return (flat(x), 0) if axis is None else (x, axis_of(axis, x.ndim))


def sort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """Sort the elements along an axis.

    NaN is greater than every number: last, or first with `descending`. -0.0 equals 0.0.

    Parameters
    ----------
    x : Array
        An array of a real type or bool.
    axis : int, optional
        The axis to sort along. None flattens x first.
    kind : str, optional
        NumPy's name of an algorithm. Every name selects the same stable sort.
    descending : bool
        Whether the greatest element comes first.
    stable : bool
        It has no effect, because equal elements always keep their order.

    Returns
    -------
    Array
        A sorted copy of x's shape and type.

    Raises
    ------
    TypeError
        x is complex: complex numbers have no order.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([3, 1, 2])
    >>> cyrt.sort(x)
    Array([1, 2, 3], dtype=int64)
    >>> cyrt.sort(x, descending=True)
    Array([3, 2, 1], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(sort, (x, axis, kind, descending, stable))
    x, axis = check_arguments(x, axis, kind, descending, stable, "sort")
    return sorted_along(x, axis, False, descending)


def argsort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """Find the indices that sort the elements along an axis.

    Parameters
    ----------
    x : Array
        An array of a real type or bool; see :func:`sort` for NaN and signed zeros.
    axis : int, optional
        The axis to sort along. None flattens x first.
    kind : str, optional
        NumPy's name of an algorithm. Every name selects the same stable sort.
    descending : bool
        Whether the greatest element comes first.
    stable : bool
        It has no effect, because equal elements always keep their order.

    Returns
    -------
    Array
        The indices, int64, of x's shape.

    Raises
    ------
    TypeError
        x is complex: complex numbers have no order.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([30, 10, 20])
    >>> cyrt.argsort(x)
    Array([1, 2, 0], dtype=int64)
    >>> cyrt.argsort(x, descending=True)
    Array([0, 2, 1], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(argsort, (x, axis, kind, descending, stable))
    x, axis = check_arguments(x, axis, kind, descending, stable, "argsort")
    return sorted_along(x, axis, True, descending)


def top_k(x, k, /, axis=-1):
    """Find the k greatest elements along an axis, in descending order.

    If elements are equal, the one with the lower index comes first. NaN is greater than every
    number.

    Parameters
    ----------
    x : Array
        An array of a real type or bool.
    k : int
        The number of elements to find, from 0 to the size of the axis.
    axis : int, optional
        The axis to search along. None flattens x first.

    Returns
    -------
    tuple of Array
        The elements, of x's type, and their indices along the axis, int64. Both have x's shape,
        with k elements along the axis.

    Raises
    ------
    TypeError
        x is complex, or k is not an int.
    ValueError
        The axis has fewer than k elements, or k is negative.
    numpy.exceptions.AxisError
        x has no such axis.

    Notes
    -----
    Up to 128 elements are selected in one pass over the axis; for more elements the axis is sorted.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.top_k(cyrt.asarray([3, 1, 4, 1, 5]), 2)
    (Array([5, 4], dtype=int64), Array([4, 2], dtype=int64))
    """
    if recording and is_followed(x):
        return record_call(top_k, (x, k, axis))
    x, axis = check_arguments(x, axis, None, False, True, "top_k")
    count = int_of(k, "top_k: k")
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"top_k: k: expected an int from 0 to {x.shape[axis]}, the size of axis "
                         f"{axis} of {x.shape}, got {count}")
    if 0 < count <= TOP_K_MOST and x.shape[axis] <= 0xffffffff:
        return selected_along(x, axis, count)
    indices = as_contiguous(
        sorted_along(x, axis, True, True)[(slice(None),) * axis + (slice(count),)])
    return take_along_axis(x, indices, axis=axis), indices
