# C-level functions only: see stream_state.pxd.
"""The states of streams: creating and finding them, launching their work, ordering them."""

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, check, cu, faulted
from cyrt.runtime.allocation cimport allocate_zeroed
from cyrt.runtime.blocks cimport usages
from cyrt.runtime.device cimport (
    contexts, context_of, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime.device import reset_hooks
from cyrt.runtime.state cimport StreamState

cdef extern from *:
    """
    /* The GIL protects the thread numbers. */
    static _Thread_local unsigned long cyrt_number;
    static unsigned long cyrt_last_number;
    static inline unsigned long cyrt_thread_number(void) {
        if (cyrt_number == 0) cyrt_number = ++cyrt_last_number;
        return cyrt_number;
    }
    """
    unsigned long cyrt_thread_number() noexcept

# The states of other libraries' streams by (ordinal, epoch, cuStreamGetId): ids are never reused.
_foreign = {}
cdef StreamState* legacy[MAX_DEVICES]
cdef size_t LEGACY = 1          # a handle of the legacy stream, as 0 is (cuda.h)
cdef size_t PER_THREAD = 2      # the handle of each thread's default stream


cdef StreamState* new_state(int ordinal, CUstream handle, int priority, bint owned) except NULL:
    cdef StreamState* state = <StreamState*>allocate_zeroed(sizeof(StreamState))
    state.handle = handle
    state.ordinal = ordinal
    state.epoch = contexts[ordinal].epoch
    state.usage = &usages[ordinal]
    state.priority = priority
    state.owned = owned
    state.has_exported_handle = not owned
    state.behind = last_undeclared[ordinal] != NULL
    state.nodes = -1
    state.next = states[ordinal]
    states[ordinal] = state
    return state


cdef StreamState* state_of_handle(int ordinal, CUstream handle) noexcept:
    """Return the newest state of a handle of another library, NULL if there is none."""
    cdef StreamState* state = states[ordinal]
    while state != NULL and (state.owned or state.handle != handle):
        state = state.next
    return state


cdef StreamState* wrapped_state(int ordinal, CUstream handle) except NULL:
    cdef unsigned long long identity = 0
    cdef unsigned int epoch = context_of(ordinal).epoch
    cdef CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE
    cdef StreamState* state
    cdef int priority = 0
    cdef CUresult result
    cdef int entered = enter(ordinal, epoch, b"cuStreamGetId")
    if <size_t>handle > LEGACY:
        cu.cuStreamIsCapturing(handle, &status)
    if status != CU_STREAM_CAPTURE_STATUS_NONE:
        # The driver does not tell the id of a stream that is being captured, and the call would end
        # the capture. A stream that cyrt does not know yet gets a state, which it has until its id
        # can be asked for: all that it is used for until then becomes part of the graph.
        leave_quietly(entered)
        state = state_of_handle(ordinal, handle)
        return state if state != NULL else new_state(ordinal, handle, 0, False)
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
        legacy[ordinal] = wrapped_state(ordinal, NULL)
    return legacy[ordinal]


@reset_hooks.append
def _reset(int ordinal):
    states[ordinal] = NULL      # the old context's states stay allocated; using one raises
    last_undeclared[ordinal] = NULL


cdef CUresult record_event(CUevent* event, CUstream stream) noexcept:
    cdef CUresult result = CUDA_SUCCESS
    if event[0] == NULL:
        result = cu.cuEventCreate(event, CU_EVENT_DISABLE_TIMING)
    return result if result != CUDA_SUCCESS else cu.cuEventRecord(event[0], stream)


cdef CUresult mark(StreamState* stream) noexcept:
    if stream.idle:         # the earlier marker will do; a query would find the new one not reached
        return CUDA_SUCCESS
    stream.put += 1
    return record_event(&stream.marker, stream.handle)


cdef CUresult mark_work(StreamState* stream) noexcept:
    if stream.owned:
        return CUDA_SUCCESS
    if stream.handle == NULL and stream.last_work != NULL:
        stream.unmarked = True
        return CUDA_SUCCESS
    stream.put += 1
    return record_event(&stream.last_work, stream.handle)


cdef CUevent work_mark(StreamState* stream) noexcept:
    cdef int entered
    if stream.unmarked:
        entered = enter_quietly(stream.ordinal, stream.epoch)
        if entered >= 0:
            stream.put += 1
            if record_event(&stream.last_work, stream.handle) == CUDA_SUCCESS:
                stream.unmarked = False
            leave_quietly(entered)
    return stream.last_work


cdef unsigned long thread_number() noexcept:
    return cyrt_thread_number()


cdef bint is_others_thread(const StreamState* stream) noexcept:
    return stream.thread != 0 and stream.thread != cyrt_thread_number()


cdef int flush_all(int ordinal, const char* reason) except -1:
    cdef StreamState* state = states[ordinal]
    while state != NULL and not faulted[ordinal]:
        if not state.capturing:
            flush(state, reason)
        state = state.next
    return 0


cdef bint is_captured(const StreamState* stream) noexcept:
    cdef CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE
    # The legacy stream is never captured, other libraries do not know a stream whose handle they do
    # not have, and the default streams of threads other than this one cannot be asked.
    if <size_t>stream.handle <= LEGACY or not stream.has_exported_handle or stream.capturing \
            or stream.ended or is_others_thread(stream):
        return False
    cu.cuStreamIsCapturing(stream.handle, &status)
    return status != CU_STREAM_CAPTURE_STATUS_NONE


cdef int refuse_captured(StreamState* state) except -1:
    if state.capturing:
        raise RuntimeError("a capture is open on the stream: what is put on it becomes a graph, "
                           "and is neither launched nor waited for before the capture's block ends")
    if is_captured(state):
        raise RuntimeError("another library captures the stream: only kernels on that library's "
                           "arrays can be put on it, and nothing waits for it before the capture "
                           "ends; call what needs to wait before the capture begins")
    return 0


cdef CUevent end_of(StreamState* stream, CUresult* result) noexcept:
    """Return an event after what was launched on the stream, or NULL if nothing was."""
    cdef int entered
    if is_others_thread(stream):
        return stream.last_work
    if is_captured(stream):
        if stream.owned:
            result[0] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        return stream.last_work
    # The marker of a captured stream was recorded when the capture began; no work followed it.
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
    if later == earlier or earlier.idle or earlier.epoch != contexts[earlier.ordinal].epoch:
        return CUDA_SUCCESS     # the reset of its context ended the work
    event = end_of(earlier, &result)
    if result != CUDA_SUCCESS or event == NULL:
        return result
    if is_others_thread(later):
        return CUDA_ERROR_NOT_PERMITTED
    if is_captured(later):
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    later.idle = False
    later.links += 1
    later.put += 1
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
    if is_captured(earlier):
        refuse_captured(earlier)
    verify(earlier.ordinal, earlier.epoch, b"cuEventRecord")
    verify(later.ordinal, later.epoch, b"cuStreamWaitEvent")
    result = link(later, earlier)
    if result == CUDA_ERROR_NOT_PERMITTED and is_others_thread(later):
        raise RuntimeError("the per-thread default stream of another thread cannot be made to "
                           "wait: use the memory on that thread, or on a stream with a handle of "
                           "its own")
    return check(result, b"cuStreamWaitEvent", later.ordinal)
