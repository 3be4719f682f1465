# cython: cdivision=True
"""Attention of a few rows of queries to a cache: the launches of attention.cu."""

from cpython.object cimport PyObject
from libc.math cimport M_LOG2E
from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    VECTOR_BYTES, WARP, Launch, ceiling, multiprocessors_of, power_of_two, record_launch,
    set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/attention.h" nogil:
    enum: ATTENTION_ITEMS, ATTENTION_WARPS, ATTENTION_PARTS, ATTENTION_TILE_ROWS
    enum: ATTENTION_TILE_PADDING, ATTENTION_APPEND, ATTENTION_WIDE_POSITIONS, ATTENTION_WIDE_SINKS
    enum: ATTENTION_TRADITIONAL, ATTENTION_WIDE_FREQS
    int ATTENTION_KEYS(int itemsize)
    int ATTENTION_TILE_KEYS(int width)
    int ATTENTION_TILE_WARPS(int width)
    int ATTENTION_TILE_WAVES(int width)
    long long ATTENTION_NEW_VECTORS(long long nbytes)
    cdef struct Attention:
        unsigned long long out, keys, values, q, k, v, positions, freqs, sinks, states
        AttentionStrides q_step, k_step, v_step, keys_step, values_step
        long long positions_step, freqs_step, sinks_step, first, most
        double turns, log2_step
        float scale
        unsigned int fresh, capacity, features, pairs, flags, group, lanes
        Divider parts, tiles, heads, rows, group_rows, chunk, row_pairs

cdef enum:
    HELD_FEATURES = 1024    # a block whose rows have more features has half of the warps
    WHOLE_CHUNKS = 2        # the maximum number of chunks of a cache that is not divided
    WAVES = 1               # the maximum number of blocks per multiprocessor if a cache is divided
    NARROW = 64             # features of the first kernel by tensor cores

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ONE_ROW = 0
    UNALIGNED
    PARTS
    # The next two are kernels of float32.
    FOUR_ROWS
    EIGHT_ROWS
    # 16-bit types have these kernels instead: the first one takes up to NARROW features, and each
    # that follows takes twice as many.
    TILES = 3

cdef int ATTENTION = op_code("attention")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Attention),)


cdef inline bint is_aligned(const Operand* operand, const Steps* steps, int itemsize) noexcept:
    return (operand.address | <unsigned long long>(
        (steps.batch | steps.head | steps.row) * itemsize)) % VECTOR_BYTES == 0


cdef inline bint takes_vectors(const Operand* operands, const AttentionSpace* space,
                               int itemsize) noexcept:
    """Return whether rows of the cache begin at a vector, and divide into lanes' items."""
    return space.features % ATTENTION_ITEMS == 0 \
        and is_aligned(&operands[KEYS], &space.keys, itemsize) \
        and is_aligned(&operands[VALUES], &space.values, itemsize)


cdef int record_attention(Recorder encoder, int dtype, const Operand* operands,
                          const AttentionSpace* space) except -1:
    cdef Attention params
    cdef Launch launch
    cdef int itemsize, processors
    cdef int held = 8, keys         # rows of a block; keys that a warp takes at once
    cdef int waves = WAVES, width = 0
    cdef bint is_small
    cdef long long units = space.batches * space.key_heads, parts = 1
    cdef long long group_rows, tiles, chunks, slices, query_bytes
    cdef unsigned int warps, least
    if units == 0 or space.heads == 0 or space.rows == 0 or space.features == 0:
        return 0
    group_rows = space.heads // space.key_heads * space.rows
    launch.entry = entry_of(encoder.state.ordinal, ATTENTION, dtype)
    itemsize = launch.entry.itemsizes[0]
    set_params(&params, operands, space)
    processors = multiprocessors_of(encoder.state.ordinal)
    launch.variant = UNALIGNED
    keys = WARP // params.lanes
    if takes_vectors(operands, space, itemsize):
        keys *= ATTENTION_KEYS(itemsize)
        # If the cache is small, one block computes one row of queries: the work is shared by more
        # multiprocessors, though each block reads the same few keys.
        is_small = (space.capacity <= WHOLE_CHUNKS * keys * ATTENTION_WARPS
                    and units * group_rows <= processors)
        if group_rows == 1 or is_small:
            held, launch.variant = 1, ONE_ROW
        elif itemsize == 2:
            held, launch.variant, width = ATTENTION_TILE_ROWS, TILES, NARROW
            while width < space.features:
                launch.variant, width = launch.variant + 1, 2 * width
            keys, waves = ATTENTION_TILE_KEYS(width), ATTENTION_TILE_WAVES(width)
        elif group_rows <= 4:
            held, launch.variant = 4, FOUR_ROWS
        else:
            launch.variant = EIGHT_ROWS
    tiles = ceiling(group_rows, held)
    if width:
        # A row of queries has a thread for two features. Where keys are few, blocks are small, so
        # that more multiprocessors share them.
        least = width // (2 * WARP)
        warps = power_of_two(ceiling(space.capacity, keys), least, ATTENTION_TILE_WARPS(width))
        while warps > least \
                and 2 * units * tiles * ceiling(space.capacity, keys * warps) <= processors:
            warps //= 2
    else:
        warps = ATTENTION_WARPS if held * space.features <= HELD_FEATURES else ATTENTION_WARPS // 2
        warps = power_of_two(ceiling(space.capacity, keys), 1, warps)
    chunks = ceiling(space.capacity, keys * warps)
    if chunks > WHOLE_CHUNKS:
        parts = max(1, min(chunks, ATTENTION_PARTS, waves * processors // (units * tiles)))
    slices = ceiling(space.features, WARP)
    if units > MAX_NUMERATOR // max(tiles * parts, group_rows * slices):
        raise ValueError(f"attention: {units:,} heads of keys with {group_rows:,} rows of queries "
                         "are more than a grid has blocks")
    params.chunk = divider(keys * warps)
    params.parts = divider(<unsigned int>parts)
    params.tiles = divider(<unsigned int>tiles)
    set_geometry(&launch.geometry, units * tiles * parts, WARP, warps)
    query_bytes = (width + ATTENTION_TILE_PADDING) * itemsize if width else space.features * 4
    launch.geometry.smem = <unsigned int>max(
        16 * ATTENTION_NEW_VECTORS(2 * space.fresh * space.features * itemsize)
        + held * (query_bytes + 4), warps * held * (space.features * 4 + 8))
    if parts == 1:
        return record_launch(encoder, &launch, &params, operands, ATTENTION_OPERANDS,
                             writes_of(space))
    return record_parts(encoder, &launch, &params, operands, space, units * group_rows, slices)


cdef inline unsigned int writes_of(const AttentionSpace* space) noexcept:
    return 1 << OUT | (1 << KEYS | 1 << VALUES if space.append else 0)


cdef void set_params(Attention* params, const Operand* operands,
                     const AttentionSpace* space) noexcept:
    """Set all parameters except those that depend on the grid."""
    memset(params, 0, sizeof(Attention))
    params.out = operands[OUT].address
    params.keys, params.values = operands[KEYS].address, operands[VALUES].address
    params.q, params.k = operands[QUERIES].address, operands[NEW_KEYS].address
    params.v = operands[NEW_VALUES].address
    if operands[POSITIONS].buffer != NULL:
        params.positions, params.positions_step = operands[POSITIONS].address, space.positions_step
    if operands[FREQS].buffer != NULL:
        params.freqs, params.freqs_step = operands[FREQS].address, space.freqs_step
    if operands[SINKS].buffer != NULL:
        params.sinks, params.sinks_step = operands[SINKS].address, space.sinks_step
    set_steps(&params.q_step, &space.queries)
    set_steps(&params.k_step, &space.new_keys)
    set_steps(&params.v_step, &space.new_values)
    set_steps(&params.keys_step, &space.keys)
    set_steps(&params.values_step, &space.values)
    params.first = space.first
    params.most = space.capacity - (space.fresh if space.append else 0)
    params.turns, params.log2_step = space.turns, space.log2_step
    params.scale = <float>(space.scale * M_LOG2E)
    params.fresh = <unsigned int>space.fresh
    params.capacity = <unsigned int>space.capacity
    params.features, params.pairs = <unsigned int>space.features, <unsigned int>space.pairs
    if space.append:
        params.flags |= ATTENTION_APPEND
    if space.wide_positions:
        params.flags |= ATTENTION_WIDE_POSITIONS
    if space.wide_sinks:
        params.flags |= ATTENTION_WIDE_SINKS
    if space.traditional:
        params.flags |= ATTENTION_TRADITIONAL
    if space.wide_freqs:
        params.flags |= ATTENTION_WIDE_FREQS
    params.group = <unsigned int>(space.heads // space.key_heads)
    params.lanes = power_of_two(ceiling(space.features, ATTENTION_ITEMS), 1, WARP)
    params.heads = divider(<unsigned int>space.key_heads)
    params.rows = divider(<unsigned int>space.rows)
    params.group_rows = divider(<unsigned int>(params.group * space.rows))
    params.row_pairs = divider(<unsigned int>ceiling(space.features, 2))


cdef int record_parts(Recorder encoder, Launch* launch, Attention* params,
                      const Operand* operands, const AttentionSpace* space,
                      long long rows, long long slices) except -1:
    """Record the states of the parts of the cache, and the results from them, of slices of the
    features."""
    cdef Operand[ATTENTION_OPERANDS] uses
    cdef Operand[4] combined
    cdef Memory states
    cdef int i
    states = allocate_workspace(encoder, rows * params.parts.size * (space.features + 2) * 4)
    params.states = states.address
    for i in range(ATTENTION_OPERANDS):
        uses[i] = operands[i]
    uses[OUT] = Operand(<PyObject*>states, states.address, NULL, [0, 0])
    record_launch(encoder, launch, params, uses, ATTENTION_OPERANDS, writes_of(space))
    launch.variant = PARTS
    set_geometry(&launch.geometry, rows * slices, ATTENTION_PARTS, 1)
    combined[0], combined[1] = operands[OUT], uses[OUT]
    combined[2], combined[3] = operands[POSITIONS], operands[SINKS]
    return record_launch(encoder, launch, params, combined, 4, 1)
