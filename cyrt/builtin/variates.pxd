# Random numbers whose parameters may be arrays: the launches of variates.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/variates.h" nogil:
    enum: VARIATES_PARAMETERS

# Record n random numbers of a key into operand 0. The other operands are the distribution's
# parameters: contiguous float64 arrays of n elements, or numbers as float64.
cdef int record_variates(Recorder encoder, int op, int dtype, unsigned long long key,
                         const Operand* operands, long long n) except -1
