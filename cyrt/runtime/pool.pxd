# The pool: device memory kept and handed out again, ordered by streams.
#
# INVARIANTS
# - A free block lies in a bin of its home stream: whatever that stream does next may use it, with
#   no wait. Another stream takes it only where the home stream is idle.
# - A block's state is its own, not a Python object's: it survives free and reuse, views share it.
# - Freeing makes no driver call but where several streams used the block, or its address was handed
#   out, and never raises.
# - Sizes are rounded to classes: 512 bytes apart up to 4 KB, then 4 a doubling up to 1 MB, 8 above.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block, BlockKind, StreamState

# Whether memory that is dropped is kept for reuse (CYRT_POOL, CYRT_CHECK).
cdef int pool_enabled() except -1
cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL
# A block that is no part of the pool: pinned, managed or foreign memory.
cdef Block* new_block(CUdeviceptr address, size_t size, int ordinal, BlockKind kind,
                      StreamState* home) except NULL
cdef void release(Block* block) noexcept
cdef void destroy_block(Block* block) noexcept
# Orders the stream's next operation after what other streams did with the block.
cdef int order_use(Block* block, StreamState* stream, bint write) except -1
# Runs an allocation again after the cache was given back, where the driver has no memory left.
cdef int out_of_memory(int ordinal, size_t nbytes, const char* call) except -1

# Launches the recordings that use the block.
cdef int flush_block(Block* block) except -1
# The stream's recording was committed: what rested returns to the bins, in its places.
cdef void return_rested(StreamState* stream, unsigned long long epoch) noexcept

# Whether streams that cyrt does not know of may use the memory.
cdef inline bint is_outside(const Block* block) noexcept:
    return block.shared or block.kind == FOREIGN_MEMORY

cdef inline int use(Block* block, StreamState* stream, bint write) except -1:
    if block.home == stream and block.num_readers == 0:
        return 0
    return order_use(block, stream, write)
