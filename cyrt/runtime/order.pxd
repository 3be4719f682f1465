# Order among streams: which of them have used a block of memory, and what waits for what.
#
# INVARIANTS
# - A block's `home` is the stream that wrote it last, `readers` those that have read it since. A
#   reader comes after `home`; a writer comes after all of them and becomes `home`. So whoever uses
#   the block next finds every earlier use of it behind `home` and `readers`.
# - A use is noted, and what it orders is put on the streams, while the GIL is held: launching what
#   another stream has recorded, or waiting for its turn, comes before, and then everything is
#   looked at again. An operation is put on its stream, or recorded, with no release of the GIL
#   after the pass in which all of its uses were found in order.
# - A kernel that nobody declared comes after all work on the device, and all later work after it:
#   the other streams are `behind` until they have been ordered.
# - A release of memory waits for nothing and launches nothing.

from cyrt.driver.cuda cimport CUresult
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport Access, Block, StreamState

# Orders the stream's next operation after what other streams did with the block, and notes the use.
# 1: done, with the GIL held throughout; 0: something was launched or waited for, ask again.
cdef inline int use(Block* block, StreamState* stream, Access access) except -1:
    if block.home == stream and block.num_readers == 0:
        return 1
    return order_use(block, stream, access)
cdef int order_use(Block* block, StreamState* stream, Access access) except -1
# The same for a stream that is `behind`.
cdef int order_behind(StreamState* stream) except -1
# The same for an operation that may use any memory.
cdef int order_undeclared(StreamState* stream) except -1
# The stream that another thread is putting work on just now, on a device's memory that is outside;
# NULL: none. An event that is recorded before that is done does not cover the work.
cdef StreamState* launching_outside(const StreamState* stream, int ordinal) noexcept
# Launches the recordings of a device's other streams that use memory that is outside. 1: there was
# none.
cdef int flush_outside(StreamState* stream, int ordinal) except -1
# Raises: the memory of a block was freed while the GIL was released.
cdef int refuse_freed() except -1
# Orders the stream after cyrt's last operation on a device's memory that is outside, on whatever
# stream: operations on such memory are compared by address only inside one recording. Keeps the
# GIL.
cdef CUresult order_outside(StreamState* stream, int ordinal) noexcept
# Memory of a device was handed out: an undeclared kernel may use memory that others use.
cdef bint[MAX_DEVICES] handed_out
# Work put on `later` from now on waits for what is on `earlier` now, what is recorded included.
cdef int order_after(StreamState* later, StreamState* earlier) except -1
# Orders a consumer's stream after every use of the block.
cdef int order_consumer(StreamState* consumer, Block* block) except -1
# Whether a recording that is not launched yet uses the block.
cdef bint is_recorded(const Block* block, const StreamState* stream) noexcept
# Launches the recordings that use the block.
cdef int flush_block(Block* block) except -1
# Makes the order of one stream of the block's device cover every use of it, keeping the GIL; False
# where a use is not launched yet, or cannot be told of.
cdef bint settle(Block* block) noexcept
# Begins a turn on the stream, for an operation that is put on it directly: after all that is
# recorded for it, and after other uses of one or two blocks. `second` may be NULL.
cdef int begin_direct(StreamState* stream, Block* first, Access first_access, Block* second,
                      Access second_access) except -1
# Ends that turn.
cdef void end_direct(StreamState* stream) noexcept
# The thread whose turn it is to record, since others kept it from doing so; 0: none. It is a matter
# of fairness only.
cdef unsigned long favoured
cdef int yield_to_favoured(StreamState* stream) except -1
cdef void ask_favour() noexcept
cdef void end_favour() noexcept
