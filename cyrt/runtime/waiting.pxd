# Waiting for streams, and querying whether their work has ended.
#
# INVARIANTS
# - Waits release the GIL and end on a signal (Ctrl-C).
# - A stream is `idle` only after a wait during which nothing was put on it.

from cyrt.driver.cuda cimport CUresult
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream_state cimport forget_undeclared

# Whether a kernel that prints was loaded: the driver prints its text only when it synchronises.
cdef bint printing

ctypedef CUresult (*Query)(void* handle) noexcept nogil
# Query the driver about a CUstream or a CUevent.
cdef CUresult query_stream(void* handle) noexcept nogil
cdef CUresult query_event(void* handle) noexcept nogil
# Poll a query until its result is not CUDA_ERROR_NOT_READY.
cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1
# Poll a query for 20 ms without the GIL, and check no signals. `begin` is the time at which the
# wait began; 0: it begins now.
cdef CUresult poll(Query query, void* handle, double* begin) noexcept
# Wait for all work that is on the stream now, recorded work included.
cdef int wait_state(StreamState* state) except -1
# Return how many turns and waits for other streams have been put on the stream so far.
cdef inline unsigned long long submission_count(const StreamState* state) noexcept:
    return state.submissions + state.links
# Note that all work up to that count has ended: the stream is idle if nothing was put on it since.
cdef inline void note_end(StreamState* state, unsigned long long count) noexcept:
    if count == submission_count(state) and not (state.pending or state.submitting):
        forget_undeclared(state)
        state.idle = not state.has_exported_handle
# Wait for all work that cyrt put on the stream.
cdef int wait_for_own_work(StreamState* state) except -1
# Wait for all work that cyrt put on any stream of a device.
cdef int wait_all(int ordinal) except -1
# Return whether no work is recorded for the stream and all work on it has ended. The function keeps
# the GIL.
cdef bint is_done(StreamState* stream) noexcept

# A function called after a wait for all of a device's streams; `ending`, which imports this module,
# sets it.
ctypedef void (*OnIdle)() noexcept
cdef OnIdle on_idle
