# Waiting for streams, and asking whether their work has ended.
#
# INVARIANTS
# - Waits release the GIL and end on a signal (Ctrl-C).
# - A stream is `idle` only after a wait during which nothing was put on it.

from cyrt.driver.cuda cimport CUresult
from cyrt.runtime.state cimport StreamState

# A kernel that prints was loaded: the driver hands its text out when it is made to synchronise.
cdef bint printing

ctypedef CUresult (*Query)(void* handle) noexcept nogil
# The driver's answer about a CUstream, and about a CUevent.
cdef CUresult query_stream(void* handle) noexcept nogil
cdef CUresult query_event(void* handle) noexcept nogil
# Polls until the answer is another than "not ready".
cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1
# Waits for what is on the stream now, what is recorded included.
cdef int wait_state(StreamState* state) except -1
# How often something was put on the stream so far.
cdef inline unsigned long long put_so_far(const StreamState* state) noexcept:
    return state.submissions + state.links
# All that was on the stream at that count has ended: it is idle where nothing was put on it since.
cdef inline void note_end(StreamState* state, unsigned long long count) noexcept:
    if count == put_so_far(state) and not (
            state.pending or state.submitting or state.handed_out):
        state.idle = True
# Waits for all that cyrt put on any stream of a device.
cdef int wait_all(int ordinal) except -1
# Whether nothing is recorded for the stream, or on it, that has not ended. Keeps the GIL.
cdef bint is_done(StreamState* stream) noexcept

# Called after a wait for all of a device's streams; set by `ending`, which builds on this file.
ctypedef void (*OnIdle)() noexcept
cdef OnIdle on_idle
