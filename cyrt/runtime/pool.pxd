# The pool: device memory kept and handed out again, ordered by streams.
#
# INVARIANTS
# - A free block lies in a bin of its home stream: whatever that stream does next may use it, with
#   no wait. Another stream takes it only where the home stream is idle.
# - A block's state is its own, not a Python object's: it survives free and reuse, views share it.
# - Freeing launches and waits for nothing, and never raises. Where several streams used the block,
#   or its address was handed out, one stream is made to wait for the others; where that is not
#   possible yet, the block is settled later.
# - A Block is never freed, only its memory: whoever holds a pointer to it over a release of the GIL
#   tells by its generation whether it has another owner.
# - A slab goes back to the driver only when all of its blocks lie in bins.
# - Sizes are rounded to classes: 512 bytes apart up to 4 KB, then 4 a doubling up to 1 MB, 8 above.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.order cimport flush_block, is_outside, use
from cyrt.runtime.state cimport Block, BlockKind, StreamState

# Whether memory that is dropped is kept for reuse (CYRT_POOL, CYRT_CHECK).
cdef int pool_enabled() except -1
cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL
# A block that is no part of the pool: pinned, managed or foreign memory.
cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL
cdef void release(Block* block) noexcept
cdef void destroy_block(Block* block) noexcept
# Runs an allocation again after the cache was given back, where the driver has no memory left.
cdef int out_of_memory(int ordinal, size_t nbytes, const char* call) except -1

# The stream's recording was launched: what rested returns to the bins, in its places.
cdef void return_rested(StreamState* stream, unsigned long long epoch) noexcept
# Returns the blocks to the pool that were freed before another stream's use of them was launched,
# where it is launched by now. Keeps the GIL.
cdef void settle_freed(int ordinal) noexcept
