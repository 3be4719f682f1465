# cython: cdivision=True
# C-level functions only: see skinny.pxd.
"""Products of a few rows and a matrix: kernels and geometry."""

from cyrt.builtin.grid cimport ceiling, multiprocessors_of, power_of_two, set_geometry
from cyrt.builtin.space cimport divider
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/matmul.h" nogil:
    enum: SKINNY_ROWS
    enum: SKINNY_STEP
    int SKINNY_STAGES(int eights)
    int SKINNY_STAGE_BYTES(int tiles, int eights, int normed)
    int SKINNY_SUMS_BYTES(int tiles, int eights)
    int SKINNY_WARPS(int tiles)

cdef enum:
    WARP = 32
    WARPS = 8               # of a block, where there are many
    PART_UNIT = 32          # a multiple of the elements of every vector
    DEEP_STEPS = 8          # the fewest steps of a warp in a part
    MOST_BLOCKS = 4         # of a multiprocessor
    RESERVED_SMEM = 1024    # bytes of a multiprocessor's shared memory that each block takes besides


cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint gated,
                             bint normed, long long batches, bint divisible) except -1:
    cdef int itemsize = launch.entry.itemsizes[0], multiprocessors = multiprocessors_of(ordinal)
    cdef int width = 0, tiles = 2, eights, rows, step = SKINNY_STEP // itemsize
    cdef long long blocks, parts, smem, whole, held
    cdef unsigned int y
    cdef LoadedFunction function
    while 8 << width < <int>args.few:
        width += 1
    eights = 1 << width
    rows = SKINNY_ROWS // 2 if gated else SKINNY_ROWS
    # Large tiles read the few rows half as often; small ones are more.
    if eights <= 2:
        if 8 * batches * ceiling(args.wide, 2 * rows) < 7 * multiprocessors:
            tiles = 1
        launch.variant = first + 2 * width + tiles - 1
    else:
        launch.variant = first + 2 + width
    function = <LoadedFunction>launch.entry.functions[launch.variant]
    args.tiles = divider(<unsigned int>ceiling(args.wide, tiles * rows))
    blocks = batches * args.tiles.size
    whole = function.limits.smem - function.static_smem
    y = WARPS if blocks > multiprocessors else SKINNY_WARPS(tiles)
    y = power_of_two(ceiling(args.k, step), 1, y)
    smem = SKINNY_STAGES(eights) * SKINNY_STAGE_BYTES(tiles, eights, normed) \
        + SKINNY_SUMS_BYTES(tiles, eights)
    while y > 1 and y * smem > whole:
        y //= 2
    smem *= y
    parts = min(multiprocessors // blocks, args.k // (DEEP_STEPS * step * y)) if divisible else 1
    args.depth = <unsigned int>(ceiling(ceiling(args.k, max(parts, 1)), PART_UNIT) * PART_UNIT)
    parts = ceiling(args.k, args.depth)
    args.parts = divider(<unsigned int>parts)
    args.works = <unsigned int>(blocks * parts)
    # The blocks that the device holds at once, and for all of them as many works.
    held = multiprocessors * max(1, min(<long long>MOST_BLOCKS, (whole + RESERVED_SMEM)
                                        // (smem + RESERVED_SMEM)))
    set_geometry(&launch.geometry, ceiling(args.works, ceiling(args.works, held)), WARP, y)
    launch.geometry.smem = <unsigned int>smem
    allow_smem(function, launch.geometry.smem)
    return parts
