# Deferred destruction of what work in flight may still use: modules, other libraries' objects that
# keep code loaded, pinned memory, and memory that is not the pool's.
#
# INVARIANTS
# - The driver calls that destroy these wait for every kernel on the device, even an unrelated one
#   (measured on an H100). They are made while the device is idle, so that dropping an object never
#   hangs because of a kernel that does not end.
# - An event after the last use on each stream shows when memory is no longer in use, whatever else
#   runs. A new PinnedBuffer then reuses page-locked memory, so a device that is never idle does not
#   need more and more of it. A recorded use gets its event after it is launched.
# - No function raises. After a fault, a fork or a reset nothing is destroyed: it ended with its
#   context.

from cyrt.driver.cuda cimport CUresult
from cyrt.runtime.state cimport Block

ctypedef CUresult (*End)(size_t handle) noexcept nogil

# Call `end(handle)` now if the device is idle, else in a later `destroy_unused`.
cdef void destroy_when_idle(int ordinal, unsigned int epoch, End end, size_t handle) noexcept
# Do the same with a block's address, but not before every use of the block has ended.
cdef void free_block_when_unused(const Block* block, End end) noexcept
# Take unused page-locked memory of at least `size` bytes and set `size` to its size; else NULL.
cdef void* reuse_pinned(int ordinal, size_t* size) noexcept
# Destroy every waiting object that can be destroyed now.
cdef void destroy_unused() noexcept
