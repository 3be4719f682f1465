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

# Set the tiles and the parts of a product whose other parameters are set, and its kernel and
# geometry; return the number of parts, 1 unless it is divisible. `first`: the index of the kernel
# of 8 rows in the entry. `along`: the matrix's rows lie along the summed dimension; `gated`: half
# of them are gates.
cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                             bint gated, long long batches, bint divisible) except -1
# Do the same for a divisible product of 16-bit floats without gates, whose kernels read through
# shared memory. `first`: the index of the layout's first kernel.
cdef long long choose_ring(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                           long long batches) except -1
