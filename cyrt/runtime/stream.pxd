# Streams, and the current stream of each thread.
#
# INVARIANTS
# - Each thread has a default stream on each device. It is non-blocking, never the legacy stream.
# - The state of a Stream outlives the object. A new Stream of the same priority reuses the state
#   once its work has ended.

from cyrt.runtime.state cimport StreamState

cdef class Stream:
    cdef StreamState* state
    cdef object owner           # the object that a wrapped stream belongs to
    cdef object __weakref__

    cdef StreamState* live(self) except NULL

# Return this thread's current stream on a device, as a state (borrowed, for the caller's frame
# only) or as a Stream.
cdef StreamState* current_state(int ordinal) except NULL
# Return whether this thread is in a block of a stream, which the program has chosen.
cdef bint is_chosen() noexcept
cdef Stream current_stream(int ordinal)
# Return an idle state of that priority, or a new one, with one more user.
cdef StreamState* acquire_state(int ordinal, int priority) except NULL
# Launch what is recorded for this thread's current stream, if the thread has one.
cdef int flush_current(int ordinal, const char* reason) except -1
# Report an error that no caller can catch to sys.unraisablehook.
cdef void report_unraisable(error) noexcept
# Return a Stream object of the state.
cdef Stream stream_over(StreamState* state)
# Return a Stream, or a wrapper of an object with __cuda_stream__; None means the current stream.
cdef Stream stream_of(stream, int ordinal)
