# cython: cdivision=True
"""Products of matrices and vectors: which kernel, and how it is launched."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.dispatch cimport perform
from cyrt.kernels.families.matmul import SERVED
from cyrt.kernels.space cimport MAX_NDIM, MAX_OUTER, Divider, Space, divider, simplify
from cyrt.kernels.entries cimport (
    Entry, Explained, Operand, dtype_code, entry_of, op_code, record_entry,
)
from cyrt.kernels.launch cimport multiprocessors_of, power_of_two
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.pool cimport allocate

cdef enum:
    MAX_COUNT = 0x7fffffff  # blocks of a grid, and what a Divider divides
    WARP = 32
    BLOCK = 256             # threads
    LARGEST_BLOCK = 1024    # of columns
    FILLING = 1024          # threads of a multiprocessor that keep its loads busy
    AHEAD = 4               # vectors of a thread that are on their way at once
    DEEP = 16               # vectors that a thread takes of a part, at least
    WAVES = 4               # blocks a multiprocessor where sums are split into parts
    SPLIT_COLUMNS = 4096    # longer columns are split; shorter ones spread over narrow blocks
    SECTOR = 32             # bytes that memory gives at once
    VECTOR_BYTES = 16
    SMALL_SIDE = 32         # of a tile
    SMALL_BLOCK = 64        # threads of a small tile; of blocks of rows that are to spread
    PART_UNIT = 32          # a multiple of every tile's depth
    PART_DEPTH = 256        # of a tile's part, at least

# In the order of cyrt/kernels/families/matmul.py.
cdef enum Variant:
    LARGE = 0
    SMALL
    ROWS
    COLUMNS
    PARTS

# As in kernels_cu.
cdef enum Flag:
    VECTOR = 1
    CONJUGATE = 2
    TO_PARTS = 4
    VECTOR_A = 8
    VECTOR_B = 16
    VECTOR_OUT = 32
    ALONG_A = 64
    ALONG_B = 128

cdef struct Outer:
    Divider[MAX_OUTER] dims
    long long[MAX_OUTER][2] strides

# The structs Dot, Product and Parts of kernels_cu.
cdef struct Dot:
    CUdeviceptr a, b, out
    long long a_stride, b_stride, a_column, b_column, length, depth
    Outer outer
    Divider chunks, parts
    unsigned int rows, columns, num_outer, flags

cdef struct Product:
    CUdeviceptr a, b, out
    long long a_stride, a_summed, b_stride, b_summed
    Outer batch
    Divider tiles_m, tiles_n, parts
    unsigned int m, n, k, depth, num_batch, flags

cdef struct Parts:
    CUdeviceptr source, out
    long long n
    unsigned int count

cdef union Params:
    Dot dot
    Product product
    Parts parts
    char[352] bytes

# out[..., i, j] = the sum of a[..., i, :] * b[..., :, j].
cdef struct Problem:
    const Entry* entry
    Operand[3] operands         # out, a and b, whose strides are:
    Space batch                 # of the leading dimensions; out's in products of m * n
    long long m, n, k
    long long a_m, a_k, b_k, b_n
    bint conjugate              # a
    int multiprocessors         # of the device
    int itemsize, sum_size      # bytes of an element, and of what is summed in

cdef int MATMUL = op_code("matmul")
cdef int COPY = op_code("copy")
cdef int[64] served             # the element type whose kernels serve one; -1: none

for _each in DTYPES:
    served[<int>_each.code] = dtype_code(SERVED[_each.name]) if _each.name in SERVED else -1


cdef int record_product(Recorder encoder, int ordinal, int dtype, const Operand* operands,
                        int ndim, const long long* shape, long long length, bint conjugate,
                        Explained explained) except -1:
    cdef Problem p
    cdef Operand[2] fill
    cdef const long long* strides[3]
    cdef const long long* a = operands[1].strides + ndim - 2
    cdef const long long* b = operands[2].strides + ndim - 2
    cdef long long count = 1
    cdef int d
    if served[dtype] < 0:
        raise TypeError(f"matmul: expected a numeric type, got {DTYPES[dtype]}")
    for d in range(ndim):
        count *= shape[d]
    if count == 0:
        return 0
    if length == 0:
        memset(fill, 0, sizeof(fill))
        fill[0].buffer = operands[0].buffer
        fill[0].address = operands[0].address
        return perform(encoder, ordinal, COPY, dtype, fill, 1, &count, explained)
    p.entry = entry_of(ordinal, MATMUL, served[dtype])
    p.multiprocessors = multiprocessors_of(ordinal)
    p.itemsize = p.entry.itemsizes[0]
    p.sum_size = max(4, p.itemsize)
    for d in range(3):
        p.operands[d] = operands[d]
        strides[d] = operands[d].strides
    strides[0] = NULL
    simplify(&p.batch, 3, ndim - 2, shape, strides)
    p.m, p.n, p.k = shape[ndim - 2], shape[ndim - 1], length
    p.a_m, p.a_k, p.b_k, p.b_n = a[0], a[1], b[0], b[1]
    p.conjugate = conjugate
    if p.batch.ndim == 1 and not conjugate:
        if p.n == 1 and p.batch.strides[0][1] == 0:
            transpose(&p)       # one matrix for many vectors: they are rows of a matrix
        if p.batch.strides[0][2] == 0 and (p.m == 1 or p.batch.strides[0][1] == p.m * p.a_m):
            if p.m == 1:
                p.a_m = p.batch.strides[0][1]
            p.m *= p.batch.shape[0]
            p.batch.ndim = 0
    if p.m == 1 and p.n > 1:
        transpose(&p)
    return record(encoder, &p, explained)


cdef void transpose(Problem* p) noexcept:
    """The operands change places. The result lies as it did where m or n is 1."""
    cdef int d
    p.operands[1], p.operands[2] = p.operands[2], p.operands[1]
    p.m, p.n = p.n, p.m
    p.a_m, p.b_n = p.b_n, p.a_m
    p.a_k, p.b_k = p.b_k, p.a_k
    for d in range(p.batch.ndim):
        p.batch.strides[d][1], p.batch.strides[d][2] = (p.batch.strides[d][2],
                                                        p.batch.strides[d][1])


cdef int record(Recorder encoder, Problem* p, Explained explained) except -1:
    cdef long long most = MAX_COUNT, blocks = 1
    cdef bint fits = p.batch.ndim < MAX_OUTER and p.m <= most
    cdef int d
    if p.n > 1:
        if p.n > most or p.k > most:
            raise ValueError(f"matmul: ({p.m:,}, {p.k:,}) by ({p.k:,}, {p.n:,}): sizes of more "
                             f"than {most:,} are not provided for")
        blocks = ceil_div(p.n, SMALL_SIDE)
    for d in range(p.batch.ndim):
        blocks *= p.batch.shape[d]
        fits = fits and blocks <= most
    # Parts are made only of what is no more than some blocks a multiprocessor.
    if not fits or blocks > most // (p.m if p.n == 1 else ceil_div(p.m, SMALL_SIDE)):
        return record_halves(encoder, p, explained)
    return record_dots(encoder, p, explained) if p.n == 1 else record_tiles(encoder, p, explained)


cdef int record_halves(Recorder encoder, const Problem* whole, Explained explained) except -1:
    """Of the outermost dimension that there is more than one of."""
    cdef Problem part
    cdef Space* batch = &part.batch
    cdef int d = whole.batch.ndim - 1
    cdef long long size = whole.batch.shape[d] if d >= 0 else whole.m
    cdef long long half = size // 2, first, count
    cdef long long unit = whole.n       # of the result, an index
    if d >= 0:
        unit *= whole.m * whole.batch.strides[d][0]
    for first, count in ((0, half), (half, size - half)):
        part = whole[0]
        if d < 0:
            part.m = count
            part.operands[1].address += first * part.a_m * part.itemsize
        else:
            batch.shape[d] = count
            batch.ndim = d if count == 1 else d + 1
            part.operands[1].address += first * batch.strides[d][1] * part.itemsize
            part.operands[2].address += first * batch.strides[d][2] * part.itemsize
        part.operands[0].address += first * unit * part.itemsize
        record(encoder, &part, explained)
    return 0


# -- tiles -----------------------------------------------------------------------------------------


cdef int record_tiles(Recorder encoder, Problem* p, Explained explained) except -1:
    cdef Params params
    cdef Product* args = &params.product
    cdef Geometry geometry
    cdef long long batches = 1, side = 128 if p.sum_size == 4 else 64, tiles, parts
    cdef int d, variant = LARGE
    for d in range(p.batch.ndim):
        batches *= p.batch.shape[d]
    if min(p.m, p.n) <= side // 2 or batches * ceil_div(p.m, side) * ceil_div(p.n, side) < (
            p.multiprocessors * 3 // 4):
        variant, side = SMALL, SMALL_SIDE
    memset(&params, 0, sizeof(params))
    args.a, args.b, args.out = (p.operands[1].address, p.operands[2].address,
                                p.operands[0].address)
    args.a_stride, args.a_summed, args.b_stride, args.b_summed = p.a_m, p.a_k, p.b_n, p.b_k
    args.m, args.n, args.k = <unsigned int>p.m, <unsigned int>p.n, <unsigned int>p.k
    args.num_batch = set_outer(&args.batch, &p.batch, 0)
    args.flags = flags_of(p, 1, p.a_m, p.a_k, p.m) | flags_of(p, 2, p.b_n, p.b_k, p.n)
    if p.n % 4 == 0 and args.out % VECTOR_BYTES == 0:
        args.flags |= VECTOR_OUT
    args.tiles_m = divider(<unsigned int>ceil_div(p.m, side))
    args.tiles_n = divider(<unsigned int>ceil_div(p.n, side))
    tiles = batches * args.tiles_m.size * args.tiles_n.size
    parts = min(WAVES * p.multiprocessors // tiles, p.k // PART_DEPTH)
    if parts < 2 or variant == LARGE:
        parts = 1
    args.depth = <unsigned int>(ceil_div(ceil_div(p.k, parts), PART_UNIT) * PART_UNIT)
    parts = ceil_div(p.k, args.depth)
    args.parts = divider(<unsigned int>parts)
    set_geometry(&geometry, tiles * parts, BLOCK if variant == LARGE else SMALL_BLOCK, 1)
    return record_parts(encoder, p, variant, &geometry, &params, &args.out, &args.flags,
                        batches * p.m * p.n, parts, explained)


cdef inline unsigned int flags_of(const Problem* p, int operand, long long stride,
                                  long long summed, long long size) noexcept:
    """How lanes run through one operand, and whether they read vectors."""
    cdef bint along = abs(summed) <= abs(stride)
    cdef long long fast = summed if along else stride, slow = stride if along else summed
    cdef unsigned int flags = (ALONG_A if along else 0)
    if fast == 1 and (p.k if along else size) * p.itemsize % VECTOR_BYTES == 0 and is_aligned(
            p, operand, &p.batch, 0, slow):
        flags |= VECTOR_A
    return flags << (operand - 1)


# -- sums of products ------------------------------------------------------------------------------


cdef int record_dots(Recorder encoder, Problem* p, Explained explained) except -1:
    """n is 1: for every batch and m one sum."""
    cdef Params params
    cdef Dot* args = &params.dot
    cdef Geometry geometry
    cdef Space space
    cdef long long[MAX_NDIM] shape
    cdef long long[2][MAX_NDIM] strides
    cdef const long long* pointers[3]
    cdef long long count = 1, parts
    cdef int d, variant, last = p.batch.ndim
    for d in range(last):
        shape[d] = p.batch.shape[last - 1 - d]
        strides[0][d] = p.batch.strides[last - 1 - d][1]
        strides[1][d] = p.batch.strides[last - 1 - d][2]
    shape[last] = p.m
    strides[0][last] = p.a_m
    strides[1][last] = 0
    pointers[0], pointers[1], pointers[2] = NULL, strides[0], strides[1]
    simplify(&space, 3, last + 1, shape, pointers)
    for d in range(space.ndim):
        count *= space.shape[d]
    memset(&params, 0, sizeof(params))
    args.a, args.b, args.out = (p.operands[1].address, p.operands[2].address,
                                p.operands[0].address)
    args.a_stride, args.b_stride, args.length = p.a_k, p.b_k, p.k
    args.flags = CONJUGATE if p.conjugate else 0
    if space.ndim and abs(space.strides[0][1]) + abs(space.strides[0][2]) < (
            abs(p.a_k) + abs(p.b_k)):
        variant = COLUMNS
        parts = choose_columns(p, &space, args, &geometry)
    else:
        variant = ROWS
        parts = choose_rows(p, &space, count, args, &geometry)
    args.parts = divider(<unsigned int>parts)
    geometry.grid[0] *= <unsigned int>parts
    return record_parts(encoder, p, variant, &geometry, &params, &args.out, &args.flags, count,
                        parts, explained)


cdef long long choose_rows(const Problem* p, const Space* space, long long rows, Dot* args,
                           Geometry* geometry) noexcept:
    """Threads of a row side by side; returns the number of parts."""
    cdef long long items = 1, vectors, filling = FILLING * p.multiprocessors
    cdef unsigned int x, y
    if p.a_k == 1 and p.b_k == 1 and p.k % p.entry.items == 0 \
            and is_aligned(p, 1, space, 0, 0) and is_aligned(p, 2, space, 0, 0):
        items = p.entry.items
        args.flags |= VECTOR
    vectors = ceil_div(p.k, items)
    x = power_of_two(ceil_div(vectors, AHEAD), 1, WARP)
    while x * AHEAD < vectors and x < BLOCK and rows * x < filling:
        x *= 2
    y = max(power_of_two(rows, 1, BLOCK // x), WARP // x)
    while x * y > SMALL_BLOCK and ceil_div(rows, y) < p.multiprocessors and y > 1:
        y //= 2
    args.num_outer = set_outer(&args.outer, space, 0)
    args.rows, args.columns = <unsigned int>rows, 1
    set_geometry(geometry, ceil_div(rows, y), x, y)
    return split(p, args, geometry, x * DEEP * items, items)


cdef long long choose_columns(const Problem* p, const Space* space, Dot* args,
                              Geometry* geometry) noexcept:
    """A thread to neighbouring results; returns the number of parts."""
    cdef long long items = 1, columns = space.shape[0], rows = 1, vectors
    cdef long long b_column = space.strides[0][2]
    cdef unsigned int x, y
    cdef int d
    for d in range(1, space.ndim):
        rows *= space.shape[d]
    if space.strides[0][1] == 1 and columns % p.entry.items == 0 \
            and is_aligned(p, 1, space, 1, p.a_k) \
            and (b_column == 0 or b_column == 1 and is_aligned(p, 2, space, 1, p.b_k)):
        items = p.entry.items
        args.flags |= VECTOR
    vectors = ceil_div(columns, items)
    x = power_of_two(vectors, 1, WARP)
    y = BLOCK // x
    if p.k < SPLIT_COLUMNS:
        while rows * ceil_div(vectors, x) < p.multiprocessors \
                and x * items * p.itemsize > SECTOR:
            x //= 2
        y = BLOCK // x
        if rows * ceil_div(vectors, x) < p.multiprocessors:
            y = LARGEST_BLOCK // x
    y = max(power_of_two(ceil_div(p.k, AHEAD), 1, y), WARP // x, items)     # a thread a column
    args.a_column, args.b_column = space.strides[0][1], b_column
    args.num_outer = set_outer(&args.outer, space, 1)
    args.rows, args.columns = <unsigned int>rows, <unsigned int>columns
    args.chunks = divider(<unsigned int>ceil_div(vectors, x))
    set_geometry(geometry, rows * args.chunks.size, x, y)
    return split(p, args, geometry, y * DEEP, 1)


cdef long long split(const Problem* p, Dot* args, const Geometry* geometry, long long least,
                     long long unit) noexcept:
    """Into parts of at least so many elements, of whole units, where blocks are few."""
    cdef long long parts = min(WAVES * p.multiprocessors // geometry.grid[0],
                               p.k // least)
    args.depth = p.k if parts < 2 else ceil_div(ceil_div(p.k, parts), unit) * unit
    return ceil_div(p.k, args.depth)


# -- parts of a sum --------------------------------------------------------------------------------


cdef int record_parts(Recorder encoder, const Problem* p, int variant, const Geometry* geometry,
                      Params* params, CUdeviceptr* out, unsigned int* flags, long long count,
                      long long parts, Explained explained) except -1:
    """One launch; or one into memory of its own, and one that adds the parts of each sum."""
    cdef Operand[3] operands
    cdef Params summing
    cdef Geometry grid
    cdef Memory memory
    cdef unsigned int x
    if parts == 1:
        return record_entry(encoder, p.entry, variant, geometry, params.bytes, p.operands, 3, 1,
                            explained)
    operands[0], operands[1], operands[2] = p.operands[0], p.operands[1], p.operands[2]
    if explained is None:
        memory = Memory.__new__(Memory)
        memory.size = parts * count * p.sum_size
        memory.block = allocate(encoder.state, memory.size)
        memory.address = memory.block.address
        operands[0].buffer = <PyObject*>memory
        out[0] = memory.address
    flags[0] |= TO_PARTS
    record_entry(encoder, p.entry, variant, geometry, params.bytes, operands, 3, 1, explained)
    memset(&summing, 0, sizeof(summing))
    summing.parts.source, summing.parts.out = out[0], p.operands[0].address
    summing.parts.n, summing.parts.count = count, <unsigned int>parts
    x = power_of_two(count, 1, WARP)
    set_geometry(&grid, ceil_div(count, x), x,
                 max(power_of_two(ceil_div(parts, AHEAD), 1, BLOCK // x), WARP // x))
    operands[1] = operands[0]
    operands[0] = p.operands[0]
    return record_entry(encoder, p.entry, PARTS, &grid, summing.bytes, operands, 2, 1, explained)


# -- small things ----------------------------------------------------------------------------------


cdef inline long long ceil_div(long long n, long long size) noexcept:
    return (n + size - 1) // size


cdef inline bint is_aligned(const Problem* p, int operand, const Space* space, int first,
                            long long stride) noexcept:
    """Whether vectors begin at any multiple of the strides, of the dimensions from `first` on."""
    cdef unsigned long long places = stride
    cdef int d
    for d in range(first, space.ndim):
        places |= space.strides[d][operand]
    return (places * p.itemsize | p.operands[operand].address) % VECTOR_BYTES == 0


cdef inline int set_outer(Outer* outer, const Space* space, int first) noexcept:
    """The dimensions from `first` on; returns how many."""
    cdef int d
    for d in range(first, space.ndim):
        outer.dims[d - first] = divider(<unsigned int>space.shape[d])
        outer.strides[d - first][0] = space.strides[d][1]
        outer.strides[d - first][1] = space.strides[d][2]
    return space.ndim - first


cdef inline void set_geometry(Geometry* geometry, long long grid, unsigned int x,
                              unsigned int y) noexcept:
    geometry.grid[0] = <unsigned int>grid
    geometry.grid[1] = geometry.grid[2] = 1
    geometry.block[0] = x
    geometry.block[1] = y
    geometry.block[2] = 1
    geometry.smem = 0
