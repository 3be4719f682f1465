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

# Set the tiles and the parts of a product whose other parameters are set, and its kernel and
# geometry; return the number of parts. `first`: the index of the layout's first kernel in the
# entry. `along`: the matrix's rows lie along the summed dimension.
cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                             long long batches) except -1
# Do the same for a product of 16-bit floats, whose kernels read through shared memory.
cdef long long choose_ring(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                           long long batches) except -1
# Do the same for the product of a layer, which is one part. `gated`: half of the matrix's rows are
# gates.
cdef long long choose_layer(Skinny* args, Launch* launch, int ordinal, int first,
                            bint gated) except -1
