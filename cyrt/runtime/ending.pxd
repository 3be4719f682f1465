# The end of what work in flight may still use: modules, pinned memory, memory outside the pool.
#
# INVARIANTS
# - The driver's calls that end these wait for the device, or do not and leave kernels without
#   their code: they are made once nothing is in flight, so that dropping an object never hangs
#   behind a kernel that does not end.
# - Never raises. What a fault, a fork or a reset leaves went with its context.

from cyrt.driver.cuda cimport CUresult

ctypedef CUresult (*End)(size_t handle) noexcept nogil

# Calls `end(handle)` now if the device is idle, else at a later sweep.
cdef void end_when_idle(int ordinal, unsigned int epoch, End end, size_t handle) noexcept
# Ends what waits for it, if the device is idle.
cdef void sweep(int ordinal) noexcept
