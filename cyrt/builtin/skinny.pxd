# Products of a few rows and a matrix: what launches of matmul.cu and linear.cu share.

from cyrt.builtin.launch cimport Launch
from cyrt.builtin.space cimport Divider, Outer2

cdef extern from "params/matmul.h" nogil:
    cdef struct Skinny:
        unsigned long long few_rows, matrix, out
        long long few_step, wide_step, few_out, wide_out
        Outer2 batch
        Divider tiles, parts
        unsigned int few, wide, k, depth, num_batch, flags, works, early

cdef enum:
    VECTOR_BYTES = 16

# Set the tiles, the parts and the works of a product whose other parameters are set, and its kernel
# and geometry; return the number of parts, 1 unless it is divisible. `first`: the index of the first
# kernel of its layout in the entry. `gated`: half of the matrix's rows are gates; `normed`: the few
# rows are normalised.
cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint gated,
                             bint normed, long long batches, bint divisible) except -1
