# C-level functions only: see freed.pxd.
"""Freed memory: its return to the bins of its home stream."""

from cyrt.runtime.blocks cimport put
from cyrt.runtime.device cimport contexts
from cyrt.runtime.order cimport is_recorded, order_after_all_uses
from cyrt.runtime.state cimport LARGE, UNSETTLED, Block, StreamState
from cyrt.runtime.stream_state cimport flush


cdef bint is_settled(const Block* block) noexcept:
    """Return whether all uses of the block precede whatever its home stream does next."""
    return (block.num_readers == 0 and not block.shared and block.home.owned
            and block.home.ordinal == block.ordinal)


cdef void return_block(Block* block) noexcept:
    if is_settled(block) or order_after_all_uses(block):
        return_to_bin(block)
    else:
        queue_unsettled(block)


cdef void queue_unsettled(Block* block) noexcept:
    block.state = UNSETTLED
    block.next_unsettled = unsettled[block.ordinal]
    unsettled[block.ordinal] = block


cdef void return_to_bin(Block* block) noexcept:
    """Return the block to its home stream, at the commit if that stream's recording uses it."""
    if (block.size < LARGE or block.home.grouping) and is_recorded(block, block.home):
        hold_until_commit(block)
    elif not put(block):
        queue_unsettled(block)


cdef void return_held_blocks(StreamState* stream) noexcept:
    cdef Block* block = stream.resting
    cdef Block* following
    stream.resting = stream.last_resting = NULL
    if stream.epoch != contexts[stream.ordinal].epoch:
        return                      # the reset of the context freed the memory
    while block != NULL:
        following = block.next_resting
        if not put(block):
            queue_unsettled(block)
        block = following


cdef void return_unsettled_blocks(int ordinal) noexcept:
    cdef Block* block = unsettled[ordinal]
    cdef Block* following
    unsettled[ordinal] = NULL
    while block != NULL:
        following = block.next_unsettled
        return_block(block)            # puts the block into the list again if it is still too early
        block = following


cdef int launch_uses_of_unsettled(int ordinal, int bin) except -1:
    """Launch these uses: otherwise a loop that drops large blocks would allocate ever more."""
    cdef Block* block = unsettled[ordinal]
    cdef StreamState* user
    cdef int i
    while block != NULL and block.bin != bin:
        block = block.next_unsettled
    if block == NULL:
        return 0
    user = block.home
    for i in range(block.num_readers):
        if block.readers[i].pending and not block.readers[i].capturing:
            user = block.readers[i]
            break
    if user.pending:
        flush(user, b"freed memory is wanted again")
    return_unsettled_blocks(ordinal)
    return 0
