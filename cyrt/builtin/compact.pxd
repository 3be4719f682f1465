# Selection of elements by a mask: the launches of compact.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/compact.h" nogil:
    enum: COMPACT_TILE          # elements of a mask that a block counts

# A mask is operand 1: n bools, contiguous.
# Record the number of true elements of each tile into operand 0, int64.
cdef int record_counts(Recorder encoder, const Operand* operands, long long n) except -1
# Record the selection of a mask, in order, into operand 0: elements of operand 2, which has n
# contiguous elements; if its buffer is NULL, their positions, int64. Operand 3 holds for each tile
# the number of true elements before it, int64; its buffer may be NULL if there is one tile.
cdef int record_select(Recorder encoder, int dtype, const Operand* operands, long long n) except -1
