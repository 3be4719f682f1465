# cython: cdivision=True
# C-level functions only: see skinny.pxd.
"""Products of a few rows and a matrix: kernels and geometry, and linear layers."""

from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.grid cimport ceiling, multiprocessors_of, power_of_two, set_geometry
from cyrt.builtin.launch cimport record_launch_of_weights
from cyrt.builtin.rows.matmul import SKINNY as WIDTHS, VARIANTS
from cyrt.builtin.space cimport divider
from cyrt.dtypes import DTYPES
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/matmul.h" nogil:
    enum: SKINNY_GATED
    enum: ALONG_ROWS
    enum: ACROSS_ROWS
    enum: ALONG_STEP
    enum: ACROSS_STEP
    enum: GEMV_ROWS
    int SKINNY_TILES(int eights)
    int SKINNY_STEPS(int eights, int itemsize)
    int SKINNY_WARPS(int eights, int itemsize)

cdef enum:
    WARP = 32
    WARPS = 8               # of a block, where there are many
    PART_UNIT = 32          # a multiple of the elements of every vector
    DEEP_CHUNKS = 2         # the fewest chunks of a warp in a part
    SHARED_BYTES = 64 << 10     # of a block at most

cdef int MATMUL = op_code("matmul")
cdef int GEMV = len(VARIANTS)   # an index of Row.kernels; skinny products' kernels follow
cdef int[64] widths             # how many of them a type has, of each layout

for _each in DTYPES:
    most_few_rows[<int>_each.code] = max(WIDTHS.get(_each.name, [0]))
    widths[<int>_each.code] = len(WIDTHS.get(_each.name, []))


cdef long long choose_skinny(Skinny* args, Launch* launch, int dtype, int ordinal, bint along,
                             long long batches, bint divisible) except -1:
    cdef int itemsize = launch.entry.itemsizes[0], multiprocessors = multiprocessors_of(ordinal)
    cdef int width = 0, eights, rows, chunk
    cdef long long blocks, parts
    cdef unsigned int y
    while 8 << width < <int>args.few:
        width += 1
    eights = 1 << width
    launch.variant = GEMV + 1 + width + (0 if along else widths[dtype])
    rows = ALONG_ROWS * SKINNY_TILES(eights) if along else ACROSS_ROWS
    chunk = SKINNY_STEPS(eights, itemsize) * (ALONG_STEP // itemsize if along else ACROSS_STEP)
    args.tiles = divider(<unsigned int>ceiling(
        args.wide, rows // 2 if args.flags & SKINNY_GATED else rows))
    blocks = batches * args.tiles.size
    # Registers suffice for two such blocks a multiprocessor, or for a single large one.
    y = WARPS if blocks > multiprocessors else SKINNY_WARPS(eights, itemsize)
    while y * rows * eights * 8 * sizeof(float) > SHARED_BYTES:
        y //= 2
    y = power_of_two(ceiling(args.k, chunk), 1, y)
    parts = min(multiprocessors // blocks, args.k // (DEEP_CHUNKS * chunk * y)) if divisible else 1
    args.depth = <unsigned int>(ceiling(ceiling(args.k, max(parts, 1)), PART_UNIT) * PART_UNIT)
    parts = ceiling(args.k, args.depth)
    args.parts = divider(<unsigned int>parts)
    set_geometry(&launch.geometry, blocks * parts, WARP, y)
    launch.geometry.smem = <unsigned int>(y * rows * eights * 8 * sizeof(float))
    allow_smem(<LoadedFunction>launch.entry.functions[launch.variant], launch.geometry.smem)
    return parts


cdef bint is_fused(const Linear* p) noexcept:
    if not 0 < p.rows <= min(FEW_LINEAR_ROWS, most_few_rows[p.dtype]) or p.features == 0 \
            or p.features >> 30 or p.length >> 31:
        return False
    return ((p.length | p.weight_step) * p.itemsize | p.operands[WEIGHT].address) \
        % VECTOR_BYTES == 0


cdef int record_linear(Recorder encoder, const Linear* p) except -1:
    cdef Skinny args
    cdef Launch launch
    cdef long long vectors, rounds
    cdef int ordinal = encoder.state.ordinal
    launch.entry = entry_of(ordinal, MATMUL, p.dtype)
    memset(&args, 0, sizeof(args))
    args.out, args.few_rows = p.operands[OUT].address, p.operands[X].address
    args.matrix, args.norm = p.operands[WEIGHT].address, p.operands[NORM].address
    args.bias, args.residual = p.operands[BIAS].address, p.operands[RESIDUAL].address
    args.few, args.wide = <unsigned int>p.rows, <unsigned int>p.features
    args.k = args.depth = <unsigned int>p.length
    args.few_step, args.wide_step = p.x_step, p.weight_step
    args.few_out, args.wide_out = p.features, 1
    args.flags = SKINNY_GATED if p.gated else 0
    args.activation, args.eps = p.activation, <float>p.eps
    if p.rows == 1:
        # As few rounds of a block's threads along a row as there can be, and threads for no more.
        vectors = p.length * launch.entry.itemsizes[0] // VECTOR_BYTES
        rounds = ceiling(vectors, WARP * WARPS)
        launch.variant = GEMV
        set_geometry(&launch.geometry,
                     ceiling(p.features, GEMV_ROWS // 2 if p.gated else GEMV_ROWS), WARP,
                     <unsigned int>ceiling(vectors, WARP * rounds))
    else:
        choose_skinny(&args, &launch, p.dtype, ordinal, True, 1, False)
    return record_launch_of_weights(encoder, &launch, &args, p.operands, LINEAR_OPERANDS, 1, WEIGHT,
                                    <char*>&args.early - <char*>&args)
