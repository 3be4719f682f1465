# The first elements of rows: the launches of top_k.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/top_k.h" nogil:
    enum: TOP_K_MOST

# Record the selection of the k greatest elements of each of `rows` rows of n, in descending order:
# of operand 2 into operand 0, and their indices, int64, into operand 1; all contiguous. k is from 1
# to TOP_K_MOST and not above n, which is below 2^32.
cdef int record_top_k(Recorder encoder, int dtype, const Operand* operands, long long rows,
                      long long n, int k) except -1
