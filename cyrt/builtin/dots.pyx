# cython: cdivision=True
# C-level functions only: see dots.pxd.
"""Sums of products: geometry and parts."""

from cyrt.builtin.launch cimport WARP, ceiling, power_of_two, set_geometry
from cyrt.builtin.product cimport AHEAD, BLOCK, SMALL_BLOCK, WAVES, is_aligned, set_outer
from cyrt.builtin.space cimport divider, product_of

cdef extern from "params/matmul.h" nogil:
    enum: DOT_VECTOR

cdef enum:
    LARGEST_BLOCK = 1024    # threads of a block of columns
    FILLING = 1024          # threads of a multiprocessor that saturate its loads
    DEEP = 16               # the minimum number of vectors of a thread in a part
    SPLIT_COLUMNS = 4096    # longer columns are split; shorter ones use narrow blocks
    SECTOR = 32             # bytes of a memory transaction


cdef long long choose_rows(const Problem* p, const Space* space, long long rows, Dot* args,
                           Geometry* geometry) noexcept:
    cdef long long items = 1, vectors, filling = FILLING * p.multiprocessors
    cdef unsigned int x, y
    if p.a_k == 1 and p.b_k == 1 and p.k % p.entry.items == 0 \
            and is_aligned(p, 1, space, 0, 0) and is_aligned(p, 2, space, 0, 0):
        items = p.entry.items
        args.flags |= DOT_VECTOR
    vectors = ceiling(p.k, items)
    x = power_of_two(ceiling(vectors, AHEAD), 1, WARP)
    while x * AHEAD < vectors and x < BLOCK and rows * x < filling:
        x *= 2
    y = max(power_of_two(rows, 1, BLOCK // x), WARP // x)
    while x * y > SMALL_BLOCK and ceiling(rows, y) < p.multiprocessors and y > 1:
        y //= 2
    args.num_outer = set_outer(&args.outer, space, 0)
    args.rows, args.columns = <unsigned int>rows, 1
    set_geometry(geometry, ceiling(rows, y), x, y)
    return split(p, args, geometry, x * DEEP * items, items)


cdef long long choose_columns(const Problem* p, const Space* space, Dot* args,
                              Geometry* geometry) noexcept:
    cdef long long items = 1, columns = space.shape[0], vectors
    cdef long long rows = product_of(space.shape, 1, space.ndim)
    cdef long long b_column = space.strides[0][2]
    cdef unsigned int x, y
    if space.strides[0][1] == 1 and columns % p.entry.items == 0 \
            and is_aligned(p, 1, space, 1, p.a_k) \
            and (b_column == 0 or b_column == 1 and is_aligned(p, 2, space, 1, p.b_k)):
        items = p.entry.items
        args.flags |= DOT_VECTOR
    vectors = ceiling(columns, items)
    x = power_of_two(vectors, 1, WARP)
    y = BLOCK // x
    if p.k < SPLIT_COLUMNS:
        while rows * ceiling(vectors, x) < p.multiprocessors \
                and x * items * p.itemsize > SECTOR:
            x //= 2
        y = BLOCK // x
        if rows * ceiling(vectors, x) < p.multiprocessors:
            y = LARGEST_BLOCK // x
    y = max(power_of_two(ceiling(p.k, AHEAD), 1, y), WARP // x, items)     # one thread per column
    args.a_column, args.b_column = space.strides[0][1], b_column
    args.num_outer = set_outer(&args.outer, space, 1)
    args.rows, args.columns = <unsigned int>rows, <unsigned int>columns
    args.chunks = divider(<unsigned int>ceiling(vectors, x))
    set_geometry(geometry, rows * args.chunks.size, x, y)
    return split(p, args, geometry, y * DEEP, 1)


cdef long long split(const Problem* p, Dot* args, const Geometry* geometry, long long least,
                     long long unit) noexcept:
    """Split sums into parts of at least so many elements, in whole units, if there are few
    blocks."""
    cdef long long parts = min(WAVES * p.multiprocessors // geometry.grid[0],
                               p.k // least)
    args.depth = p.k if parts < 2 else ceiling(ceiling(p.k, parts), unit) * unit
    return ceiling(p.k, args.depth)
