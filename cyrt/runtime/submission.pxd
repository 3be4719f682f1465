# Turns: one thread at a time puts work on a stream.
#
# INVARIANTS
# - Work is put on a stream during a turn. The driver's calls in it may release the GIL: whoever
#   looks at the stream meanwhile finds `submitting` set, and waits for the turn's end.
# - No Python code runs during a turn: nothing is allocated that the collector tracks, no reference
#   is dropped, no signal is looked for. So a thread never waits for a turn of its own.
# - A thread that had the last turn lets the threads that wait go first.

from cyrt.runtime.state cimport StreamState

# Begins a turn, if it is free. Releases no GIL.
cdef bint try_submission(StreamState* stream) noexcept
cdef void end_submission(StreamState* stream) noexcept
# Waits until a turn may be free; Ctrl-C ends the wait.
cdef int wait_for_turn(StreamState* stream) except -1
# Waits until the turn that is under way, if one is, has ended; Ctrl-C ends the wait.
cdef int wait_for_submission(StreamState* stream) except -1
# Sleeps 20 us without the GIL; `naps` counts up, and now and then signals are looked for.
cdef int nap(StreamState* stream, unsigned int* naps) except -1
