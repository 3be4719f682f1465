# The functions of `graph`, which records and launches work, that the runtime calls.
#
# INVARIANTS
# - graph/seam sets every member when the package is imported. There is no other call upward.
# - Only `flush` of stream_state calls `commit`: whoever needs recorded work launched calls `flush`.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

cdef struct GraphCalls:
    # See graph/commit.
    int (*commit)(StreamState* stream, const char* reason) except -1
    # Drop the objects that were kept for batches of the stream that have ended, or of any stream.
    int (*release_ended_batches)(StreamState* stream) except -1
    int (*release_all_ended)() except -1
    # Store all uses by the stream's recording in the hazards of the blocks. The caller changes
    # these: the recording's edges will follow from more than its operations, and it is never
    # replayed.
    void (*stop_replay)(StreamState* stream) noexcept
    # Free the scripts of a device's recorders, except those that are replayed or launched.
    int (*free_scripts)(int ordinal) except -1
    # Detach the encoder of a stream that a new Stream object is going to use.
    void (*end_encoder)(StreamState* stream) noexcept
    # Drop the plans and chains of a device that was reset.
    int (*forget_device)(int ordinal) except -1
    # Before out of memory is raised, after the device's free memory was given back: destroy modules
    # and plans that nothing needs any more, or else the plan used longest ago that is not being
    # launched. Return whether anything was destroyed.
    bint (*release_plans)(int ordinal) except -1
    # Record a copy within the device.
    int (*record_copy)(StreamState* stream, Block* target, Access access, CUdeviceptr to,
                       Block* source, CUdeviceptr start, size_t nbytes) except -1
    # Record a fill of a Memory with a pattern of 1, 2 or 4 bytes. Return False if it cannot.
    bint (*record_fill)(StreamState* stream, object target, unsigned int pattern,
                        size_t width) except -1
    # Keep an object until the work that is on the stream now has ended.
    int (*keep)(StreamState* stream, object obj) except -1
    # Return a new exception for an error number of runtime/poison.
    object (*error_of)(unsigned int number)
    # Add `change` to the number of uses of an error number.
    void (*count_holders)(unsigned int number, int change) noexcept

cdef GraphCalls graph
