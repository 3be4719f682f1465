# Blocks of memory, and the bins that contain the free ones.
#
# INVARIANTS
# - A Block struct is never freed, only its memory. After a release of the GIL, a function compares
#   the block's generation to find out whether the block has another owner.
# - A block has a slot in the bin of one stream, its `holder`, from its creation until its memory is
#   freed. A free block is in the bin of its home stream.
# - A free block is in one set of its bin: in `kept` if a place keeps it, else in `free`.
# - A program that allocates and frees in the same way every round receives the same addresses every
#   round, since the lowest free slot is taken first, and places ask for the blocks that they had.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.bitset cimport drop_bit, lowest_bit, highest_bit
from cyrt.runtime.state cimport LIVE, NUM_BINS, Bin, Block, BlockKind, StreamState

# A driver allocation that small blocks are cut from.
cdef struct Slab:
    CUdeviceptr address
    size_t used                 # bytes cut into blocks so far
    int live                    # number of its blocks that are not in a bin
    Slab* next

# Numbers of blocks of one size class on a device.
cdef struct Count:
    int made                    # blocks that exist
    int out                     # blocks that are not in a bin
    int most                    # the most blocks that were out at once

cdef Count[MAX_DEVICES][NUM_BINS] counts
cdef size_t[MAX_DEVICES] kept_bytes     # bytes of the blocks that places keep

# Return a new block of any kind, in no bin yet.
cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL
# Free the block's lists and store its struct for reuse. The caller frees the memory.
cdef void destroy_block(Block* block) noexcept
# Move the block from its holder's bin into a slot of the stream's. Return False without memory.
cdef bint join_bin(StreamState* stream, Block* block) noexcept
# Make room for one more block. Return False if there is no memory.
cdef bint reserve_bin(Bin* bin) noexcept
cdef void leave_bin(Block* block) noexcept
# Put a block into the bin of its home stream. Return False if there is no memory for it.
cdef bint put(Block* block) noexcept
# Keep the block for the place with that number.
cdef void keep(Block* block, unsigned int place) noexcept
# Make the block available to all places again.
cdef void stop_keeping(Block* block) noexcept

cdef inline Block* lowest_free(const Bin* bin) noexcept:
    """Return the free block in the lowest slot; NULL: none is free."""
    cdef int slot = lowest_bit(&bin.free)
    return bin.blocks[slot] if slot >= 0 else NULL

cdef inline Block* highest_free(const Bin* bin) noexcept:
    cdef int slot = highest_bit(&bin.free)
    return bin.blocks[slot] if slot >= 0 else NULL

cdef inline Block* lowest_kept(const Bin* bin) noexcept:
    cdef int slot = lowest_bit(&bin.kept)
    return bin.blocks[slot] if slot >= 0 else NULL

# Take a free block out of its bin's sets; it keeps its slot.
cdef inline void take(Block* block) noexcept:
    cdef Bin* bin = &block.holder.bins[block.bin]
    drop_bit(&bin.kept if block.keeper else &bin.free, block.slot)
    block.state = LIVE
    if block.slab != NULL:
        (<Slab*>block.slab).live += 1
