"""Waiting for streams, and querying whether their work has ended."""

from cpython.exc cimport PyErr_CheckSignals

from cyrt.driver.capture_mode cimport event_status, relax, restore, stream_status
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, READY, cu, faulted, process
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.device cimport (
    context_of, current_ordinal, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime.failure cimport raise_failure
from cyrt.runtime.pacing cimport has_spare_room, wait_for_room
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream_state cimport (
    flush, is_captured, is_others_thread, record_event, refuse_captured, states, work_mark,
)
from cyrt.runtime.submission cimport release_priority

cdef extern from *:
    """
    #include <sched.h>
    #include <time.h>
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
    """
    double cyrt_now() noexcept nogil
    void cyrt_nap(long nanoseconds) noexcept nogil
    void cyrt_yield() noexcept nogil

cdef double SPIN = 0.002        # seconds of polling before a wait begins to sleep
cdef double SLICE = 0.02        # seconds between checks for signals
# A yield takes long if other threads need the processors. Waits then sleep for a while instead: a
# thread that has slept gets a processor sooner than one that has yielded.
cdef double LONG_YIELD = 0.0005     # seconds
cdef double CROWDED = 8             # times as long as that yield
cdef double crowded_until
cdef const char* AWAITED = b"the host waits for results"


cdef CUresult poll(Query query, void* handle, double* begin) noexcept:
    cdef CUresult result = CUDA_ERROR_NOT_READY
    cdef double now, end, asked
    global crowded_until
    release_priority()
    with nogil:
        now = cyrt_now()
        if begin[0] == 0:
            begin[0] = now
        end = now + SLICE
        while now < end:
            result = query(handle)
            if result != CUDA_ERROR_NOT_READY:
                break
            asked = now = cyrt_now()
            if now - begin[0] > SPIN or now < crowded_until:
                cyrt_nap(50_000)
            else:
                cyrt_yield()
                now = cyrt_now()
                if now - asked > LONG_YIELD:
                    crowded_until = now + CROWDED * (now - asked)
    return result


cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1:
    cdef double begin = 0
    cdef int entered = enter(ordinal, epoch, call)
    cdef CUresult result = query(handle)
    while result == CUDA_ERROR_NOT_READY:
        result = poll(query, handle, &begin)
        if result == CUDA_ERROR_NOT_READY:
            try:
                PyErr_CheckSignals()
                verify(ordinal, epoch, call)    # a handler may have forked or reset the device
            except BaseException:
                leave_quietly(entered)
                raise
    return leave(ordinal, entered, result, call)


cdef CUresult query_stream(void* handle) noexcept nogil:
    cdef CUresult result = stream_status(<CUstream>handle)
    cdef CUstreamCaptureMode before
    if printing and result == CUDA_SUCCESS:
        before = relax()
        result = cu.cuStreamSynchronize(<CUstream>handle)
        restore(before)
    return result


cdef CUresult query_event(void* handle) noexcept nogil:
    return event_status(<CUevent>handle)


cdef int wait_event(StreamState* state, CUevent event) except -1:
    if event == NULL:
        return 0
    return wait(state.ordinal, state.epoch, query_event, event, b"cuEventQuery")


cdef struct WaitEvent:
    CUevent event
    unsigned int epoch
    WaitEvent* next

cdef WaitEvent* wait_events[MAX_DEVICES]    # lists of events that no thread waits for


cdef int wait_by_event(StreamState* state) except -1:
    """Wait for what is on the stream now, by an event: a query of the stream would invalidate a
    capture that another thread begins during the wait."""
    cdef WaitEvent* taken
    cdef CUresult result
    cdef int entered
    wait_for_room(state)
    if state.capturing:         # another thread began a capture: its marker is after earlier work
        return wait_event(state, state.marker)
    taken = wait_events[state.ordinal]
    if taken != NULL:
        wait_events[state.ordinal] = taken.next
    else:
        taken = <WaitEvent*>allocate_zeroed(sizeof(WaitEvent))
    try:
        entered = enter(state.ordinal, state.epoch, b"cuEventRecord")
        if taken.epoch != state.epoch:      # the reset of the context destroyed the event
            taken.event, taken.epoch = NULL, state.epoch
        result = record_event(&taken.event, state.handle)
        state.put += 1
        leave(state.ordinal, entered, result, b"cuEventRecord")
        wait(state.ordinal, state.epoch, query_event, taken.event, b"cuStreamSynchronize")
    finally:
        taken.next = wait_events[state.ordinal]
        wait_events[state.ordinal] = taken
    if printing and not state.capturing:
        with nogil:
            result = query_stream(state.handle)     # prints the text
    return 0


cdef int wait_state(StreamState* state) except -1:
    cdef unsigned long long before
    refuse_captured(state)
    flush(state, AWAITED)
    before = submission_count(state)
    if is_others_thread(state):
        wait_event(state, state.last_work)
    else:
        wait_by_event(state)
        if not state.capturing:
            note_end(state, before)
    if state.encoder != NULL:
        graph.release_ended_batches(state)
    return raise_failure(state)


cdef bint is_done(StreamState* stream) noexcept:
    cdef CUresult result
    cdef CUevent event
    cdef int entered
    if stream.idle:
        return True
    if stream.pending or stream.submitting or stream.capturing:
        return False
    if not stream.owned:
        event = work_mark(stream)
        return event == NULL or event_status(event) == CUDA_SUCCESS
    if is_captured(stream):
        return False
    entered = enter_quietly(stream.ordinal, stream.epoch)
    if entered < 0:
        return False
    result = stream_status(stream.handle)
    leave_quietly(entered)
    return result == CUDA_SUCCESS


def synchronize():
    """Wait for all work that cyrt put on any stream of the current device.

    When the call returns, all work that any thread recorded or launched before the call has
    finished. On a stream of another library, it waits only for cyrt's work. Ctrl-C ends the wait.

    Raises
    ------
    CudaError
        Work on the device failed.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.ones(1000) * 2
    >>> cyrt.synchronize()  # now it has been computed
    """
    wait_all(current_ordinal())


cdef int wait_for_own_work(StreamState* state) except -1:
    if state.capturing:         # captured work does not run; the marker is after the earlier work
        return wait_event(state, state.marker)
    if state.owned:
        return 0 if state.idle and not state.failed else wait_state(state)
    flush(state, AWAITED)       # another library's stream: wait for cyrt's work only
    wait_event(state, work_mark(state))
    return raise_failure(state)


cdef int wait_all(int ordinal) except -1:
    cdef StreamState* state
    context_of(ordinal)
    state = states[ordinal]
    while state != NULL:
        wait_for_own_work(state)
        state = state.next
    graph.release_all_ended()
    if on_idle != NULL:
        on_idle()
    return 0


def drain(double seconds):
    """Launch the recorded work, and wait until it has ended, for at most `seconds`.

    It does not wait for wrapped streams, for streams that are captured, nor for work that other
    threads launch meanwhile.

    Returns
    -------
    tuple
        The devices, by their indices, whose work has not ended; and a list of the errors that were
        not raised before.
    """
    cdef double end = cyrt_now() + seconds
    cdef StreamState* state
    cdef list errors = []
    cdef set busy = set()
    if process != READY:            # the driver was never opened, or this is a forked child
        return busy, errors
    for ordinal in range(MAX_DEVICES):
        if states[ordinal] != NULL and not faulted[ordinal]:
            state = states[ordinal]
            while state != NULL:
                try:
                    if wait_until(state, end):      # else its queue may be full: a launch may block
                        flush(state, b"everything is launched and waited for")
                    else:
                        busy.add(ordinal)
                except Exception as error:
                    errors.append(error)
                state = state.next
    for ordinal in range(MAX_DEVICES):
        state = states[ordinal]
        while state != NULL and not faulted[ordinal]:
            try:
                if wait_until(state, end):
                    raise_failure(state)
                else:
                    busy.add(ordinal)
            except Exception as error:
                errors.append(error)
            state = state.next
    if busy:
        graph.release_all_ended()       # so that operations_in_flight() names no others
    return busy, errors


cdef void destroy_event(CUevent event) noexcept:
    cu.cuEventDestroy(event)


cdef bint wait_until(StreamState* state, double end) except -1:
    """Wait until a time for what is on the stream now; return whether it has ended. Wrapped and
    captured streams are not waited for."""
    cdef CUresult result = CUDA_ERROR_NOT_READY
    cdef CUevent event = NULL       # after that work: another thread may go on launching
    cdef int entered
    if not state.owned or state.capturing or is_captured(state):
        return True
    entered = enter_quietly(state.ordinal, state.epoch)
    if entered < 0:
        return True
    while True:
        with nogil:
            result = query_stream(state.handle) if event == NULL else query_event(event)
            if result == CUDA_ERROR_NOT_READY:
                cyrt_nap(100_000)
        if result != CUDA_ERROR_NOT_READY or cyrt_now() >= end:
            break
        if event == NULL and not state.capturing and has_spare_room(state):
            record_event(&event, state.handle)
            state.put += 1
    if event != NULL:
        destroy_event(event)
        if printing and result == CUDA_SUCCESS:
            with nogil:
                query_stream(state.handle)      # prints the text
    if result == CUDA_ERROR_NOT_READY:
        leave_quietly(entered)
        return False
    leave(state.ordinal, entered, result, b"cuStreamSynchronize")
    return True
