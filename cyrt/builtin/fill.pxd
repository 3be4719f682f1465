# `Buffer.fill` as a kernel.

from cyrt.runtime.state cimport StreamState

# Record a fill of a Memory with a pattern of 1, 2 or 4 bytes; False where there is no code for it.
cdef bint record_fill(StreamState* stream, object target, unsigned int pattern,
                      size_t width) except -1
