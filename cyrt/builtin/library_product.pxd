# Products of matrices by cuBLASLt, where there is one: recorded from templates.
#
# INVARIANTS
# - Everything that selects the library's algorithm is in the key: types, sizes, strides, factors,
#   alignments, TF32.
# - The workspace is a block of the pool for each call, so calls on several streams share none.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.template cimport Template

# out[b, i, j] = alpha * the sum of a[b, i, :] * b[b, :, j] + beta * c[i, j]. Strides in elements.
cdef struct Matrices:
    const Operand* operands     # out, which is contiguous, a, b; and c unless beta is 0
    int dtype, out_dtype        # the factors' type; the type of out and c
    long long m, n, k, batch
    long long a_m, a_k, b_k, b_n, c_m, c_n
    long long a_batch, b_batch
    double[2] alpha, beta       # real and imaginary part

cdef enum:
    LEAST_PRODUCTS = 1 << 18    # multiplications from which on the library is faster

# Return whether the product is of so many multiplications that the library may be faster, and of no
# more rows or matrices than the library counts.
cdef inline bint is_large(const Matrices* p) noexcept:
    return <double>p.m * p.n * p.k * p.batch >= LEAST_PRODUCTS \
        and (p.m | p.n | p.k | p.batch) >> 31 == 0
# Return whether the library multiplies such elements, given an element type's code.
cdef bint[64] is_library_type
# Return the template of a product on a device that is served; a refused one if the library does not
# provide it. It is learned at the first call.
cdef Template find_product(int ordinal, const Matrices* p)
# Record a product by a template that is not refused. Operands: out, a, b, and c if there is one.
cdef int record_library_product(Recorder encoder, Template template, const Operand* operands,
                                int count) except -1
