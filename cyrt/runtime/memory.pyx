"""Buffers: objects that own device memory."""

import numpy as np

cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)

from cpython.object cimport PyObject, PyTypeObject, destructor
from cpython.ref cimport Py_DECREF
from libc.stdlib cimport free

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, cu, faulted
from cyrt.runtime.device cimport Device, context_of, enter_quietly, leave, ordinal_of
from cyrt.runtime.integers cimport as_int
from cyrt.runtime.order cimport (
    begin_direct, end_direct, flush_block, has_exported_memory, order_consumer,
    refuse_contents, refuse_example,
)
from cyrt.runtime.outside cimport add_outside, is_outside
from cyrt.runtime.poison cimport copy_error_of_overlap, refuse_poisoned
from cyrt.runtime.pool cimport allocate, is_result, new_block, release, release_result
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport (
    DEVICE_MEMORY, FOREIGN_MEMORY, PINNED_MEMORY, READ, Block, StreamState,
)
from cyrt.runtime.stream cimport Stream, current_state, stream_of
from cyrt.runtime.stream_state cimport flush_all, wrapped_state, legacy_state, order_launched
from cyrt.runtime.transfer cimport copy_directly, is_page_locked, to_device, to_host
from cyrt.runtime.untracked cimport (
    PyObject_GC_IsTracked, cyrt_bear_untracked,
)
from cyrt.runtime.waiting cimport wait_state


resolve_foreign = None      # interop.as_buffer; interop, which imports this module, sets it
host_classes = ()           # PinnedBuffer and ManagedBuffer; host_memory sets them


cdef Block* refuse_buffer(Memory buffer, Block* block) except NULL:
    if block == NULL:
        check_initialised(buffer)
        raise ValueError(f"the Buffer at {buffer.address:#x} ({buffer.size:,} bytes) "
                         "was freed already")
    raise RuntimeError(f"the Buffer belongs to a context of device {block.ordinal} that was reset")


cdef int check_initialised(Memory memory) except -1:
    if memory.block == NULL and memory.base is None and not memory.initialised:
        raise RuntimeError(f"the {type(memory).__name__} was not initialised")
    return 0


cdef int refuse_initialised(Buffer self) except -1:
    if self.initialised or self.base is not None:
        raise RuntimeError(f"a {type(self).__name__} is initialised once")
    return 0


cdef int initialise(Buffer self, Block* block, size_t size) except -1:
    """Give a Buffer its memory, unless another thread did so while this one allocated."""
    if self.initialised:
        release(block)
        refuse_initialised(self)
    self.initialised = True
    self.tracked = type(self) is not Buffer and PyObject_GC_IsTracked(self)
    self.block = block
    self.address = block.address
    self.size = size
    return 0


cdef Buffer foreign_buffer(CUdeviceptr address, size_t nbytes, int ordinal, StreamState* home,
                           object owner):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.block = new_block(address, nbytes, ordinal, FOREIGN_MEMORY, home)
    buffer.initialised = True
    buffer.address = address
    buffer.size = nbytes
    buffer.owner = owner
    add_outside(buffer.block)
    copy_error_of_overlap(buffer.block)
    track(buffer)
    return buffer


cdef Buffer new_variables_buffer(int ordinal):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.block = new_block(0, 0, ordinal, DEVICE_MEMORY, current_state(ordinal))
    return buffer


cdef Buffer variable_buffer(Buffer all, CUdeviceptr address, size_t nbytes, object owner):
    cdef Buffer view = Buffer.__new__(Buffer)
    view.base = all
    view.address = address
    view.size = nbytes
    view.owner = owner
    track(view)
    return view


cdef int order_foreign_streams(Block* block, StreamState* stream) except -1:
    """Make the legacy stream wait for `stream`, if other libraries may use the block, and the
    stream that wrote the block last, too, if it is not cyrt's."""
    if is_outside(block):
        if not block.home.owned:
            order_launched(block.home, stream)
        order_launched(legacy_state(stream.ordinal), stream)
    return 0


cdef size_t byte_count(nbytes, str what) except? 0:
    number = as_int(nbytes)
    if number is None:
        raise TypeError(f"{what}: expected a number of bytes as an int, got "
                        f"{type(nbytes).__name__}")
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{what}: expected a number of bytes of 0 or more, got {number}")
    return number


cdef class Memory:
    """The base class of Buffers and Arrays: memory of a device."""

    def __init__(self, *args, **keywords):
        raise TypeError("use Buffer(nbytes), or an array")

    def __dealloc__(self):
        if self.block != NULL:
            release(self.block)
        if self.heap != NULL:
            free(self.heap)

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} is memory of this process and is not pickled; "
                        "copy_to() a NumPy array")


cdef extern from *:
    """
    #define CYRT_HAS_EXTRAS(memory) ((size_t)(memory)->heap | (size_t)(memory)->__weakref__ \\
                                     | (size_t)(memory)->tracked)
    #define CYRT_FORGET_BASE(memory) (Py_INCREF(Py_None), (memory)->base = (void*)Py_None)
    #ifdef Py_GIL_DISABLED
    #define CYRT_MOST_KEPT 0            /* see untracked */
    #else
    #define CYRT_MOST_KEPT 256
    #endif
    """
    # Return whether host memory or weak references belong to it, or the collector tracks it.
    bint CYRT_HAS_EXTRAS(Memory memory) noexcept
    # Set the base to None; the reference to it is now the caller's.
    void CYRT_FORGET_BASE(Memory memory) noexcept
    const int MOST_KEPT "CYRT_MOST_KEPT"

cdef destructor deallocate_any = (<PyTypeObject*>Memory).tp_dealloc


cdef inline void keep(PyObject* dead) noexcept:
    """Keep a dead Array."""
    (<Memory>dead).block = <Block*>dead_arrays.first
    dead_arrays.first = dead
    dead_arrays.count += 1


cdef void deallocate(PyObject* dead) noexcept:
    """Deallocate a Memory. This cannot fail for an ordinary result or a view, so no exception has
    to be saved."""
    cdef Block* block = (<Memory>dead).block
    if CYRT_HAS_EXTRAS(<Memory>dead) or (<Memory>dead).owner is not None \
            or (block != NULL and not is_result(block)):
        deallocate_any(dead)
    elif block == NULL or <void*>dead.ob_type != array_type or dead_arrays.count >= MOST_KEPT:
        deallocate_rest(dead)
    else:                       # It has no base.
        keep(dead)
        release_result(block)


cdef void deallocate_other(PyObject* dead) noexcept:
    """Deallocate a view, or an ordinary result that is not kept."""
    cdef PyObject* base = <PyObject*>(<Memory>dead).base
    if (<Memory>dead).block != NULL:
        release_result((<Memory>dead).block)
    if <void*>dead.ob_type == array_type and dead_arrays.count < MOST_KEPT:
        keep(dead)
        if base != <PyObject*>None:
            CYRT_FORGET_BASE(<Memory>dead)
            Py_DECREF(<object>base)
    else:
        Py_DECREF(None)         # its owner
        dead.ob_type.tp_free(dead)
        Py_DECREF(<object>base)


# `deallocate` calls it by a pointer, so that the C compiler does not make it a part of that
# function, which would then save registers for every result.
cdef destructor deallocate_rest = deallocate_other


(<PyTypeObject*>Memory).tp_dealloc = <destructor>deallocate


@cython.no_gc
cdef class Buffer(Memory):
    """Buffer(nbytes, device=None)\n--\n
    Bytes of device memory from a stream-ordered pool.

    The contents of a new Buffer are undefined. Its memory returns to the pool at :meth:`free`, or
    when the last reference is dropped, even while work that uses it is running: work of the next
    owner is ordered after that work. ``buffer[a:b]`` is a view of a range of bytes.

    Parameters
    ----------
    nbytes : int
        Size in bytes; 0 is allowed.
    device : Device or int, optional
        Default: the current device.

    Raises
    ------
    OutOfMemoryError
        The device does not have enough free memory; the message gives the sizes.

    Examples
    --------
    >>> import cyrt
    >>> buffer = cyrt.Buffer(16)
    >>> buffer.fill(0)
    >>> buffer[:4].copy_from(b"cyrt")
    >>> host = bytearray(16)
    >>> buffer.copy_to(host)
    >>> bytes(host[:4])
    b'cyrt'
    """

    def __init__(self, nbytes, device=None):
        cdef size_t size = byte_count(nbytes, "nbytes")
        cdef int ordinal = ordinal_of(device)
        if type(self) is not Buffer and isinstance(self, host_classes):
            raise TypeError(f"a {type(self).__name__} is initialised by its own class, not by "
                            "Buffer.__init__: its memory is the host's, too")
        refuse_initialised(self)
        context_of(ordinal)
        initialise(self, allocate(current_state(ordinal), size), size)

    def free(self):
        """Return the memory to the pool now; later uses of it and of its views raise
        ``ValueError``.

        If other libraries may use the memory, all recorded work is launched first.

        Raises
        ------
        BufferError
            A memoryview or a NumPy array still uses the pinned or managed memory.
        ValueError
            The Buffer is a view.
        """
        cdef Block* block
        cdef int ordinal
        check_initialised(self)
        if self.base is not None:
            raise ValueError("a view does not own its memory: free the Buffer it is a view of")
        if self.block != NULL and is_outside(self.block):
            for ordinal in range(MAX_DEVICES):  # recordings order such memory by its address
                flush_all(ordinal, b"memory that other libraries may use is freed")
        if self.exports:    # checked after the commit, which lets other threads run
            raise BufferError("the host still looks at the memory, through a memoryview or an "
                              "array made from the Buffer")
        block, self.block = self.block, NULL
        if block != NULL:
            release(block)

    @property
    def ptr(self):
        """The device address, an int.

        Reading it launches the recorded work that uses the memory. From then on other libraries may
        use the memory on their own streams, so cyrt launches its work on it immediately. That work
        waits for earlier work on the legacy stream, and later work on that stream waits for it.
        """
        return export_address(self)

    @property
    def nbytes(self):
        """The size in bytes."""
        check_initialised(self)
        return self.size

    @property
    def device(self):
        """The device that the memory belongs to."""
        return Device(live_block(self).ordinal)

    def __len__(self):
        check_initialised(self)
        return self.size

    def __getitem__(self, key):
        cdef Py_ssize_t start, stop, step
        if not isinstance(key, slice):
            raise TypeError("a Buffer is indexed by a slice of bytes, buffer[a:b], not by "
                            f"{type(key).__name__}")
        check_initialised(self)
        start, stop, step = key.indices(self.size)
        if step != 1:
            raise ValueError(f"a view of a Buffer is contiguous: step 1, not {step}")
        return view_bytes(self, start, max(0, stop - start))

    def copy_from(self, source, stream=None, *, bint blocking=True):
        """Copy all bytes from host memory or from another Buffer.

        The copy is ordered after earlier work on the stream. When the call returns, host memory
        has been read, unless `blocking` is False.

        Parameters
        ----------
        source : buffer-protocol object, Buffer, or array of another library
            C-contiguous memory of exactly ``nbytes`` bytes.
        stream : Stream, optional
            Default: the current stream.
        blocking : bool
            Whether the call returns only after host memory has been read. With False it returns
            immediately: page-locked host memory is read when the stream reaches the copy, and kept
            alive until then; the host must not write to it before that.

        Raises
        ------
        ValueError
            The source has another size, is not contiguous, or is pageable host memory although
            `blocking` is False.
        """
        copy_memory(self, source, stream, False, blocking)

    def copy_to(self, target, stream=None, *, bint blocking=True):
        """Copy all bytes to host memory or to another Buffer.

        The copy is ordered after earlier work on the stream. When the call returns, host memory
        contains the data, unless `blocking` is False.

        Parameters
        ----------
        target : writable buffer-protocol object, Buffer, or array of another library
            C-contiguous memory of exactly ``nbytes`` bytes.
        stream : Stream, optional
            Default: the current stream.
        blocking : bool
            Whether the call returns only after host memory has been written. With False it returns
            immediately: page-locked host memory is written when the stream reaches the copy, and
            kept alive until then; the host may read it after ``stream.synchronize()``.

        Raises
        ------
        ValueError
            The target has another size, is not contiguous, is read-only, or is pageable host memory
            although `blocking` is False.
        """
        copy_memory(self, target, stream, True, blocking)

    def fill(self, value, stream=None):
        """Fill the memory with a pattern.

        Parameters
        ----------
        value : int or NumPy scalar
            An int from 0 to 255 is written into each byte. The bytes of a NumPy scalar of 1, 2 or 4
            bytes are repeated.
        stream : Stream, optional
            Default: the current stream.

        Raises
        ------
        ValueError
            The int is out of range, the scalar has another size, or ``nbytes`` or the address is
            not a multiple of the scalar's size.
        """
        fill_memory(self, value, stream)

    def __repr__(self):
        freed = self.block == NULL if self.base is None else self.base.block == NULL
        if self.base is None and not self.initialised and freed:
            return f"<cyrt.{type(self).__name__}, not initialised>"
        return (f"<cyrt.{type(self).__name__} {self.size:,} bytes at {self.address:#x}"
                f"{', freed' if freed else ''}>")


cdef CUdeviceptr export_address(Memory memory) except? 0:
    cdef Block* block = live_block(memory)
    refuse_example(block)
    flush_block(block)
    if not block.shared and block.kind != FOREIGN_MEMORY and not faulted[block.ordinal]:
        order_consumer(legacy_state(block.ordinal), block)
    live_block(memory)              # another thread may have freed it in between
    refuse_poisoned(block)
    if not block.shared and block.kind != FOREIGN_MEMORY:
        add_outside(block)
        block.shared = has_exported_memory[block.ordinal] = True
    return memory.address


cdef Buffer view_bytes(Memory memory, size_t start, size_t nbytes):
    cdef Buffer view
    live_block(memory)
    if memory.traits & SCATTERED:
        refuse_scattered(memory)
    view = Buffer.__new__(Buffer)
    view.base = memory if memory.base is None else memory.base
    view.owner = memory.owner
    view.address = memory.address + start
    view.size = nbytes
    view.traits = memory.traits & READ_ONLY
    track(view)
    return view


cdef int refuse_scattered(Memory memory) except -1:
    raise ValueError(f"an array that is not contiguous cannot be taken as its {memory.size:,} "
                     "bytes; copy it first")


cdef int refuse_read_only() except -1:
    raise ValueError("a view whose elements share memory, or that diag returns, is read-only, and "
                     "so is every view of it: it cannot be written; copy() it first")


cdef int fill_memory(Memory memory, value, stream) except -1:
    cdef Stream target = stream_for(memory, stream)
    cdef StreamState* state = target.state
    cdef Block* block
    cdef unsigned int pattern = 0
    cdef size_t width
    cdef int entered
    cdef CUresult result
    if memory.traits & READ_ONLY:
        refuse_read_only()
    if memory.traits & SCATTERED:
        refuse_scattered(memory)
    width = fill_pattern(value, &pattern)
    if memory.size % width:
        raise ValueError(f"expected a Buffer of whole patterns of {width} bytes, got one of "
                         f"{memory.size:,} bytes")
    if memory.address % width:
        raise ValueError(f"the address {memory.address:#x} is not aligned to the pattern's "
                         f"{width} bytes")
    if memory.size == 0:
        live_block(memory)
        return 0
    block = live_block(memory)
    if block.kind == DEVICE_MEMORY and block.size \
            and graph.record_fill(state, memory, pattern, width):
        return 0
    if state.explained:
        return 0
    begin_direct(state, block, overwriting(memory), NULL, READ)
    entered = enter_quietly(state.ordinal, state.epoch)
    with nogil:             # the call blocks while the driver's queue is full
        if width == 1:
            result = cu.cuMemsetD8Async(memory.address, <unsigned char>pattern, memory.size,
                                        state.handle)
        elif width == 2:
            result = cu.cuMemsetD16Async(memory.address, <unsigned short>pattern,
                                         memory.size // 2, state.handle)
        else:
            result = cu.cuMemsetD32Async(memory.address, pattern, memory.size // 4, state.handle)
    end_direct(state)
    leave(state.ordinal, entered, result, b"cuMemsetD8Async")
    order_foreign_streams(block, state)
    return 0


cdef Stream stream_for(Memory buffer, stream):
    cdef int ordinal = live_block(buffer).ordinal
    cdef Stream found = stream_of(stream, ordinal)
    if found.live().ordinal != ordinal:
        raise ValueError(f"the Buffer is of device {ordinal}, the stream of device "
                         f"{found.state.ordinal}")
    return found


cdef size_t fill_pattern(value, unsigned int* pattern) except 0:
    """Return the width of a fill value in bytes, and set `pattern` to its bits."""
    if hasattr(value, "dtype") and hasattr(value, "tobytes") and getattr(value, "ndim", 1) == 0:
        raw = value.tobytes()
        if len(raw) not in (1, 2, 4):
            raise ValueError(f"fill: expected a scalar of 1, 2 or 4 bytes, got {value.dtype} of "
                             f"{len(raw)}")
        pattern[0] = int.from_bytes(raw, "little")
        return len(raw)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("fill: expected an int of 0 to 255 or a NumPy scalar of 1, 2 or 4 bytes, "
                        f"got {type(value).__name__}")
    if not 0 <= value <= 255:
        raise ValueError(f"fill: expected an int of 0 to 255, got {value}; a NumPy scalar fills "
                         "with a wider pattern")
    pattern[0] = value
    return 1


cdef Memory memory_of(obj, bint write):
    """Return the Memory of an object with device memory; None for host memory."""
    if isinstance(obj, Memory):
        return <Memory>obj
    # CuPy's arrays have the buffer protocol, too, but raise when it is used.
    if PyObject_CheckBuffer(obj) and not hasattr(type(obj), "__cuda_array_interface__"):
        return None
    if not hasattr(obj, "__cuda_array_interface__") and not hasattr(obj, "__dlpack__"):
        raise TypeError("copy: expected host memory with the buffer protocol (bytes, a NumPy "
                        "array), a Buffer, or an array with __cuda_array_interface__ or "
                        f"__dlpack__, got {type(obj).__name__}")
    return resolve_foreign(obj, write)


cdef int get_host(obj, Py_buffer* view, int flags, size_t nbytes) except -1:
    try:
        PyObject_GetBuffer(obj, view, flags)
    except (BufferError, ValueError) as error:
        raise ValueError(f"host memory: expected a C-contiguous"
                         f"{' writable' if flags & PyBUF_WRITABLE else ''} array, got one that is "
                         f"not ({error})") from None
    if <size_t>view.len != nbytes:
        length = view.len
        PyBuffer_Release(view)
        raise ValueError(f"host memory: expected {nbytes:,} bytes, the size of the Buffer, got "
                         f"{length:,}")
    return 0


cdef Buffer shown_buffer(obj, CUdeviceptr address, size_t nbytes):
    """Return the part of a PinnedBuffer or a ManagedBuffer that a NumPy array or a memoryview
    shows; None for other host memory."""
    cdef Buffer shown
    while isinstance(obj, (np.ndarray, memoryview)):
        obj = obj.obj if isinstance(obj, memoryview) else obj.base
    if not isinstance(obj, host_classes):
        return None
    shown = <Buffer>obj
    if address < shown.address or address + nbytes > shown.address + shown.size:
        return None
    return view_bytes(shown, address - shown.address, nbytes)


cdef int copy_at_once(Memory buffer, Block* block, other, char* host, StreamState* state,
                      bint outward) except -1:
    """Put a copy of page-locked host memory on the stream, and keep that memory until it ended."""
    cdef Buffer shown = shown_buffer(other, <CUdeviceptr>host, buffer.size)
    if shown is not None:
        return copy_within(shown if outward else buffer, buffer if outward else shown, state)
    if not (is_page_locked(host) and is_page_locked(host + buffer.size - 1)):
        raise ValueError("blocking=False: expected page-locked host memory, such as a "
                         "cyrt.PinnedBuffer or numpy.frombuffer(pinned, dtype), got pageable "
                         f"memory ({type(other).__name__})")
    copy_directly(state, block, READ if outward else overwriting(buffer), buffer.address, host,
                  buffer.size, outward)
    graph.keep(state, memoryview(other))
    return order_foreign_streams(block, state)


cdef int copy_memory(Memory buffer, other, stream, bint outward, bint blocking=True) except -1:
    cdef Py_buffer view
    cdef Block* block
    cdef Stream target = stream_for(buffer, stream)
    cdef StreamState* state = target.state
    cdef Memory peer = memory_of(other, outward)
    if not outward and buffer.traits & READ_ONLY:
        refuse_read_only()
    if buffer.traits & SCATTERED:
        refuse_scattered(buffer)
    if peer is not None:
        copy_within(peer if outward else buffer, buffer if outward else peer, state)
        if blocking and (live_block(peer).kind == PINNED_MEMORY
                         or live_block(buffer).kind == PINNED_MEMORY):
            wait_state(state)       # host memory is read or written before the call returns
        return 0
    get_host(other, &view, PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if outward else 0), buffer.size)
    try:
        if buffer.size:
            block = live_block(buffer)
            if state.explained:
                return refuse_contents() if outward else 0
            if not blocking:
                return copy_at_once(buffer, block, other, <char*>view.buf, state, outward)
            if outward:
                to_host(state, block, <char*>view.buf, buffer.address, buffer.size)
            else:
                to_device(state, block, overwriting(buffer), buffer.address,
                          <const char*>view.buf, buffer.size)
            order_foreign_streams(block, state)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int copy_within(Memory target, Memory source, StreamState* state) except -1:
    """Copy between Buffers of one or two devices, as if all bytes were read before any is
    written."""
    cdef Block* to_block = live_block(target)
    cdef Block* from_block = live_block(source)
    cdef Buffer aside
    cdef int entered
    cdef CUresult result
    if target.size != source.size:
        raise ValueError(f"copy: the source has {source.size:,} bytes, the target "
                         f"{target.size:,}")
    if target.traits & READ_ONLY:
        refuse_read_only()
    if target.traits & SCATTERED:
        refuse_scattered(target)
    if source.traits & SCATTERED:
        refuse_scattered(source)
    if target.size == 0:
        return 0
    if source.address < target.address + target.size \
            and target.address < source.address + source.size:
        aside = Buffer(source.size, state.ordinal)
        copy_within(aside, source, state)
        source, from_block = aside, aside.block
    if (to_block.ordinal == from_block.ordinal and to_block.kind == DEVICE_MEMORY
            and from_block.kind == DEVICE_MEMORY and not to_block.shared
            and not from_block.shared):
        return graph.record_copy(state, to_block, overwriting(target), target.address, from_block,
                           source.address, target.size)
    begin_direct(state, from_block, READ, to_block, overwriting(target))
    entered = enter_quietly(state.ordinal, state.epoch)
    with nogil:
        result = cu.cuMemcpyAsync(target.address, source.address, target.size, state.handle)
    end_direct(state)
    leave(state.ordinal, entered, result, b"cuMemcpyAsync")
    order_foreign_streams(from_block, state)
    order_foreign_streams(to_block, state)
    return 0


def pointer(address, nbytes, device=None, *, owner=None):
    """Return a Buffer over memory that cyrt did not allocate, by its address.

    This is the only way to pass an address that is an int to a kernel.

    Parameters
    ----------
    address : int
        The device address.
    nbytes : int
        The number of bytes that may be used, from the address on.
    device : Device or int, optional
        Default: the current device.
    owner : object, optional
        An object that the result keeps alive.

    Returns
    -------
    Buffer
        Its uses are ordered with the legacy default stream: each use waits for earlier work on that
        stream, and later work on that stream waits for the use.
    """
    cdef size_t size = byte_count(nbytes, "nbytes")
    cdef size_t start = byte_count(address, "address")
    cdef int ordinal = ordinal_of(device)
    context_of(ordinal)
    return foreign_buffer(start, size, ordinal, wrapped_state(ordinal, NULL), owner)


cyrt_bear_untracked(<PyTypeObject*>Memory)
cyrt_bear_untracked(<PyTypeObject*>Buffer)
