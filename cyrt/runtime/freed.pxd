# Freed memory: its return to the bins of its home stream, the last stream that wrote it.
#
# INVARIANTS
# - Freeing launches nothing, waits for nothing and never raises. If several streams used the block,
#   or its address was exported, one stream is made to wait for the others. If that is not possible
#   yet, or the driver's queue of one of them is long, the block is kept in the list `unsettled`.
# - A small block that the recording uses returns to its bin only at the commit. Reusing it inside
#   the same batch would order work that is otherwise independent; inside `concurrent()` the reuse
#   would not even be ordered.

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.blocks cimport is_reserved
from cyrt.runtime.state cimport FREE, RESTING, Block, StreamState

# Freed blocks that another stream's unlaunched work uses, or whose slot could not be allocated.
cdef Block* unsettled[MAX_DEVICES]

# Keep a freed block until the commit of its home stream's recording, which uses it.
cdef inline void hold_until_commit(Block* block) noexcept:
    cdef StreamState* stream = block.home
    if is_reserved(block) and block.holder == stream \
            and block.hazard.epoch == stream.recording_epoch:
        block.state = FREE          # It is not available before the commit, either: see sequences.
        return
    block.state = RESTING
    block.next_resting = NULL
    if stream.resting == NULL:
        stream.resting = block
    else:
        stream.last_resting.next_resting = block
    stream.last_resting = block

# Return a freed block of a size class to its bin, or keep it until that is possible.
cdef void return_block(Block* block) noexcept
# Keep a freed block in `unsettled` until it can be returned.
cdef void queue_unsettled(Block* block) noexcept
# Return the RESTING blocks to the bins when the stream's recording is launched or dropped.
cdef void return_held_blocks(StreamState* stream) noexcept
# Return those `unsettled` blocks to the pool whose uses have been launched since. The function
# keeps the GIL.
cdef void return_unsettled_blocks(int ordinal) noexcept
# Launch the work that keeps blocks of a size class in `unsettled`.
cdef int launch_uses_of_unsettled(int ordinal, int bin) except -1
