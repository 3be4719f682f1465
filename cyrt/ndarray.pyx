"""The n-d array: shape, strides and element type over a device's memory."""

cimport cython
from cpython.object cimport PyObject
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.stdlib cimport malloc

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand
from cyrt.operators cimport Operators
from cyrt.operators import functions
from cyrt.runtime.device cimport Device, context_of
from cyrt.runtime.exchange cimport capsule_of, interface_of
from cyrt.runtime.memory cimport (
    REPEATED, SCATTERED, Memory, copy_memory, export_address, live_block, track,
)
from cyrt.runtime.pool cimport allocate
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef extern from *:
    """
    #define CYRT_MOST_ELEMENTS (1LL << 58)
    """
    const long long MOST "CYRT_MOST_ELEMENTS"
    bint __builtin_mul_overflow(long long a, long long b, long long* product) noexcept

max_ndim = MAX_NDIM
cdef tuple dtypes = DTYPES
for _each in DTYPES:
    itemsizes[_each.code] = _each.itemsize


# -- making arrays ---------------------------------------------------------------------------------


cdef inline int make_room(Array x, int ndim) except -1:
    x.ndim_ = ndim
    x.dims = x.room
    if ndim > INLINE:
        x.heap = malloc(2 * ndim * sizeof(long long))
        if x.heap == NULL:
            raise MemoryError()
        x.dims = <long long*>x.heap
    x.steps = x.dims + ndim
    return 0


cdef int refuse_size(int ndim, const long long* dims) except -1:
    shape = tuple([dims[i] for i in range(ndim)])
    raise ValueError(f"shape {shape} has more elements than memory can hold")


cdef inline bint multiply(long long* count, long long size) noexcept:
    """Whether so many elements times a size that is not 0 are few enough."""
    return not __builtin_mul_overflow(count[0], size, count) and count[0] <= MOST


cdef int check_size(int ndim, const long long* dims) except -1:
    cdef long long count = 1
    cdef int d
    for d in range(ndim):
        if dims[d] and not multiply(&count, dims[d]):
            refuse_size(ndim, dims)
    return 0


cdef Array new_array_on(StreamState* stream, int code, int ndim, const long long* dims):
    cdef Array x = Array.__new__(Array)
    cdef long long count = 1
    cdef bint empty = False
    cdef int d
    make_room(x, ndim)
    for d in range(ndim - 1, -1, -1):
        x.dims[d] = dims[d]
        x.steps[d] = count
        if dims[d] == 0:
            empty = True
        elif not multiply(&count, dims[d]):
            refuse_size(ndim, dims)
    x.code = code
    x.traits = 1 << code
    x.dense = True
    x.count = 0 if empty else count
    x.size = x.count * itemsizes[code]
    x.block = allocate(stream, x.size)
    x.address = x.block.address
    return x


cdef Array new_array(int ordinal, int code, int ndim, const long long* dims):
    context_of(ordinal)
    return new_array_on(current_state(ordinal), code, ndim, dims)


cdef Array array_over(Memory memory, int code, int ndim, const long long* dims,
                      const long long* steps, long long offset):
    cdef Array x = Array.__new__(Array)
    cdef long long contiguous = 1
    cdef unsigned int traits = 0
    cdef int d
    make_room(x, ndim)
    for d in range(ndim - 1, -1, -1):
        x.dims[d] = dims[d]
        x.steps[d] = steps[d]
        if dims[d] != 1 and steps[d] != contiguous:
            traits |= SCATTERED
            if steps[d] == 0:
                traits |= REPEATED
        contiguous *= dims[d]
    if contiguous == 0:
        traits = 0
    x.dense = traits == 0
    x.code = code
    x.traits = traits | 1 << code
    x.count = contiguous
    x.size = contiguous * itemsizes[code]
    x.address = memory.address + offset * itemsizes[code]
    x.base = memory if memory.base is None else memory.base
    x.owner = memory.owner
    track(x)
    return x


cdef Array view_of(Array x, int code, int ndim, const long long* dims, const long long* steps,
                   long long offset):
    return array_over(x, code, ndim, dims, steps, offset)


cdef int device_of(Array x) except -1:
    return live_block(x).ordinal


cdef int set_operand(Operand* operand, Array x) except -1:
    operand.buffer = <PyObject*>x
    operand.address = x.address
    operand.strides = NULL if x.dense else x.steps
    return 0


cdef (long long, long long) extent_of(Array x) noexcept:
    """The first byte, and the one after the last, relative to `address`."""
    cdef long long low = 0, high = 0, reach
    cdef int d
    if x.count == 0:
        return 0, 0
    for d in range(x.ndim_):
        reach = (x.dims[d] - 1) * x.steps[d]
        if reach < 0:
            low += reach
        else:
            high += reach
    return low * itemsizes[x.code], (high + 1) * itemsizes[x.code]


cdef bint overlaps(Array a, Array b) noexcept:
    cdef long long low, high, distance = <long long>(b.address - a.address)
    cdef long long other_low, other_high
    low, high = extent_of(a)
    other_low, other_high = extent_of(b)
    return other_low + distance < high and low < other_high + distance


cdef tuple shape_of(Array x):
    cdef int d
    return tuple([x.dims[d] for d in range(x.ndim_)])


cdef Array densed(Array x):
    cdef Array y
    if x.dense:
        return x
    y = new_array(device_of(x), x.code, x.ndim_, x.dims)
    assign(y, x)
    return y


cdef int dims_of(object shape, long long* dims) except -1:
    cdef int ndim = 0
    if PyIndex_Check(shape) and not getattr(shape, "ndim", 0):
        shape = (shape,)
    try:
        shape = tuple(shape)
    except TypeError:
        raise TypeError(f"shape: expected an int or a tuple of ints, got "
                        f"{type(shape).__name__}") from None
    if len(shape) > MAX_NDIM:
        raise ValueError(f"shape: expected at most {MAX_NDIM} dimensions, got {len(shape)}")
    for each in shape:
        if not PyIndex_Check(each):
            raise TypeError(f"shape: expected ints, got {type(each).__name__} in {shape}")
        size = PyNumber_Index(each)
        if size < 0:
            raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
        if size > MOST:
            raise ValueError(f"shape {shape} has more elements than memory can hold")
        dims[ndim] = size
        ndim += 1
    return ndim


cdef Array part(Array x, int which):
    """The real or imaginary parts of a complex array, as a view; x itself of a real one."""
    cdef long long[MAX_NDIM] steps
    cdef int d
    dtype = dtypes[x.code]
    if dtype.kind != "c":
        return x
    for d in range(x.ndim_):
        steps[d] = 2 * x.steps[d]
    return view_of(x, _dtype(dtype.real).code, x.ndim_, x.dims, steps, which)


# -- indexing --------------------------------------------------------------------------------------


cdef bint is_basic(object key):
    """Whether it holds only ints, slices, None and Ellipsis."""
    if type(key) is tuple:
        for each in <tuple>key:
            if not (isinstance(each, slice) or each is None or each is Ellipsis
                    or (PyIndex_Check(each) and not isinstance(each, bool)
                        and not isinstance(each, (Array, np.ndarray)))):
                return False
        return True
    return is_basic((key,))


cdef long long whole_index(object each, int axis, long long size) except? -1:
    cdef long long i
    try:
        i = PyNumber_Index(each)
    except OverflowError:
        i = size
    if i < -size or i >= size:
        raise IndexError(f"index {each} is out of bounds for axis {axis} with size {size}")
    return i + size if i < 0 else i


cdef Array view_at(Array x, object key):
    """A view by ints, slices, None and Ellipsis."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef long long offset = 0
    cdef Py_ssize_t start, stop, step, length
    cdef int ndim = 0, axis = 0, named = 0, ellipses = 0, more = 0
    cdef tuple parts = key if type(key) is tuple else (key,)
    for each in parts:
        if each is Ellipsis:
            ellipses += 1
        elif each is None:
            more += 1
        else:
            named += 1
            more -= not isinstance(each, slice)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if named > x.ndim_:
        raise IndexError(f"too many indices for array: array is {x.ndim_}-dimensional, but {named} "
                         "were indexed")
    if ellipses == 0 and named < x.ndim_:
        parts = parts + (Ellipsis,)
    if x.ndim_ + more > MAX_NDIM:
        raise IndexError(f"the result would have more than {MAX_NDIM} dimensions")
    for each in parts:
        if each is None:
            dims[ndim] = 1
            steps[ndim] = 0
            ndim += 1
        elif each is Ellipsis:
            for _ in range(x.ndim_ - named):
                dims[ndim] = x.dims[axis]
                steps[ndim] = x.steps[axis]
                ndim += 1
                axis += 1
        elif isinstance(each, slice):
            PySlice_Unpack(each, &start, &stop, &step)
            length = PySlice_AdjustIndices(x.dims[axis], &start, &stop, step)
            if length:
                offset += start * x.steps[axis]
            dims[ndim] = length
            steps[ndim] = step * x.steps[axis] if length > 1 else x.steps[axis]
            ndim += 1
            axis += 1
        else:
            offset += whole_index(each, axis, x.dims[axis]) * x.steps[axis]
            axis += 1
    return view_of(x, x.code, ndim, dims, steps, offset)


def _parts(Array x):
    """The views at each index of the first dimension."""
    for i in range(x.dims[0]):
        yield view_at(x, i)


# -- to the host -----------------------------------------------------------------------------------


cdef object host_copy(Array x):
    """A NumPy array of the same shape and type."""
    result = np.empty(shape_of(x), dtypes[x.code].numpy)
    if x.count:
        x = densed(x)
        copy_memory(x, result.reshape(-1).view(np.uint8), None, True)
    else:
        live_block(x)
    return result


cdef object single(Array x, str what):
    """The one element as a Python number."""
    if x.count != 1:
        raise TypeError(f"only an array of one element is {what}, got shape {shape_of(x)}")
    return host_copy(x).item()


# -- the class -------------------------------------------------------------------------------------


@cython.no_gc
cdef class Array(Operators):
    """An n-dimensional array on a device.

    Made by :func:`cyrt.asarray`, :func:`cyrt.zeros` and others, never by calling the class.
    Operators and functions return at once: they record work, which runs in order on the device;
    what needs a value on the host (``numpy()``, ``item()``, printing, ``bool()``) waits for it.
    Names and semantics are those of the Python array API standard (data-apis.org/array-api,
    2025.12) where it speaks, and NumPy's otherwise.
    """

    # NumPy leaves operators with an Array to it.
    __array_ufunc__ = None
    __array_priority__ = 1000.0

    def __init__(self):
        raise TypeError("an Array is made by cyrt.asarray(), cyrt.zeros(), ..., not by its class")

    # -- what it is --

    @property
    def shape(self):
        """Sizes of the dimensions, a tuple of int."""
        return shape_of(self)

    @property
    def strides(self):
        """Bytes from one element to the next along each dimension, a tuple of int."""
        cdef int d
        return tuple([self.steps[d] * itemsizes[self.code] for d in range(self.ndim_)])

    @property
    def dtype(self):
        """The element type, a :class:`cyrt.dtypes.DType`."""
        return dtypes[self.code]

    @property
    def ndim(self):
        """How many dimensions it has."""
        return self.ndim_

    @property
    def size(self):
        """How many elements it has."""
        return self.count

    @property
    def itemsize(self):
        """Bytes of an element."""
        return itemsizes[self.code]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.count * itemsizes[self.code]

    @property
    def device(self):
        """The device whose memory it is."""
        return Device(device_of(self))

    @property
    def ptr(self):
        """Device address of the first element, an int; handed out as :attr:`Buffer.ptr` is."""
        return export_address(self)

    @property
    def T(self):
        """A view with the dimensions in reverse order."""
        cdef long long[MAX_NDIM] dims
        cdef long long[MAX_NDIM] steps
        cdef int d
        for d in range(self.ndim_):
            dims[d] = self.dims[self.ndim_ - 1 - d]
            steps[d] = self.steps[self.ndim_ - 1 - d]
        return view_of(self, self.code, self.ndim_, dims, steps, 0)

    @property
    def mT(self):
        """A view with the last two dimensions exchanged; ValueError below two dimensions."""
        return functions.matrix_transpose(self)

    @property
    def real(self):
        """The real parts: a view of a complex array, the array itself otherwise."""
        return part(self, 0)

    @real.setter
    def real(self, value):
        assign(part(self, 0), value)

    @property
    def imag(self):
        """The imaginary parts: a view of a complex array, zeros otherwise."""
        return part(self, 1) if dtypes[self.code].kind == "c" else functions.zeros_like(self)

    @imag.setter
    def imag(self, value):
        if dtypes[self.code].kind != "c":
            raise TypeError(f"imag: {dtypes[self.code]} has no imaginary parts to write")
        assign(part(self, 1), value)

    @property
    def flags(self):
        """How it lies in memory, as NumPy's flags: ``flags.c_contiguous``, ``flags["OWNDATA"]``."""
        return functions.Flags(self)

    @property
    def flat(self):
        """Its elements in C order: ``x.flat[i]``, ``x.flat[a:b] = value``; iteration waits."""
        return functions.Flat(self)

    @flat.setter
    def flat(self, value):
        functions.Flat(self)[:] = value

    # -- to the host and to others --

    def numpy(self):
        """A NumPy array with the values; waits for them.

        Returns
        -------
        numpy.ndarray
            C-contiguous, a copy; bfloat16 is that of ml_dtypes.
        """
        return host_copy(self)

    def item(self, *index):
        """One element as a Python number; waits for it.

        Parameters
        ----------
        *index : int
            One a dimension, or one into the flattened array; none where there is one element.

        Raises
        ------
        ValueError
            None given, and not exactly one element.
        """
        if not index:
            if self.count != 1:
                raise ValueError("item(): without an index the array must have one element, its "
                                 f"shape is {shape_of(self)}")
            return host_copy(self).item()
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if len(index) == 1 and self.ndim_ != 1:
            index = np.unravel_index(whole_index(index[0], 0, self.count), shape_of(self))
        if len(index) != self.ndim_:
            raise IndexError(f"item(): expected {self.ndim_} indices, got {len(index)}")
        return host_copy(view_at(self, tuple(index))).item()

    def tolist(self):
        """Nested lists of Python numbers, or one number; waits for them."""
        return host_copy(self).tolist()

    def tobytes(self):
        """The bytes of the elements, in C order; waits for them."""
        return host_copy(self).tobytes()

    def __array__(self, dtype=None, *, copy=None):
        if copy is False:
            raise ValueError("an Array lies on a device: NumPy gets a copy, never a view")
        result = host_copy(self)
        return result if dtype is None else result.astype(dtype, copy=False)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule (dmlc.github.io/dlpack, 1.1); the consumer's stream is made to wait.

        Parameters
        ----------
        stream : int, optional
            The consumer's: None or 1 the legacy stream, 2 the per-thread one, -1 no waiting, else
            a ``cudaStream_t``.
        max_version : tuple of int, optional
            The highest that the consumer knows.
        dl_device : tuple of int, optional
            Where the data are wanted: this device, or ``(1, 0)``, the host.
        copy : bool, optional
            True: of a copy; False: never.

        Raises
        ------
        BufferError
            The device, or no copy, is not possible.
        """
        cdef Array x = self
        here = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != here:
            if tuple(dl_device) != (1, 0):
                raise BufferError(f"__dlpack__: the array is on device {here}, it can be handed "
                                  f"out there or on the host, (1, 0), not on {dl_device}")
            if copy is False:
                raise BufferError("__dlpack__: to the host is a copy, and copy=False was given")
            return host_copy(self).__dlpack__(max_version=max_version)
        if copy:
            x = new_array(device_of(self), self.code, self.ndim_, self.dims)
            assign(x, self)
        dtype = dtypes[x.code]
        return capsule_of(x, x.ndim_, x.dims, x.steps, dtype.kind, dtype.name == "bfloat16",
                          dtype.itemsize, stream, max_version, bool(copy))

    def __dlpack_device__(self):
        return (2, device_of(self))

    @property
    def __cuda_array_interface__(self):
        dtype = dtypes[self.code]
        if dtype.name == "bfloat16":
            raise AttributeError("__cuda_array_interface__ has no bfloat16; use __dlpack__")
        return interface_of(self, shape_of(self), None if self.dense else self.strides,
                            dtype.numpy.str)

    def __array_namespace__(self, /, *, api_version=None):
        """The module with the standard's functions: :mod:`cyrt`."""
        return functions.namespace(api_version)

    def __reduce__(self):
        return functions.asarray, (host_copy(self),)

    def __copy__(self):
        return functions.copy(self)

    def __deepcopy__(self, memo):
        return functions.copy(self)

    def __bool__(self):
        if self.count != 1:
            raise ValueError(f"the truth value of an array of shape {shape_of(self)} is ambiguous: "
                             "use any() or all()")
        return bool(host_copy(self).item())

    def __int__(self):
        return int(single(self, "converted to an int"))

    def __float__(self):
        return float(single(self, "converted to a float"))

    def __complex__(self):
        return complex(single(self, "converted to a complex"))

    def __round__(self, ndigits=None):
        return round(single(self, "rounded to a number"), ndigits)

    def __index__(self):
        if dtypes[self.code].kind not in "iu" or self.ndim_ != 0:
            raise TypeError("only an integer array of no dimensions is an index, got "
                            f"{dtypes[self.code]} of shape {shape_of(self)}")
        return host_copy(self).item()

    def __repr__(self):
        return functions.repr_of(self)

    def __str__(self):
        return functions.text_of(self)

    def __format__(self, spec):
        if self.ndim_ == 0:
            return format(host_copy(self).item(), spec)
        text = str(self)
        try:
            found = format(text, spec)
        except ValueError:              # a number's
            found = ""
        if text not in found:           # a precision cuts text off
            raise TypeError(f"format {spec!r}: expected an array of no dimensions, got shape "
                            f"{shape_of(self)}")
        return found

    # -- elements --

    def __len__(self):
        if self.ndim_ == 0:
            raise TypeError("len() of an array of no dimensions")
        return self.dims[0]

    def __iter__(self):
        if self.ndim_ == 0:
            raise TypeError("iteration over an array of no dimensions")
        return _parts(self)

    def __getitem__(self, key):
        return view_at(self, key) if is_basic(key) else functions.get_by_arrays(self, key)

    def __setitem__(self, key, value):
        if is_basic(key):
            assign(view_at(self, key), value)
        else:
            functions.set_by_arrays(self, key, value)

    def __contains__(self, value):
        found = self == value
        return bool(functions.any(found)) if isinstance(found, Array) else found
