# cython: cdivision=True
"""Products of matrices and vectors: the launches of matmul.cu."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.dots cimport choose_columns, choose_rows
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, VECTOR_BYTES, WARP, Launch, ceiling, describe, multiprocessors_of, num_replayed,
    power_of_two, record_launch, record_launch_of_weights, replay_described, set_geometry,
)
from cyrt.builtin.library cimport CUBLASLT, is_served
from cyrt.builtin.library_product cimport (
    Matrices, find_product, is_large, is_library_type, record_library_product,
)
from cyrt.builtin.linear cimport OUT, WEIGHT, Layer, X, record_linear
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.product cimport (
    AHEAD, BLOCK, SMALL_BLOCK, WAVES, Dot, Problem, is_aligned, set_outer,
)
from cyrt.builtin.rows.matmul import KERNELS, MOST_ROWS, SERVED
from cyrt.builtin.rows.matmul import SKINNY as SIZES
from cyrt.builtin.skinny cimport Skinny, choose_ring, choose_skinny
from cyrt.builtin.space cimport (
    MAX_NDIM, MAX_OUTER, Divider, Outer2, Space, divider, product_of, simplify,
)
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.dtypes import DTYPES
from cyrt.graph.commit cimport (
    Recorder, Unfinished, begin_operation, continue_operation, end_operation,
)
from cyrt.graph.exact_key cimport (
    Key, add_word, add_words, begin_key, find_plan, store_plan,
)
from cyrt.graph.recorder cimport commit_if_complete
from cyrt.graph.template cimport Template
from cyrt.runtime.memory cimport Memory

cdef extern from "params/linear.h" nogil:
    enum: GEMV_ROWS
cdef extern from "params/matmul.h" nogil:
    enum: DOT_CONJUGATE, MATMUL_PARTS, PRODUCT_VECTOR_A, PRODUCT_VECTOR_OUT, PRODUCT_ALONG_A
    cdef struct Product:
        unsigned long long a, b, out
        long long a_stride, a_summed, b_stride, b_summed
        Outer2 batch
        Divider tiles_m, tiles_n, parts
        unsigned int m, n, k, depth, num_batch, flags
    cdef struct Parts:
        unsigned long long input, out
        long long n
        unsigned int count

# Parameters that a plan stores.
ctypedef fused Factors:
    Dot
    Product

# The common data of all products.
ctypedef fused Params:
    Dot
    Product
    Skinny

cdef enum:
    SMALL_SIDE = 32         # rows and columns of a small tile
    PART_UNIT = 32          # a multiple of every tile's depth
    # A small tile takes 1.5 us for each 32 elements of the summed dimension (measured on an H200).
    # Another launch adds the parts of a sum and takes 2 us or more. So sums are split only if each
    # tile then has at least LEAST_SAVED fewer elements to add.
    PART_DEPTH = 64         # the least depth of a tile's part
    LEAST_SAVED = 128
    WIDE = 128              # the minimum number of columns of a skinny product
    # The largest matrix, in elements, for which skinny kernels are fastest with 16 rows; the same
    # for 16-bit floats across the summed dimension; and the largest one with 32 rows.
    MOST_OF_16_ROWS = 1 << 26
    MOST_ACROSS = 1 << 25
    MOST_OF_32_ROWS = 1 << 24
    LEAST_ROW = 1024            # bytes of a row of a matrix that a layer's kernel multiplies

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    LARGE = 0
    SMALL
    ROWS
    COLUMNS
    PARTS

# A product's launch, or a library's call, without its addresses.
cdef union Parameters:
    Dot dot
    Product product
cdef struct ProductPlan:
    Launch launch
    Parameters params
    PyObject* template          # a library's, held by the owner of the plan; NULL: none
    bint exchanged
    long long count, parts      # sums; parts of each, which another launch adds if there are more
    int sum_size

cdef int MATMUL = op_code("matmul")
cdef int COPY = op_code("copy")
cdef int SKINNY = len(KERNELS)        # the first kernel of a matrix along the summed dimension
# These three arrays are indexed by the code of an element type.
cdef int[64] kernel_types             # the type whose kernels compute it; -1: none
cdef int[64] num_along                # the skinny kernels of a matrix along the summed dimension
cdef int[64] most_few_rows            # the maximum number of rows that these take; 0: there is none

for _each in DTYPES:
    num_along[<int>_each.code] = len(SIZES["_skinny"].get(_each.name, ()))
    most_few_rows[<int>_each.code] = MOST_ROWS.get(_each.name, 0)
    kernel_types[<int>_each.code] = dtype_code(SERVED[_each.name]) if _each.name in SERVED else -1

# The sizes in bytes of the kernels' parameters, in their order; the last one is that of all further
# kernels.
PARAM_BYTES = (sizeof(Product), sizeof(Product), sizeof(Dot), sizeof(Dot), sizeof(Parts),
               sizeof(Skinny))


cdef inline unsigned long long alignment(const Operand* operand) noexcept:
    """Return the address within a vector: all that the choice of a launch depends on."""
    return operand.address % VECTOR_BYTES


cdef void set_key(Key* key, const Problem* p, const Operand* operands, int ndim,
                  const long long* shape) noexcept:
    begin_key(key, p.entry, <unsigned long long>p.dtype << 40
              | alignment(&operands[0]) << 32 | alignment(&operands[1]) << 28
              | alignment(&operands[2]) << 24 | <unsigned long long>p.conjugate << 16 | ndim)
    add_word(key, p.k)
    add_words(key, shape, ndim)
    add_words(key, operands[1].strides, ndim)
    add_words(key, operands[2].strides, ndim)


cdef int record_planned(Recorder encoder, const ProductPlan* found, const Operand* operands,
                        Key* key) except -1:
    cdef ProductPlan plan = found[0]
    cdef int before = num_replayed(encoder)
    cdef Operand[3] ordered = [operands[0], operands[1 + plan.exchanged],
                               operands[2 - plan.exchanged]]
    if plan.template != NULL:
        return record_library_product(encoder, <Template>plan.template, ordered, 3)
    if plan.launch.variant == ROWS or plan.launch.variant == COLUMNS:
        put_addresses(&plan.params.dot, ordered)
        record_sums(encoder, &plan.launch, &plan.params.dot, ordered, plan.count, plan.parts,
                    plan.sum_size)
    else:
        put_addresses(&plan.params.product, ordered)
        record_sums(encoder, &plan.launch, &plan.params.product, ordered, plan.count, plan.parts,
                    plan.sum_size)
    if plan.parts == 1:
        describe(encoder, before, key, operands, 3, &plan.launch)
    return 0


cdef inline void put_addresses(Factors* args, const Operand* operands) noexcept:
    args.a, args.b, args.out = operands[1].address, operands[2].address, operands[0].address


cdef int record_product(Recorder encoder, int dtype, const Operand* operands, int ndim,
                        const long long* shape, long long length, bint conjugate) except -1:
    cdef Problem p
    cdef Key key
    cdef const ProductPlan* plan
    cdef Operand[2] fill
    cdef const long long* strides[3]
    cdef const long long* a = operands[1].strides + ndim - 2
    cdef const long long* b = operands[2].strides + ndim - 2
    cdef long long count = product_of(shape, 0, ndim)
    cdef int d
    if kernel_types[dtype] < 0:
        raise TypeError(f"matmul: expected a numeric type, got {DTYPES[dtype]}")
    if count == 0:
        return 0
    if length == 0:
        memset(fill, 0, sizeof(fill))
        fill[0].buffer = operands[0].buffer
        fill[0].address = operands[0].address
        return record_elementwise(encoder, COPY, dtype, fill, 1, &count)
    p.entry = entry_of(encoder.state.ordinal, MATMUL, kernel_types[dtype])
    p.k, p.conjugate, p.dtype = length, conjugate, dtype
    set_key(&key, &p, operands, ndim, shape)
    if replay_described(encoder, &key, operands, 3):
        return 0
    plan = <const ProductPlan*>find_plan(&key)
    if plan != NULL:
        return record_planned(encoder, plan, operands, &key)
    p.key, p.exchanged = &key, False
    p.multiprocessors = multiprocessors_of(encoder.state.ordinal)
    p.itemsize = p.entry.itemsizes[0]
    p.sum_size = max(4, p.itemsize)
    for d in range(3):
        p.operands[d] = operands[d]
        strides[d] = operands[d].strides
    strides[0] = NULL
    simplify(&p.batch, 3, ndim - 2, shape, strides)
    p.m, p.n = shape[ndim - 2], shape[ndim - 1]
    p.a_m, p.a_k, p.b_k, p.b_n = a[0], a[1], b[0], b[1]
    if p.batch.ndim == 1 and not conjugate:
        if p.n == 1 and p.batch.strides[0][1] == 0:
            # One matrix times many vectors is a product of matrices if the vectors are rows.
            transpose(&p)
        if p.batch.strides[0][2] == 0 and (p.m == 1 or p.batch.strides[0][1] == p.m * p.a_m):
            if p.m == 1:
                p.a_m = p.batch.strides[0][1]
            p.m *= p.batch.shape[0]
            p.batch.ndim = 0
    if p.m == 1 and p.n > 1:
        transpose(&p)
    return record(encoder, &p)


cdef void transpose(Problem* p) noexcept:
    """Exchange the operands. The result's layout changes, unless m or n is 1."""
    cdef int d
    p.operands[1], p.operands[2] = p.operands[2], p.operands[1]
    p.exchanged = not p.exchanged
    p.m, p.n = p.n, p.m
    p.a_m, p.b_n = p.b_n, p.a_m
    p.a_k, p.b_k = p.b_k, p.a_k
    for d in range(p.batch.ndim):
        p.batch.strides[d][1], p.batch.strides[d][2] = (p.batch.strides[d][2],
                                                        p.batch.strides[d][1])


cdef int record(Recorder encoder, Problem* p) except -1:
    cdef long long most = MAX_BLOCKS, blocks = 1
    cdef bint fits = p.batch.ndim < MAX_OUTER and p.m <= most
    cdef int d
    if p.n > 1 and is_library_type[p.dtype] and p.batch.ndim <= 1 and record_by_library(encoder, p):
        return 0
    if p.n > 1:
        if p.n > most or p.k > most:
            raise ValueError(f"matmul: ({p.m:,}, {p.k:,}) by ({p.k:,}, {p.n:,}): sizes of more "
                             f"than {most:,} are not supported")
        blocks = ceiling(p.n, SMALL_SIDE)
    for d in range(p.batch.ndim):
        blocks *= p.batch.shape[d]
        fits = fits and blocks <= most
    # Sums are split only if the product has few blocks per multiprocessor.
    if not fits or blocks > most // (p.m if p.n == 1 else ceiling(p.m, SMALL_SIDE)):
        return record_halves(encoder, p)
    if p.n == 1 and not is_matrix_by_vector(p):
        return record_dots(encoder, p)
    if p.n == 1 and p.a_k == 1:
        return record_row(encoder, p)
    return record_skinny(encoder, p) if is_skinny(p) else record_tiles(encoder, p)


cdef bint record_by_library(Recorder encoder, Problem* p) except -1:
    """Record a product that a library multiplies faster; return False if there is none."""
    cdef Matrices matrices
    cdef ProductPlan plan
    cdef Template template
    matrices.operands = p.operands
    matrices.dtype = matrices.out_dtype = p.dtype
    matrices.m, matrices.n, matrices.k = p.m, p.n, p.k
    matrices.a_m, matrices.a_k, matrices.b_k, matrices.b_n = p.a_m, p.a_k, p.b_k, p.b_n
    matrices.batch, matrices.a_batch, matrices.b_batch = 1, 0, 0
    if p.batch.ndim:
        matrices.batch = p.batch.shape[0]
        matrices.a_batch, matrices.b_batch = p.batch.strides[0][1], p.batch.strides[0][2]
    matrices.alpha, matrices.beta = [1, 0], [0, 0]
    if not is_large(&matrices) or not is_served(CUBLASLT, encoder.state.ordinal) \
            or (is_skinny(p) and is_skinny_faster(p)):
        return False
    template = find_product(encoder.state.ordinal, &matrices)
    if template.refused:
        return False
    if p.key != NULL and template.used:     # else it was learned without scratch memory
        memset(&plan, 0, sizeof(plan))
        plan.template, plan.exchanged = <PyObject*>template, p.exchanged
        store_plan(p.key, &plan, sizeof(plan), template)
    record_library_product(encoder, template, p.operands, 3)
    return True


cdef int record_halves(Recorder encoder, const Problem* whole) except -1:
    """Record two halves of the outermost dimension whose size is more than 1."""
    cdef Problem part
    cdef Space* batch = &part.batch
    cdef int d = whole.batch.ndim - 1
    cdef long long size = whole.batch.shape[d] if d >= 0 else whole.m
    cdef long long half = size // 2, first, count
    cdef long long unit = whole.n       # elements of the result per index
    if d >= 0:
        unit *= whole.m * whole.batch.strides[d][0]
    cdef Unfinished before = begin_operation(encoder)
    try:
        for first, count in ((0, half), (half, size - half)):
            part = whole[0]
            part.key = NULL
            if d < 0:
                part.m = count
                part.operands[1].address += first * part.a_m * part.itemsize
            else:
                batch.shape[d] = count
                batch.ndim = d if count == 1 else d + 1
                part.operands[1].address += first * batch.strides[d][1] * part.itemsize
                part.operands[2].address += first * batch.strides[d][2] * part.itemsize
            part.operands[0].address += first * unit * part.itemsize
            record(encoder, &part)
            continue_operation()
    finally:
        end_operation(before)
    commit_if_complete(encoder, encoder.foreign)
    return 0


# -- tiles -----------------------------------------------------------------------------------------


cdef int record_tiles(Recorder encoder, Problem* p) except -1:
    cdef Product args
    cdef Launch launch
    cdef long long batches = product_of(p.batch.shape, 0, p.batch.ndim)
    cdef long long side = 128 if p.sum_size == 4 else 64, tiles, parts
    launch.entry, launch.variant = p.entry, LARGE
    if min(p.m, p.n) <= side // 2 or batches * ceiling(p.m, side) * ceiling(p.n, side) < (
            p.multiprocessors * 3 // 4):
        launch.variant, side = SMALL, SMALL_SIDE
    memset(&args, 0, sizeof(args))
    put_addresses(&args, p.operands)
    args.a_stride, args.a_summed, args.b_stride, args.b_summed = p.a_m, p.a_k, p.b_n, p.b_k
    args.m, args.n, args.k = <unsigned int>p.m, <unsigned int>p.n, <unsigned int>p.k
    args.num_batch = set_outer(&args.batch, &p.batch, 0)
    args.flags = flags_of(p, 1, p.a_m, p.a_k, p.m) | flags_of(p, 2, p.b_n, p.b_k, p.n)
    if p.n % 4 == 0 and args.out % VECTOR_BYTES == 0:
        args.flags |= PRODUCT_VECTOR_OUT
    args.tiles_m = divider(<unsigned int>ceiling(p.m, side))
    args.tiles_n = divider(<unsigned int>ceiling(p.n, side))
    tiles = batches * args.tiles_m.size * args.tiles_n.size
    parts = min(WAVES * p.multiprocessors // tiles, p.k // PART_DEPTH)
    if parts < 2 or p.k - p.k // parts < LEAST_SAVED or launch.variant == LARGE:
        parts = 1
    args.depth = <unsigned int>(ceiling(ceiling(p.k, parts), PART_UNIT) * PART_UNIT)
    parts = ceiling(p.k, args.depth)
    args.parts = divider(<unsigned int>parts)
    set_geometry(&launch.geometry, tiles * parts,
                 BLOCK if launch.variant == LARGE else SMALL_BLOCK, 1)
    return record_parts(encoder, p, &launch, &args, batches * p.m * p.n, parts)


cdef inline unsigned int flags_of(const Problem* p, int operand, long long stride,
                                  long long summed, long long size) noexcept:
    """Set how lanes traverse one operand, and whether they read vectors."""
    cdef bint along = abs(summed) <= abs(stride)
    cdef long long fast = summed if along else stride, slow = stride if along else summed
    cdef unsigned int flags = (PRODUCT_ALONG_A if along else 0)
    if fast == 1 and (p.k if along else size) * p.itemsize % VECTOR_BYTES == 0 and is_aligned(
            p, operand, &p.batch, 0, slow):
        flags |= PRODUCT_VECTOR_A
    return flags << (operand - 1)


# -- a few rows and a matrix -----------------------------------------------------------------------


cdef bint is_skinny(const Problem* p) noexcept:
    """Return whether the kernels of skinny products take the problem."""
    cdef bint few_a = p.m <= p.n
    cdef int few = 1 if few_a else 2
    # The distance of a single row from the next one does not matter.
    cdef long long few_step = (p.a_m if p.m > 1 else 0) if few_a else p.b_n if p.n > 1 else 0
    cdef long long few_summed = p.a_k if few_a else p.b_k
    cdef long long wide_step = p.b_n if few_a else p.a_m, wide_summed = p.b_k if few_a else p.a_k
    cdef int vector = VECTOR_BYTES // p.itemsize
    if min(p.m, p.n) > most_few_rows[p.dtype] or max(p.m, p.n) < WIDE or p.k % vector \
            or few_summed != 1 or not is_aligned(p, few, &p.batch, 0, few_step):
        return False
    if wide_summed == 1:
        return is_aligned(p, 3 - few, &p.batch, 0, wide_step)
    return wide_step == 1 and max(p.m, p.n) % vector == 0 \
        and is_aligned(p, 3 - few, &p.batch, 0, wide_summed)


cdef bint is_skinny_faster(const Problem* p) noexcept:
    """Return whether a skinny product is faster by its own kernels than by a library (measured on
    an H200: see docs/performance.md)."""
    cdef long long few = min(p.m, p.n)
    cdef double elements = <double>p.k * max(p.m, p.n)
    cdef bint along = (p.b_k if p.m <= p.n else p.a_k) == 1
    if few <= 8:
        return True
    if few <= 16:
        return elements <= (MOST_OF_16_ROWS if along or p.itemsize == 4 else MOST_ACROSS)
    return few <= 32 and p.itemsize == 2 and elements <= MOST_OF_32_ROWS


cdef bint is_matrix_by_vector(const Problem* p) noexcept:
    """Return whether the product of a matrix and a vector, n being 1, is computed as that of a
    single row: by a layer's kernel along the summed dimension, and by a skinny one across it, if it
    has 16-bit floats. A matrix that is low and wide, or high and narrow, has too few tiles."""
    if p.batch.ndim or p.k > MAX_BLOCKS or not is_skinny(p):
        return False
    if p.a_k == 1:
        return p.k * p.itemsize >= LEAST_ROW and 2 * p.m >= GEMV_ROWS * p.multiprocessors
    return p.itemsize == 2 and p.k <= 4 * p.m


cdef int record_row(Recorder encoder, const Problem* p) except -1:
    """Record a matrix by a vector as a layer of one row, whose weight is the matrix."""
    cdef Layer layer
    memset(&layer, 0, sizeof(layer))
    layer.operands[OUT], layer.operands[X] = p.operands[0], p.operands[2]
    layer.operands[WEIGHT] = p.operands[1]
    layer.dtype, layer.itemsize = p.dtype, p.itemsize
    layer.rows, layer.length, layer.features = 1, p.k, p.m
    layer.x_step, layer.weight_step = p.k, p.a_m
    return record_linear(encoder, &layer)


cdef int record_skinny(Recorder encoder, const Problem* whole) except -1:
    cdef Problem p = whole[0]
    cdef Skinny args
    cdef Launch launch
    cdef long long batches = product_of(p.batch.shape, 0, p.batch.ndim), parts
    cdef int first
    cdef bint along
    memset(&args, 0, sizeof(args))
    args.few_out, args.wide_out = p.n, 1
    if p.m > p.n:
        args.few_out, args.wide_out = 1, p.n
        transpose(&p)
    launch.entry = p.entry
    args.few_rows, args.matrix, args.out = (p.operands[1].address, p.operands[2].address,
                                            p.operands[0].address)
    along = p.b_k == 1
    args.few_step, args.wide_step = p.a_m, p.b_n if along else p.b_k
    args.few, args.wide, args.k = <unsigned int>p.m, <unsigned int>p.n, <unsigned int>p.k
    args.num_batch = set_outer(&args.batch, &p.batch, 0)
    first = SKINNY if along else SKINNY + num_along[p.dtype]
    if p.itemsize == 2:
        parts = choose_ring(&args, &launch, encoder.state.ordinal, first, along, batches)
    else:
        parts = choose_skinny(&args, &launch, encoder.state.ordinal, first, along, batches)
    return record_parts(encoder, &p, &launch, &args, batches * p.m * p.n, parts)


# -- sums of products ------------------------------------------------------------------------------


cdef int record_dots(Recorder encoder, Problem* p) except -1:
    """Record one sum for every batch and m; n is 1."""
    cdef Dot args
    cdef Launch launch
    cdef Space space
    cdef long long[MAX_NDIM] shape
    cdef long long[2][MAX_NDIM] strides
    cdef const long long* pointers[3]
    cdef long long count, parts
    cdef int d, last = p.batch.ndim
    for d in range(last):
        shape[d] = p.batch.shape[last - 1 - d]
        strides[0][d] = p.batch.strides[last - 1 - d][1]
        strides[1][d] = p.batch.strides[last - 1 - d][2]
    shape[last] = p.m
    strides[0][last] = p.a_m
    strides[1][last] = 0
    pointers[0], pointers[1], pointers[2] = NULL, strides[0], strides[1]
    simplify(&space, 3, last + 1, shape, pointers)
    count = product_of(space.shape, 0, space.ndim)
    memset(&args, 0, sizeof(args))
    put_addresses(&args, p.operands)
    args.a_stride, args.b_stride, args.length = p.a_k, p.b_k, p.k
    args.flags = DOT_CONJUGATE if p.conjugate else 0
    if space.ndim and abs(space.strides[0][1]) + abs(space.strides[0][2]) < (
            abs(p.a_k) + abs(p.b_k)):
        launch.variant = COLUMNS
        parts = choose_columns(p, &space, &args, &launch.geometry)
    else:
        launch.variant = ROWS
        parts = choose_rows(p, &space, count, &args, &launch.geometry)
    launch.entry = p.entry
    args.parts = divider(<unsigned int>parts)
    launch.geometry.grid[0] *= <unsigned int>parts
    return record_parts(encoder, p, &launch, &args, count, parts)


# -- parts of a sum --------------------------------------------------------------------------------


cdef int record_parts(Recorder encoder, const Problem* p, Launch* launch, Params* params,
                      long long count, long long parts) except -1:
    """Store the plan, and record its launches."""
    if Params is not Skinny:        # whose launch also sets a function's shared memory
        if p.key != NULL:
            store(p, launch, params, count, parts)
    return record_sums(encoder, launch, params, p.operands, count, parts, p.sum_size)


cdef int record_sums(Recorder encoder, Launch* launch, Params* params, const Operand* factors,
                     long long count, long long parts, int sum_size) except -1:
    """Record one launch; or one into a workspace, and one that adds the parts of each sum. The
    result and the factors are `factors`."""
    cdef Operand[3] operands
    cdef Parts summing
    cdef Memory workspace
    cdef unsigned int x
    if parts == 1:
        return record_factors(encoder, launch, params, factors)
    workspace = allocate_workspace(encoder, parts * count * sum_size)
    operands[0] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])
    operands[1], operands[2] = factors[1], factors[2]
    params.out = workspace.address
    params.flags |= MATMUL_PARTS
    record_factors(encoder, launch, params, operands)
    memset(&summing, 0, sizeof(summing))
    summing.input, summing.out = workspace.address, factors[0].address
    summing.n, summing.count = count, <unsigned int>parts
    x = power_of_two(count, 1, WARP)
    launch.variant = PARTS
    set_geometry(&launch.geometry, ceiling(count, x), x,
                 max(power_of_two(ceiling(parts, AHEAD), 1, BLOCK // x), WARP // x))
    operands[1] = operands[0]
    operands[0] = factors[0]
    return record_launch(encoder, launch, &summing, operands, 2, 1)


cdef int store(const Problem* p, const Launch* launch, const Factors* params, long long count,
               long long parts) except -1:
    cdef ProductPlan plan
    plan.count, plan.parts, plan.sum_size = count, parts, p.sum_size
    plan.launch, plan.template, plan.exchanged = launch[0], NULL, p.exchanged
    if Factors is Dot:
        plan.params.dot = params[0]
    else:
        plan.params.product = params[0]
    return store_plan(p.key, &plan, sizeof(plan))


cdef inline int record_factors(Recorder encoder, const Launch* launch, Params* params,
                               const Operand* operands) except -1:
    """Record a launch that reads operands 1 and 2. The larger one of a product of few rows may be
    loaded early."""
    if Params is Product:
        return record_launch(encoder, launch, params, operands, 3, 1)
    else:
        return record_launch_of_weights(encoder, launch, params, operands, 3,
                                        1 if Params is Dot else 2, 1,
                                        <char*>&params.early - <char*>params)
