# Order among streams: which streams have used a block of memory, and which stream waits for which.
#
# INVARIANTS
# - A block's `home` is the stream that wrote it last, `readers` are those that have read it since.
#   A reader waits for `home`; a writer waits for all of them and becomes `home`. So a stream that
#   waits for `home` and `readers` has waited for every earlier use of the block.
# - The GIL is held while a use is stored in the block and its waits are put on the streams. Before
#   that, the recorded work of other streams is launched and their turns are waited for; after each
#   such step all uses are checked again. An operation is put on its stream, or recorded, without
#   releasing the GIL after the pass that found all of its uses in order.
# - An undeclared kernel, which may use any memory, waits for all work on the device, and all later
#   work waits for it: the other streams are `behind` until each of them has been made to wait.
# - A release of memory waits for nothing and launches nothing.
# - A copy of several chunks is put on a stream of its own, in one turn: as long as that turn lasts,
#   the block has this stream as its `home` or as a reader, so operations of others that conflict
#   with the copy wait for the end of the turn, as do the reuse of the memory and a trim. Reads
#   beside a copy to the host do not, except those of outside memory.
# - The turn may begin while the copy still waits for the device. It ends for each check of signals.
#   After longer and longer times, all who wait for turns go first, for at most the same time: the
#   device may wait for something that they do. So others soon come when several copies wait, too.

from cyrt.driver.cuda cimport CUresult
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport Access, Block, StreamState

# Make the stream wait for what other streams did with the block, and store the use. Return 1 when
# this is done, with the GIL held throughout; 0 if something was launched or waited for: call again.
cdef inline int use(Block* block, StreamState* stream, Access access) except -1:
    if block.home == stream and block.num_readers == 0:
        return 1
    return order_use(block, stream, access)
cdef int order_use(Block* block, StreamState* stream, Access access) except -1
# Raise NoContents: the host reads, or the program uses at once, what is only explained.
cdef int refuse_contents() except -1
# Raise RuntimeError if there is no memory behind the block's address: see StreamState.explained.
cdef int refuse_example(const Block* block) except -1
# Make a `behind` stream wait for the undeclared kernel. Return as `use` does.
cdef int order_behind(StreamState* stream) except -1
# Order the stream's next operation, which may use any memory. Return as `use` does.
cdef int order_undeclared(StreamState* stream) except -1
# Return the stream on which another thread is launching work with a device's outside memory (see
# runtime/outside), or NULL. An event that is recorded before that launch ends does not cover it.
cdef StreamState* launching_outside(const StreamState* stream, int ordinal) noexcept
# Launch the recordings of a device's other streams that use outside memory. Return 1 if there were
# none.
cdef int flush_outside(StreamState* stream, int ordinal) except -1
# Raise the error for memory that was freed while the GIL was released.
cdef int refuse_freed() except -1
# Make the stream wait for cyrt's last operation on a device's outside memory, on any stream: the
# addresses of such operations are compared only inside one recording. The function keeps the GIL.
cdef CUresult order_outside(StreamState* stream, int ordinal) noexcept
# Whether memory of a device was exported: an undeclared kernel may use what other libraries use.
cdef bint[MAX_DEVICES] has_exported_memory
# Make later work on `later` wait for the work that is on `earlier` now, recorded work included.
cdef int order_after(StreamState* later, StreamState* earlier) except -1
# Make a consumer's stream wait for every use of the block.
cdef int order_consumer(StreamState* consumer, Block* block) except -1
# Launch the stream's recording because others use its memory.
cdef int launch_for_others(StreamState* stream) except -1
# Return whether the stream's recording, which is not launched yet, uses the block.
cdef bint is_recorded(const Block* block, const StreamState* stream) noexcept
# Return whether any stream's recording does.
cdef bint is_recorded_anywhere(const Block* block) noexcept
# Launch the recordings that use the block.
cdef int flush_block(Block* block) except -1
# Make one stream of the block's device wait for every use of the block. Return False if a use is
# not launched yet or cannot be waited for now. The function keeps the GIL.
cdef bint order_after_all_uses(Block* block) noexcept
# Begin a turn on the stream for an operation that is put directly on it. First launch the stream's
# recording, and order the stream after other uses of one or two blocks. `second` may be NULL.
cdef int begin_direct(StreamState* stream, Block* first, Access first_access, Block* second,
                      Access second_access) except -1
# End that turn.
cdef void end_direct(StreamState* stream) noexcept
# Begin the turn of a copy of several chunks on its own stream. When the function returns, all work
# that uses the block, or that this stream waits for, has ended. Ctrl-C ends the wait. `generation`
# is that of the block when the copy was called.
cdef int begin_copy(StreamState* own, Block* block, Access access,
                    unsigned int generation) except -1
# End that turn. `complete`: all has been read or put on the stream.
cdef void end_copy(StreamState* own, Block* block, Access access, unsigned int generation,
                   bint complete) noexcept
# Make later work on the stream wait for a copy to the device, and the stream the block's home.
cdef int continue_after(StreamState* stream, StreamState* own, Block* block,
                        unsigned int generation) except -1
