# Pacing, which keeps the driver's queue of a stream from becoming full.
#
# The driver's queue of a stream holds about a thousand commands that have not run (1,021 measured).
# A call that finds the queue full blocks until there is room. A thread that blocks there and holds
# the GIL blocks forever if the first command of the queue is a callback that needs the GIL.
#
# INVARIANTS
# - `put` counts the commands that cyrt puts on a stream. An event is recorded after every STEP of
#   them, so `put - run` is never less than the number of commands that have not run.
# - A thread asks for room before it puts an operation, or a wait for another stream, on a stream.
#   If there is none, it waits without the GIL: before it checks other streams or, within its turn,
#   between two operations.
# - Commands that must not wait, such as the order that lets another stream reuse freed memory, have
#   spare room after that. The rest of the queue is reserved for the few commands that follow every
#   operation, such as the event after a batch.
# - A captured stream is not paced, since nothing that is put on it runs. Only the thread of a
#   per-thread default stream asks for room on it.

from cyrt.runtime.state cimport StreamState

cdef enum:
    STEP = 128              # commands between two events
    MOST = 640              # most commands that have not run when an operation is put after them
    SPARE = 896             # most commands that have not run for a command that must not wait

# Return whether the stream has room for an operation. The function keeps the GIL.
cdef inline bint has_room(StreamState* stream) noexcept:
    return stream.put < stream.next_look or look(stream)
cdef bint look(StreamState* stream) noexcept
# Return whether the stream has room for a command that must not wait.
cdef inline bint has_spare_room(StreamState* stream) noexcept:
    return has_room(stream) or stream.put - stream.run < SPARE
# Return 1 if the stream has room, with the GIL held throughout. Else wait for room and return 0;
# Ctrl-C ends the wait.
cdef inline int wait_for_room(StreamState* stream) except -1:
    return 1 if has_room(stream) else poll_for_room(stream)
cdef int poll_for_room(StreamState* stream) except -1
# Wait for room inside a turn, without checking for signals.
cdef inline void pace_turn(StreamState* stream) noexcept:
    if not has_room(stream):
        poll_for_room_in_turn(stream)
cdef void poll_for_room_in_turn(StreamState* stream) noexcept
