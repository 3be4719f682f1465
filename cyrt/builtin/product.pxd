# The problem that the kernels of matmul.cu solve, and what the choices of their launches share.

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.launch cimport VECTOR_BYTES
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider, Outer2, Space, divider
from cyrt.graph.exact_key cimport Key

cdef extern from "params/matmul.h" nogil:
    cdef struct Dot:
        unsigned long long a, b, out
        long long a_stride, b_stride, a_column, b_column, length, depth
        Outer2 outer
        Divider chunks, parts
        unsigned int rows, columns, num_outer, flags, early

cdef enum:
    BLOCK = 256             # threads
    SMALL_BLOCK = 64        # threads of a small tile, and of blocks of rows in small grids
    AHEAD = 4               # vectors that a thread loads at once
    WAVES = 4               # blocks per multiprocessor if sums are split into parts

# out[..., i, j] = the sum of a[..., i, :] * b[..., :, j].
cdef struct Problem:
    const Entry* entry
    Operand[3] operands         # out, a and b, with the strides:
    Space batch                 # the leading dimensions; strides of out in products of m * n
    long long m, n, k
    long long a_m, a_k, b_k, b_n
    bint conjugate              # whether a is conjugated
    bint exchanged              # whether the operation's factors are b and a
    const Key* key              # the key to store the launch under; NULL: it is not stored
    int dtype
    int multiprocessors         # the device's
    int itemsize, sum_size      # bytes of an element, and of an element of the sum

cdef inline bint is_aligned(const Problem* p, int operand, const Space* space, int first,
                            long long stride) noexcept:
    """Return whether vectors are aligned at any multiple of the strides of dimensions from `first`
    on."""
    cdef unsigned long long strides = stride
    cdef int d
    for d in range(first, space.ndim):
        strides |= space.strides[d][operand]
    return (strides * p.itemsize | p.operands[operand].address) % VECTOR_BYTES == 0

cdef inline int set_outer(Outer2* outer, const Space* space, int first) noexcept:
    """Set the dimensions from `first` on; return their number."""
    cdef int d
    for d in range(first, space.ndim):
        outer.dims[d - first] = divider(<unsigned int>space.shape[d])
        outer.strides[d - first][0] = space.strides[d][1]
        outer.strides[d - first][1] = space.strides[d][2]
    return space.ndim - first
