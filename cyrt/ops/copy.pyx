"""Copies, casts and fills between arrays."""

from libc.string cimport memset

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, has_shape, itemsizes, new_array, overlaps, set_operand,
    shape_of,
)
from cyrt.ops.arguments import check_array, check_flags, refuse_device, refuse_output
from cyrt.ops.promotion cimport NUM_DTYPES, is_number, put_number, same_kind
from cyrt.ops.tensors cimport view_output
from cyrt.runtime.device cimport ordinal_of
from cyrt.runtime.memory cimport READ_ONLY, copy_memory, live_block, refuse_read_only
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int COPY = op_code("copy")
cdef int[NUM_DTYPES] CASTS
for _each in DTYPES:
    CASTS[<int>_each.code] = op_code(f"to_{_each.name}")


cdef int broadcast_steps(Array x, int ndim, const long long* dims, long long* steps) except -1:
    cdef int d, own, extra = x.ndim_ - ndim
    for d in range(extra):
        if x.dims[d] != 1:
            refuse_shapes(x, ndim, dims)
    for d in range(ndim):
        own = d + extra
        if own < 0 or x.dims[own] == 1 != dims[d]:
            steps[d] = 0
        elif x.dims[own] == dims[d]:
            steps[d] = x.steps[own]
        else:
            refuse_shapes(x, ndim, dims)
    return 0


cdef int refuse_shapes(Array x, int ndim, const long long* dims) except -1:
    raise ValueError(f"shape {shape_of(x)} does not broadcast to {tuple_of_sizes(ndim, dims)}")


cpdef int check_device(Array x, Array like, str name, str argument=None) except -1:
    if x is not None and device_of(x) != device_of(like):
        refuse_device(name if argument is None else f"{name}: {argument}", device_of(x),
                      device_of(like))
    return 0


def check_devices(str name not None, **arguments):
    """Raise a ValueError if Arrays among a function's arguments are on two devices.

    Parameters
    ----------
    name : str
        The function's name.
    **arguments
        Its arguments by name. The device of the first Array is the expected one.
    """
    cdef Array first = None
    for argument, each in arguments.items():
        if isinstance(each, Array):
            first = each if first is None else first
            check_device(each, first, name, argument)


cdef int check_writable(Array target) except -1:
    if target.traits & READ_ONLY:
        refuse_read_only()
    return 0


cdef bint has_same_layout(Array target, Array source, const long long* steps) noexcept:
    """Return whether each element is read at the address at which it is written."""
    cdef int d
    if target.address != source.address:
        return False
    for d in range(target.ndim_):
        if target.dims[d] != 1 and target.steps[d] != steps[d]:
            return False
    return True


cdef bint overwrites(Array target, Array source, const long long* steps) noexcept:
    return overlaps(target, source) and not (
        itemsizes[target.code] == itemsizes[source.code]
        and has_same_layout(target, source, steps))


cdef Array check_out(str name, object out, int code, int ndim, const long long* dims,
                     int ordinal=-1):
    cdef Array target
    if not isinstance(out, Array):
        refuse_output(out, name)
    target = <Array>out
    if not has_shape(target, ndim, dims):
        raise ValueError(f"{name}: the result has shape {tuple_of_sizes(ndim, dims)}, it cannot be "
                         f"written into shape {shape_of(target)}")
    if not same_kind(code, target.code):
        raise TypeError(f"{name}: a result of {DTYPES[code]} cannot be written into "
                        f"{DTYPES[target.code]}; a call without out=, or x = x + y instead of "
                        f"x += y, makes a new array"
                        + (", and //= divides integers" if name == "divide" else ""))
    if ordinal >= 0 and device_of(target) != ordinal:
        refuse_device(f"{name}: out", device_of(target), ordinal)
    check_writable(target)
    return target


cpdef object write_out(str name, Array result, object out):
    """Return the result, or `out` with the result in it.

    Parameters
    ----------
    name : str
        The function's name, for errors.
    result : Array
    out : Array, optional
        An array of the result's shape and of a type of the same kind.
    """
    cdef Array target
    if out is None:
        return result
    target = view_output(name, out)
    check_out(name, target, result.code, result.ndim_, result.dims, device_of(result))
    assign_value(target, result)
    return out


cdef bint is_variable(Array target) except -1:
    """Return whether the array views a variable of a module, whose block has no address; that of an
    array without elements may have none, either."""
    cdef int i
    for i in range(target.ndim_):
        if target.dims[i] == 0:
            return False
    return live_block(target).address == 0


cdef int assign_variable(Array target, object value) except -1:
    """Assign by a copy: the variable may be in constant memory, which no kernel may write."""
    cdef Array whole = new_array(device_of(target), target.code, target.ndim_, target.dims)
    if isinstance(value, Array):
        assign_array(whole, <Array>value)
    else:
        fill(whole, value)
    return copy_memory(target, whole, None, False)


cdef int assign_array(Array target, Array source) except -1:
    cdef long long[MAX_NDIM] steps
    cdef Operand[2] operands
    live_block(target)
    live_block(source)
    check_writable(target)
    check_device(source, target, "the source of a copy")
    broadcast_steps(source, target.ndim_, target.dims, steps)
    if target.code == source.code and has_same_layout(target, source, steps):
        return 0
    if overwrites(target, source, steps):
        source = duplicate(source)
        broadcast_steps(source, target.ndim_, target.dims, steps)
    if is_variable(target) and target.dense:
        return assign_variable(target, source)
    set_operand(&operands[0], target)
    set_operand(&operands[1], source)
    # Whole arrays are copied as one row, without strides.
    if not (target.dense and source.dense and target.count == source.count):
        operands[0].strides = target.steps
        operands[1].strides = steps
    record_elementwise(encoder_of(current_state(device_of(target))),
                       COPY if target.code == source.code else CASTS[target.code], source.code,
                       operands, target.ndim_, target.dims)
    return 0


cdef int fill(Array target, object value) except -1:
    cdef Operand[2] operands
    check_writable(target)
    if is_variable(target) and target.dense:
        return assign_variable(target, value)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    put_number(target.code, value, operands[1].value)
    record_elementwise(encoder_of(current_state(device_of(target))), COPY, target.code, operands,
                       target.ndim_, target.dims)
    return 0


cdef int assign_value(object target, object value) except -1:
    if recording and (is_followed(target) or is_followed(value)):
        record_call(assign, (target, value))
        return 0
    if isinstance(value, Array):
        return assign_array(<Array?>target, <Array>value)
    if is_number(value):
        return fill(<Array?>target, value)
    return assign_array(<Array?>target, from_host(target, value))


cdef Array from_host(Array target, object value):
    """Convert a value that is not an Array for writing into one; Python numbers take the target's
    type."""
    from cyrt.ops.creation import asarray

    dtype = None if hasattr(value, "dtype") else DTYPES[target.code]
    return asarray(value, dtype=dtype, device=device_of(target))


cdef Array duplicate(Array x):
    cdef Array y = new_array(device_of(x), x.code, x.ndim_, x.dims)
    assign_array(y, x)
    return y


cdef Array cast(Array x, int code):
    if recording and is_followed(x):
        return record_call(astype, (x, DTYPES[code], True, None))
    cdef Array y
    if x.code == code:
        return x
    y = new_array(device_of(x), code, x.ndim_, x.dims)
    assign_array(y, x)
    return y


def copy(x, /):
    """Copy an array to contiguous memory, in C order.

    Parameters
    ----------
    x : Array

    Returns
    -------
    Array
        An array of the same shape and type, in its own memory.
    """
    if recording and is_followed(x):
        return record_call(copy, (x,))
    return duplicate(<Array>x if isinstance(x, Array) else check_array(x, "copy: x"))


def astype(x, /, dtype, *, copy=True, device=None):
    """Cast the elements of an array.

    Parameters
    ----------
    x : Array
    dtype : DType
        The element type of the result. The result of a float beyond an integer type's range is
        undefined; a cast from complex to real drops the imaginary part.
    copy : bool
        Whether to copy an array that already has the type. Without a copy, the result is x itself.
    device : Device, optional
        The device of the result. Default: x's device.

    Returns
    -------
    Array
        An array of x's shape.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.astype(cyrt.asarray([1.7, -1.7]), cyrt.int32)
    Array([ 1, -1], dtype=int32)
    """
    if recording and is_followed(x):
        return record_call(astype, (x, dtype, copy, device))
    cdef Array array = x if isinstance(x, Array) else check_array(x, "astype: x")
    cdef int code = _dtype(dtype).code
    if copy is not True and copy is not False:
        check_flags("astype", copy=copy)
    if code != array.code:
        array = cast(array, code)
    elif copy:
        array = duplicate(array)
    return array if device is None else to_device(array, device)


def to_device(x, device, /, *, stream=None):
    """Copy an array to a device.

    Parameters
    ----------
    x : Array
    device : Device, int or str
        The target device; ``"cpu"`` is the host, and ``"cuda:1"`` the device with index 1.
    stream : Stream, optional
        The stream on which the copy is recorded. Default: the current stream.

    Returns
    -------
    Array or numpy.ndarray
        x itself if it is already on the device; for the host, a NumPy array.
    """
    cdef Array array = check_array(x, "to_device: x"), target
    if isinstance(device, str) and device == "cpu":
        return array.numpy()
    if recording and is_followed(x):
        return record_call(to_device, (x, device, stream))
    cdef int ordinal = ordinal_of(device)
    if ordinal == device_of(array):
        return array
    array = as_contiguous(array)
    target = new_array(ordinal, array.code, array.ndim_, array.dims)
    copy_memory(array, target, stream, True)
    return target


def assign(out, value, /):
    """Write a value, broadcast and cast, into all elements of an array, and return the array.

    Parameters
    ----------
    out : Array
    value : Array, number, or another argument of :func:`cyrt.asarray`
    """
    assign_value(out, value)
    return out
