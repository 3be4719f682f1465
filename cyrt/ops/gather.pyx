"""Indexing and assignment by arrays of indices and by masks, and ``take``.

Negative indices count from the end. An index out of range raises an IndexError if its value is
known on the host (lists, NumPy arrays), and in checking mode (CYRT_CHECK=1), which waits for the
values. Otherwise it traps on the emulated device, and is clipped to the range on a GPU. If an index
occurs more than once, it is undefined which of the values is written.
"""

from cpython.long cimport PyLong_CheckExact
from libc.string cimport memset

import numpy as np

from cyrt import settings
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.gather cimport (
    MAX_INDICES, LOCATED, TAKEN, WRITTEN, GatherSpace, record_gather,
)
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport (
    Array, device_of, itemsizes, new_array, overlaps, set_operand, shape_of,
)
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.compact cimport select_where
from cyrt.ops.copy cimport (
    cast, check_device, check_writable, duplicate, from_host, write_out,
)
from cyrt.ops.creation import asarray
from cyrt.ops.promotion cimport is_number, put_number
from cyrt.ops.selection cimport (
    Selection, all_indices, along, check_mask, check_range, is_indices, kinds, only_mask,
    parse_items, select,
)
from cyrt.ops.shapes cimport reshape_array
from cyrt.ops.shapes import reshape
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int WHERE = op_code("where")
cdef int UINT32 = _dtype("uint32").code, UINT64 = _dtype("uint64").code


cdef int broadcast_arrays(list arrays, long long* common) except -1:
    """Broadcast arrays of indices together; return the number of dimensions."""
    cdef Array index
    cdef int d, at, ndim = 0
    for index in arrays:
        ndim = max(ndim, index.ndim_)
    for d in range(ndim):
        common[d] = 1
    for index in arrays:
        for d in range(index.ndim_):
            at = ndim - index.ndim_ + d
            if common[at] == 1:
                common[at] = index.dims[d]
            elif index.dims[d] != 1 and index.dims[d] != common[at]:
                shapes = " ".join([str(shape_of(each)) for each in arrays])
                raise IndexError("shape mismatch: indexing arrays could not be broadcast together "
                                 f"with shapes {shapes}")
    return ndim


cdef int describe_space(GatherSpace* space, Selection selection,
                        long long* shape) except -1:
    """Set the space that a selection spans, without the strides of `here`. Return its number of
    dimensions."""
    cdef Array view = selection.view, index
    cdef long long[MAX_NDIM] common
    cdef bint[MAX_NDIM] indexed
    cdef int d, i, ndim = 0, first = selection.axis, count = len(selection.arrays)
    cdef int added = broadcast_arrays(selection.arrays, common)
    if added + view.ndim_ - count > MAX_NDIM:
        raise IndexError(f"the result would have more than {<int>MAX_NDIM} dimensions")
    memset(space, 0, sizeof(GatherSpace))
    memset(indexed, 0, sizeof(indexed))
    space.ndim, space.count = view.ndim_ - count + added, count
    for i in range(count):
        index = selection.arrays[i]
        check_device(index, view, "indices")
        d = selection.dims[i]
        indexed[d] = True
        if index.count and view.dims[d] == 0:
            raise IndexError("an index is out of bounds for a dimension of size 0")
        space.indices[i].size = view.dims[d]
        space.indices[i].stride = view.steps[d]
        space.indices[i].kind = kinds[index.code]
        for d in range(index.ndim_):
            if index.dims[d] != 1:
                space.indices[i].strides[first + added - index.ndim_ + d] = index.steps[d]
    for d in range(added):
        space.shape[first + d] = common[d]
    for d in range(view.ndim_):
        if ndim == first:
            ndim += added
        if not indexed[d]:
            space.shape[ndim] = view.dims[d]
            space.there[ndim] = view.steps[d]
            ndim += 1
    for d in range(space.ndim):
        shape[d] = space.shape[d]
    return space.ndim


cdef int record(GatherSpace* space, int how, Operand* operands, Array there,
                list arrays) except -1:
    """Set the operands other than `here`, and return the operation."""
    cdef int i
    set_operand(&operands[1], there)
    for i in range(space.count):
        set_operand(&operands[2 + i], <Array>arrays[i])
    return record_gather(encoder_of(current_state(device_of(there))), how, itemsizes[there.code],
                         operands, space)


cdef Array take_selected(Selection selection):
    cdef GatherSpace space
    cdef Operand[2 + MAX_INDICES] operands
    cdef long long[MAX_NDIM] shape
    cdef int ndim = describe_space(&space, selection, shape)
    cdef Array out = new_array(device_of(selection.view), selection.view.code, ndim, shape)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], out)
    for d in range(ndim):
        space.here[d] = out.steps[d]
    record(&space, TAKEN, operands, selection.view, selection.arrays)
    return out


cdef long long lowest_offset(Array x, long long* extent) noexcept:
    cdef long long lowest = 0, highest = 0
    cdef int d
    for d in range(x.ndim_):
        if x.steps[d] < 0:
            lowest += x.steps[d] * (x.dims[d] - 1)
        else:
            highest += x.steps[d] * (x.dims[d] - 1)
    extent[0] = highest - lowest + 1
    return lowest


cdef Array offsets_of(Array x, object key):
    cdef GatherSpace space
    cdef Operand[2 + MAX_INDICES] operands
    cdef long long[MAX_NDIM] shape
    cdef long long extent, lowest = lowest_offset(x, &extent)
    cdef Selection selection = along(x, key, 0) if all_indices(key) \
        else select(x, parse_items(key, x.ndim_))
    cdef Array view = selection.view, out
    cdef int i, ndim
    if not selection.arrays:
        return None
    ndim = describe_space(&space, selection, shape)
    out = new_array(device_of(x), UINT32 if extent <= 1LL << 32 else UINT64, ndim, shape)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], out)
    for i in range(ndim):
        space.here[i] = out.steps[i]
    set_operand(&operands[1], view)
    operands[1].address = <unsigned long long>(
        <long long>(view.address - x.address) // itemsizes[x.code] - lowest)
    for i in range(space.count):
        set_operand(&operands[2 + i], <Array>selection.arrays[i])
    record_gather(encoder_of(current_state(device_of(x))), LOCATED, itemsizes[out.code], operands,
                  &space)
    return out


cdef int set_selected(Selection selection, object value) except -1:
    cdef GatherSpace space
    cdef Operand[2 + MAX_INDICES] operands
    cdef long long[MAX_NDIM] shape
    cdef Array view = selection.view, source
    cdef int ndim
    check_writable(view)
    selection.arrays = [duplicate(each) if overlaps(view, each) else each
                        for each in selection.arrays]
    ndim = describe_space(&space, selection, shape)
    memset(operands, 0, sizeof(operands))
    if is_number(value):
        put_repeated(view.code, value, operands[0].value)
    else:
        source = as_source(view, value)
        steps_of_value(source, ndim, shape, space.here)
        set_operand(&operands[0], source)
    return record(&space, WRITTEN, operands, view, selection.arrays)


cdef int put_repeated(int code, object value, unsigned long long* bits) except -1:
    """Repeat a number to fill 16 bytes."""
    cdef int size = itemsizes[code]
    put_number(code, value, bits)
    while size < 8:
        bits[0] |= bits[0] << 8 * size
        size *= 2
    if size == 8:
        bits[1] = bits[0]
    return 0


cdef Array as_source(Array target, object value):
    """Copy a value to write, in the target's type."""
    cdef Array source
    if not isinstance(value, Array):
        value = from_host(target, value)
    check_device(value, target, "the value of an assignment")
    source = cast(value, target.code)
    return duplicate(source) if overlaps(target, source) else source


cdef int steps_of_value(Array source, int ndim, const long long* shape, long long* steps) except -1:
    """Set the steps, initially 0, of the source broadcast to the result of the indexing."""
    cdef int d, at
    for d in range(source.ndim_):
        at = d + ndim - source.ndim_
        if source.dims[d] == 1:
            continue
        if at < 0 or source.dims[d] != shape[at]:
            indexed = tuple([shape[i] for i in range(ndim)])
            raise ValueError(f"shape mismatch: value array of shape {shape_of(source)} could not "
                             f"be broadcast to indexing result of shape {indexed}")
        steps[at] = source.steps[d]
    return 0


cdef bint set_where(Array x, object mask, object value) except -1:
    """Compute x[mask] = value without reading the number of true elements; return False if the
    number is needed."""
    cdef Operand[4] operands
    cdef long long[MAX_NDIM] mask_steps
    cdef long long[MAX_NDIM] steps
    cdef Array condition, source
    cdef int d, outer = mask.ndim, inner = x.ndim_ - outer
    check_mask(mask, x, 0)
    # The kernel keeps elements that checking mode would have overwritten with a pattern.
    if mask.size == 0 or settings.get("CYRT_CHECK"):
        return False
    memset(operands, 0, sizeof(operands))
    memset(mask_steps, 0, sizeof(mask_steps))
    memset(steps, 0, sizeof(steps))
    if is_number(value):
        put_number(x.code, value, operands[2].value)
    else:
        source = as_source(x, value)
        for d in range(source.ndim_ - inner):
            if source.dims[d] != 1:
                return False
        steps_of_value(source, inner, x.dims + outer, steps + outer)
        set_operand(&operands[2], source)
        operands[2].strides = steps
    check_writable(x)
    condition = mask if isinstance(mask, Array) else asarray(mask, device=x.device)
    if overlaps(x, condition):
        condition = duplicate(condition)
    for d in range(condition.ndim_):
        mask_steps[d] = condition.steps[d]
    set_operand(&operands[0], x)
    set_operand(&operands[1], condition)
    set_operand(&operands[3], x)
    operands[1].strides = mask_steps
    operands[0].strides = operands[3].strides = x.steps
    record_elementwise(encoder_of(current_state(device_of(x))), WHERE, x.code, operands, x.ndim_,
                       x.dims)
    return True


# -- the functions ---------------------------------------------------------------------------------


def get_by_arrays(Array x not None, key):
    """Return ``x[key]``, a copy, for a key with arrays of indices or masks."""
    cdef list parts
    if all_indices(key):
        return take_selected(along(x, key, 0))
    parts = parse_items(key, x.ndim_)
    mask = only_mask(parts)
    if isinstance(mask, Array) and mask.ndim == x.ndim_:
        check_mask(mask, x, 0)
        return select_where(x, mask)
    return take_selected(select(x, parts))


def set_by_arrays(Array x not None, key, value):
    """Assign ``x[key] = value`` for a key with arrays of indices or masks."""
    if all_indices(key):
        set_selected(along(x, key, 0), value)
        return
    parts = parse_items(key, x.ndim_)
    mask = only_mask(parts)
    if mask is None or not set_where(x, mask, value):
        set_selected(select(x, parts), value)


def put_at(Array out not None, key, value):
    """Assign ``out[key] = value``, and return the array."""
    out[key] = value
    return out


cdef Array check_indices(object indices, str name):
    if not is_indices(indices):
        check_array(indices, "indices")
        raise TypeError(f"{name}: indices: expected an array of integers, got {indices.dtype}")
    return indices


def take(x, /, indices, axis=None, out=None):
    """Take elements, rows or other slices along an axis at indices.

    Parameters
    ----------
    x : Array
    indices : Array, or int or sequence of int
        Integers of any shape. Negative ones count from the end. If an int or an element of a
        sequence is out of range, the call raises an IndexError. If an element of an Array is out of
        range, a GPU clips it to the range, and the emulated device stops with a fault; in checking
        mode (``CYRT_CHECK=1``) the call waits for the values and raises an IndexError.
    axis : int, optional
        The axis from which to take. Default: x is flattened in C order first.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        An array of x's type and shape, with the axis replaced by the shape of the indices.

    Raises
    ------
    TypeError
        The indices are not integers.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([10, 20, 30])
    >>> cyrt.take(x, cyrt.asarray([2, 0, -1]))
    Array([30, 10, 30], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(take, (x, indices, axis, out))
    cdef Array array = x if type(x) is Array else check_array(x, "x"), index
    if axis is None:
        array = reshape_array(array, 1, &array.count, False)
        axis = 0
    if not (PyLong_CheckExact(axis) and 0 <= axis < array.ndim_):
        axis = axis_of(axis, array.ndim_)
    if not isinstance(indices, Array) and isinstance(
            indices, (int, np.integer, list, tuple, range)):
        positions = np.asarray(indices)
        if positions.size == 0:
            positions = positions.astype(np.intp)
        if positions.dtype.kind not in "iu":
            raise TypeError(f"take: indices: expected integers, got {positions.dtype}")
        taken = get_by_arrays(array, (slice(None),) * axis + (positions,))
    else:
        index = check_indices(indices, "take")
        check_device(index, array, "take", "indices")
        taken = take_selected(along(array, index, axis))
    return taken if out is None else write_out("take", taken, out)


def take_along_axis(x, /, indices, axis=-1):
    """Take elements of each row along an axis, at different indices for each row.

    Parameters
    ----------
    x : Array
    indices : Array
        Integers, in an array of as many dimensions as x; the dimensions other than the axis
        broadcast with x's.
        Indices out of range are treated as by :func:`take`.
    axis : int, optional
        The axis from which to take. With None, x is flattened, and the indices have one dimension.

    Returns
    -------
    Array
        An array of x's type and the broadcast shape of the indices.

    Raises
    ------
    TypeError
        The indices are not integers.
    ValueError
        The numbers of dimensions differ, or the sizes do not broadcast.
    """
    if recording and is_followed(x):
        return record_call(take_along_axis, (x, indices, axis))
    cdef GatherSpace space
    cdef Operand[2 + MAX_INDICES] operands
    cdef Array array = check_array(x, "x"), index = check_indices(indices, "take_along_axis"), out
    cdef int d, chosen
    if axis is None:
        array, axis = reshape(array, (-1,)), 0
    chosen = axis_of(axis, array.ndim_, "axis")
    if index.ndim_ != array.ndim_:
        raise ValueError(f"take_along_axis: indices: expected {array.ndim_} dimensions as the "
                         f"array has, got shape {index.shape}")
    if index.count and array.dims[chosen] == 0:
        raise IndexError(f"take_along_axis: an index is out of bounds for axis {chosen} of size 0")
    check_device(index, array, "take_along_axis: indices")
    check_range(index, chosen, array.dims[chosen])
    memset(&space, 0, sizeof(space))
    memset(operands, 0, sizeof(operands))
    space.ndim, space.count = array.ndim_, 1
    for d in range(array.ndim_):
        space.shape[d] = index.dims[d]
        if index.dims[d] != 1 or d == chosen:
            space.indices[0].strides[d] = index.steps[d]
        if d == chosen:
            continue
        if array.dims[d] != 1:
            space.there[d] = array.steps[d]
            if index.dims[d] == 1:
                space.shape[d] = array.dims[d]
            elif index.dims[d] != array.dims[d]:
                raise ValueError(f"take_along_axis: indices: expected a shape that broadcasts to "
                                 f"{array.shape} except along axis {chosen}, got {index.shape}")
    space.indices[0].size = array.dims[chosen]
    space.indices[0].stride = array.steps[chosen]
    space.indices[0].kind = kinds[index.code]
    out = new_array(device_of(array), array.code, space.ndim, space.shape)
    set_operand(&operands[0], out)
    for d in range(space.ndim):
        space.here[d] = out.steps[d]
    record(&space, TAKEN, operands, array, [index])
    return out
