# The states of streams: made and found, launched, and ordered among themselves.
#
# INVARIANTS
# - States (CUstream and free blocks) are recycled, not destroyed; see state.pxd.
# - The per-thread default stream belongs to one thread: others neither put work on it nor mark it,
#   they wait for the event behind cyrt's last work there.

from cyrt.driver.cuda cimport CUevent, CUresult, CUstream
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport StreamState

# What was recorded or put on the stream before the call has been launched when it returns. Other
# threads may run meanwhile.
cdef inline int flush(StreamState* stream) except -1:
    if stream.pending or stream.submitting:
        return flush_pending(stream)
    return 0
cdef int flush_pending(StreamState* stream) except -1

# The states of each device, linked.
cdef StreamState* states[MAX_DEVICES]
# The stream whose undeclared kernel every other stream of the device comes after; NULL: none.
cdef StreamState* last_undeclared[MAX_DEVICES]

# A new state, among the device's.
cdef StreamState* new_state(int ordinal, CUstream handle, int priority, bint owned) except NULL
# The state of somebody else's stream, by handle.
cdef StreamState* foreign_state(int ordinal, CUstream handle) except NULL
# That of the legacy default stream.
cdef StreamState* legacy_state(int ordinal) except NULL
# Whether it is the per-thread default stream of another thread.
cdef bint is_others_thread(const StreamState* stream) noexcept
# Raises while the stream is captured.
cdef int refuse_captured(StreamState* state) except -1
# Work put on `later` from now on waits for what was launched on `earlier`. Keeps the GIL, and runs
# no Python code but to raise.
cdef int order_launched(StreamState* later, StreamState* earlier) except -1
# The same, with the driver's answer.
cdef CUresult link(StreamState* later, StreamState* earlier) noexcept
# Records an event behind what is on the stream now; makes it where there is none.
cdef CUresult record_event(CUevent* event, CUstream stream) noexcept
# The same with the state's marker.
cdef CUresult mark(StreamState* stream) noexcept
# Inside a turn on a wrapped stream: notes where cyrt's work on it ends.
cdef CUresult mark_work(StreamState* stream) noexcept
