# Streams.
#
# INVARIANTS
# - The default stream is a non-blocking one of each thread and device, never the legacy one.
# - States (CUstream and free blocks) are recycled, not destroyed; see state.pxd.
# - Waits release the GIL and end on a signal (Ctrl-C).
# - A stream is `idle` only after a wait during which nothing was put on it.
# - The per-thread default stream belongs to one thread: others neither put work on it nor mark it,
#   they wait for the event behind cyrt's last work there.

from cyrt.driver.cuda cimport CUevent, CUresult, CUstream
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport StreamState

# The encoder's, which puts them here: launch what was recorded before the call, by this thread or
# another; drop what was kept for batches that have ended; the stream is another's from now on.
cdef int (*commit_stream)(StreamState* stream) except -1
cdef int (*look_back)(StreamState* stream) except -1
cdef void (*end_encoder)(StreamState* stream) noexcept

# What was recorded or put on the stream before the call has been launched when it returns. Other
# threads may run meanwhile.
cdef inline int flush(StreamState* stream) except -1:
    if stream.pending or stream.submitting:
        return flush_pending(stream)
    return 0
cdef int flush_pending(StreamState* stream) except -1

# A kernel that prints was loaded: the driver hands its text out when it is made to synchronise.
cdef bint printing

# The states of each device, linked.
cdef StreamState* states[MAX_DEVICES]

cdef class Stream:
    cdef StreamState* state
    cdef object owner           # what a wrapped stream belongs to
    cdef object __weakref__

    cdef StreamState* live(self) except NULL

# This thread's current stream on a device (borrowed by the caller's frame only).
cdef StreamState* current_state(int ordinal) except NULL
cdef Stream current_stream(int ordinal)
# Launches what this thread has recorded for its current stream, if it has one.
cdef int flush_current(int ordinal) except -1
# Hands an error to sys.unraisablehook, where nobody can catch it.
cdef void tell_unraisable(error) noexcept
# A Stream of the state.
cdef Stream stream_over(StreamState* state)
# Raises while the stream is captured.
cdef int refuse_captured(StreamState* state) except -1
# The state of a Stream, or of anything with __cuda_stream__; None: the current one.
cdef Stream stream_of(stream, int ordinal)
# Work put on `later` from now on waits for what is on `earlier` now, what is recorded included.
cdef int order_after(StreamState* later, StreamState* earlier) except -1
# The same for what was launched on the earlier one. Keeps the GIL, and runs no Python code but to
# raise.
cdef int order_launched(StreamState* later, StreamState* earlier) except -1
# The same, with the driver's answer.
cdef CUresult link(StreamState* later, StreamState* earlier) noexcept
# Whether it is the per-thread default stream of another thread.
cdef bint is_others_thread(const StreamState* stream) noexcept
# Whether nothing is recorded for the stream, or on it, that has not ended. Keeps the GIL.
cdef bint is_done(StreamState* stream) noexcept
# Inside a turn on a wrapped stream: notes where cyrt's work on it ends.
cdef CUresult mark_work(StreamState* stream) noexcept
# Records the marker behind what is on the stream now.
cdef CUresult mark(StreamState* stream) noexcept
# The state of somebody else's stream, by handle.
cdef StreamState* foreign_state(int ordinal, CUstream handle) except NULL
# That of the legacy default stream.
cdef StreamState* legacy_state(int ordinal) except NULL
# The stream whose undeclared kernel every other stream of the device comes after; NULL: none.
cdef StreamState* last_undeclared[MAX_DEVICES]

ctypedef CUresult (*Query)(void* handle) noexcept nogil
# Polls until the answer is another than "not ready".
cdef int wait(int ordinal, unsigned int epoch, Query query, void* handle,
              const char* call) except -1
cdef int wait_state(StreamState* state) except -1
# Waits for all that cyrt put on any stream of a device.
cdef int wait_all(int ordinal) except -1

# Called after a wait for all of a device's streams; set by `ending`, which builds on this file.
ctypedef void (*OnIdle)() noexcept
cdef OnIdle on_idle
