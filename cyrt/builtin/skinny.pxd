# Products of a few rows and a matrix, and linear layers of a few rows: launches of matmul.cu.

from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport Divider, Outer2
from cyrt.graph.commit cimport Recorder

cdef extern from "params/matmul.h" nogil:
    enum: FEW_LINEAR_ROWS       # the most rows of a linear layer that one kernel computes
    cdef struct Skinny:
        unsigned long long few_rows, matrix, out, norm, bias, residual
        long long few_step, wide_step, few_out, wide_out
        Outer2 batch
        Divider tiles, parts
        unsigned int few, wide, k, depth, num_batch, flags, activation
        float eps
        unsigned int early

cdef enum:
    VECTOR_BYTES = 16

# The most rows of a skinny product, by the code of the element type; 0: there is no kernel.
cdef int[64] most_few_rows

# Set the tiles and the parts of a product whose other parameters are set, and its kernel and
# geometry; return the number of parts, 1 unless it is divisible. `along`: the matrix's rows lie
# along the summed dimension.
cdef long long choose_skinny(Skinny* args, Launch* launch, int dtype, int ordinal, bint along,
                             long long batches, bint divisible) except -1

# The operands of a linear layer.
cdef enum:
    OUT = 0
    X
    WEIGHT                      # (out, in)
    NORM                        # of the norm; absent operands have no buffer and the address 0
    BIAS
    RESIDUAL
    LINEAR_OPERANDS

# out = residual + activation(rms_norm(x) @ weight.T + bias), of a few rows.
cdef struct Linear:
    Operand[6] operands         # contiguous, but for the distances of the rows of x and of weight
    int dtype, itemsize
    long long rows, length, features        # of x, their length, and that of the result's rows
    long long x_step, weight_step
    bint gated                  # weight has a gate and a gated row for each feature
    unsigned int activation     # of params/activation.h
    double eps

# Return whether one kernel computes such a layer, by its type, its sizes and the alignment of the
# weight; that of x and norm is 16 bytes.
cdef bint is_fused(const Linear* p) noexcept
# Record it.
cdef int record_linear(Recorder encoder, const Linear* p) except -1
