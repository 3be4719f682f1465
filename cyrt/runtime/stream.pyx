"""Streams: queues of work on a device, and the current stream of each thread."""

import threading

from cpython.exc cimport PyErr_SetInterrupt
from cython cimport no_gc_clear

from cyrt.driver.capture_mode cimport relax, restore, stream_status
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, cu, ensure_open, faulted, process
from cyrt.runtime.device cimport (
    Device, contexts, context_of, current_ordinal, enter, enter_quietly, innermost_block, leave,
    leave_quietly, ordinal_of, refuse_while_explained, verify,
)
from cyrt.runtime.order cimport order_after
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream_state cimport (
    flush, forget_undeclared, is_captured, mark, new_state, refuse_captured, states, wrapped_state,
)
from cyrt.runtime.waiting cimport query_stream, wait, wait_state

cdef extern from *:
    """
    /* The current streams of the thread: `borrowed` of its ThreadStreams. This kind of thread-local
     * memory is reached without a call; there is little of it, but a pointer has room. */
    static _Thread_local void** cyrt_current_streams __attribute__((tls_model("initial-exec")));
    static _Thread_local int cyrt_open_blocks;      /* the number of the thread's open blocks */
    static inline void* cyrt_get_stream(int ordinal) {
        return cyrt_current_streams == NULL ? NULL : cyrt_current_streams[ordinal];
    }
    """
    void** cyrt_current_streams
    int cyrt_open_blocks
    void* cyrt_get_stream(int ordinal) noexcept nogil

cdef enum:
    MOST_BUSY = 32          # dropped Streams with work in flight; then a new Stream waits for one

_threads = threading.local()


@no_gc_clear        # the Streams end after `__dealloc__`
cdef class ThreadStreams:
    """The current streams of a thread, with which it ends."""
    cdef list current           # the current Stream for each ordinal
    cdef void* borrowed[MAX_DEVICES]    # the same, without references
    cdef list blocks            # the open `with` blocks: (Stream, ordinal, Stream to restore)

    def __cinit__(self):
        global cyrt_current_streams
        self.current = [None] * MAX_DEVICES
        self.blocks = []
        cyrt_current_streams = self.borrowed

    cdef set(self, int ordinal, Stream stream):
        # The list may drop the last reference to a Stream, whose end launches what it recorded:
        # finalizers run then, and must not find it as the current stream any more.
        self.borrowed[ordinal] = NULL if stream is None else <void*>stream
        self.current[ordinal] = stream

    def __dealloc__(self):
        global cyrt_current_streams
        if cyrt_current_streams == self.borrowed:
            cyrt_current_streams = NULL


cdef ThreadStreams thread_streams():
    try:
        return _threads.streams
    except AttributeError:
        _threads.streams = ThreadStreams()
        return _threads.streams


cdef Stream current_stream(int ordinal):
    cdef void* found = cyrt_get_stream(ordinal)
    cdef Stream stream
    if found != NULL:
        stream = <Stream>found
        if stream.state.epoch == contexts[ordinal].epoch:
            return stream
    stream = Stream(ordinal)
    thread_streams().set(ordinal, stream)
    return stream


cdef StreamState* current_state(int ordinal) except NULL:
    cdef void* found = cyrt_get_stream(ordinal)
    if found != NULL and (<Stream>found).state.epoch == contexts[ordinal].epoch:
        return (<Stream>found).state
    return current_stream(ordinal).state


cdef void note_blocks(ThreadStreams mine) noexcept:
    global cyrt_open_blocks
    cyrt_open_blocks = <int>len(mine.blocks)


cdef bint is_chosen() noexcept:
    return cyrt_open_blocks != 0


cdef int flush_current(int ordinal, const char* reason) except -1:
    cdef void* found = cyrt_get_stream(ordinal)
    if found != NULL and (<Stream>found).state.epoch == contexts[ordinal].epoch:
        return flush((<Stream>found).state, reason)
    return 0

cdef StreamState* acquire_state(int ordinal, int priority) except NULL:
    """Return a state for the caller's Stream: an idle one of that priority, or a new one."""
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef CUstream handle = NULL
    cdef CUstreamCaptureMode before
    cdef CUresult result
    cdef StreamState* state
    cdef StreamState* oldest
    cdef int busy = MOST_BUSY
    cdef int entered
    while busy == MOST_BUSY:
        busy, oldest, state = 0, NULL, states[ordinal]
        entered = enter(ordinal, epoch, b"cuStreamQuery")
        while state != NULL and busy < MOST_BUSY:
            if (state.owned and state.users == 0 and state.priority == priority
                    and not state.pending and not state.submitting and not is_captured(state)):
                # This reserves the state: a function that a tool has put in the driver's place may
                # let another thread look for one.
                state.users += 1
                if stream_status(state.handle) == CUDA_SUCCESS:
                    leave_quietly(entered)
                    forget_undeclared(state)
                    if state.encoder != NULL:
                        graph.end_encoder(state)
                    return state
                state.users -= 1
                busy, oldest = busy + 1, state
            state = state.next
        leave_quietly(entered)
        if busy == MOST_BUSY:
            wait(ordinal, epoch, query_stream, oldest.handle, b"cuStreamSynchronize")
    entered = enter(ordinal, epoch, b"cuStreamCreateWithPriority")
    with nogil:                 # the call may allocate, and wait for work in flight
        before = relax()
        result = cu.cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, priority)
        restore(before)
    leave(ordinal, entered, result, b"cuStreamCreateWithPriority")
    verify(ordinal, epoch, b"cuStreamCreateWithPriority")   # raises if the device was reset
    state = new_state(ordinal, handle, priority, True)
    state.users += 1
    return state

cdef tuple checked_stream_protocol(stream):
    """Return the checked (version, handle) of an object with __cuda_stream__."""
    answer = stream.__cuda_stream__() if callable(stream.__cuda_stream__) \
        else stream.__cuda_stream__
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise TypeError(f"{type(stream).__name__}.__cuda_stream__() gave {answer!r}, expected a "
                        "tuple of version and handle")
    if answer[0] != 0:
        raise ValueError(f"{type(stream).__name__}.__cuda_stream__() speaks version {answer[0]}, "
                         "cyrt knows version 0")
    return answer


cdef object no_stream(handle):
    return ValueError(f"stream: expected the handle of a stream, got {handle}")


cdef int ordinal_of_handle(CUstream handle) except -1:
    """Return the device of another library's stream: the stream is in its primary context."""
    cdef CUcontext context = NULL
    cdef CUdevice device = 0
    cdef CUresult result
    cdef int ordinal = current_ordinal()
    cdef int entered
    if <size_t>handle <= 2:         # legacy and per-thread default streams mean the current device
        return ordinal
    entered = enter(ordinal, context_of(ordinal).epoch, b"cuStreamGetCtx")
    result = cu.cuStreamGetCtx(handle, &context)
    if result == CUDA_ERROR_INVALID_HANDLE:
        leave_quietly(entered)
        raise no_stream(<size_t>handle)
    if result == CUDA_SUCCESS:
        result = cu.cuCtxPushCurrent(context)
        if result == CUDA_SUCCESS:
            result = cu.cuCtxGetDevice(&device)
            cu.cuCtxPopCurrent(&context)
    leave(ordinal, entered, result, b"cuStreamGetCtx")
    for other in range(Device.count()):
        if context_of(other).device == device:
            if contexts[other].handle != context:
                raise ValueError("the stream belongs to a context that is not the device's "
                                 "primary one; cyrt works in the primary context")
            return other
    raise ValueError("the stream belongs to a device that cyrt does not see")


cdef Stream stream_over(StreamState* state):
    cdef void* found = cyrt_get_stream(state.ordinal)
    cdef Stream stream
    if found != NULL and (<Stream>found).state == state:
        return <Stream>found
    stream = Stream.__new__(Stream)
    stream.state = state
    state.users += 1
    return stream


cdef Stream stream_of(stream, int ordinal):
    if stream is None:
        return current_stream(ordinal)
    if isinstance(stream, Stream):
        (<Stream>stream).live()
        return <Stream>stream
    return Stream.wrap(stream)


cdef void flush_quietly(StreamState* state) noexcept:
    """Launch what is recorded where no caller can catch an error; after an error it stays
    recorded."""
    if process != READY or faulted[state.ordinal] or state.epoch != contexts[state.ordinal].epoch:
        return              # the next use of the device raises the error
    try:
        flush(state, b"the stream or its thread ends")
    except KeyboardInterrupt:
        PyErr_SetInterrupt()        # interrupts the code that runs next instead
    except BaseException as error:
        report_unraisable(error)


cdef void report_unraisable(error) noexcept:
    """Report the error: Cython passes what a noexcept function raises to sys.unraisablehook."""
    raise error


cdef class Stream:
    """Stream(device=None, *, priority=0)\n--\n
    A queue of work that runs in order.

    A new stream is non-blocking: it does not wait for the legacy default stream. Inside
    ``with stream:`` it is this thread's current stream on its device.

    Parameters
    ----------
    device : Device or int, optional
        Default: the current device.
    priority : int
        Smaller numbers are more urgent; the number is limited to the range of the device.

    Examples
    --------
    >>> import cyrt
    >>> stream = cyrt.Stream()
    >>> with stream:
    ...     x = cyrt.ones(3) * 2
    >>> x + 1  # on the thread's own stream: it waits for the other one
    Array([3., 3., 3.], dtype=float32)
    """

    def __init__(self, device=None, *, priority=0):
        cdef int ordinal = ordinal_of(device)
        cdef int least = 0, greatest = 0
        cdef StreamState* state
        if self.state != NULL:
            raise RuntimeError("a Stream is initialised once")
        if not hasattr(priority, "__index__"):
            raise TypeError(f"Stream: priority: expected an int, got {type(priority).__name__}")
        cdef int entered = enter(ordinal, context_of(ordinal).epoch, b"cuCtxGetStreamPriorityRange")
        leave(ordinal, entered, cu.cuCtxGetStreamPriorityRange(&least, &greatest),
              b"cuCtxGetStreamPriorityRange")
        state = acquire_state(ordinal, max(greatest, min(least, priority)))
        if self.state != NULL:      # another thread initialised it while this one waited
            state.users -= 1
            raise RuntimeError("a Stream is initialised once")
        self.state = state

    @staticmethod
    def wrap(stream, device=None):
        """Return a Stream for another library's stream.

        Parameters
        ----------
        stream : object
            An object with ``__cuda_stream__`` (kept alive by the result), or a ``CUstream`` handle
            as an int, which must stay valid as long as the result exists.
        device : Device or int, optional
            The device for the handles 0, 1 and 2, which exist on every device; by default the
            current one. Other handles belong to one device, and `device` must be that device.

        Returns
        -------
        Stream

        Raises
        ------
        TypeError
            `stream` is neither such an object nor an int.
        ValueError
            The driver reports that the handle is not a stream, or the stream does not belong to a
            device's primary context, or it does not belong to `device`.
        """
        cdef Stream self
        cdef size_t handle
        if isinstance(stream, Stream):
            return stream
        if hasattr(stream, "__cuda_stream__"):
            handle = checked_stream_protocol(stream)[1]
        elif hasattr(stream, "__index__") and not isinstance(stream, bool):
            number = stream.__index__()
            if not 0 <= number < 1 << 64:
                raise no_stream(number)
            handle = number
        else:
            raise TypeError("stream: expected a cyrt.Stream, an object with __cuda_stream__ or an "
                            f"int handle, got {type(stream).__name__}")
        ensure_open()
        ordinal = ordinal_of_handle(<CUstream>handle)
        if device is not None:
            if handle > 2 and ordinal_of(device) != ordinal:
                raise ValueError(f"device: expected {ordinal}, the stream's device, got "
                                 f"{ordinal_of(device)}")
            ordinal = ordinal_of(device)
        self = Stream.__new__(Stream)
        self.state = wrapped_state(ordinal, <CUstream>handle)
        self.state.users += 1
        self.owner = stream
        return self

    def __del__(self):
        """Record the marker of a wrapped stream. Its handle is valid only as long as a Stream wraps
        it; later waits for its work use the marker."""
        cdef StreamState* state = self.state
        cdef int entered
        if state != NULL and state.users == 1 and not state.owned and <size_t>state.handle > 2:
            flush_quietly(state)
            entered = enter_quietly(state.ordinal, state.epoch)
            if entered >= 0:
                mark(state)
                leave_quietly(entered)
            state.ended = True

    def __dealloc__(self):
        if self.state != NULL:
            flush_quietly(self.state)
            self.state.users -= 1       # from here on a new Stream may take over the state

    cdef StreamState* live(self) except NULL:
        if self.state == NULL:
            raise RuntimeError("the Stream was not initialised")
        return self.state

    @property
    def handle(self):
        """The ``CUstream``, as an int."""
        self.live().has_exported_handle = True
        self.state.idle = False
        flush(self.state, b"the stream's handle is handed out")
        return <size_t>self.state.handle

    @property
    def device(self):
        """The device of the stream."""
        return Device(self.live().ordinal)

    @property
    def priority(self):
        """The priority; smaller numbers are more urgent."""
        return self.live().priority

    def __cuda_stream__(self):
        """Return ``(0, handle)``, the stream protocol of cuda.core and CCCL."""
        return 0, self.handle

    @property
    def done(self):
        """Whether all work that was put on the stream so far has finished."""
        cdef StreamState* state = self.live()
        cdef CUresult result
        cdef int entered
        refuse_captured(state)
        flush(state, b"the program asks whether the stream is done")
        entered = enter(state.ordinal, state.epoch, b"cuStreamQuery")
        result = stream_status(state.handle)
        if result == CUDA_ERROR_NOT_READY:
            leave_quietly(entered)
            return False
        leave(state.ordinal, entered, result, b"cuStreamQuery")
        graph.release_all_ended()
        return True

    def synchronize(self):
        """Wait until all work that was put on the stream so far has finished. Ctrl-C ends the wait.

        Raises
        ------
        CudaError
            Work on the device failed.
        """
        wait_state(self.live())

    def wait(self, other):
        """Make all later work on this stream wait for an event, or for the work on another stream.

        Parameters
        ----------
        other : Event or Stream
            An object with ``__cuda_stream__`` is accepted as a stream.
        """
        if hasattr(other, "_make_wait"):
            other._make_wait(self)
        elif not isinstance(other, Stream) and not hasattr(other, "__cuda_stream__"):
            raise TypeError("wait: expected an Event, a Stream or an object with __cuda_stream__, "
                            f"got {type(other).__name__}")
        else:
            Stream.wrap(other)._make_wait(self)

    def _make_wait(self, Stream later not None):
        verify(self.live().ordinal, self.state.epoch, b"cuEventRecord")
        refuse_captured(self.state)
        order_after(later.live(), self.state)

    def __enter__(self):
        cdef ThreadStreams mine = thread_streams()
        cdef int ordinal = self.live().ordinal
        verify(ordinal, self.state.epoch, b"Stream.__enter__")
        if not self.state.explained:
            refuse_while_explained(self)
        if is_captured(self.state):
            refuse_captured(self.state)
        mine.blocks.append((self, ordinal, mine.current[ordinal]))
        mine.set(ordinal, self)
        note_blocks(mine)
        return self

    def __exit__(self, *exc):
        cdef ThreadStreams mine = thread_streams()
        cdef int i, first
        self.live()
        first = innermost_block(mine.blocks, self)
        _, ordinal, stream = mine.blocks.pop(first)
        for i in range(first, len(mine.blocks)):
            if mine.blocks[i][1] == ordinal:    # a generator's block may end before an inner one
                mine.blocks[i] = mine.blocks[i][0], ordinal, stream
                break
        else:
            mine.set(ordinal, stream)
        note_blocks(mine)
        flush(self.state, b"the stream's block ends")

    def __eq__(self, other):
        if isinstance(other, Stream):
            return self.state == (<Stream>other).state
        return NotImplemented

    def __hash__(self):
        return hash(<size_t>self.state)

    def __reduce__(self):
        raise TypeError("a Stream belongs to this process and is not pickled")

    def __repr__(self):
        if self.state == NULL:
            return "<cyrt.Stream, not initialised>"
        return f"<cyrt.Stream {<size_t>self.state.handle:#x} on device {self.state.ordinal}>"


def stream(stream=None):
    """Return this thread's current stream, or another stream as a Stream.

    ``with cyrt.stream(s):`` makes ``s`` the current stream of this thread inside the block.

    Parameters
    ----------
    stream : Stream, object with ``__cuda_stream__`` or int handle, optional
        Default: the current stream.

    Returns
    -------
    Stream

    Raises
    ------
    TypeError, ValueError
        The errors of :meth:`Stream.wrap`.

    Examples
    --------
    >>> import cyrt
    >>> s = cyrt.Stream()
    >>> with cyrt.stream(s):
    ...     cyrt.stream() is s
    True
    """
    if stream is None:
        return current_stream(current_ordinal())
    return Stream.wrap(stream)
