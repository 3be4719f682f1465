"""Values that are combined in place with the elements at indices or keys."""

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.scatter cimport record_scatter
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, device_of, itemsizes, overlaps, set_operand, shape_of
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy cimport check_writable
from cyrt.ops.copy import copy
from cyrt.ops.gather cimport lowest_offset, offsets_of
from cyrt.ops.promotion cimport kinds
from cyrt.ops.shapes import reshape
from cyrt.ops.sort import argsort
from cyrt.ops.shapes cimport flat
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int BOOL = _dtype("bool").code, UINT32 = _dtype("uint32").code


cdef enum:
    LEAST_ROW = 32      # elements from which on a row is combined as one


cdef int combine(int op, Array x, Array keys, Array values, long long length=1) except -1:
    """Combine the elements of x, whose offsets are the keys, with values: one for all, or one for
    each. Both are dense and of one dimension. A key is the offset of a row of `length` elements."""
    cdef Operand[4] operands
    cdef long long extent, lowest = lowest_offset(x, &extent)
    cdef Array order = argsort(keys)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], x)
    operands[0].address += <unsigned long long>(lowest * itemsizes[x.code])
    operands[0].strides = NULL
    set_operand(&operands[1], keys)
    set_operand(&operands[2], order)
    set_operand(&operands[3], values)
    return record_scatter(encoder_of(current_state(device_of(x))), op, x.code, operands,
                          keys.count, length, keys.code != UINT32, values.count != 1)


cdef Array first_column(Array x, object key):
    """Return the first element of each row of x if the key names rows, by one array of indices,
    and if they are combined as rows; else None."""
    if isinstance(key, tuple) and len(<tuple>key) == 1:
        key = (<tuple>key)[0]
    if not isinstance(key, Array) or kinds[(<Array>key).code] == c"b" or x.ndim_ < 2 \
            or not x.dense or x.count < LEAST_ROW * x.dims[0] or x.count == 0:
        return None
    return reshape(x, (x.dims[0], x.count // x.dims[0]))[:, 0]


def combine_at(str name not None, Array x not None, key, Array values not None):
    """Combine the elements of ``x[key]`` in place with values, which are broadcast. An element that
    occurs several times is combined with each of its values, in the order of the key.

    Parameters
    ----------
    name : str
        ``"add"``, ``"maximum"`` or ``"minimum"``.
    x : Array
    key : index
        A key of x; indices are treated as by ``x[key]``.
    values : Array
        x's type.

    Returns
    -------
    bool
        False if the key has no arrays, so that no element occurs twice; nothing is done then.
    """
    cdef Array keys, column
    cdef tuple shape
    check_writable(x)
    if recording and (is_followed(x) or is_followed(values)):
        raise TypeError(f"{name}.at: there is no gradient; stop_gradient() makes a constant of the "
                        "argument")
    column = first_column(x, key)
    keys = offsets_of(x if column is None else column, key)
    if keys is None:
        return False
    shape = shape_of(keys) if column is None else shape_of(keys) + shape_of(x)[1:]
    if values.count != 1 or values.ndim_ > len(shape):
        try:
            values = broadcast_to(values, shape)
        except ValueError:
            raise ValueError(f"{name}.at: b: shape {shape_of(values)} does not broadcast to "
                             f"{shape}, that of the elements at the indices") from None
    values = flat(values)
    combine(operation(name, x), x, flat(keys), copy(values) if overlaps(x, values) else values,
            1 if column is None else x.count // x.dims[0])
    return True


def add_at(Array out not None, key, Array values not None):
    """Add values to ``out[key]`` in place, and return the array; see :func:`combine_at`. The values
    of an element that occurs several times are added one after the other."""
    if recording and (is_followed(out) or is_followed(values)):
        return record_call(add_at, (out, key, values))
    if not combine_at("add", out, key, values):
        out[key] += values
    return out


def combine_by_key(str name not None, Array x not None, Array keys not None,
                   Array values not None):
    """Combine the elements of x, which is contiguous, in place with values at positions.

    Parameters
    ----------
    name : str
        See :func:`combine_at`.
    x : Array
    keys : Array
        Positions in x, in C order, uint32 or uint64; all must be within x.
    values : Array
        A value of x's type for each position.
    """
    combine(operation(name, x), x, flat(keys), flat(values))


cdef int operation(str name, Array x) except -1:
    if x.code == BOOL and name == "add":
        name = "maximum"        # True where any is
    elif DTYPES[x.code].kind == "c" and name != "add":
        raise TypeError(f"{name}.at: a: expected a real type, got {DTYPES[x.code]}")
    return op_code(f"{name}_at")
