# Blocks of memory, and the bins that contain the free ones.
#
# INVARIANTS
# - A Block struct is never freed, only its memory. After a release of the GIL, a function compares
#   the block's generation to find out whether the block has another owner.
# - A block has a slot in the bin of one stream, its `holder`, from its creation until its memory is
#   freed. A free block is in the bin of its home stream.
# - A free block is in the set `free` of its bin, unless a sequence or site has it (see sequences).
# - A free block is at least as large as the blocks of its bin's size class.
# - A large block is a driver allocation, or one of the parts that a larger one was split into. A
#   part that becomes free is joined with the free parts beside it that are of the same stream: the
#   parts of one stream are never free side by side, unless host memory is short.
# - A part is ordered after all uses of the block that it was split from, and a joined block after
#   those of its parts.
# - The lowest free slot is taken first.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.bitset cimport drop_bit, lowest_bit
from cyrt.runtime.state cimport (
    LARGE, LIVE, NUM_BINS, Bin, Block, BlockKind, Hazard, StreamState, Usage,
)

cdef extern from *:
    """
    static inline int cyrt_log2(unsigned long long n) { return 63 - __builtin_clzll(n); }
    """
    int cyrt_log2(unsigned long long n) noexcept nogil

cdef enum:
    FINE = 4096                 # bytes; up to this size the classes are GRAIN apart
    GRAIN = 512                 # bytes

# A driver allocation that small blocks are cut from.
cdef struct Slab:
    CUdeviceptr address
    size_t used                 # bytes cut into blocks so far
    int live                    # number of its blocks that are not in the set `free` of a bin
    Slab* next

# Numbers of blocks of one size class on a device.
cdef struct Count:
    int made                    # blocks that exist
    int out                     # blocks that are not in the set `free` of a bin
    int most                    # the most blocks that were out at once
    # Number of allocations of a large class that found no free block at the pool's limit. It grows
    # to a number from which the class has a higher limit, see pool.
    int misses

cdef Count[MAX_DEVICES][NUM_BINS] counts
cdef Usage[MAX_DEVICES] usages
cdef size_t[MAX_DEVICES] site_bytes     # bytes of the blocks that sites have
cdef size_t[MAX_DEVICES] split_bytes    # bytes of the driver allocations that are split

cdef inline int size_class(size_t nbytes, size_t* size) noexcept nogil:
    """Return the class of a size, and set `size` to the bytes of a block of the class."""
    cdef int exponent, first, shift     # the classes of a doubling are 1 << shift bytes apart
    cdef size_t k
    if nbytes <= FINE:
        k = (nbytes + GRAIN - 1) // GRAIN if nbytes else 1
        size[0] = k * GRAIN
        return <int>k - 1
    exponent = cyrt_log2(nbytes - 1)            # 2^exponent < nbytes <= 2^(exponent + 1)
    if nbytes <= LARGE:
        shift, first = exponent - 2, 8 + 4 * (exponent - 12)
    else:
        shift, first = exponent - 3, 8 + 32 + 8 * (exponent - 20)
    k = ((nbytes - 1) >> shift) + 1             # the steps from 0 on, rounded up
    size[0] = k << shift
    return first + <int>(k - (<size_t>1 << (exponent - shift))) - 1

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
cdef inline bint is_part(const Block* block) noexcept:
    return block.before != NULL or block.after != NULL

# Split a large block that was taken for its holder, so that `size` bytes, of the class `bin`, are
# left, and put the rest into a bin. Without host memory the block stays as it is.
cdef void split(Block* block, size_t size, int bin) noexcept
# Return the block's state for the recording with that epoch; NULL: the recording does not use it.
cdef Hazard* hazard_in(Block* block, unsigned long long epoch) noexcept
# Return whether a sequence or site has the block.
cdef inline bint is_reserved(const Block* block) noexcept:
    return block.entry or block.site
# Take the block out of its sequence or site.
cdef void end_reservation(Block* block) noexcept

cdef inline Block* lowest_free(const Bin* bin) noexcept:
    """Return the free block in the lowest slot; NULL: none is free."""
    cdef int slot = lowest_bit(&bin.free)
    return bin.blocks[slot] if slot >= 0 else NULL

# Take a free block that is not reserved out of its bin's set; it keeps its slot.
cdef inline void take(Block* block) noexcept:
    drop_bit(&block.holder.bins[block.bin].free, block.slot)
    block.state = LIVE
    if block.slab != NULL:
        (<Slab*>block.slab).live += 1
