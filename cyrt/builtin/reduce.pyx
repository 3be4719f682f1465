# cython: cdivision=True
"""Reductions: the launches of reduce.cu."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport MAX_DTYPES, MAX_OPS, Entry, entry_of, type_of_size
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, VECTOR_BYTES, WARP, WHOLE, Launch, ceiling, describe, num_replayed, power_of_two,
    record_launch, replay_described, set_geometry,
)
from cyrt.builtin.rows import reduce as family
from cyrt.builtin.space cimport (
    MAX_NDIM, MAX_NUMERATOR, MAX_OUTER, Divider, Outer2, Space, divider, next_part, product_of,
    simplify,
)
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.exact_key cimport Key, add_word, add_words, begin_key, find_plan, store_plan
from cyrt.runtime.memory cimport Memory

cdef extern from "params/reduce.h" nogil:
    enum: ROW_THREADS, COLUMN_THREADS, REDUCE_COLUMNS, REDUCE_SHORT, REDUCE_VECTORS
    enum: REDUCE_VECTORS_OUT, REDUCE_ALONE, REDUCE_ROOT
    cdef struct Reduce:
        unsigned long long input, out
        long long kept_inner
        long long kept_strides[2]
        long long units
        long long row_strides[2]
        long long tail, first_index, rows, part_rows, part_units, outputs
        double divisor
        Outer2 kept, reduced
        unsigned int num_kept, num_reduced, lanes, flags
        Divider parts, unit_parts, chunks

cdef extern from *:
    int __builtin_popcountll(unsigned long long) noexcept

cdef enum:
    SECTOR = 32             # bytes of a memory transaction
    LOADS = 4               # units that a thread loads at once
    # The units of a thread from which on more threads compute the result together:
    SHARE = 8               # more threads of its warp
    LONG_SHARE = 16         # more warps
    ALONE = 2               # more threads, where the device would be idle
    # The threads that an H200 runs at once. They are the same for every device: how a sum is
    # divided, and so how it is rounded, follows from shape, strides and alignment alone.
    RESIDENT = 132 * 2048
    WAVES = 2               # grids of this many times RESIDENT threads end together
    FILL = 3                # the minimum number of parts of which one wave fills 3/4 of the device
    WORTH = 2               # the minimum parts, or shares of a thread, worth a second launch

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ROWS = 0
    COLUMNS = 1
    PARTS = 2

# A reduction whose dimensions are simplified.
cdef struct Reduction:
    const Entry* entry
    int state_size              # bytes of a partial result
    const Space* kept           # strides of the input and the output
    const Space* reduced        # strides of the input and of logical indices
    bint empty                  # nothing is reduced
    const Finish* finish

# One launch of a reduction.
cdef struct ReduceLaunch:
    Launch launch
    Reduce params
    int itemsize, items         # bytes of an element of the input; elements of a vector
    unsigned int num_parts

# The launches of a reduction. The addresses are relative to the operands, and to the states.
cdef struct ReducePlan:
    ReduceLaunch whole
    long long state_bytes       # if the results are computed in parts: those of their states,
    ReduceLaunch combining      # the launch that combines the parts

cdef int COPY = catalogue.OPS.index("copy")
# Bytes of a state, by operation and element type.
cdef int[MAX_OPS][MAX_DTYPES] state_sizes
for each in family.rows():
    state_sizes[<int>catalogue.OPS.index(each.op)][<int>_dtype(each.dtype).code] = \
        family.state_bytes(each)
cdef int ARGMAX = catalogue.OPS.index("argmax"), ARGMIN = catalogue.OPS.index("argmin")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Reduce),)


# -- the choice of variant, grid, block and parameters ---------------------------------------------


cdef bint put_dims(Outer2* outer, unsigned int* count, const Space* space, int first) noexcept:
    """Set the dimensions of a space from `first` on; False if a kernel cannot take them."""
    cdef int d, ndim = space.ndim - first
    cdef long long numbers = 1
    if ndim <= 0:
        return True
    if ndim > MAX_OUTER:
        return False
    for d in range(ndim):
        numbers *= space.shape[first + d]
        if ndim > 1 and numbers > MAX_NUMERATOR:
            return False
        if d < ndim - 1:            # no kernel divides by the last one
            outer.dims[d] = divider(<unsigned int>space.shape[first + d])
        outer.strides[d][0] = space.strides[first + d][0]
        outer.strides[d][1] = space.strides[first + d][1]
    count[0] = ndim
    return True


cdef inline bint vectors(const ReduceLaunch* self, const Space* along,
                         const Space* others) noexcept:
    """Return whether the input can be read in vectors along the first dimension of `along`."""
    cdef int d, items = self.items
    cdef long long all = 0
    if items == 1 or along.ndim == 0 or along.strides[0][0] != 1:
        return False
    for d in range(1, along.ndim):
        all |= along.strides[d][0]
    for d in range(others.ndim):
        all |= others.strides[d][0]
    return all & (items - 1) == 0 and self.params.input & (items * self.itemsize - 1) == 0


cdef inline bint vectors_out(const ReduceLaunch* self, const Space* kept, int itemsize) noexcept:
    """Return whether the results of a thread's columns can be written in vectors."""
    cdef int d
    cdef long long all = 0, width = min(<long long>self.items, VECTOR_BYTES // itemsize)
    for d in range(1, kept.ndim):
        all |= kept.strides[d][1]
    return kept.strides[0][1] == 1 and all & (width - 1) == 0 \
        and self.params.out & (width * itemsize - 1) == 0


cdef inline long long lanes_of(long long units, long long rows, long long threads) noexcept:
    """Return the threads along a row, out of those that share a result."""
    cdef long long lanes = power_of_two(ceiling(units, LOADS), 1, threads)
    while lanes < threads and lanes * rows < threads:
        lanes *= 2
    return lanes


cdef inline long long parts_of(long long blocks, long long x, long long y, long long units,
                               bint one_wave) noexcept:
    """Return the number of parts of each result in a grid; `units` are those of a thread in one
    part; `one_wave` limits the parts to one wave if that nearly fills the device."""
    cdef long long wanted = 1
    if blocks < RESIDENT and units >= WORTH * SHARE:
        wanted = RESIDENT // 2 // (blocks * x * y)
        if not one_wave or wanted < FILL:
            wanted = WAVES * RESIDENT // (blocks * x * y)
        wanted = min(wanted, units // LOADS)
    return wanted if wanted >= WORTH else 1


cdef inline void divide(ReduceLaunch* self, long long wanted, long long threads) noexcept:
    """Split rows and units between the threads that share a result."""
    cdef Reduce* params = &self.params
    cdef long long groups = threads // params.lanes, row_parts = 1, unit_parts = 1
    if wanted > 1:
        row_parts = min(wanted, ceiling(params.rows, groups))
        unit_parts = wanted // row_parts
    params.part_rows = ceiling(ceiling(params.rows, row_parts), groups) * groups
    params.part_units = params.units
    if unit_parts > 1:
        params.part_units = ceiling(ceiling(params.units, unit_parts),
                                     params.lanes * LOADS) * params.lanes * LOADS
        unit_parts = ceiling(params.units, params.part_units)
    row_parts = ceiling(params.rows, params.part_rows) if params.rows else 1
    self.num_parts = <unsigned int>(row_parts * unit_parts)
    params.parts = divider(self.num_parts)
    params.unit_parts = divider(<unsigned int>unit_parts)


cdef inline bint set_grid(ReduceLaunch* self, long long blocks, long long x, long long y) noexcept:
    blocks *= self.num_parts
    set_geometry(&self.launch.geometry, blocks, <unsigned int>x, <unsigned int>y)
    return blocks <= MAX_BLOCKS


cdef inline void put_reduced(ReduceLaunch* self, const Reduction* reduction) noexcept:
    """Set the reduced dimensions: rows of units, each of which is an element. Logical indices
    increase along a row: if they do not, it is read from its end."""
    cdef Reduce* params = &self.params
    cdef const Space* reduced = reduction.reduced
    params.units = reduced.shape[0] if reduced.ndim else 1
    params.rows = 0 if reduction.empty else product_of(reduced.shape, 1, reduced.ndim)
    if reduced.ndim:
        params.row_strides[0] = reduced.strides[0][0]
        params.row_strides[1] = reduced.strides[0][1]
    if params.row_strides[1] < 0:
        params.input += (params.units - 1) * params.row_strides[0] * self.itemsize
        params.first_index += (params.units - 1) * params.row_strides[1]
        params.row_strides[0] = -params.row_strides[0]
        params.row_strides[1] = -params.row_strides[1]


cdef bint choose_rows(ReduceLaunch* self, const Reduction* reduction) noexcept:
    """Let neighbouring threads share a result. Return False if it does not fit."""
    cdef Reduce* params = &self.params
    cdef long long total, threads, x, y, blocks
    cdef bint alone = reduction.reduced.ndim == 1, one_wave
    self.launch.variant = ROWS
    put_reduced(self, reduction)
    if not (put_dims(&params.kept, &params.num_kept, reduction.kept, 0)
            and put_dims(&params.reduced, &params.num_reduced, reduction.reduced, 1)):
        return False
    if params.row_strides[0] > 0 and vectors(self, reduction.reduced, reduction.kept) and (
            alone or params.units % self.items == 0):
        params.flags |= REDUCE_VECTORS
        params.tail = params.units % self.items
        params.units //= self.items
    total = params.units * params.rows
    threads = max(power_of_two(ceiling(total, SHARE), 1, WARP),
                  power_of_two(ceiling(total, LONG_SHARE), 1, ROW_THREADS))
    while threads < ROW_THREADS and threads * params.outputs < RESIDENT // 2 \
            and threads * ALONE < total:
        threads *= 2
    x, y = threads, 1
    if x <= WARP:
        y = power_of_two(params.outputs, WARP // x, COLUMN_THREADS // x)
    params.lanes = <unsigned int>lanes_of(params.units, params.rows, x)
    blocks = ceiling(params.outputs, y)
    # A whole array's long states are better few: each costs instructions, and is combined later.
    one_wave = params.outputs == 1 and reduction.state_size > REDUCE_SHORT
    divide(self, parts_of(blocks, x, y, total // x, one_wave), x)
    return set_grid(self, blocks, x, y)


cdef bint choose_columns(ReduceLaunch* self, const Reduction* reduction, bint whole) noexcept:
    """Give neighbouring threads different results. `whole` computes each in one part."""
    cdef Reduce* params = &self.params
    cdef const Space* kept = reduction.kept
    cdef long long total, width, share, x, y, chunks, blocks
    if reduction.state_size > REDUCE_SHORT:
        self.items = min(self.items, REDUCE_COLUMNS)
    self.launch.variant = COLUMNS
    put_reduced(self, reduction)
    if not (put_dims(&params.kept, &params.num_kept, kept, 1)
            and put_dims(&params.reduced, &params.num_reduced, reduction.reduced, 1)):
        return False
    width = params.kept_inner = kept.shape[0] if kept.ndim else 1
    if kept.ndim:
        params.kept_strides[0] = kept.strides[0][0]
        params.kept_strides[1] = kept.strides[0][1]
    if vectors(self, kept, reduction.reduced) and width % self.items == 0:
        params.flags |= REDUCE_VECTORS
        if vectors_out(self, kept, reduction.entry.itemsizes[0]):
            params.flags |= REDUCE_VECTORS_OUT
        width //= self.items
    blocks = product_of(kept.shape, 1, kept.ndim)
    total = params.units * params.rows
    # Threads share a result where there are too few results to fill the device.
    share = max(LOADS, ceiling(total * width * blocks, WAVES * RESIDENT))
    x = power_of_two(width, 1, WARP)
    y = power_of_two(ceiling(total, share), 1, COLUMN_THREADS // x)
    x = power_of_two(width, x, COLUMN_THREADS // y)
    params.lanes = <unsigned int>lanes_of(params.units, params.rows, y)
    chunks = ceiling(width, x)
    if chunks > MAX_NUMERATOR or blocks > MAX_NUMERATOR // chunks:
        return False
    blocks *= chunks
    params.chunks = divider(<unsigned int>chunks)
    divide(self, 1 if whole else parts_of(blocks, x, y, total // y, True), y)
    if y == 1 and params.rows == 1 and self.num_parts == 1:
        params.flags |= REDUCE_ALONE
    return set_grid(self, blocks, x, y)


cdef inline bint along_rows(const Space* kept, const Space* reduced, int itemsize) noexcept:
    """Return whether neighbouring threads should share a result, so that they read adjacent
    memory."""
    if reduced.ndim == 0:
        return False
    if kept.ndim == 0:
        return True
    if reduced.ndim > 1 and reduced.shape[0] * itemsize < SECTOR \
            and kept.strides[0][0] < reduced.strides[1][0]:
        return False
    return reduced.strides[0][0] < kept.strides[0][0]


cdef void begin(ReduceLaunch* self, const Reduction* reduction, const Operand* operands,
                bint states) noexcept:
    """Begin a launch for the output and the input, or with `states` for partial results."""
    cdef const Space* kept = reduction.kept
    cdef const Space* reduced = reduction.reduced
    cdef Reduce* params = &self.params
    memset(self, 0, sizeof(ReduceLaunch))
    self.launch.entry = reduction.entry
    self.itemsize = reduction.state_size if states else reduction.entry.itemsizes[1]
    self.items = 1 if states else VECTOR_BYTES // max(2, self.itemsize)
    params.input = operands[1].address + (kept.offsets[0] + reduced.offsets[0]) * self.itemsize
    params.out = operands[0].address + kept.offsets[1] * reduction.entry.itemsizes[0]
    params.first_index = reduced.offsets[1]
    params.outputs = product_of(kept.shape, 0, kept.ndim)
    params.divisor = reduction.finish.divisor
    params.flags = REDUCE_ROOT if reduction.finish.root else 0


# -- the launches ----------------------------------------------------------------------------------


cdef int record_relative(Recorder encoder, ReduceLaunch* launch, const Operand* operands) except -1:
    launch.params.input += operands[1].address
    launch.params.out += operands[0].address
    return record_launch(encoder, &launch.launch, &launch.params, operands, 2, 1 | WHOLE)


cdef int record_planned(Recorder encoder, const ReducePlan* plan, const Operand* operands,
                        Key* key) except -1:
    """Record the launches of a plan, which may end as soon as something is recorded."""
    cdef ReduceLaunch whole = plan.whole, combining
    cdef Operand[2] between
    cdef Memory states
    cdef int before = num_replayed(encoder)
    if whole.num_parts == 1:
        record_relative(encoder, &whole, operands)
        if key != NULL:
            describe(encoder, before, key, operands, 2, &whole.launch)
        return 0
    combining = plan.combining
    states = allocate_workspace(encoder, plan.state_bytes)
    between[0] = Operand(<PyObject*>states, states.address, NULL, [0, 0])
    between[1] = operands[1]
    record_relative(encoder, &whole, between)
    between[0], between[1] = operands[0], between[0]
    return record_relative(encoder, &combining, between)


cdef int record_simplified(Recorder encoder, const Reduction* reduction, const Operand* operands,
                           Key* key) except -1:
    """Record one launch, or two, or several if the results exceed a grid. Return 0 if there are too
    many reduced dimensions for a kernel. The plan of one launch, or two, is stored, unless `key`
    is NULL."""
    cdef ReducePlan plan
    cdef ReduceLaunch* launch = &plan.whole
    cdef size_t nbytes = sizeof(plan)
    cdef Reduction part
    cdef Space kept
    cdef long long done = 0
    cdef bint fits
    begin(launch, reduction, operands, False)
    if along_rows(reduction.kept, reduction.reduced, launch.itemsize):
        fits = choose_rows(launch, reduction)
    else:
        fits = choose_columns(launch, reduction, False)
    if not fits:
        if not put_dims(&launch.params.reduced, &launch.params.num_reduced, reduction.reduced, 1):
            return 0
        part, kept = reduction[0], reduction.kept[0]
        part.kept = &kept
        while next_part(&kept, reduction.kept, &done):
            record_simplified(encoder, &part, operands, NULL)
        return 1
    launch.params.input -= operands[1].address
    if launch.num_parts == 1:
        launch.params.out -= operands[0].address
        nbytes -= sizeof(plan.combining)        # the last member is not used
    else:
        launch.params.out = 0
        plan.state_bytes = launch.num_parts * launch.params.outputs * reduction.state_size
        plan_parts(&plan.combining, reduction, operands, launch.num_parts)
    if key != NULL:
        store_plan(key, &plan, nbytes)
    record_planned(encoder, &plan, operands, key)
    return 1


cdef void plan_parts(ReduceLaunch* launch, const Reduction* whole, const Operand* operands,
                     unsigned int num_parts) noexcept:
    """Plan the combination of each result's states, part by part, in the results' order."""
    cdef Operand[2] between = [operands[0], Operand(NULL, 0, NULL, [0, 0])]
    cdef Reduction reduction = whole[0]
    cdef const Space* results = whole.kept
    cdef Space kept, reduced
    cdef long long number = 1
    cdef int d, last = -1
    for d in range(results.ndim):
        if last >= 0 and kept.strides[last][1] * kept.shape[last] == results.strides[d][1]:
            kept.shape[last] *= results.shape[d]
        else:
            last += 1
            kept.shape[last] = results.shape[d]
            kept.strides[last][0] = number
            kept.strides[last][1] = results.strides[d][1]
        number *= results.shape[d]
    kept.ndim = last + 1
    kept.offsets[0], kept.offsets[1] = 0, results.offsets[1]
    reduced.ndim = 1
    reduced.shape[0] = num_parts
    reduced.strides[0][0], reduced.strides[0][1] = number, 0
    reduced.offsets[0] = reduced.offsets[1] = 0
    reduction.kept, reduction.reduced, reduction.empty = &kept, &reduced, False
    begin(launch, &reduction, between, True)
    choose_columns(launch, &reduction, True)
    launch.params.out -= operands[0].address
    launch.launch.variant = PARTS


cdef void set_key(Key* key, const Entry* entry, const Operand* operands, int ndim,
                  const long long* shape, unsigned long long axes, const Finish* finish) noexcept:
    cdef bint scattered_in = operands[1].strides != NULL
    cdef bint scattered_out = operands[0].strides != NULL
    cdef unsigned long long alignments = operands[1].address % VECTOR_BYTES << 4 \
        | operands[0].address % VECTOR_BYTES
    begin_key(key, entry, alignments << 16 | <unsigned int>ndim << 3 | scattered_in << 2
              | scattered_out << 1 | finish.root)
    add_word(key, axes)
    add_word(key, (<const unsigned long long*>&finish.divisor)[0])
    add_words(key, shape, ndim)
    if scattered_in:
        add_words(key, operands[1].strides, ndim)
    if scattered_out:
        add_words(key, operands[0].strides, ndim)


cdef int record_reduction(Recorder encoder, int op, int dtype, const Operand* operands, int ndim,
                          const long long* shape, unsigned long long axes,
                          const Finish* finish) except -1:
    cdef Reduction reduction
    cdef Key key
    cdef const ReducePlan* plan
    cdef Space kept, reduced
    # Shape and strides, those of logical indices beside those of the output: the dimensions that
    # are kept come first.
    cdef long long[MAX_NDIM] sizes, in_strides, out_strides
    cdef const long long* strides[2]
    cdef long long count = 1, results = 1, along = 1
    cdef bint indexed = op == ARGMAX or op == ARGMIN
    cdef int d, k = ndim - __builtin_popcountll(axes), num_kept = k, r = ndim
    cdef Operand[2] copy, packed
    cdef Memory memory
    reduction.entry = entry_of(encoder.state.ordinal, op, dtype)
    set_key(&key, reduction.entry, operands, ndim, shape, axes, finish)
    if replay_described(encoder, &key, operands, 2):
        return 0
    plan = <const ReducePlan*>find_plan(&key)
    if plan != NULL:
        return record_planned(encoder, plan, operands, &key)
    reduction.state_size = state_sizes[op][dtype]
    reduction.finish = finish
    for d in range(ndim - 1, -1, -1):
        if axes >> d & 1:
            r -= 1
            sizes[r] = shape[d]
            in_strides[r] = count if operands[1].strides == NULL else operands[1].strides[d]
            out_strides[r] = along if indexed else 0
            along *= shape[d]
        else:
            k -= 1
            sizes[k] = shape[d]
            in_strides[k] = count if operands[1].strides == NULL else operands[1].strides[d]
            out_strides[k] = results if operands[0].strides == NULL else operands[0].strides[d]
            results *= shape[d]
        count *= shape[d]
    if results == 0:
        return 0
    strides[0], strides[1] = in_strides, out_strides
    simplify(&kept, 2, num_kept, sizes, strides)
    strides[0], strides[1] = in_strides + num_kept, out_strides + num_kept
    simplify(&reduced, 2, ndim - num_kept if along else 0, sizes + num_kept, strides)
    reduction.kept, reduction.reduced, reduction.empty = &kept, &reduced, along == 0
    if record_simplified(encoder, &reduction, operands, &key):
        return 0
    # A kernel cannot take so many reduced dimensions: those of a copy are contiguous, and last.
    memory = allocate_workspace(encoder, count * reduction.entry.itemsizes[1])
    packed[0], packed[1] = operands[0], Operand(<PyObject*>memory, memory.address, NULL, [0, 0])
    packed[0].strides = out_strides
    copy[0], copy[1] = packed[1], operands[1]
    copy[1].strides = in_strides
    record_elementwise(encoder, COPY, type_of_size[reduction.entry.itemsizes[1]], copy, ndim, sizes)
    return record_reduction(encoder, op, dtype, packed, ndim, sizes,
                            ((1ull << (ndim - num_kept)) - 1) << num_kept, finish)
