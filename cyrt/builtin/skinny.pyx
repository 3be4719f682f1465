# cython: cdivision=True
# C-level functions only: see skinny.pxd.
"""Products of a few rows and a matrix: kernels and geometry."""

from cyrt.builtin.launch cimport WARP, ceiling, multiprocessors_of, power_of_two, set_geometry
from cyrt.builtin.space cimport divider
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/matmul.h" nogil:
    enum: ALONG_ROWS, ALONG_STEP, ACROSS_ROWS, NARROW_ROWS
    int ACROSS_STEP(int rows)
    int SKINNY_STEPS(int eights, int itemsize)
    int SKINNY_WARPS(int eights, int itemsize)
    enum: RING_ROWS, RING_STEP
    int RING_STAGES(int eights)
    int RING_STAGE_BYTES(int tiles, int eights)
    int RING_SUMS_BYTES(int tiles, int eights)
    int RING_WARPS(int tiles)

cdef enum:
    WARPS = 8               # a block's warps, where there are many
    PART_UNIT = 32          # a multiple of the elements of every vector
    DEEP_CHUNKS = 2         # the minimum number of chunks of a warp in a part
    SHARED_BYTES = 64 << 10     # the maximum shared memory of a block
    # A ring's blocks fill the device once, at most MOST_BLOCKS on a multiprocessor.
    DEEP_STEPS = 8          # the minimum number of steps of a ring's warp in a part
    MOST_BLOCKS = 4
    RESERVED_SMEM = 1024    # bytes of shared memory that the driver takes for each block


cdef long long choose_layer(Skinny* args, Launch* launch, int ordinal, int first,
                            bint gated) except -1:
    return choose_along(args, launch, ordinal, first, gated, 1, False)


cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                             long long batches) except -1:
    if along:
        return choose_along(args, launch, ordinal, first, False, batches, True)
    return choose_across(args, launch, ordinal, first, batches)


cdef inline int width_of(const Skinny* args) noexcept:
    """Return the logarithm of how many eights of few rows the smallest kernel takes."""
    cdef int width = 0
    while 8 << width < <int>args.few:
        width += 1
    return width


cdef long long choose_along(Skinny* args, Launch* launch, int ordinal, int first, bint gated,
                            long long batches, bint divisible) except -1:
    cdef int width = width_of(args), itemsize = launch.entry.itemsizes[0]
    cdef int chunk = SKINNY_STEPS(1 << width, itemsize) * (ALONG_STEP // itemsize)
    launch.variant = first + width
    return choose_blocks(args, launch, ordinal, 1 << width, ALONG_ROWS, chunk, gated, batches,
                         divisible)


cdef long long choose_across(Skinny* args, Launch* launch, int ordinal, int first,
                             long long batches) except -1:
    cdef int width = width_of(args), itemsize = launch.entry.itemsizes[0], rows = ACROSS_ROWS
    cdef int steps = SKINNY_STEPS(1 << width, itemsize)
    cdef long long deep = SKINNY_WARPS(1 << width, itemsize) * steps * ACROSS_STEP(rows)
    # Narrow tiles read the few rows more often. They are faster where others leave half of the
    # device idle, are too flat for parts, and take several steps (measured: docs/performance.md).
    cdef bint narrow = deep < args.k < 2 * DEEP_CHUNKS * deep and (
        2 * batches * ceiling(args.wide, rows) <= multiprocessors_of(ordinal))
    if narrow:
        rows = NARROW_ROWS
    launch.variant = first + 2 * width + narrow
    return choose_blocks(args, launch, ordinal, 1 << width, rows, steps * ACROSS_STEP(rows), False,
                         batches, True)


cdef long long choose_blocks(Skinny* args, Launch* launch, int ordinal, int eights, int rows,
                             int chunk, bint gated, long long batches, bint divisible) except -1:
    """Set the geometry of a kernel that reads into registers: a warp loads so many rows of the
    matrix, and indices of the summed dimension, ahead."""
    cdef int itemsize = launch.entry.itemsizes[0], multiprocessors = multiprocessors_of(ordinal)
    cdef long long blocks, parts
    cdef unsigned int y
    args.tiles = divider(<unsigned int>ceiling(args.wide, rows // 2 if gated else rows))
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


cdef long long choose_ring(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                           long long batches) except -1:
    cdef int width = width_of(args), eights = 1 << width, tiles = 2
    cdef int multiprocessors = multiprocessors_of(ordinal)
    cdef long long blocks, large, parts, smem, most, held
    cdef unsigned int y
    cdef LoadedFunction function
    if eights <= 2:
        # Large tiles read the few rows half as often, and 64 bytes of a matrix across the summed
        # dimension at a time; small ones are more. Measured: see docs/performance.md.
        large = batches * ceiling(args.wide, 2 * RING_ROWS)
        if along and eights == 1:
            tiles = 1
        elif 8 * large < 7 * multiprocessors:
            parts = 1 if along else count_parts(args, multiprocessors, large, RING_WARPS(2))
            tiles = 1 if parts == 1 else 2
        launch.variant = first + 2 * width + tiles - 1
    else:
        launch.variant = first + 2 + width
    function = <LoadedFunction>launch.entry.functions[launch.variant]
    args.tiles = divider(<unsigned int>ceiling(args.wide, tiles * RING_ROWS))
    blocks = batches * args.tiles.size
    y = power_of_two(ceiling(args.k, RING_STEP), 1, RING_WARPS(tiles))
    smem = RING_STAGES(eights) * RING_STAGE_BYTES(tiles, eights) + RING_SUMS_BYTES(tiles, eights)
    most = function.limits.smem - function.static_smem
    while y > 1 and y * smem > most:
        y //= 2
    parts = count_parts(args, multiprocessors, blocks, y)
    args.depth = <unsigned int>(ceiling(ceiling(args.k, parts), PART_UNIT) * PART_UNIT)
    parts = ceiling(args.k, args.depth)
    args.parts = divider(<unsigned int>parts)
    args.works = <unsigned int>(blocks * parts)
    # The blocks that the device holds at once, with equal work.
    held = (function.limits.smem + RESERVED_SMEM) // (y * smem + RESERVED_SMEM)
    held = multiprocessors * min(max(held, 1), <long long>MOST_BLOCKS)
    set_geometry(&launch.geometry, ceiling(args.works, ceiling(args.works, held)), WARP, y)
    launch.geometry.smem = <unsigned int>(y * smem)
    allow_smem(function, launch.geometry.smem)
    return parts


cdef inline long long count_parts(const Skinny* args, int multiprocessors, long long blocks,
                                  unsigned int warps) noexcept:
    """Return into how many parts blocks of so many warps divide a product."""
    return max(1, min(multiprocessors // blocks, args.k // (DEEP_STEPS * RING_STEP * warps)))
