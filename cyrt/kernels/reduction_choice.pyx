# C-level functions only: see reduction_choice.pxd.
# cython: cdivision=True
"""How the kernels of kernels_cu/reduce.cu are launched: variant, grid, block and parameters."""

from libc.string cimport memset

from cyrt.kernels.space cimport MAX_OUTER, Space, divider
from cyrt.kernels.entries cimport Entry, Operand
from cyrt.kernels.launch cimport power_of_two

cdef enum:
    VECTORS = 1             # flags, and sizes of blocks, as in kernels_cu/reduce.cu
    VECTORS_OUT = 2
    ROOT = 4
    ROW_THREADS = 512
    COLUMN_THREADS = 256
    WARP = 32
    LOADS = 4               # units that a thread takes at once
    SHARE = 8               # units that a thread should have before others help it,
    ALONE = 2               # or where the device is empty
    RESIDENT = 132 * 2048   # threads that an H200 runs at once
    WAVES = 4               # grids of that many times as many end together
    FILL = 3                # one wave of that many parts fills 3/4 of the device at least
    WORTH = 2               # times that many pay for a second launch; and parts, at least
    SECTOR = 32             # bytes that memory is read by
    MAX_COUNT = 0x7fffffff  # blocks of a grid, and what a Divider divides


cdef inline long long quotient(long long n, long long size) noexcept:
    """Rounded up."""
    return (n + size - 1) // size


cdef bint put_dims(Outer* outer, unsigned int* count, const Space* space,
                          int first) noexcept:
    cdef int d, ndim = space.ndim - first
    cdef long long numbers = 1
    if ndim <= 0:
        return True
    if ndim > MAX_OUTER:
        return False
    for d in range(ndim):
        numbers *= space.shape[first + d]
        if ndim > 1 and numbers > MAX_COUNT:
            return False
        if d < ndim - 1:            # the last one is not divided by
            outer.dims[d] = divider(<unsigned int>space.shape[first + d])
        outer.strides[d][0] = space.strides[first + d][0]
        outer.strides[d][1] = space.strides[first + d][1]
    count[0] = ndim
    return True


cdef inline long long size_of(const Space* space, int first) noexcept:
    """Elements of the dimensions from `first` on."""
    cdef int d
    cdef long long size = 1
    for d in range(first, space.ndim):
        size *= space.shape[d]
    return size


cdef inline bint vectors(const Launch* launch, const Space* along, const Space* others) noexcept:
    """Whether the input can be read in vectors along the first dimension of `along`."""
    cdef int d, items = launch.items
    cdef long long all = 0
    if items == 1 or along.ndim == 0 or along.strides[0][0] != 1:
        return False
    for d in range(1, along.ndim):
        all |= along.strides[d][0]
    for d in range(others.ndim):
        all |= others.strides[d][0]
    return all & (items - 1) == 0 and launch.params.input & (items * launch.itemsize - 1) == 0


cdef inline long long lanes_of(long long units, long long rows, long long threads) noexcept:
    """Threads along a row, of those that share a result."""
    cdef long long lanes = power_of_two(quotient(units, LOADS), 1, threads)
    while lanes < threads and lanes * rows < threads:
        lanes *= 2
    return lanes


cdef inline long long parts_of(long long blocks, long long x, long long y, long long units,
                               bint one_wave) noexcept:
    """Parts that a grid should share each result by; `units`: of a thread in one part; `one_wave`:
    as fill the device once, where they do so nearly."""
    cdef long long wanted = 1
    if blocks < RESIDENT and units >= WORTH * SHARE:
        wanted = RESIDENT // 2 // (blocks * x * y)
        if not one_wave or wanted < FILL:
            wanted = WAVES * RESIDENT // (blocks * x * y)
        wanted = min(wanted, units // LOADS)
    return wanted if wanted >= WORTH else 1


cdef inline void divide(Launch* launch, long long wanted, long long threads) noexcept:
    """Parts of the rows and units, for the threads that share a result."""
    cdef Reduce* params = &launch.params
    cdef long long groups = threads // params.lanes, row_parts = 1, unit_parts = 1
    if wanted > 1:
        row_parts = min(wanted, quotient(params.rows, groups))
        unit_parts = wanted // row_parts
    params.part_rows = quotient(quotient(params.rows, row_parts), groups) * groups
    params.part_units = params.units
    if unit_parts > 1:
        params.part_units = quotient(quotient(params.units, unit_parts),
                                     params.lanes * LOADS) * params.lanes * LOADS
        unit_parts = quotient(params.units, params.part_units)
    row_parts = quotient(params.rows, params.part_rows) if params.rows else 1
    launch.num_parts = <unsigned int>(row_parts * unit_parts)
    params.parts = divider(launch.num_parts)
    params.unit_parts = divider(<unsigned int>unit_parts)


cdef inline bint shape(Launch* launch, long long blocks, long long x, long long y) noexcept:
    blocks *= launch.num_parts
    if blocks > MAX_COUNT:
        return False
    launch.geometry.grid[0] = <unsigned int>blocks
    launch.geometry.grid[1] = launch.geometry.grid[2] = 1
    launch.geometry.block[0] = <unsigned int>x
    launch.geometry.block[1] = <unsigned int>y
    launch.geometry.block[2] = 1
    launch.geometry.smem = 0
    return True


cdef inline void put_reduced(Launch* launch) noexcept:
    """Rows of units, a unit being an element."""
    cdef Reduce* params = &launch.params
    cdef const Space* reduced = launch.reduced
    params.units = reduced.shape[0] if reduced.ndim else 1
    params.rows = 0 if launch.empty else size_of(reduced, 1)
    if reduced.ndim:
        params.row_strides[0] = reduced.strides[0][0]
        params.row_strides[1] = reduced.strides[0][1]


cdef bint choose_rows(Launch* launch) noexcept:
    """Threads side by side share a result. False where it does not fit."""
    cdef Reduce* params = &launch.params
    cdef long long total, threads, x, y, blocks
    cdef bint alone = launch.reduced.ndim == 1
    launch.variant = ROWS
    put_reduced(launch)
    if not (put_dims(&params.kept, &params.num_kept, launch.kept, 0)
            and put_dims(&params.reduced, &params.num_reduced, launch.reduced, 1)):
        return False
    if vectors(launch, launch.reduced, launch.kept) and (
            alone or params.units % launch.items == 0):
        params.flags |= VECTORS
        params.tail = params.units % launch.items
        params.units //= launch.items
    total = params.units * params.rows
    threads = power_of_two(quotient(total, SHARE), 1, ROW_THREADS)
    while threads < ROW_THREADS and threads * params.outputs < RESIDENT // 2 \
            and threads * ALONE < total:
        threads *= 2
    x, y = threads, 1
    if x <= WARP:
        y = power_of_two(params.outputs, WARP // x, COLUMN_THREADS // x)
    params.lanes = <unsigned int>lanes_of(params.units, params.rows, x)
    blocks = quotient(params.outputs, y)
    divide(launch, parts_of(blocks, x, y, total // x, False), x)
    return shape(launch, blocks, x, y)


cdef bint choose_columns(Launch* launch, bint whole) noexcept:
    """Threads side by side have results of their own. `whole`: in one part."""
    cdef Reduce* params = &launch.params
    cdef const Space* kept = launch.kept
    cdef long long total, width, x, y, chunks, blocks, all = 0
    cdef int d, out_bytes = launch.items * launch.entry.itemsizes[0]
    launch.variant = COLUMNS
    put_reduced(launch)
    if not (put_dims(&params.kept, &params.num_kept, kept, 1)
            and put_dims(&params.reduced, &params.num_reduced, launch.reduced, 1)):
        return False
    width = params.kept_inner = kept.shape[0] if kept.ndim else 1
    if kept.ndim:
        params.kept_strides[0] = kept.strides[0][0]
        params.kept_strides[1] = kept.strides[0][1]
    if vectors(launch, kept, launch.reduced) and width % launch.items == 0:
        params.flags |= VECTORS
        width //= launch.items
        for d in range(1, kept.ndim):
            all |= kept.strides[d][1]
        if kept.strides[0][1] == 1 and all & (launch.items - 1) == 0 \
                and out_bytes <= 16 and params.output & (out_bytes - 1) == 0:
            params.flags |= VECTORS_OUT
    total = params.units * params.rows
    x = power_of_two(width, 1, WARP)
    y = power_of_two(quotient(total, LOADS), 1, COLUMN_THREADS // x)
    x = power_of_two(width, x, COLUMN_THREADS // y)
    params.lanes = <unsigned int>lanes_of(params.units, params.rows, y)
    chunks = quotient(width, x)
    blocks = size_of(kept, 1)
    if chunks > MAX_COUNT or blocks > MAX_COUNT // chunks:
        return False
    blocks *= chunks
    params.chunks = divider(<unsigned int>chunks)
    divide(launch, 1 if whole else parts_of(blocks, x, y, total // y, True), y)
    return shape(launch, blocks, x, y)


cdef inline bint along_rows(const Space* kept, const Space* reduced, int itemsize) noexcept:
    """Whether threads side by side should share a result: memory then is read in a row."""
    if reduced.ndim == 0:
        return False
    if kept.ndim == 0:
        return True
    if reduced.ndim > 1 and reduced.shape[0] * itemsize < SECTOR \
            and kept.strides[0][0] < reduced.strides[1][0]:
        return False
    return reduced.strides[0][0] < kept.strides[0][0]


cdef bint choose(Launch* launch) noexcept:
    if along_rows(launch.kept, launch.reduced, launch.itemsize):
        return choose_rows(launch)
    return choose_columns(launch, False)


cdef bint choose_parts(Launch* launch) noexcept:
    cdef bint fits = choose_columns(launch, True)
    launch.variant = PARTS
    return fits


cdef void begin_launch(Launch* launch, const Entry* entry, const Operand* operands,
                       const Space* kept, const Space* reduced, bint empty, int itemsize,
                       int items, const Finish* finish) noexcept:
    cdef Reduce* params = &launch.params
    memset(launch, 0, sizeof(Launch))
    launch.entry = entry
    launch.operands = operands
    launch.kept = kept
    launch.reduced = reduced
    launch.empty = empty
    launch.itemsize = itemsize
    launch.items = items
    params.input = operands[1].address + (kept.offsets[0] + reduced.offsets[0]) * itemsize
    params.output = operands[0].address + kept.offsets[1] * entry.itemsizes[0]
    params.place = reduced.offsets[1]
    params.outputs = size_of(kept, 0)
    params.divisor = finish.divisor
    params.flags = ROOT if finish.root else 0
