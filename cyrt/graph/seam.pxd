# The functions of `builtin` that `graph` calls. seam.pyx passes those of `graph` to `runtime`.
#
# INVARIANTS
# - builtin/seam sets every member when the package is imported. There is no other call upward.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport StreamState

cdef struct BuiltinCalls:
    # Record a fill of a Memory with a pattern of 1, 2 or 4 bytes. Return False if it cannot.
    bint (*record_fill)(StreamState* stream, object target, unsigned int pattern,
                        size_t width) except -1
    # Return the launches of a fill with a pattern of `width` bytes, `count` times: for each its
    # LoadedFunction, grid, block, bytes of shared memory and parameters.
    list (*fill_launches)(int ordinal, CUdeviceptr address, size_t count, unsigned int pattern,
                          size_t width)
    # Compile the operations of a Fusion in the background.
    int (*fuse)(object fusion) except -1

cdef BuiltinCalls builtin
