# The states of streams: creating and finding them, launching their work, ordering them.
#
# INVARIANTS
# - States (CUstream and free blocks) are reused, not destroyed; see state.pxd.
# - The per-thread default stream belongs to one thread. Other threads neither put work on it nor
#   record an event on it: they wait for the event after cyrt's last work there.

from cyrt.driver.cuda cimport CUevent, CUresult, CUstream
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport StreamState

# Launch all work that was recorded before the call, wait for a launch that another thread has
# begun, and raise the error of a launch that is kept. Other threads may run in between. `reason`,
# a text that is never freed, tells in traces why the caller asks for it.
cdef inline int flush(StreamState* stream, const char* reason) except -1:
    if stream.pending or stream.submitting or stream.wants_commits or stream.failed:
        return graph.commit(stream, reason)
    return 0
# Do so for every stream of a device that is not captured, unless the device has a fault.
cdef int flush_all(int ordinal, const char* reason) except -1

# A linked list of the states of each device.
cdef StreamState* states[MAX_DEVICES]
# The stream whose undeclared kernel the other streams of the device wait for; NULL: none.
cdef StreamState* last_undeclared[MAX_DEVICES]
# Note that all work of a stream has ended: later work need not wait for an undeclared kernel there.
cdef inline void forget_undeclared(const StreamState* stream) noexcept:
    if last_undeclared[stream.ordinal] == stream:
        last_undeclared[stream.ordinal] = NULL

# Create a state and add it to the device's list.
cdef StreamState* new_state(int ordinal, CUstream handle, int priority, bint owned) except NULL
# Return the state of another library's stream, by handle.
cdef StreamState* wrapped_state(int ordinal, CUstream handle) except NULL
# Return the state of the legacy default stream.
cdef StreamState* legacy_state(int ordinal) except NULL
# Return the number of the thread, which is never reused, unlike Python's ident.
cdef unsigned long thread_number() noexcept
# Return whether it is the per-thread default stream of another thread.
cdef bint is_others_thread(const StreamState* stream) noexcept
# Return whether another library captures the stream: see captures.
cdef bint is_captured(const StreamState* stream) noexcept
# Raise an error if the stream is being captured, by cyrt or by another library.
cdef int refuse_captured(StreamState* state) except -1
# Make later work on `later` wait for what was launched on `earlier`. The function keeps the GIL,
# and runs Python code only to raise.
cdef int order_launched(StreamState* later, StreamState* earlier) except -1
# Do the same, and return the driver's result.
cdef CUresult link(StreamState* later, StreamState* earlier) noexcept
# Record an event after the work that is on the stream now; create the event if it is NULL.
cdef CUresult record_event(CUevent* event, CUstream stream) noexcept
# Record the state's marker in the same way.
cdef CUresult mark(StreamState* stream) noexcept
# Record the event after cyrt's last work on a wrapped stream. Call it inside a turn. The handle of
# the legacy stream is always valid: its event is recorded when it is asked for.
cdef CUresult mark_work(StreamState* stream) noexcept
# Return that event; NULL: there was no work. The legacy stream's may be after others' work, too.
cdef CUevent work_mark(StreamState* stream) noexcept
