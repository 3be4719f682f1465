# Dropout: the launch of dropout.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record n contiguous elements, operand 1, into operand 0: those whose 32 random bits of the key are
# below the threshold times the scale, and 0 for the others. Operand 0 is aligned to 16 bytes.
cdef int record_dropout(Recorder encoder, int dtype, const Operand* operands, long long n,
                        unsigned long long key, unsigned long long threshold,
                        double scale) except -1
