# The pool: freed device memory is kept and allocated again, in stream order.
#
# INVARIANTS
# - A free block is in a bin of its home stream, whose next operation may use it without a wait.
#   Another stream takes it only if the home stream has no work, or after waiting for that stream.
# - The state is stored in the block, not in a Python object: it survives free and reuse, and views
#   share it.
# - Sizes are rounded to classes: 512 bytes apart to 4 KB, then 4 per doubling to 1 MB, then 8.
# - While a free block can be reused, a class of small blocks has at most twice as many as were out
#   at once (in use or RESTING); all large blocks have at most 1.1 times the peak bytes in use.
# - Where that limit is reached, a large free block serves a smaller request: whole, if the request
#   is at least 0.8 times its size, else split. At most a quarter of the memory is in allocations
#   that are split (see reserve), so parts in use never keep more than that from other sizes: what
#   fits in three quarters is found. (Simulated with traces of sizes: if all is split, requests fail
#   from 0.25 of the memory on; if nothing is, programs whose sizes take turns call the driver at
#   each allocation.)
# - A class that has often found no free block at that limit has a higher one: all large blocks may
#   exceed the peak by a 64th of the memory. So sizes that take turns come to have blocks of their
#   own, and no more of them are split: a batch in which a block is split or joined is not replayed.
# - A small request never finds memory short while a block of a larger class is free: it receives
#   the smallest one, or 1 MB of a large one that may be split.
# - Results, which are small blocks of the pool that no other stream has used, are released without
#   the checks of `release` as long as nothing was disturbed since `release` last made them for the
#   stream: whoever loses memory, resets a device or closes the driver calls `disturb`.
# - Out of memory is raised only after an attempt that found nothing free, and nothing that could be
#   given back to the driver.

from libc.string cimport memcmp

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport disturbances
from cyrt.runtime.blocks cimport Count, Slab, destroy_block, new_block, put
from cyrt.runtime.freed cimport hold_until_commit
from cyrt.runtime.reserve cimport out_of_memory
from cyrt.runtime.sequences cimport is_next_block
from cyrt.runtime.state cimport LIVE, Block, BlockKind, Sequence, StreamState, Usage

# Return whether the block is memory of the stream's context that no other library uses. The struct
# of a stream has its device and epoch as a block has them whose `kind` and `shared` are zero.
cdef inline bint is_own(const Block* block, const StreamState* stream) noexcept:
    return memcmp(&block.ordinal, &stream.ordinal, 8) == 0

# Return whether freed memory is kept for reuse (CYRT_POOL, CYRT_CHECK).
cdef int pool_enabled() except -1
cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL

# Store that an allocation of that many bytes has received the block.
cdef inline void note_owner(StreamState* stream, Block* block, size_t nbytes) noexcept:
    cdef Usage* usage = stream.usage
    block.asked = nbytes
    usage.in_use += nbytes
    if usage.in_use > usage.peak:
        usage.peak = usage.in_use

# Return whether `allocate` would return the block, of which the stream is the home, and that no
# other library uses.
cdef bint is_next(StreamState* stream, const Block* block, size_t nbytes) noexcept
# If so, take a large block out of its bin. Return whether it was.
cdef bint take_lowest(const StreamState* stream, Block* block, size_t nbytes) noexcept

# If so, allocate the block. Return whether it is allocated.
cdef inline bint allocate_next(StreamState* stream, Block* block, size_t nbytes) noexcept:
    cdef Sequence* sequence
    if block.slab == NULL:
        if not take_lowest(stream, block, nbytes):
            return False
    else:
        sequence = &stream.bins[block.bin].sequence
        if block.size < nbytes or not is_next_block(stream, sequence, block):
            return False
        sequence.next += 1
        block.state = LIVE
    note_owner(stream, block, nbytes)
    return True

cdef void release(Block* block) noexcept
# Return whether the block is that of a usual result: a small one that no other stream has used.
cdef inline bint is_result(const Block* block) noexcept:
    cdef const StreamState* home = block.home
    if block.slab == NULL or block.num_readers or not is_own(block, home) \
            or home.undisturbed != disturbances:
        return False
    if block.hazard.epoch == home.recording_epoch:
        return home.pending
    return block.num_others == 0 and block.holder == home

# Release such a block. This calls no driver function, and runs no Python code.
cdef inline void release_result(Block* block) noexcept:
    block.home.usage.in_use -= block.asked
    block.generation += 1
    if block.hazard.epoch == block.home.recording_epoch:
        hold_until_commit(block)
    else:
        put(block)          # It has its slot there already, so this cannot fail.
