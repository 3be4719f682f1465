# cython: cdivision=True
"""Linear layers of a few rows: the launches of linear.cu."""


from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport dtype_code, entry_of, op_code
from cyrt.builtin.launch cimport (
    VECTOR_BYTES, WARP, Launch, ceiling, multiprocessors_of, record_launch_of_weights, set_geometry,
)
from cyrt.builtin.skinny cimport Skinny, choose_layer
from cyrt.error_text import show
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/activation.h" nogil:
    enum: ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATION_GELU_TANH, ACTIVATION_SILU
cdef extern from "params/linear.h" nogil:
    enum: GEMV_ROWS, GEMV_WARPS, GEMV_BLOCKS, GEMV_ONCE_WARPS
    cdef struct Linear:
        Skinny product
        unsigned long long norm, norm_bias, bias, residual
        float eps
        unsigned int activation, gated

# A swiglu's kernel, which is for gates alone, needs no code.
cdef dict ACTIVATIONS = {
    None: <int>ACTIVATION_NONE,
    "relu": <int>ACTIVATION_RELU,
    "gelu": <int>ACTIVATION_GELU,
    "gelu_tanh": <int>ACTIVATION_GELU_TANH,
    "silu": <int>ACTIVATION_SILU,
    "swiglu": <int>ACTIVATION_NONE,
}

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ONE_ROW = 0
    ROW_AT_ONCE
    CENTERED_ROW_AT_ONCE
    MORE_ROWS

# The warps of a block and the blocks of a layer of a single row.
cdef struct Rounds:
    long long warps, blocks
    bint once               # whether a block takes the row at once, and one group of matrix rows

cdef int LINEAR = op_code("linear")
cdef bint[64] is_served     # whether a kernel takes the element type of a code

for _each in catalogue.ROWS:
    if _each.op == "linear":
        is_served[<int>dtype_code(_each.dtype)] = True

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Linear),)


cdef bint is_fused(const Layer* p) noexcept:
    if not is_served[p.dtype] or not 0 < p.rows <= FEW_LINEAR_ROWS or p.features == 0 \
            or p.features >> 30 or p.length >> 31:
        return False
    return ((p.length | p.weight_step) * p.itemsize | p.operands[WEIGHT].address) \
        % VECTOR_BYTES == 0


cdef Rounds rounds_of(int ordinal, const Layer* p) except *:
    """Choose the blocks of a layer of a single row."""
    cdef Rounds found
    cdef long long multiprocessors = multiprocessors_of(ordinal)
    cdef long long vectors = p.length * p.itemsize // VECTOR_BYTES
    cdef long long groups = ceiling(p.features, GEMV_ROWS // 2 if p.gated else GEMV_ROWS)
    cdef long long most = GEMV_ONCE_WARPS if groups <= multiprocessors else GEMV_WARPS
    cdef long long rounds = ceiling(vectors, WARP * most)
    if rounds > 1:
        rounds = ceiling(vectors, WARP * GEMV_WARPS)
    # A block reads the row in as few passes as possible, with as few threads as these need.
    found.warps = ceiling(vectors, WARP * rounds)
    # The grid has at most the blocks that the device holds at once, with equally many groups each.
    cdef long long held = GEMV_BLOCKS * GEMV_WARPS * multiprocessors // found.warps
    # In larger grids, computing twice takes longer than reading the matrix.
    found.once = rounds == 1 and 4 * groups <= 3 * held
    found.blocks = ceiling(groups, ceiling(groups, held))
    return found


cdef bint takes_layer_norm(int ordinal, const Layer* p) except -1:
    return p.rows == 1 and rounds_of(ordinal, p).once


cdef int choose_gemv(Launch* launch, int ordinal, const Layer* p) except -1:
    """Choose the kernel and the geometry for a single row."""
    cdef Rounds rounds = rounds_of(ordinal, p)
    launch.variant = (ONE_ROW if not rounds.once else
                      ROW_AT_ONCE if not p.operands[NORM_BIAS].address else CENTERED_ROW_AT_ONCE)
    set_geometry(&launch.geometry, rounds.blocks, WARP, <unsigned int>rounds.warps)
    launch.geometry.smem = <unsigned int>(GEMV_ROWS * VECTOR_BYTES * WARP * rounds.warps)
    if rounds.warps > GEMV_WARPS:       # more than the 32 KB that every kernel may have
        allow_smem(<LoadedFunction>launch.entry.functions[launch.variant], launch.geometry.smem)
    return 0


cdef int record_linear(Recorder encoder, const Layer* p) except -1:
    cdef Linear args
    cdef Skinny* product = &args.product
    cdef Launch launch
    cdef int ordinal = encoder.state.ordinal
    launch.entry = entry_of(ordinal, LINEAR, p.dtype)
    memset(&args, 0, sizeof(args))
    product.out, product.few_rows = p.operands[OUT].address, p.operands[X].address
    product.matrix = p.operands[WEIGHT].address
    args.norm, args.norm_bias = p.operands[NORM].address, p.operands[NORM_BIAS].address
    args.bias, args.residual = p.operands[BIAS].address, p.operands[RESIDUAL].address
    product.few, product.wide = <unsigned int>p.rows, <unsigned int>p.features
    product.k = product.depth = <unsigned int>p.length
    product.few_step, product.wide_step = p.x_step, p.weight_step
    product.few_out, product.wide_out = p.features, 1
    args.gated, args.activation, args.eps = p.gated, p.activation, <float>p.eps
    if p.rows == 1:
        choose_gemv(&launch, ordinal, p)
    else:
        choose_layer(product, &launch, ordinal, MORE_ROWS, p.gated)
    return record_launch_of_weights(encoder, &launch, &args, p.operands, NUM_OPERANDS, WEIGHT,
                                    NUM_OPERANDS - WEIGHT if p.rows == 1 else 1,
                                    <char*>&product.early - <char*>&args)


cdef int activation_code(str name, object activation) except -1:
    """The kernel's code of an activation; ValueError if there is no such activation."""
    if not (activation is None or isinstance(activation, str)) or activation not in ACTIVATIONS:
        names = ", ".join(map(repr, filter(None, ACTIVATIONS)))
        raise ValueError(f"{name}: activation: expected None or one of {names}, "
                         f"got {show(activation)}")
    return ACTIVATIONS[activation]
