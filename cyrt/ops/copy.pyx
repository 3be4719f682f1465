"""Copies, casts and fills between arrays."""

from libc.string cimport memset

from cyrt cimport ndarray as arrays
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.dispatch cimport record_elementwise
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand, op_code
from cyrt.ndarray cimport (
    Array, densed, device_of, itemsizes, new_array, overlaps, set_operand, shape_of,
)
from cyrt.ops.arguments import check_array
from cyrt.ops.promotion cimport NUM_DTYPES, is_number, put_number
from cyrt.runtime.device cimport ordinal_of
from cyrt.runtime.memory cimport copy_memory
from cyrt.runtime.stream cimport current_state

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
    shape = tuple([dims[i] for i in range(ndim)])
    raise ValueError(f"shape {shape_of(x)} does not broadcast to {shape}")


cdef int check_writable(Array target) except -1:
    cdef int d
    if target.dense:
        return 0
    for d in range(target.ndim_):
        if target.steps[d] == 0 and target.dims[d] > 1:
            raise ValueError("elements of a broadcast array share memory: it cannot be written; "
                             "copy() it first")
    return 0


cdef bint laid_alike(Array target, Array source, const long long* steps) noexcept:
    """Whether each element is read where it is written."""
    cdef int d
    if target.address != source.address:
        return False
    for d in range(target.ndim_):
        if target.dims[d] != 1 and target.steps[d] != steps[d]:
            return False
    return True


cdef int assign_array(Array target, Array source) except -1:
    cdef long long[MAX_NDIM] steps
    cdef Operand[2] operands
    cdef int ordinal = device_of(target)
    check_writable(target)
    if device_of(source) != ordinal:
        raise ValueError(f"the source is on device {device_of(source)}, the target on device "
                         f"{ordinal}; to_device() moves arrays")
    broadcast_steps(source, target.ndim_, target.dims, steps)
    if target.code == source.code and laid_alike(target, source, steps):
        return 0
    if overlaps(target, source) and not (itemsizes[target.code] == itemsizes[source.code]
                                         and laid_alike(target, source, steps)):
        source = duplicate(source)
        broadcast_steps(source, target.ndim_, target.dims, steps)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    set_operand(&operands[1], source)
    operands[0].strides = target.steps
    operands[1].strides = steps
    record_elementwise(encoder_of(current_state(ordinal)),
                       COPY if target.code == source.code else CASTS[target.code], source.code,
                       operands, target.ndim_, target.dims)
    return 0


cdef int fill(Array target, object value) except -1:
    cdef Operand[2] operands
    check_writable(target)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    put_number(target.code, value, operands[1].value)
    record_elementwise(encoder_of(current_state(device_of(target))), COPY, target.code, operands,
                       target.ndim_, target.dims)
    return 0


cdef int assign_value(Array target, object value) except -1:
    if isinstance(value, Array):
        return assign_array(target, <Array>value)
    if is_number(value):
        return fill(target, value)
    return assign_array(target, from_host(target, value))


cdef Array from_host(Array target, object value):
    """What is no Array, to be written into one; Python's numbers have no type of their own."""
    from cyrt.ops.creation import asarray

    dtype = None if hasattr(value, "dtype") else DTYPES[target.code]
    return asarray(value, dtype=dtype, device=device_of(target))


cdef Array duplicate(Array x):
    cdef Array y = new_array(device_of(x), x.code, x.ndim_, x.dims)
    assign_array(y, x)
    return y


cdef Array cast(Array x, int code):
    cdef Array y
    if x.code == code:
        return x
    y = new_array(device_of(x), code, x.ndim_, x.dims)
    assign_array(y, x)
    return y


def copy(x, /):
    """A dense copy of an array, in C order.

    Parameters
    ----------
    x : Array

    Returns
    -------
    Array
        Of the same shape and type, in memory of its own.
    """
    return duplicate(check_array(x, "copy: x"))


def astype(x, dtype, /, *, copy=True, device=None):
    """The array with its elements cast.

    Parameters
    ----------
    x : Array
    dtype : DType
        A float beyond an integer type's range gives any value; complex to real drops the imaginary
        part.
    copy : bool
        False: x itself where it is of that type.
    device : Device, optional
        Where the result lies.

    Returns
    -------
    Array
        Of x's shape.
    """
    cdef Array array = x if isinstance(x, Array) else check_array(x, "astype: x")
    cdef int code = _dtype(dtype).code
    if code != array.code:
        array = cast(array, code)
    elif copy:
        array = duplicate(array)
    return array if device is None else to_device(array, device)


def to_device(x, device, /, *, stream=None):
    """The array on a device.

    Parameters
    ----------
    x : Array
    device : Device, int or str
        ``"cpu"``: the host.
    stream : Stream, optional
        Where the copy is put; the current one where left out.

    Returns
    -------
    Array or numpy.ndarray
        x itself where it lies there; a NumPy array on the host.
    """
    cdef Array array = check_array(x, "to_device: x"), target
    if isinstance(device, str):
        if device != "cpu":
            raise ValueError(f"to_device: expected a cyrt.Device, an int or 'cpu', got {device!r}")
        return array.numpy()
    cdef int ordinal = ordinal_of(device)
    if ordinal == device_of(array):
        return array
    array = densed(array)
    target = new_array(ordinal, array.code, array.ndim_, array.dims)
    copy_memory(array, target, stream, True)
    return target


def assign(target, value, /):
    """Write a value, broadcast and cast, into all elements of an array.

    Parameters
    ----------
    target : Array
    value : Array, number, or what :func:`cyrt.asarray` takes
    """
    assign_value(target, value)


arrays.assign = assign_value
