# Blocks, and the bins that free ones lie in.
#
# INVARIANTS
# - A Block is never freed, only its memory: whoever holds a pointer to it over a release of the GIL
#   tells by its generation whether it has another owner.
# - A block has a slot in the bin of one stream, its `holder`, from when it is cut until its memory
#   is given back. A free block is in the bin of its home stream.
# - A free block is in one set of its bin: in `kept` where a place keeps it, else in `free`.
# - A program whose blocks live the same way every round is given the same addresses every round,
#   since the lowest free slot comes first, and the places ask for what they had.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.bitset cimport drop_bit, lowest_bit, highest_bit
from cyrt.runtime.state cimport LIVE, NUM_BINS, Bin, Block, BlockKind, StreamState

# A driver allocation that small blocks are cut from.
cdef struct Slab:
    CUdeviceptr address
    size_t used                 # bytes cut so far
    int live                    # blocks that are allocated
    Slab* next

# The blocks of one size class on a device.
cdef struct Count:
    int made
    int out                     # not in a bin
    int most                    # that were out at once

cdef Count[MAX_DEVICES][NUM_BINS] counts
cdef size_t[MAX_DEVICES] kept_bytes     # in blocks that places keep

# A block that is no part of the pool: pinned, managed or foreign memory.
cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL
cdef void destroy_block(Block* block) noexcept
# Gives the block a slot of the stream's, and takes it from its holder. False: there is no memory.
cdef bint join_bin(StreamState* stream, Block* block) noexcept
# Makes room for one block more. False: there is no memory.
cdef bint reserve_bin(Bin* bin) noexcept
cdef void leave_bin(Block* block) noexcept
# Puts a block into the bin of its home stream. False: there is no memory for it.
cdef bint put(Block* block) noexcept
cdef void keep(Block* block, unsigned int place) noexcept
cdef void stop_keeping(Block* block) noexcept

cdef inline Block* lowest_free(const Bin* bin) noexcept:
    """NULL: none is free."""
    cdef int slot = lowest_bit(&bin.free)
    return bin.blocks[slot] if slot >= 0 else NULL

cdef inline Block* highest_free(const Bin* bin) noexcept:
    cdef int slot = highest_bit(&bin.free)
    return bin.blocks[slot] if slot >= 0 else NULL

cdef inline Block* lowest_kept(const Bin* bin) noexcept:
    cdef int slot = lowest_bit(&bin.kept)
    return bin.blocks[slot] if slot >= 0 else NULL

# Takes a free block out of its bin's sets; it keeps its slot.
cdef inline void take(Block* block) noexcept:
    cdef Bin* bin = &block.holder.bins[block.bin]
    drop_bit(&bin.kept if block.keeper else &bin.free, block.slot)
    block.state = LIVE
    if block.slab != NULL:
        (<Slab*>block.slab).live += 1
