# Pooling: the launches of pool.cu.
#
# INVARIANTS
# - The padding of parameters is zero: equal launches have equal bytes.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.window cimport WINDOW_AXES, Sliding
from cyrt.graph.commit cimport Recorder

# Operands. Channels are adjacent. The gradient of max_pool takes the input and, contiguous, the
# result's gradient; that of avg_pool takes the result's as its source.
cdef enum:
    OUT = 0                 # contiguous
    SOURCE
    GRADIENT

# Windows over images of some channels. Steps are the source's, in elements.
cdef struct Pooling:
    Sliding sliding
    long long batch, channels, batch_step
    long long[WINDOW_AXES] steps

# Record an operation of pooling, by its code.
cdef int record_pool(Recorder encoder, int op, int dtype, const Operand* operands,
                     const Pooling* pooling) except -1
