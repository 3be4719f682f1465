# The pool: device memory kept and handed out again, ordered by streams.
#
# INVARIANTS
# - A free block lies in a bin of its home stream: whatever that stream does next may use it, with
#   no wait. Another stream takes it only where the home stream is idle, or comes after it.
# - A block's state is its own, not a Python object's: it survives free and reuse, views share it.
# - Sizes are rounded to classes: 512 bytes apart up to 4 KB, then 4 a doubling up to 1 MB, 8 above.
# - A class of small blocks holds no more than twice as many as were out at once, in use or resting;
#   large blocks of all classes no more than 1.1 times the bytes that were in use at once.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.blocks cimport Count, Slab, destroy_block, new_block
from cyrt.runtime.reserve cimport out_of_memory
from cyrt.runtime.state cimport Block, BlockKind, StreamState

# Whether memory that is dropped is kept for reuse (CYRT_POOL, CYRT_CHECK).
cdef int pool_enabled() except -1
cdef Block* allocate(StreamState* stream, size_t nbytes) except NULL
cdef void release(Block* block) noexcept
