# Random numbers: which kernel, grid and parameters.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Explained, Operand

cdef enum:
    WORDS = 5               # that a distribution takes, at most

# Records n random numbers of a key into contiguous memory, its address a multiple of 16 bytes.
# `words`: what the distribution takes, see kernels_cu/random.cu. With `explained` the encoder may
# be None.
cdef int record_random(Recorder encoder, int ordinal, int op, int dtype, int variant,
                       unsigned long long key, const unsigned long long* words,
                       const Operand* output, long long n, Explained explained) except -1
