"""The n-d array: shape, strides and element type of a device's memory."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.type cimport PyType_Modified
from libc.stdlib cimport llabs, malloc
from libc.string cimport memcpy

import numpy as np

from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.indexing cimport View, index_at, read_key
from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.operators cimport Operators, ops
from cyrt.operators import functions
from cyrt.runtime.device cimport Device, context_of
from cyrt.runtime cimport memory as memories
from cyrt.runtime.exchange cimport capsule_of, interface_of
from cyrt.runtime.memory cimport (
    CYRT_INITIALISE_REFERENCES, READ_ONLY, SCATTERED, Memory, copy_memory, dead_arrays,
    export_address, live_block, track, view_bytes,
)
from cyrt.runtime.pool cimport allocate
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording, tape_of_view
from cyrt.runtime.untracked cimport cyrt_allocate, cyrt_bear_untracked
from cyrt.shape cimport multiply, refuse_size

memories.array_type = <void*>Array
cyrt_bear_untracked(<PyTypeObject*>Array)
max_ndim = MAX_NDIM
cdef tuple dtypes = DTYPES
for _each in DTYPES:
    itemsizes[_each.code] = _each.itemsize


# -- making arrays ---------------------------------------------------------------------------------


cdef extern from *:
    """
    #define CYRT_SIZE_OF(object) sizeof(*(object))
    static inline PyObject* cyrt_revive(PyObject* dead) {
        Py_SET_REFCNT(dead, 1);
        return dead;
    }
    """
    size_t CYRT_SIZE_OF(Array) noexcept
    # Return an object that was kept when it died.
    object cyrt_revive(PyObject* dead)


cdef inline Array revived_array():
    """Return an Array that was kept when it died; there is one."""
    cdef PyObject* dead = dead_arrays.first
    dead_arrays.first = <PyObject*>(<Memory>dead).block
    dead_arrays.count -= 1
    return <Array>cyrt_revive(dead)


cdef inline void set_room(Array x, int ndim) noexcept:
    """Prepare an Array for a shape that it has room for."""
    x.block = NULL
    x.tape = 0
    x.ndim_ = ndim
    x.dims = x.room
    x.steps = x.room + ndim


cdef inline Array empty_array(int ndim):
    """Allocate an Array with room for shape and strides, and no memory yet."""
    cdef Array x
    if dead_arrays.first != NULL:
        x = revived_array()
    else:
        x = <Array>cyrt_allocate(<PyTypeObject*>Array, CYRT_SIZE_OF(<Array>NULL))
        CYRT_INITIALISE_REFERENCES(x)
        x.heap = NULL
        x.initialised, x.tracked = False, False
    set_room(x, ndim)
    if ndim > INLINE:
        x.heap = malloc(2 * ndim * sizeof(long long))
        if x.heap == NULL:
            raise MemoryError()
        x.dims = <long long*>x.heap
        x.steps = x.dims + ndim
    return x


cdef inline void set_dense(Array x, int code, long long count) noexcept:
    x.code = code
    x.traits = 1 << code
    x.dense = True
    x.count = count
    x.size = count * itemsizes[code]


cdef Array unallocated(int code, int ndim, const long long* dims):
    cdef Array x = empty_array(ndim)
    cdef long long* own = x.dims
    cdef long long* steps = x.steps
    cdef long long count = 1
    cdef bint empty = False
    cdef int d
    for d in range(ndim - 1, -1, -1):
        own[d] = dims[d]
        steps[d] = count
        if dims[d] == 0:
            empty = True
        elif not multiply(&count, dims[d]):
            refuse_size(ndim, dims)
    set_dense(x, code, 0 if empty else count)
    return x


cdef Array unallocated_like(int code, Array x):
    cdef Array y
    # A view may have other strides than a dense array.
    if dead_arrays.first == NULL or x.base is not None or x.ndim_ > INLINE:
        return unallocated(code, x.ndim_, x.dims)
    y = revived_array()
    set_room(y, x.ndim_)
    memcpy(y.room, x.room, sizeof(x.room))
    y.code, y.dense, y.count = code, True, x.count
    if x.code == code:
        y.size, y.traits = x.size, x.traits
    else:
        set_dense(y, code, x.count)
    return y


cdef int give_memory(Array x, StreamState* stream) except -1:
    x.block = allocate(stream, x.size)
    x.address = x.block.address
    return 0


cdef Array new_array_on(StreamState* stream, int code, int ndim, const long long* dims):
    cdef Array x = unallocated(code, ndim, dims)
    give_memory(x, stream)
    return x


cdef Array new_array(int ordinal, int code, int ndim, const long long* dims):
    context_of(ordinal)
    return new_array_on(current_state(ordinal), code, ndim, dims)


cdef Array view_of(Memory memory, int code, int ndim, const long long* dims,
                   const long long* steps, long long offset):
    cdef Array x = empty_array(ndim)
    cdef long long* own = x.dims
    cdef long long contiguous = 1
    cdef unsigned int traits = 0
    cdef int d
    for d in range(ndim - 1, -1, -1):
        own[d], own[ndim + d] = dims[d], steps[d]
        if dims[d] != 1 and steps[d] != contiguous:
            traits |= SCATTERED
            if steps[d] == 0:
                traits |= READ_ONLY
        contiguous *= dims[d]
    if contiguous == 0:
        traits = 0
    x.dense = traits == 0
    x.code = code
    if contiguous != 0:
        traits |= memory.traits & READ_ONLY
    x.traits = traits | 1 << code
    x.count = contiguous
    x.size = contiguous * itemsizes[code]
    x.address = memory.address + offset * itemsizes[code]
    x.base = memory if memory.base is None else memory.base
    x.owner = memory.owner
    x.tape, x.node = 0 if memory.tape == 0 else tape_of_view(memory), -1
    track(x)
    return x


cdef int device_of(Array x) except -1:
    return live_block(x).ordinal


cdef (long long, long long) extent_of(Array x) noexcept:
    """Return the first byte, and the one after the last, relative to `address`."""
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


cdef bint are_apart(Array x) noexcept:
    cdef long long step, other, reach
    cdef int d, e
    if x.count == 0:
        return True
    for d in range(x.ndim_):
        step, reach = llabs(x.steps[d]), 0
        for e in range(x.ndim_):
            other = llabs(x.steps[e])
            if other < step or (other == step and e < d):
                reach += (x.dims[e] - 1) * other
        if x.dims[d] > 1 and step <= reach:
            return False
    return True


cdef tuple shape_of(Array x):
    return tuple_of_sizes(x.ndim_, x.dims)


cdef Array as_contiguous(Array x):
    cdef Array y
    if x.dense:
        return x
    y = new_array(device_of(x), x.code, x.ndim_, x.dims)
    ops.assign(y, x)
    return y


cdef Array part(Array x, int which):
    """Return a view of the real or imaginary parts of a complex array; x itself if it is real."""
    cdef long long[MAX_NDIM] steps
    cdef int d
    dtype = dtypes[x.code]
    if dtype.kind != "c":
        return x
    for d in range(x.ndim_):
        steps[d] = 2 * x.steps[d]
    return view_of(x, _dtype(dtype.real).code, x.ndim_, x.dims, steps, which)


# -- indexing --------------------------------------------------------------------------------------


cdef Array view_at(Array x, object key):
    """Return a view by ints, slices, None and Ellipsis; None if the key holds another item."""
    cdef View view
    if not read_key(key, x.ndim_, x.dims, x.steps, &view):
        return None
    return view_of(x, x.code, view.ndim, view.dims, view.steps, view.offset)


def _parts(Array x):
    """Iterate over the views at each index of the first dimension."""
    for i in range(x.dims[0]):
        yield x[i]


# -- to the host -----------------------------------------------------------------------------------


cdef object host_copy(Array x):
    """Copy the values to a NumPy array of the same shape and type."""
    result = np.empty(shape_of(x), dtypes[x.code].numpy)
    if x.count:
        x = as_contiguous(x)
        copy_memory(x, result.reshape(-1).view(np.uint8), None, True)
    else:
        live_block(x)
    return result


cdef int refuse_host_copy(Array x, str what) except -1:
    """Raise TypeError if a tape follows an array that is copied to an array of the host."""
    if recording and is_followed(x):
        raise TypeError(f"{what}: the copy of an array that is differentiated is a constant, which "
                        "has no gradient; if that is meant, write cyrt.stop_gradient(x).numpy()")
    return 0


cdef int refuse_export(object x) except -1:
    """Raise TypeError if a tape follows an array whose memory is handed out."""
    if recording and is_followed(x):
        raise TypeError("the memory of an array that is differentiated is handed out, where it is "
                        "a constant; cyrt.stop_gradient() makes one of it")
    return 0


cdef int check_equal_layout(Array x, object other, str what) except -1:
    """Raise ValueError if the other object is an array of another shape or type."""
    if hasattr(other, "shape") and hasattr(other, "dtype") \
            and (tuple(other.shape) != shape_of(x) or _dtype(other.dtype) is not DTYPES[x.code]):
        raise ValueError(f"{what}: expected shape {shape_of(x)} and {DTYPES[x.code]}, got "
                         f"{tuple(other.shape)} and {other.dtype}")
    return 0


cdef object bytes_of(object memory):
    """Return a NumPy array's bytes, as Python's buffers know no bfloat16; other objects as they
    are."""
    if isinstance(memory, np.ndarray) and memory.flags.c_contiguous:
        return memory.reshape(-1).view(np.uint8)
    return memory


cdef object single(Array x, str what):
    """Return the one element as a Python number."""
    if x.count != 1:
        raise TypeError(f"only an array of one element is {what}, got shape {shape_of(x)}")
    return host_copy(x).item()


# -- the class -------------------------------------------------------------------------------------


@cython.no_gc
cdef class Array(Operators):
    """Array()\n--\n
    An n-dimensional array on a device.

    Arrays are created by :func:`cyrt.asarray`, :func:`cyrt.zeros` and other functions, not by a
    call of the class. Operators and functions return immediately: they record work, which runs in
    order on the device. Methods that need a value on the host (``numpy()``, ``item()``, printing,
    ``bool()``) wait for it. Names and semantics are those of the Python array API standard
    (data-apis.org/array-api, 2025.12), and NumPy's for everything that the standard does not
    define.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.T @ x
    Array([[10., 14.],
           [14., 20.]], dtype=float32)
    >>> x[x > 1.5].numpy()  # waits
    array([2., 3., 4.], dtype=float32)
    >>> x.sum(axis=0).tolist()
    [4.0, 6.0]
    """

    def __init__(self, *args, **keywords):
        raise TypeError("an Array is made by cyrt.asarray(), cyrt.zeros(), ..., not by its class")

    # -- what it is --

    @property
    def shape(self):
        """The sizes of the dimensions, a tuple of int."""
        return shape_of(self)

    @property
    def strides(self):
        """The bytes from one element to the next along each dimension, a tuple of int."""
        cdef int d
        return tuple([self.steps[d] * itemsizes[self.code] for d in range(self.ndim_)])

    @property
    def dtype(self):
        """The element type, a :class:`cyrt.dtypes.DType`."""
        return dtypes[self.code]

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.ndim_

    @property
    def size(self):
        """The number of elements."""
        return self.count

    @property
    def itemsize(self):
        """The size of an element in bytes."""
        return itemsizes[self.code]

    @property
    def nbytes(self):
        """The size of all elements in bytes."""
        return self.count * itemsizes[self.code]

    @property
    def device(self):
        """The device of the memory."""
        return Device(device_of(self))

    @property
    def ptr(self):
        """The device address of the first element, an int; :attr:`Buffer.ptr` describes the effects
        of reading it."""
        refuse_export(self)
        return export_address(self)

    @property
    def T(self):
        """A view with the dimensions in reverse order."""
        cdef long long[MAX_NDIM] dims
        cdef long long[MAX_NDIM] steps
        cdef int d
        if recording and is_followed(self):
            return ops.permute_dims("T", self, tuple(range(self.ndim_ - 1, -1, -1)))
        for d in range(self.ndim_):
            dims[d] = self.dims[self.ndim_ - 1 - d]
            steps[d] = self.steps[self.ndim_ - 1 - d]
        return view_of(self, self.code, self.ndim_, dims, steps, 0)

    @property
    def mT(self):
        """A view with the last two dimensions exchanged; a ValueError for fewer than two."""
        cdef long long[MAX_NDIM] dims
        cdef long long[MAX_NDIM] steps
        cdef int d, ndim = self.ndim_
        if ndim < 2 or recording and is_followed(self):
            return functions.matrix_transpose(self)
        for d in range(ndim - 2):
            dims[d], steps[d] = self.dims[d], self.steps[d]
        dims[ndim - 2], steps[ndim - 2] = self.dims[ndim - 1], self.steps[ndim - 1]
        dims[ndim - 1], steps[ndim - 1] = self.dims[ndim - 2], self.steps[ndim - 2]
        return view_of(self, self.code, ndim, dims, steps, 0)

    @property
    def real(self):
        """The real parts: a view of a complex array, the array itself otherwise."""
        if recording and is_followed(self):
            return functions.real(self)
        return part(self, 0)

    @real.setter
    def real(self, value):
        ops.assign(part(self, 0), value)

    @property
    def imag(self):
        """The imaginary parts: a view of a complex array, zeros otherwise."""
        if recording and is_followed(self):
            return functions.imag(self)
        return part(self, 1) if dtypes[self.code].kind == "c" else functions.zeros_like(self)

    @imag.setter
    def imag(self, value):
        if dtypes[self.code].kind != "c":
            raise TypeError(f"imag: {dtypes[self.code]} has no imaginary parts to write")
        ops.assign(part(self, 1), value)

    @property
    def flags(self):
        """The memory layout, like NumPy's flags: ``flags.c_contiguous``, ``flags["OWNDATA"]``."""
        return functions.Flags(self)

    @property
    def flat(self):
        """The elements in C order: ``x.flat[i]``, ``x.flat[a:b] = value``; iteration waits."""
        return functions.Flat(self)

    @flat.setter
    def flat(self, value):
        functions.Flat(self)[:] = value

    # -- to the host and to others --

    def numpy(self, *, out=None):
        """Wait for the values, and copy them to a NumPy array.

        Parameters
        ----------
        out : numpy.ndarray, optional
            A writable array of the same shape and type, which receives the values and is returned.

        Returns
        -------
        numpy.ndarray
            `out`, or a new C-contiguous array; bfloat16 becomes the type of the package ml_dtypes.

        Raises
        ------
        TypeError
            The array depends on the arguments of a function that is being differentiated, and its
            copy would silently be a constant. Call :func:`cyrt.stop_gradient` first to get one.
            ``float(x)``, ``x.item()`` and printing work without that call.
        """
        refuse_host_copy(self, "numpy")
        if out is None:
            return host_copy(self)
        if not isinstance(out, np.ndarray):
            raise TypeError(f"numpy: out: expected a NumPy array, got {type(out).__name__}")
        check_equal_layout(self, out, "numpy: out")
        if out.flags.c_contiguous and out.flags.writeable and out.size:
            copy_memory(as_contiguous(self), out.reshape(-1).view(np.uint8), None, True)
        else:
            np.copyto(out, host_copy(self))
        return out

    @property
    def buffer(self):
        """The bytes of the elements, a Buffer that is a view of the array's memory.

        The Buffer of a read-only view is read-only, too.

        Raises
        ------
        ValueError
            The array is not C-contiguous.
        """
        refuse_export(self)
        return view_bytes(self, 0, self.size)

    def copy_from(self, source, stream=None, *, bint blocking=True):
        """Copy all elements from host memory or from memory on a device.

        Parameters
        ----------
        source : array, Buffer or buffer-protocol object
            C-contiguous memory of exactly ``nbytes`` bytes. An array must have the same shape and
            type.
        stream : Stream, optional
            The copy is ordered after earlier work on this stream. Default: the current stream.
        blocking : bool
            Whether the call returns only after host memory has been read; with False it returns
            immediately, as :meth:`Buffer.copy_from` describes.

        Raises
        ------
        ValueError
            The source has another shape, type or size, one of the two is not C-contiguous, or
            `blocking` is False and the source is pageable host memory.
        """
        check_equal_layout(self, source, "copy_from")
        refuse_export(source)
        copy_memory(self, bytes_of(source), stream, False, blocking)

    def copy_to(self, target, stream=None, *, bint blocking=True):
        """Copy all elements to host memory or to memory on a device.

        Parameters
        ----------
        target : array, Buffer or writable buffer-protocol object
            C-contiguous memory of exactly ``nbytes`` bytes. An array must have the same shape and
            type.
        stream : Stream, optional
            The copy is ordered after earlier work on this stream. Default: the current stream.
        blocking : bool
            Whether the call returns only after host memory has been written; with False it returns
            immediately, as :meth:`Buffer.copy_to` describes.

        Raises
        ------
        ValueError
            The target has another shape, type or size, or is read-only; one of the two is not
            C-contiguous; or `blocking` is False and the target is pageable host memory.
        """
        check_equal_layout(self, target, "copy_to")
        if isinstance(target, Memory):
            refuse_export(self)
        else:
            refuse_host_copy(self, "copy_to")
        copy_memory(self, bytes_of(target), stream, True, blocking)

    def item(self, *index):
        """Wait for an element, and return it as a Python number.

        Parameters
        ----------
        *index : int
            One index for each dimension, or one index of the flattened array. Default: the only
            element.

        Raises
        ------
        ValueError
            There is no index, and the array does not have exactly one element.
        """
        if not index:
            if self.count != 1:
                raise ValueError("item(): without an index the array must have one element, its "
                                 f"shape is {shape_of(self)}")
            return host_copy(self).item()
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if len(index) == 1 and self.ndim_ != 1:
            index = np.unravel_index(index_at(index[0], 0, self.count), shape_of(self))
        if len(index) != self.ndim_:
            raise IndexError(f"item(): expected {self.ndim_} indices, got {len(index)}")
        return host_copy(view_at(self, tuple(index))).item()

    def tolist(self):
        """Wait for the values, and return them as nested lists of Python numbers, or one number."""
        return host_copy(self).tolist()

    def tobytes(self):
        """Wait for the values, and return the bytes of the elements in C order."""
        refuse_host_copy(self, "tobytes")
        return host_copy(self).tobytes()

    def __array__(self, dtype=None, *, copy=None):
        if copy is False:
            raise ValueError("an Array lies on a device: NumPy gets a copy, never a view")
        refuse_host_copy(self, "numpy")
        result = host_copy(self)
        return result if dtype is None else result.astype(dtype, copy=False)

    def __array_function__(self, function, types, args, kwargs):
        """Call cyrt's function of the same name (NEP 18)."""
        return functions.call_function(function, args, kwargs)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Return a DLPack capsule (dmlc.github.io/dlpack, 1.1).

        Parameters
        ----------
        stream : int, optional
            The consumer's stream, which waits for the data: None or 1 is the legacy stream, 2 is
            the per-thread one, and other numbers are a ``cudaStream_t``. With -1 no stream waits.
        max_version : tuple of int, optional
            The highest version that the consumer supports.
        dl_device : tuple of int, optional
            The requested device: this one, or ``(1, 0)``, the host.
        copy : bool, optional
            Whether a copy is exported. With False, no copy is made; by default, only if needed.

        Raises
        ------
        BufferError
            The device is not supported; a copy is needed and `copy` is False; or the array is a
            read-only view, and `max_version` is below 1, where DLPack has no flag for such arrays.
        """
        cdef Array x = self
        refuse_export(self)
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
            ops.assign(x, self)
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
        """Return the module with the standard's functions: :mod:`cyrt`."""
        return functions.namespace(api_version)

    def __reduce__(self):
        refuse_host_copy(self, "pickle")
        return functions.asarray, (host_copy(self),)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

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
        return functions.format_of(self, spec)

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
        if recording and is_followed(self):
            return functions.recorded(Array.__getitem__, (self, key))
        view = view_at(self, key)
        return functions.get_by_arrays(self, key) if view is None else view

    def __setitem__(self, key, value):
        if recording and functions.record_put(self, key, value):
            return
        view = view_at(self, key)
        if view is None:
            functions.set_by_arrays(self, key, value)
        else:
            ops.assign(view, value)

    def __contains__(self, value):
        found = self == value
        return bool(found.any()) if isinstance(found, Array) else found


def _base_of(Array x):
    """The Array or Buffer whose memory a view shows; None for an array that has its own
        memory."""
    return x.base


# As a property of the class it would hide the attribute of that name.
(<dict>(<PyTypeObject*>Array).tp_dict)["base"] = property(_base_of)
PyType_Modified(Array)
# An Array holds no other objects than a Memory does, so it is deallocated like a Memory, without
# the classes in between.
(<PyTypeObject*>Array).tp_dealloc = (<PyTypeObject*>Memory).tp_dealloc
