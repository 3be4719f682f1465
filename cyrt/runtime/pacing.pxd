# Pacing: the driver's queue of a stream never fills up.
#
# The driver takes about a thousand commands of a stream that have not run (1,021 measured); a call
# that finds its queue full blocks until there is room. A thread that blocks there with the GIL held
# blocks for ever where the queue's head is a callback that needs the GIL.
#
# INVARIANTS
# - `put` counts the commands that cyrt puts on a stream. Behind each STEP of them there is an
#   event, so `put - run` is never less than the number of those that have not run.
# - Whoever puts an operation on a stream, or an order between two, asks for room first. Where there
#   is none they wait with the GIL released: before they look at other streams or, with the turn
#   begun, between two operations.
# - What is never waited for, such as an order that lets freed memory serve another stream, finds
#   spare room behind that. The last of the queue is kept for the few commands that follow an
#   operation in any case, such as the mark behind a batch.
# - A captured stream is not paced: nothing that is put on it runs. Of the per-thread default stream
#   only its own thread asks.

from cyrt.runtime.state cimport StreamState

cdef enum:
    STEP = 128              # commands between two events
    MOST = 640              # commands that have not run, where an operation is put behind them
    SPARE = 896             # the same for a command that is never waited for

# Whether the stream has room for what a caller is about to put on it. Keeps the GIL.
cdef inline bint has_room(StreamState* stream) noexcept:
    return stream.put < stream.next_look or look(stream)
cdef bint look(StreamState* stream) noexcept
# The same for a command that is never waited for.
cdef inline bint has_spare_room(StreamState* stream) noexcept:
    return has_room(stream) or stream.put - stream.run < SPARE
# 1: it has room, and the GIL was held throughout; 0: it was waited for. Ctrl-C ends the wait.
cdef inline int wait_for_room(StreamState* stream) except -1:
    return 1 if has_room(stream) else wait_longer(stream)
cdef int wait_longer(StreamState* stream) except -1
# The same inside a turn, with no look for signals.
cdef inline void pace_turn(StreamState* stream) noexcept:
    if not has_room(stream):
        wait_in_turn(stream)
cdef void wait_in_turn(StreamState* stream) noexcept
