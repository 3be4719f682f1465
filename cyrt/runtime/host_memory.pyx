"""Buffers in page-locked host memory and in managed memory."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.object cimport PyTypeObject

from cyrt.driver.capture_mode cimport relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.runtime.device cimport Device, enter, leave, leave_quietly, ordinal_of, verify
from cyrt.runtime.ending cimport reuse_pinned, destroy_unused
from cyrt.runtime import memory as _memory
from cyrt.runtime.memory cimport (
    Buffer, byte_count, initialise, live_block, refuse_initialised,
)
from cyrt.runtime.order cimport order_behind, use
from cyrt.runtime.poison cimport refuse_poisoned
from cyrt.runtime.pool cimport new_block, out_of_memory, pool_enabled
from cyrt.runtime.reserve cimport Shortage, give_back, pools
from cyrt.runtime.state cimport MANAGED_MEMORY, PINNED_MEMORY, WRITE, Block, StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.stream_state cimport legacy_state, order_launched
from cyrt.runtime.untracked cimport cyrt_bear_untracked
from cyrt.runtime.waiting cimport wait_all, wait_state


cdef Block* pinned_block(int ordinal, size_t size) except NULL:
    """Return memory of a dropped PinnedBuffer whose work has ended, else new driver memory."""
    cdef StreamState* home = current_state(ordinal)
    cdef size_t held = size
    cdef void* address = reuse_pinned(ordinal, &held) if pool_enabled() else NULL
    cdef CUstreamCaptureMode before
    cdef CUresult result
    cdef int entered
    cdef bint again = True
    if address == NULL:
        destroy_unused()
        while True:
            entered = enter(ordinal, home.epoch, b"cuMemHostAlloc")
            with nogil:
                before = relax()
                result = cu.cuMemHostAlloc(&address, size, CU_MEMHOSTALLOC_PORTABLE)
                restore(before)
            if result != CUDA_ERROR_OUT_OF_MEMORY or not again:
                break
            leave_quietly(entered)
            wait_all(ordinal)           # frees what dropped PinnedBuffers still hold
            again = False
        leave_allocation(ordinal, home.epoch, entered, result, size, b"cuMemHostAlloc")
    return new_block(<CUdeviceptr>address, held, ordinal, PINNED_MEMORY, home)


cdef Block* managed_block(int ordinal, size_t size) except NULL:
    cdef StreamState* home = current_state(ordinal)
    cdef CUdeviceptr address = 0
    cdef CUstreamCaptureMode before
    cdef CUresult result
    cdef int entered
    cdef Shortage shortage
    shortage.tries, shortage.size = 0, size
    shortage.limited = shortage.collected = False
    while True:
        shortage.given_back = pools[ordinal].given_back
        entered = enter(ordinal, home.epoch, b"cuMemAllocManaged")
        with nogil:
            before = relax()
            result = cu.cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL)
            restore(before)
        if result != CUDA_ERROR_OUT_OF_MEMORY:
            break
        leave_quietly(entered)
        if not give_back(ordinal, &shortage):
            out_of_memory(ordinal, size, b"cuMemAllocManaged")
    leave_allocation(ordinal, home.epoch, entered, result, size, b"cuMemAllocManaged")
    return new_block(address, size, ordinal, MANAGED_MEMORY, home)


cdef int leave_allocation(int ordinal, unsigned int epoch, int entered, CUresult result,
                          size_t size, const char* call) except -1:
    if result == CUDA_ERROR_OUT_OF_MEMORY:
        leave(ordinal, entered, CUDA_SUCCESS, call)
        out_of_memory(ordinal, size, call)
    leave(ordinal, entered, result, call)
    verify(ordinal, epoch, call)        # another thread may have reset the device in between
    return 0


cdef class PinnedBuffer(Buffer):
    """PinnedBuffer(nbytes, device=None)\n--\n
    Page-locked host memory: kernels can access it, and copies need no intermediate memory.

    It supports the buffer protocol: ``numpy.frombuffer(pinned, dtype)`` is a view. The host must
    not access it while running work uses it. The contents of a new PinnedBuffer are undefined: it
    may reuse the memory of one of about the same size that was dropped, after the work that uses
    that memory has finished. Memory is returned to the driver only while the devices are idle,
    because the driver would wait for running work.

    Parameters
    ----------
    nbytes : int
        Size in bytes, at least 1.
    device : Device or int, optional
        Default: the current device.

    Raises
    ------
    ValueError
        `nbytes` is less than 1.

    Examples
    --------
    >>> import cyrt
    >>> import numpy as np
    >>> pinned = cyrt.PinnedBuffer(12)
    >>> view = np.frombuffer(pinned, np.float32)
    >>> view[:] = 1.5
    >>> cyrt.asarray(view)
    Array([1.5, 1.5, 1.5], dtype=float32)
    """

    def __init__(self, nbytes, device=None):
        cdef size_t size = byte_count(nbytes, "nbytes")
        cdef int ordinal = ordinal_of(device)
        if size == 0:
            raise ValueError("pinned memory: expected at least 1 byte, got 0")
        refuse_initialised(self)
        initialise(self, pinned_block(ordinal, size), size)

    def __getbuffer__(self, Py_buffer* view, int flags):
        live_block(self)
        PyBuffer_FillInfo(view, self, <void*>self.address, self.size, 0, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1


cdef class ManagedBuffer(Buffer):
    """ManagedBuffer(nbytes, device=None)\n--\n
    Memory that host and device share under one address; the driver moves pages to where they are
    used.

    It supports the buffer protocol; a call that gets the buffer, such as ``numpy.frombuffer``,
    waits for the work that uses the memory.

    Parameters
    ----------
    nbytes : int
        Size in bytes, at least 1.
    device : Device or int, optional
        Default: the current device.

    Raises
    ------
    RuntimeError
        Host and device cannot use managed memory of this device at the same time
        (``device.concurrent_managed_access``).
    """

    def __init__(self, nbytes, device=None):
        cdef size_t size = byte_count(nbytes, "nbytes")
        cdef int ordinal = ordinal_of(device)
        if size == 0:
            raise ValueError("managed memory: expected at least 1 byte, got 0")
        if not Device(ordinal).concurrent_managed_access:
            raise RuntimeError(
                f"managed memory: device {ordinal} does not let host and device use it at the "
                "same time (concurrent_managed_access is 0); use Buffer or PinnedBuffer")
        refuse_initialised(self)
        initialise(self, managed_block(ordinal, size), size)

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef StreamState* state = current_state(live_block(self).ordinal)
        while (state.behind and order_behind(state) == 0) \
                or use(live_block(self), state, WRITE) == 0:
            pass
        if live_block(self).shared:
            order_launched(state, legacy_state(state.ordinal))
        wait_state(state)
        refuse_poisoned(live_block(self))
        PyBuffer_FillInfo(view, self, <void*>self.address, self.size, 0, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1


_memory.host_classes = PinnedBuffer, ManagedBuffer
cyrt_bear_untracked(<PyTypeObject*>PinnedBuffer)
cyrt_bear_untracked(<PyTypeObject*>ManagedBuffer)
