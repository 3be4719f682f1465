# The functions of `graph`, which records and launches work, that the runtime calls.
#
# INVARIANTS
# - graph/seam fills it, whole, when the package is imported. There is no other call upward.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

cdef struct GraphCalls:
    # Launches what was recorded for the stream before the call, by this thread or by another one.
    int (*commit)(StreamState* stream) except -1
    # Drops what was kept for the stream's batches that have ended.
    int (*look_back)(StreamState* stream) except -1
    # The stream is about to serve somebody else.
    void (*end_encoder)(StreamState* stream) noexcept
    # Drops what belongs to a device that was reset.
    int (*forget_device)(int ordinal) except -1
    # Records a copy within the device.
    int (*record_copy)(StreamState* stream, Block* target, Access access, CUdeviceptr to,
                       Block* source, CUdeviceptr start, size_t nbytes) except -1
    # Records a fill of a Memory with a pattern of 1, 2 or 4 bytes; False where it cannot.
    bint (*record_fill)(StreamState* stream, object target, unsigned int pattern,
                        size_t width) except -1
    # The exception of a number of runtime/poison.
    object (*error_of)(unsigned int number)
    # The number is used by so many more.
    void (*count_holders)(unsigned int number, int change) noexcept

cdef GraphCalls graph
