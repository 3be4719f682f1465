"""Streams: queues of work on a device, and which one a thread puts its work on."""

import threading

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetInterrupt
from libc.stdlib cimport calloc

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, check, cu, ensure_open, faulted, process
from cyrt.runtime.device cimport (
    Device, contexts, context_of, current_ordinal, enter, enter_quietly, innermost_block, leave,
    leave_quietly, ordinal_of, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.submission cimport wait_for_submission

cdef extern from *:
    """
    #include <sched.h>
    #include <time.h>
    /* Each thread's current stream on each device: borrowed from its ThreadStreams. */
    static _Thread_local void* cyrt_current_stream[64];
    static inline void* cyrt_get_stream(int ordinal) { return cyrt_current_stream[ordinal]; }
    static inline void cyrt_set_stream(int ordinal, void* s) { cyrt_current_stream[ordinal] = s; }
    static inline double cyrt_now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec * 1e-9;
    }
    static inline void cyrt_nap(long nanoseconds) {
        struct timespec t = {0, nanoseconds};
        nanosleep(&t, 0);
    }
    static inline void cyrt_yield(void) { sched_yield(); }
    /* Numbers of threads: an ident may be used again, such a number is not. Under the GIL. */
    static _Thread_local unsigned long cyrt_number;
    static unsigned long cyrt_last_number;
    static inline unsigned long cyrt_thread_number(void) {
        if (cyrt_number == 0) cyrt_number = ++cyrt_last_number;
        return cyrt_number;
    }
    """
    void* cyrt_get_stream(int ordinal) noexcept nogil
    void cyrt_set_stream(int ordinal, void* stream) noexcept nogil
    double cyrt_now() noexcept nogil
    void cyrt_nap(long nanoseconds) noexcept nogil
    void cyrt_yield() noexcept nogil
    unsigned long cyrt_thread_number() noexcept

cdef enum:
    MOST_BUSY = 32          # ended Streams whose work goes on; a further Stream waits for one

cdef double SPIN = 0.002        # seconds of polling before a wait begins to sleep
cdef double SLICE = 0.02        # seconds between looks for a signal

_threads = threading.local()
# Somebody else's streams by (ordinal, cuStreamGetId): ids are never used twice.
_foreign = {}
cdef StreamState* legacy[MAX_DEVICES]
cdef size_t PER_THREAD = 2      # the handle that means another stream on each thread (cuda.h)


cdef class ThreadStreams:
    """Owns what the C thread-local pointers borrow; ends with its thread."""
    cdef list current           # per ordinal: the Stream in use
    cdef list blocks            # the open `with` blocks: (Stream, ordinal, Stream to go back to)

    def __cinit__(self):
        self.current = [None] * MAX_DEVICES
        self.blocks = []

    cdef set(self, int ordinal, Stream stream):
        self.current[ordinal] = stream
        cyrt_set_stream(ordinal, NULL if stream is None else <void*>stream)

    def __dealloc__(self):
        cdef int ordinal
        for ordinal in range(MAX_DEVICES):
            cyrt_set_stream(ordinal, NULL)


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


cdef int flush_current(int ordinal) except -1:
    cdef void* found = cyrt_get_stream(ordinal)
    if found != NULL and (<Stream>found).state.epoch == contexts[ordinal].epoch:
        return flush((<Stream>found).state)
    return 0


cdef StreamState* new_state(int ordinal, CUstream handle, int priority, bint owned) except NULL:
    cdef StreamState* state = <StreamState*>calloc(1, sizeof(StreamState))
    if state == NULL:
        raise MemoryError()
    state.handle = handle
    state.ordinal = ordinal
    state.epoch = contexts[ordinal].epoch
    state.priority = priority
    state.owned = owned
    state.behind = last_undeclared[ordinal] != NULL
    state.next = states[ordinal]
    states[ordinal] = state
    return state


cdef StreamState* take_state(int ordinal, int priority) except NULL:
    """A state for the caller's Stream: an idle one of that priority, or a new one."""
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef CUstream handle = NULL
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
                    and not state.pending and not state.submitting):
                if cu.cuStreamQuery(state.handle) == CUDA_SUCCESS:
                    leave_quietly(entered)
                    state.users += 1            # from here on nobody else takes it
                    if state.encoder != NULL:
                        end_encoder(state)
                    return state
                busy, oldest = busy + 1, state
            state = state.next
        leave_quietly(entered)
        if busy == MOST_BUSY:
            wait(ordinal, epoch, query_stream, oldest.handle, b"cuStreamSynchronize")
    entered = enter(ordinal, epoch, b"cuStreamCreateWithPriority")
    result = cu.cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, priority)
    leave(ordinal, entered, result, b"cuStreamCreateWithPriority")
    state = new_state(ordinal, handle, priority, True)
    state.users += 1
    return state


cdef StreamState* foreign_state(int ordinal, CUstream handle) except NULL:
    cdef unsigned long long identity = 0
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef StreamState* state
    cdef int priority = 0
    cdef CUresult result
    cdef int entered = enter(ordinal, epoch, b"cuStreamGetId")
    result = cu.cuStreamGetId(handle, &identity)
    if result == CUDA_SUCCESS:
        cu.cuStreamGetPriority(handle, &priority)
    leave(ordinal, entered, result, b"cuStreamGetId")
    known = _foreign.get((ordinal, epoch, identity))
    if known is not None:
        state = <StreamState*><size_t>known
        state.ended = False
        return state
    state = new_state(ordinal, handle, priority, False)
    if <size_t>handle == PER_THREAD:
        state.thread = cyrt_thread_number()
    _foreign[ordinal, epoch, identity] = <size_t>state
    return state


cdef StreamState* legacy_state(int ordinal) except NULL:
    if legacy[ordinal] == NULL or legacy[ordinal].epoch != contexts[ordinal].epoch:
        legacy[ordinal] = foreign_state(ordinal, NULL)
    return legacy[ordinal]


@reset_hooks.append
def _reset(int ordinal):
    states[ordinal] = NULL      # the states of the dead context stay allocated, and refused
    last_undeclared[ordinal] = NULL


cdef CUresult record_event(CUevent* event, CUstream stream) noexcept:
    cdef CUresult result = CUDA_SUCCESS
    if event[0] == NULL:
        result = cu.cuEventCreate(event, CU_EVENT_DISABLE_TIMING)
    return result if result != CUDA_SUCCESS else cu.cuEventRecord(event[0], stream)


cdef CUresult mark(StreamState* stream) noexcept:
    return record_event(&stream.marker, stream.handle)


cdef CUresult mark_work(StreamState* stream) noexcept:
    return CUDA_SUCCESS if stream.owned else record_event(&stream.last_work, stream.handle)


cdef bint is_done(StreamState* stream) noexcept:
    cdef CUresult result
    cdef int entered
    if stream.idle:
        return True
    if stream.pending or stream.submitting or stream.capturing:
        return False
    if not stream.owned:
        return stream.last_work == NULL or cu.cuEventQuery(stream.last_work) == CUDA_SUCCESS
    entered = enter_quietly(stream.ordinal, stream.epoch)
    if entered < 0:
        return False
    result = cu.cuStreamQuery(stream.handle)
    leave_quietly(entered)
    return result == CUDA_SUCCESS


cdef bint is_others_thread(const StreamState* stream) noexcept:
    return stream.thread != 0 and stream.thread != cyrt_thread_number()


cdef int flush_pending(StreamState* stream) except -1:
    if stream.encoder != NULL:
        return commit_stream(stream)
    return wait_for_submission(stream)


cdef int refuse_captured(StreamState* state) except -1:
    if state.capturing:
        raise RuntimeError("a capture is open on the stream: what is put on it becomes a graph, "
                           "and is neither launched nor waited for before the capture's block ends")
    return 0


cdef int order_after(StreamState* later, StreamState* earlier) except -1:
    if later == earlier:
        return 0
    if not earlier.ended and earlier.epoch == contexts[earlier.ordinal].epoch:
        flush(earlier)
    return order_launched(later, earlier)


cdef CUevent end_of(StreamState* stream, CUresult* result) noexcept:
    """An event behind what was launched on the stream; NULL: nothing was."""
    cdef int entered
    if is_others_thread(stream):
        return stream.last_work
    # A captured stream got its marker when the capture began, and no work since.
    if not stream.ended and not stream.capturing:
        entered = enter_quietly(stream.ordinal, stream.epoch)
        if entered < 0:
            result[0] = CUDA_ERROR_UNKNOWN
            return NULL
        result[0] = mark(stream)
        leave_quietly(entered)
    return stream.marker


cdef CUresult link(StreamState* later, StreamState* earlier) noexcept:
    cdef CUresult result = CUDA_SUCCESS
    cdef CUevent event
    cdef int entered
    if later == earlier or earlier.epoch != contexts[earlier.ordinal].epoch:
        return CUDA_SUCCESS     # work of a context that was reset is over
    event = end_of(earlier, &result)
    if result != CUDA_SUCCESS or event == NULL:
        return result
    if is_others_thread(later):
        return CUDA_ERROR_NOT_PERMITTED
    later.idle = later.waited = False
    entered = enter_quietly(later.ordinal, later.epoch)
    if entered < 0:
        return CUDA_ERROR_UNKNOWN
    result = cu.cuStreamWaitEvent(later.handle, event, 0)
    leave_quietly(entered)
    return result


cdef int order_launched(StreamState* later, StreamState* earlier) except -1:
    cdef CUresult result
    if later == earlier or earlier.epoch != contexts[earlier.ordinal].epoch:
        return 0
    refuse_captured(later)
    verify(earlier.ordinal, earlier.epoch, b"cuEventRecord")
    verify(later.ordinal, later.epoch, b"cuStreamWaitEvent")
    result = link(later, earlier)
    if result == CUDA_ERROR_NOT_PERMITTED and is_others_thread(later):
        raise RuntimeError("the per-thread default stream of another thread cannot be made to "
                           "wait: use the memory on that thread, or on a stream with a handle of "
                           "its own")
    return check(result, b"cuStreamWaitEvent", later.ordinal)


cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1:
    cdef CUresult result
    cdef double begin, now, end
    cdef int entered = enter(ordinal, epoch, call)
    result = query(handle)
    if result == CUDA_ERROR_NOT_READY:
        begin = cyrt_now()
        while True:
            with nogil:
                now = cyrt_now()
                end = now + SLICE
                while now < end:
                    result = query(handle)
                    if result != CUDA_ERROR_NOT_READY:
                        break
                    now = cyrt_now()
                    if now - begin > SPIN:
                        cyrt_nap(50_000)
                    else:
                        cyrt_yield()
            if result != CUDA_ERROR_NOT_READY:
                break
            try:
                PyErr_CheckSignals()
            except BaseException:
                leave_quietly(entered)
                raise
    return leave(ordinal, entered, result, call)


cdef CUresult query_stream(void* handle) noexcept nogil:
    cdef CUresult result = cu.cuStreamQuery(<CUstream>handle)
    if printing and result == CUDA_SUCCESS:
        result = cu.cuStreamSynchronize(<CUstream>handle)
    return result


cdef CUresult query_event(void* handle) noexcept nogil:
    return cu.cuEventQuery(<CUevent>handle)


cdef int wait_event(StreamState* state, CUevent event) except -1:
    if event == NULL:
        return 0
    return wait(state.ordinal, state.epoch, query_event, event, b"cuEventSynchronize")


cdef struct WaitEvent:
    CUevent event
    unsigned int epoch
    WaitEvent* next

cdef WaitEvent* wait_events[MAX_DEVICES]    # that nobody waits for


cdef int wait_now(StreamState* state) except -1:
    """Wait for what is on the stream now, by an event: a query of the stream would invalidate a
    capture that another thread begins meanwhile."""
    cdef WaitEvent* taken = wait_events[state.ordinal]
    cdef CUresult result
    cdef int entered
    if taken != NULL:
        wait_events[state.ordinal] = taken.next
    else:
        taken = <WaitEvent*>calloc(1, sizeof(WaitEvent))
        if taken == NULL:
            raise MemoryError()
    try:
        entered = enter(state.ordinal, state.epoch, b"cuEventRecord")
        if taken.epoch != state.epoch:      # it went with its context
            taken.event, taken.epoch = NULL, state.epoch
        result = record_event(&taken.event, state.handle)
        leave(state.ordinal, entered, result, b"cuEventRecord")
        wait(state.ordinal, state.epoch, query_event, taken.event, b"cuStreamSynchronize")
    finally:
        taken.next = wait_events[state.ordinal]
        wait_events[state.ordinal] = taken
    if printing and not state.capturing:
        with nogil:
            result = query_stream(state.handle)     # it hands the text out
    return 0


cdef int wait_state(StreamState* state) except -1:
    cdef unsigned long long submissions
    refuse_captured(state)
    flush(state)
    submissions = state.submissions
    state.waited = True
    if is_others_thread(state):
        wait_event(state, state.last_work)
    else:
        wait_now(state)
        # Another thread may have put work on it meanwhile, or may be about to.
        if state.waited and submissions == state.submissions and not (
                state.pending or state.submitting or state.handed_out):
            state.idle = True
    if state.encoder != NULL:
        look_back(state)
    return 0


cdef tuple protocol(stream):
    """(version, handle) of an object with __cuda_stream__, checked."""
    answer = stream.__cuda_stream__() if callable(stream.__cuda_stream__) \
        else stream.__cuda_stream__
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise TypeError(f"{type(stream).__name__}.__cuda_stream__() gave {answer!r}, expected a "
                        "tuple of version and handle")
    if answer[0] != 0:
        raise ValueError(f"{type(stream).__name__}.__cuda_stream__() speaks version {answer[0]}, "
                         "cyrt knows version 0")
    return answer


cdef int ordinal_of_handle(CUstream handle) except -1:
    """The device of somebody else's stream: the one whose primary context it belongs to."""
    cdef CUcontext context = NULL
    cdef CUdevice device = 0
    cdef CUresult result
    cdef int ordinal = current_ordinal()
    cdef int entered
    if <size_t>handle <= 2:         # the legacy and per-thread streams: of the current device
        return ordinal
    entered = enter(ordinal, context_of(ordinal).epoch, b"cuStreamGetCtx")
    result = cu.cuStreamGetCtx(handle, &context)
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
    """Where nobody can catch what it raises. What is not launched stays recorded."""
    if process != READY or faulted[state.ordinal] or state.epoch != contexts[state.ordinal].epoch:
        return              # whoever uses the device next is told
    try:
        flush(state)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()        # whoever runs next is interrupted instead
    except BaseException as error:
        tell_unraisable(error)


cdef void tell_unraisable(error) noexcept:
    """To ``sys.unraisablehook``: so ends what a function that cannot raise raises."""
    raise error


cdef class Stream:
    """A queue of work: what is put on it runs in order.

    A new stream does not wait for the legacy default stream (it is non-blocking). As a context
    manager it is the current stream of its device on this thread.

    Parameters
    ----------
    device : Device or int, optional
        The current device where left out.
    priority : int
        Smaller is more urgent; clipped by the driver to what the device has.
    """

    def __init__(self, device=None, *, int priority=0):
        cdef int ordinal = ordinal_of(device)
        cdef int least = 0, greatest = 0
        cdef StreamState* state
        if self.state != NULL:
            raise RuntimeError("a Stream is initialised once")
        cdef int entered = enter(ordinal, context_of(ordinal).epoch, b"cuCtxGetStreamPriorityRange")
        leave(ordinal, entered, cu.cuCtxGetStreamPriorityRange(&least, &greatest),
              b"cuCtxGetStreamPriorityRange")
        state = take_state(ordinal, max(greatest, min(least, priority)))
        if self.state != NULL:      # by another thread, while this one waited
            state.users -= 1
            raise RuntimeError("a Stream is initialised once")
        self.state = state

    @staticmethod
    def wrap(stream, device=None):
        """Somebody else's stream.

        Parameters
        ----------
        stream : object
            Anything with ``__cuda_stream__`` (kept alive by the result), or a ``CUstream`` handle
            as an int, which must be good as long as the result lives.
        device : Device or int, optional
            The device of a handle that does not tell its own (0, 1 and 2).

        Returns
        -------
        Stream

        Raises
        ------
        TypeError
            ``stream`` is neither.
        """
        cdef Stream self
        cdef size_t handle
        if isinstance(stream, Stream):
            return stream
        if hasattr(stream, "__cuda_stream__"):
            handle = protocol(stream)[1]
        elif hasattr(stream, "__index__") and not isinstance(stream, bool):
            handle = stream
        else:
            raise TypeError("stream: expected a cyrt.Stream, an object with __cuda_stream__ or an "
                            f"int handle, got {type(stream).__name__}")
        ensure_open()
        ordinal = ordinal_of(device) if device is not None \
            else ordinal_of_handle(<CUstream>handle)
        self = Stream.__new__(Stream)
        self.state = foreign_state(ordinal, <CUstream>handle)
        self.state.users += 1
        self.owner = stream
        return self

    def __del__(self):
        """Somebody else's handle is good as long as a Stream wraps it; what memory used on it is
        waited for by the marker afterwards."""
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
            self.state.users -= 1
            flush_quietly(self.state)

    cdef StreamState* live(self) except NULL:
        if self.state == NULL:
            raise RuntimeError("the Stream was not initialised")
        return self.state

    @property
    def handle(self):
        """The ``CUstream``, as an int."""
        self.live().handed_out = True
        self.state.idle = False
        flush(self.state)
        return <size_t>self.state.handle

    @property
    def device(self):
        """The device it runs on."""
        return Device(self.live().ordinal)

    @property
    def priority(self):
        """Smaller is more urgent."""
        return self.live().priority

    def __cuda_stream__(self):
        """``(0, handle)``: the protocol of cuda.core and CCCL."""
        return 0, self.handle

    @property
    def done(self):
        """Whether everything put on it so far has ended."""
        cdef StreamState* state = self.live()
        cdef CUresult result
        cdef int entered
        refuse_captured(state)
        flush(state)
        entered = enter(state.ordinal, state.epoch, b"cuStreamQuery")
        result = cu.cuStreamQuery(state.handle)
        if result == CUDA_ERROR_NOT_READY:
            leave_quietly(entered)
            return False
        leave(state.ordinal, entered, result, b"cuStreamQuery")
        return True

    def synchronize(self):
        """Wait until everything put on it so far has ended; Ctrl-C ends the wait.

        Raises
        ------
        CudaError
            Something on the device failed.
        """
        wait_state(self.live())

    def wait(self, other):
        """Let work put here from now on wait for an event, or for what is on a stream now.

        Parameters
        ----------
        other : Event or Stream
            Or an object with ``__cuda_stream__``.
        """
        if hasattr(other, "_hold_back"):
            other._hold_back(self)
        else:
            Stream.wrap(other)._hold_back(self)

    def _hold_back(self, Stream later not None):
        verify(self.live().ordinal, self.state.epoch, b"cuEventRecord")
        refuse_captured(self.state)
        order_after(later.live(), self.state)

    def __enter__(self):
        cdef ThreadStreams mine = thread_streams()
        cdef int ordinal = self.live().ordinal
        verify(ordinal, self.state.epoch, b"Stream.__enter__")
        mine.blocks.append((self, ordinal, mine.current[ordinal]))
        mine.set(ordinal, self)
        return self

    def __exit__(self, *exc):
        cdef ThreadStreams mine = thread_streams()
        cdef int i, first
        self.live()
        first = innermost_block(mine.blocks, self)
        _, ordinal, stream = mine.blocks.pop(first)
        for i in range(first, len(mine.blocks)):
            if mine.blocks[i][1] == ordinal:    # a generator's block ends before one inside it
                mine.blocks[i] = mine.blocks[i][0], ordinal, stream
                break
        else:
            mine.set(ordinal, stream)
        flush(self.state)

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
    """The current stream, or a context in which a given one is current on this thread.

    ``with cyrt.stream(s):`` takes a Stream, anything with ``__cuda_stream__`` or a handle.
    """
    if stream is None:
        return current_stream(current_ordinal())
    return Stream.wrap(stream)


def synchronize():
    """Wait for all that cyrt put on any stream of the current device; Ctrl-C ends the wait.

    What every thread recorded or launched before the call has ended when it returns. On somebody
    else's stream cyrt's own work is waited for, not its owner's.

    Raises
    ------
    CudaError
        Something on the device failed.
    """
    wait_all(current_ordinal())


cdef int wait_work(StreamState* state) except -1:
    """Wait for all that cyrt put on the stream."""
    if state.capturing:         # what it is captured into has not run; what came before has a mark
        return wait_event(state, state.marker)
    if state.owned:
        return 0 if state.idle else wait_state(state)
    flush(state)                # somebody else's stream: its owner's work is not waited for
    return wait_event(state, state.last_work)


cdef int wait_all(int ordinal) except -1:
    cdef StreamState* state
    context_of(ordinal)
    state = states[ordinal]
    while state != NULL:
        wait_work(state)
        state = state.next
    if on_idle != NULL:
        on_idle()
    return 0


def drain(double seconds):
    """Launch what is recorded and wait until nothing is in flight, `seconds` at most.

    Returns
    -------
    tuple
        Whether nothing is in flight, and the errors that nobody was told of yet.
    """
    cdef double end = cyrt_now() + seconds
    cdef StreamState* state
    cdef list errors = []
    cdef bint idle = True
    if process != READY:            # nothing was ever opened, or this is a forked child
        return idle, errors
    for ordinal in range(MAX_DEVICES):
        if states[ordinal] != NULL and not faulted[ordinal]:
            state = states[ordinal]
            while state != NULL:
                try:
                    if end_by(state, end):      # else its queue may be full: no wait without limit
                        flush(state)
                    else:
                        idle = False
                except Exception as error:
                    errors.append(error)
                state = state.next
    for ordinal in range(MAX_DEVICES):
        state = states[ordinal]
        while state != NULL and not faulted[ordinal]:
            try:
                idle = end_by(state, end) and idle
            except Exception as error:
                errors.append(error)
            state = state.next
    return idle, errors


cdef bint end_by(StreamState* state, double end) except -1:
    """Whether cyrt's work on the stream has ended before a time."""
    cdef CUresult result = CUDA_ERROR_NOT_READY
    cdef int entered
    if not state.owned or state.capturing:
        return True
    entered = enter_quietly(state.ordinal, state.epoch)
    if entered < 0:
        return True
    with nogil:
        while True:
            result = query_stream(state.handle)
            if result != CUDA_ERROR_NOT_READY or cyrt_now() >= end:
                break
            cyrt_nap(100_000)
    if result == CUDA_ERROR_NOT_READY:
        leave_quietly(entered)
        return False
    leave(state.ordinal, entered, result, b"cuStreamSynchronize")
    return True
