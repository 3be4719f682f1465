# Streams, and which one a thread puts its work on.
#
# INVARIANTS
# - The default stream is a non-blocking one of each thread and device, never the legacy one.
# - A Stream's state outlives it, and serves the next Stream of its priority once it is idle.

from cyrt.runtime.state cimport StreamState

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
# The state of a Stream, or of anything with __cuda_stream__; None: the current one.
cdef Stream stream_of(stream, int ordinal)
