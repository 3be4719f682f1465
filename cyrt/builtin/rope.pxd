# Rotary position embedding: the launches of rope.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef enum:
    BATCH = 0               # dimensions of a RopeSpace
    HEAD
    POSITION

# The dimensions (batch, heads, positions) before the features, which are contiguous. Strides are in
# elements, the output's first.
cdef struct RopeSpace:
    long long[3] shape
    long long[3][2] strides
    long long pairs, features
    long long first             # the first position, added to the offsets
    long long offsets_step, freqs_step      # strides of the offsets and of the frequencies
    double turns                # full turns of the first pair from one position to the next
    double log2_step            # log2 of the ratio of a pair's turns to those of the pair before
    bint traditional            # neighbouring features are a pair
    bint wide_freqs             # float64; otherwise float32

# Record the rotation of operand 1 into operand 0. Operand 2 holds the offset of each batch, int64,
# operand 3 the divisor of each pair's turns; their buffers may be NULL.
cdef int record_rope(Recorder encoder, int dtype, const Operand* operands,
                     const RopeSpace* space) except -1
