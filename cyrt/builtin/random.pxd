# Random numbers: the launches of random.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/random.h" nogil:
    enum: RANDOM_WORDS          # the most parameter words of a distribution

# Record n random numbers of a key into contiguous memory whose address is a multiple of 16 bytes.
# `words` are the distribution's parameters, RANDOM_WORDS of them; see kernels_cu/random.cu.
cdef int record_random(Recorder encoder, int op, int dtype, int variant, unsigned long long key,
                       const unsigned long long* words, const Operand* output,
                       long long n) except -1
