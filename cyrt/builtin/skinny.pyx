# cython: cdivision=True
# C-level functions only: see skinny.pxd.
"""Products of a few rows and a matrix: kernels and geometry."""

from cyrt.builtin.grid cimport ceiling, multiprocessors_of, power_of_two, set_geometry
from cyrt.builtin.space cimport divider
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/matmul.h" nogil:
    enum: ALONG_ROWS
    enum: ACROSS_ROWS
    enum: ALONG_STEP
    enum: ACROSS_STEP
    int SKINNY_TILES(int eights)
    int SKINNY_STEPS(int eights, int itemsize)
    int SKINNY_WARPS(int eights, int itemsize)

cdef enum:
    WARP = 32
    WARPS = 8               # of a block, where there are many
    PART_UNIT = 32          # a multiple of the elements of every vector
    DEEP_CHUNKS = 2         # the fewest chunks of a warp in a part
    SHARED_BYTES = 64 << 10     # of a block at most


cdef long long choose_skinny(Skinny* args, Launch* launch, int ordinal, int first, bint along,
                             bint gated, long long batches, bint divisible) except -1:
    cdef int itemsize = launch.entry.itemsizes[0], multiprocessors = multiprocessors_of(ordinal)
    cdef int width = 0, eights, rows, chunk
    cdef long long blocks, parts
    cdef unsigned int y
    while 8 << width < <int>args.few:
        width += 1
    eights = 1 << width
    launch.variant = first + width
    rows = ALONG_ROWS * SKINNY_TILES(eights) if along else ACROSS_ROWS
    chunk = SKINNY_STEPS(eights, itemsize) * (ALONG_STEP // itemsize if along else ACROSS_STEP)
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
