# `Buffer.fill` as a kernel.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport StreamState

# Record a fill of a Memory with a pattern of 1, 2 or 4 bytes; False where there is no code for it.
cdef bint record_fill(StreamState* stream, object target, unsigned int pattern,
                      size_t width) except -1
# Return the launches of such a fill: see graph/seam.
cdef list fill_launches(int ordinal, CUdeviceptr address, size_t count, unsigned int pattern,
                        size_t width)
