# cython: cdivision=True
"""Discrete Fourier transforms along an axis: the launches of fft.cu.

A direct transform of N1 * N2 * ... points takes a launch for each factor. With three of them, the
index of a point is n1 * (N2 * N3) + n2 * N3 + n3, and that of a result k1 + N1 * k2 + N1 * N2 * k3.
The first launch transforms over n1, the second one over n2, the last one over n3 (Bailey, "FFTs in
external or hierarchical memory", 1990).
"""

import functools

from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from cyrt.builtin import fft_tables
from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    WARP, WHOLE, Launch, ceiling, describe, multiprocessors_of, num_replayed, record_launch,
    replay_described, set_geometry,
)
from cyrt.builtin.space cimport MAX_NDIM, MAX_NUMERATOR, Divider, Outer2, Space, divider, simplify
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.dtypes import DTYPES
from cyrt.graph.exact_key cimport Key, add_word, add_words, begin_key, find_plan, store_plan
from cyrt.runtime.device cimport contexts
from cyrt.runtime.memory cimport Buffer, Memory
from cyrt.runtime.module cimport LoadedFunction, allow_smem

cdef extern from "params/fft.h" nogil:
    enum: FFT_BLOCK, FFT_ITEMS, FFT_LONGEST, FFT_PASSES, FFT_CONJUGATE_IN, FFT_CONJUGATE_OUT
    enum: FFT_LINES_IN, FFT_LINES_OUT, FFT_PACKED_IN, FFT_PACKED_OUT
    unsigned int FFT_PADDED(unsigned int i, int itemsize)
    cdef struct FftPass:
        unsigned int radix
        Divider butterflies, done
    cdef struct FftSide:
        long long point, sub
        unsigned int step, valid
    cdef struct Fft:
        unsigned long long input, out, roots, in_table, out_table, half, high, low
        double scale
        FftSide source "from"
        FftSide to
        Outer2 outer
        Divider subs, tile
        unsigned int lines, n, pitch, length, num_outer, passes, flags, low_bits, twist
        FftPass[FFT_PASSES] passing "pass"

cdef enum:
    LAUNCHES = 6            # the most launches of a transform: a convolution is two of three
    ALL = 0xffffffff        # all indices are valid
    SIDE_BYTES = 128        # bytes of adjacent lines that a block transforms together
    SECTOR_BYTES = 32       # the fewest
    THREADS = 256           # threads of a block of short lines
    RESIDENT = 1024         # threads that a multiprocessor runs at once
    SIMPLE = 1              # the kernel for lines whose points are complex numbers in memory

# The memory that a launch reads or writes.
cdef enum Storage:
    INPUT, OUTPUT, FIRST, SECOND, SPECTRUM
    STORAGES

# One launch: `params` has offsets into the tables, and no addresses of operands.
cdef struct FftLaunch:
    Launch launch
    Fft params
    int source, target      # Places

cdef struct FftPlan:
    int count
    PyObject* tables        # a Buffer, which the plan's entry holds
    long long[STORAGES] nbytes      # the workspaces' bytes
    FftLaunch[LAUNCHES] launches

cdef int FFT = op_code("fft")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Fft),)


cdef int record_fft(Recorder encoder, int dtype, const Operand* operands, int ndim,
                    const long long* shape, const Transform* transform) except -1:
    cdef Key key
    cdef FftPlan plan
    cdef const FftPlan* known
    cdef Operand[3] used
    cdef object tables
    cdef Launch launch
    cdef const unsigned long long* scale = <const unsigned long long*>&transform.scale
    launch.entry = entry_of(encoder.state.ordinal, FFT, dtype)
    launch.variant = 0
    begin_key(&key, launch.entry, <unsigned long long>transform.axis << 32 | ndim << 8
              | (operands[1].buffer == operands[0].buffer) << 7
              | transform.kind << 3 | transform.half << 2 | transform.inverse << 1
              | (operands[1].strides != NULL))
    add_word(&key, transform.n)
    add_word(&key, transform.inputs << 32 | transform.outputs)
    add_word(&key, scale[0])
    add_words(&key, shape, ndim)
    if operands[1].strides != NULL:
        add_words(&key, operands[1].strides, ndim)
    # A function that is explained has no memory for tables that others could use.
    known = <const FftPlan*>find_plan(&key) if encoder.listed is None else NULL
    if known != NULL and known.count == 1:
        used[0], used[1] = operands[0], operands[1]
        set_storage(&used[2], <Memory>known.tables)
        if replay_described(encoder, &key, used, 3):
            return 0
    if known != NULL:
        memcpy(&plan, known, size_of_plan(known.count))
        tables = <object>plan.tables
    else:
        tables = make_plan(encoder, &plan, &launch, dtype, operands, ndim, shape, transform)
        if encoder.listed is None:
            store_plan(&key, &plan, size_of_plan(plan.count), tables)
    return record_plan(encoder, &plan, <Buffer>tables, operands, &key)


cdef inline size_t size_of_plan(int count) noexcept:
    return sizeof(FftPlan) - (LAUNCHES - count) * sizeof(FftLaunch)


# -- recording a plan ------------------------------------------------------------------------------


cdef int record_plan(Recorder encoder, FftPlan* plan, Buffer tables, const Operand* operands,
                     Key* key) except -1:
    cdef Operand[STORAGES] storages
    cdef Operand[3] used
    cdef Memory first = None, second = None, spectrum = None
    cdef FftLaunch* each
    cdef int i, replayed = num_replayed(encoder)
    memset(storages, 0, sizeof(storages))
    storages[<int>INPUT], storages[<int>OUTPUT] = operands[1], operands[0]
    if plan.nbytes[<int>FIRST]:
        first = allocate_workspace(encoder, plan.nbytes[<int>FIRST])
        set_storage(&storages[<int>FIRST], first)
    if plan.nbytes[<int>SECOND]:
        second = allocate_workspace(encoder, plan.nbytes[<int>SECOND])
        set_storage(&storages[<int>SECOND], second)
    if plan.nbytes[<int>SPECTRUM]:
        spectrum = allocate_workspace(encoder, plan.nbytes[<int>SPECTRUM])
        set_storage(&storages[<int>SPECTRUM], spectrum)
    set_storage(&used[2], tables)
    for i in range(plan.count):
        each = &plan.launches[i]
        used[0], used[1] = storages[each.target], storages[each.source]
        each.params.out, each.params.input = used[0].address, used[1].address
        record_launch(encoder, &each.launch, &each.params, used, 3,
                      1 if used[0].buffer == used[1].buffer else 1 | WHOLE)
    if plan.count == 1:
        describe(encoder, replayed, key, used, 3, &plan.launches[0].launch)
    return 0


cdef inline void set_storage(Operand* storage, Memory memory) noexcept:
    storage.buffer, storage.address, storage.strides = <PyObject*>memory, memory.address, NULL


# -- making a plan ---------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _shared_tables(int ordinal, unsigned int epoch, int dtype, n, longest, packed):
    """Return the tables of a transform, and a Buffer with their bytes on the device; `epoch` is
    that of the device's context."""
    return tables_on(ordinal, dtype, n, longest, packed)


cdef tuple tables_on(int ordinal, int dtype, n, longest, packed):
    tables = fft_tables.tables(n, longest, DTYPES[dtype].name, packed)
    buffer = Buffer(tables.data.nbytes, ordinal)
    buffer.copy_from(tables.data)
    return tables, buffer


cdef void find_lines(Lines* lines, const Operand* operands, int ndim, const long long* shape,
                     const Transform* transform, int rank) noexcept:
    cdef long long[MAX_NDIM] sizes, ins, outs
    cdef const long long* strides[2]
    cdef long long step, ins_below = 1, outs_below = 1
    cdef int d, outer = ndim - rank
    lines.count = 1
    for d in range(ndim - 1, -1, -1):
        step = ins_below if operands[1].strides == NULL else operands[1].strides[d]
        if d == transform.axis:
            lines.in_step, lines.out_step = step, outs_below
        elif not transform.axis - rank < d < transform.axis:
            outer -= 1
            sizes[outer], ins[outer], outs[outer] = shape[d], step, outs_below
            lines.count *= shape[d]
        ins_below *= shape[d]
        outs_below *= transform.outputs if d == transform.axis else shape[d]
    strides[0], strides[1] = outs, ins
    simplify(&lines.space, 2, ndim - rank, sizes, strides)


cdef object make_plan(Recorder encoder, FftPlan* plan, const Launch* launch, int dtype,
                      const Operand* operands, int ndim, const long long* shape,
                      const Transform* transform):
    """Set the launches of a transform; return the Buffer of their tables."""
    cdef LoadedFunction function = <LoadedFunction>launch.entry.functions[0]
    cdef int ordinal = encoder.state.ordinal, itemsize = launch.entry.itemsizes[0], d
    cdef long long longest, limit = function.limits.smem - function.static_smem
    cdef Lines lines
    cdef FftLaunch* last
    cdef bint convolved, packed
    memset(plan, 0, sizeof(FftPlan))
    find_lines(&lines, operands, ndim, shape, transform, 1)
    longest = FFT_LONGEST
    while (FFT_PADDED(<unsigned int>longest, itemsize) + 1) * itemsize > limit:
        longest //= 2
    packed = transform.half and fft_tables.is_packed(transform.n, longest)
    points = transform.n // 2 if packed else transform.n
    if encoder.listed is None:
        tables, buffer = _shared_tables(ordinal, contexts[ordinal].epoch, dtype, points, longest,
                                        packed)
    else:
        tables, buffer = tables_on(ordinal, dtype, points, longest, packed)
    plan.tables = <PyObject*>buffer
    convolved = tables.points != points

    if convolved:
        plan.nbytes[<int>SPECTRUM] = lines.count * tables.points * itemsize
        add_launches(plan, launch, <Buffer>buffer, tables, &lines.space, INPUT, SPECTRUM,
                     lines.in_step, 1)
        add_launches(plan, launch, <Buffer>buffer, tables, &lines.space, SPECTRUM, OUTPUT, 1,
                     lines.out_step)
        last = &plan.launches[plan.count // 2 - 1]
        plan.launches[0].params.in_table = (<Buffer>buffer).address + <size_t>tables.chirp
        last.params.out_table = (<Buffer>buffer).address + <size_t>tables.spectrum
        last.params.flags |= FFT_CONJUGATE_OUT
    else:
        add_launches(plan, launch, <Buffer>buffer, tables, &lines.space, INPUT, OUTPUT,
                     lines.in_step, lines.out_step)
    # The second transform of a convolution is an inverse one: its result is the conjugate of a
    # forward transform's, and so the table has conjugates.
    last = &plan.launches[plan.count - 1]
    if convolved:
        last.params.out_table = (<Buffer>buffer).address + <size_t>tables.conjugate
    if packed:
        pack_launch(&last.params, <Buffer>buffer, tables, transform, lines.in_step,
                    lines.out_step)
    else:
        if convolved != transform.inverse:
            last.params.flags |= FFT_CONJUGATE_OUT
        if transform.inverse:
            plan.launches[0].params.flags |= FFT_CONJUGATE_IN
        last.params.to.valid = <unsigned int>transform.outputs
    plan.launches[0].params.flags |= transform.kind & (FFT_REAL_IN | FFT_HERMITIAN)
    plan.launches[0].params.source.valid = <unsigned int>min(transform.n, transform.inputs)
    last.params.flags |= transform.kind & FFT_REAL_OUT
    last.params.scale = transform.scale
    # Those who load the mirrored half of a spectrum count from the end of the transform.
    plan.launches[0].params.length = <unsigned int>transform.n
    if plan.count > 1 and len(tables.lines) > 1:
        plan.nbytes[<int>FIRST] = lines.count * tables.points * itemsize
    if len(tables.lines) > 2:
        plan.nbytes[<int>SECOND] = plan.nbytes[<int>FIRST]
    for d in range(plan.count):
        choose_blocks(ordinal, &plan.launches[d], itemsize, limit)
    return buffer


cdef int pack_launch(Fft* params, Buffer buffer, tables, const Transform* transform,
                     long long in_step, long long out_step) except -1:
    """Make pairs of real numbers the points of a launch. From half a spectrum the kernel computes
    an inverse transform, so that for a forward one it conjugates the spectrum."""
    params.half = buffer.address + <size_t>tables.half
    if transform.kind & FFT_HERMITIAN:
        params.to.point, params.to.sub = 2 * out_step, out_step
        params.flags |= FFT_PACKED_OUT | FFT_CONJUGATE_OUT
        if not transform.inverse:
            params.flags |= FFT_CONJUGATE_IN
    else:
        params.source.point, params.source.sub = 2 * in_step, in_step
        params.to.valid = <unsigned int>transform.outputs
        params.flags |= FFT_PACKED_IN
        if transform.inverse:
            params.flags |= FFT_CONJUGATE_OUT
    return 0


cdef int add_launches(FftPlan* plan, const Launch* launch, Buffer buffer, tables,
                      const Space* space, int source, int target, long long in_step,
                      long long out_step) except -1:
    """Add the launches of a direct transform. Steps are elements between its points."""
    cdef FftLaunch* each
    cdef Fft* params
    cdef int launches = len(tables.lines), i
    cdef long long points = tables.points, n, before = 1, after = points
    for i in range(launches):
        n = tables.lines[i]
        after //= n
        each = &plan.launches[plan.count]
        plan.count += 1
        each.launch = launch[0]
        each.source = source if i == 0 else FIRST if i == 1 else SECOND
        each.target = target if i == launches - 1 else FIRST if i == 0 else SECOND
        params = &each.params
        params.n, params.length = <unsigned int>n, <unsigned int>points
        params.scale = 1
        params.roots = buffer.address + <size_t>tables.roots[i]
        set_passes(params, n)
        params.source.valid = params.to.valid = ALL
        if i == 0:
            # Lines are columns, unless there is one line.
            params.subs = divider(<unsigned int>after)
            params.source.sub, params.source.point = in_step, in_step * after
            params.source.step = <unsigned int>after
        elif i == launches - 1:
            params.subs = divider(<unsigned int>before)
            params.source.sub, params.source.point = n, 1
        else:
            params.subs = divider(<unsigned int>after)
            params.source.sub, params.source.point = 1, after
        if i == launches - 1:
            params.to.sub, params.to.point = out_step, out_step * before
            params.to.step = <unsigned int>before
        else:
            params.to.sub, params.to.point = 1, after * before
            params.high = buffer.address + <size_t>tables.high
            params.low = buffer.address + <size_t>tables.low
            params.low_bits, params.twist = tables.low_bits, <unsigned int>before
        set_outer(params, space, points, each.source, each.target,
                  before if 0 < i < launches - 1 else 1, n * after, after)
        before *= n
    return 0


cdef int set_outer(Fft* params, const Space* space, long long points, int source, int target,
                   long long between, long long in_step, long long out_step) except -1:
    """Set the transforms: in workspaces they lie one after the other. `between` are the lines that
    a launch before this one has made of each, with their steps."""
    cdef long long lines = params.subs.size, packed = points
    cdef int d, k = 0
    if between > 1:
        params.outer.dims[0] = divider(<unsigned int>between)
        params.outer.strides[0][0], params.outer.strides[0][1] = out_step, in_step
        lines *= between
        k = 1
    for d in range(space.ndim):
        params.outer.dims[k] = divider(<unsigned int>space.shape[d])
        params.outer.strides[k][0] = space.strides[d][0] if target == OUTPUT else packed
        params.outer.strides[k][1] = space.strides[d][1] if source == INPUT else packed
        packed *= space.shape[d]
        lines *= space.shape[d]
        k += 1
        if lines > MAX_NUMERATOR:
            raise ValueError(f"fft: more than {<long long>MAX_NUMERATOR:,} lines are not provided "
                             f"for, got {lines:,} or more of {params.n} points")
    params.num_outer, params.lines = k, <unsigned int>lines
    return 0


cdef int set_passes(Fft* params, long long n) except -1:
    cdef FftPass* each
    cdef unsigned int done = 1
    cdef tuple radices = fft_tables.radices(n)
    params.passes = len(radices)
    params.pitch = 0
    for i, radix in enumerate(radices):
        each = &params.passing[<int>i]
        each.radix = radix
        each.butterflies = divider(<unsigned int>(n // radix))
        each.done = divider(done)
        done *= each.radix
    return 0


cdef inline long long threads_of(const Fft* params, long long lines) noexcept:
    """Return the fewest threads that hold so many lines in each pass."""
    cdef long long most = 0
    cdef int i
    for i in range(<int>params.passes):
        most = max(most, ceiling(lines * params.passing[i].butterflies.size,
                                 FFT_ITEMS // params.passing[i].radix))
    return ceiling(most, WARP) * WARP


cdef inline long long busy_threads(const Fft* params, long long lines) noexcept:
    """Return the threads that have a butterfly each in every pass, at most those of a block."""
    cdef long long most = 0
    cdef int i
    for i in range(<int>params.passes):
        most = max(most, lines * params.passing[i].butterflies.size)
    return min(ceiling(most, WARP) * WARP, FFT_BLOCK)


cdef inline long long shared_bytes(const Fft* params, long long lines, int itemsize) noexcept:
    if params.passes == 1 and not params.flags & FFT_PACKED_IN:
        return 0
    return lines * params.pitch * itemsize


cdef int choose_blocks(int ordinal, FftLaunch* each, int itemsize, long long limit) except -1:
    """Choose the lines of a block, and which lines and points adjacent threads take."""
    cdef Fft* params = &each.params
    cdef long long tile = 1, wanted, blocks, threads, fill = multiprocessors_of(ordinal)
    cdef bint columns_in, columns_out
    params.pitch = FFT_PADDED(params.n, itemsize) | 1
    columns_in = are_columns(params, &params.source, 1)
    columns_out = are_columns(params, &params.to, 0)
    params.flags |= FFT_LINES_IN * columns_in | FFT_LINES_OUT * columns_out
    each.launch.variant = SIMPLE if is_simple(params) else 0
    wanted = SIDE_BYTES // itemsize if columns_in or columns_out else 1
    while tile < params.lines and threads_of(params, 2 * tile) <= FFT_BLOCK \
            and shared_bytes(params, 2 * tile, itemsize) <= limit:
        if tile * itemsize >= SECTOR_BYTES or wanted == 1:
            if ceiling(params.lines, 2 * tile) < fill:
                break
        if tile >= wanted and threads_of(params, 2 * tile) > THREADS:
            break
        tile *= 2
    params.tile = divider(<unsigned int>tile)
    blocks = ceiling(params.lines, tile)
    threads = ceiling(ceiling(fill * RESIDENT, blocks), WARP) * WARP
    threads = max(threads_of(params, tile), min(threads, busy_threads(params, tile)))
    set_geometry(&each.launch.geometry, blocks, <unsigned int>threads, 1)
    each.launch.geometry.smem = <unsigned int>shared_bytes(params, tile, itemsize)
    allow_smem(<LoadedFunction>each.launch.entry.functions[each.launch.variant],
               each.launch.geometry.smem)
    return 0


cdef inline bint is_simple(const Fft* params) noexcept:
    """Return whether the points are all complex numbers in memory, without tables."""
    return not (params.flags & (FFT_REAL_IN | FFT_REAL_OUT | FFT_HERMITIAN | FFT_PACKED_IN
                                | FFT_PACKED_OUT)
                or params.in_table or params.out_table or params.high
                or params.source.valid < params.length or params.to.valid < params.length)


cdef inline bint are_columns(const Fft* params, const FftSide* side, int operand) noexcept:
    """Return whether lines are nearer to each other in memory than points of a line."""
    cdef long long step = side.sub
    if params.subs.size == 1:
        if params.num_outer == 0:
            return False
        step = params.outer.strides[0][operand]
    return abs(step) < abs(side.point)
