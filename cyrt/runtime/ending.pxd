# The end of what work in flight may still use: modules, pinned memory, memory outside the pool.
#
# INVARIANTS
# - The driver's calls that end these wait for every kernel on the device, also for one that has
#   nothing to do with them (measured on an H100). They are made while nothing runs, so that
#   dropping an object never hangs behind a kernel that does not end.
# - A mark behind the last use on each stream tells when memory is no longer in use, whatever else
#   runs. Page-locked memory then serves the next PinnedBuffer: a device that is never idle takes
#   no more of it. A use that is recorded is marked once it was launched.
# - Never raises. What a fault, a fork or a reset leaves went with its context.

from cyrt.driver.cuda cimport CUresult
from cyrt.runtime.state cimport Block

ctypedef CUresult (*End)(size_t handle) noexcept nogil

# Calls `end(handle)` now if the device is idle, else at a later sweep.
cdef void end_when_idle(int ordinal, unsigned int epoch, End end, size_t handle) noexcept
# The same for a block's address, once every use of the block is over.
cdef void end_block(const Block* block, End end) noexcept
# Page-locked memory of at least that size that is no longer in use, and its size; NULL: none.
cdef void* reuse_pinned(int ordinal, size_t* size) noexcept
# Ends what waits for it and can be ended.
cdef void sweep() noexcept
