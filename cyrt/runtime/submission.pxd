# Turns: one thread at a time puts work on a stream.
#
# INVARIANTS
# - Work is put on a stream during a turn. Driver calls of the turn may release the GIL: another
#   thread that needs the stream then finds `submitting` set and waits for the end of the turn.
# - No Python code runs during a turn: the thread allocates no object that the garbage collector
#   tracks, drops no reference and checks no signals. So a thread never waits for its own turn.
# - The thread that had the last turn lets waiting threads go first.
# - A thread that other threads kept from recording has priority: they let it go first. Priority
#   ends when that thread begins to wait for the device, which may take as long as its kernels, and
#   after 50 ms of time.

from cyrt.runtime.state cimport StreamState

# Begin a turn if no other thread has one or goes first. The function keeps the GIL.
cdef bint try_submission(StreamState* stream) noexcept
# End the turn.
cdef void end_submission(StreamState* stream) noexcept
# Wait until this thread may try to begin a turn. Ctrl-C ends the wait.
cdef int wait_for_turn(StreamState* stream) except -1
# Wait for the end of the current turn, if there is one. Ctrl-C ends the wait.
cdef int wait_for_submission(StreamState* stream) except -1
# A thread that has waited for the device in a turn lets others go first: it sleeps while any thread
# waits for a turn or its end, for at most so many nanoseconds. Ctrl-C ends the sleep.
cdef int let_pass(StreamState* stream, long long most) except -1
# The thread that has priority; 0: none. It matters for fairness only. Wait for that thread, become
# it, or stop being it.
cdef unsigned long priority_thread
cdef int yield_to_priority_thread(StreamState* stream) except -1
cdef void request_priority() noexcept
cdef void release_priority() noexcept
# Sleep 20 us without the GIL. `naps` counts the calls: every 500th one checks for signals.
cdef int sleep_briefly(StreamState* stream, unsigned int* naps) except -1
