# cython: cdivision=True
"""Convolutions and their gradients: the launches of conv.cu."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport Entry, entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, VECTOR_BYTES, WARP, Launch, ceiling, multiprocessors_of, power_of_two,
    record_launch, set_geometry,
)
from cyrt.builtin cimport library
from cyrt.builtin.conv_phases cimport (
    ConvPhases, ConvPhaseWeight, choose_phases, record_phases,
)
from cyrt.builtin.convolution cimport BIAS, OTHER, OUT, SOURCE
from cyrt.builtin.library cimport CUDNN, is_served
from cyrt.builtin.library_conv cimport (
    ACTIVATIONS, least, record_library_conv, template_of,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, divider
from cyrt.builtin.window cimport Axis, Sliding, product, reverse, set_windows
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.error_text import show
from cyrt.graph.template cimport Template, touch
from cyrt.runtime.memory cimport Memory

cdef extern from "params/conv.h" nogil:
    enum: CONV_VECTOR_SOURCE, CONV_VECTOR_OTHER, CONV_VECTOR_OUT, CONV_PARTS, CONV_STRIP, CONV_LINES
    enum: CONV_WIDE_LINES, CONV_STRIP_TAPS, CONV_STRIP_ITEMS, CONV_STRIP_BLOCK, ACTIVATION_NONE
    enum: ACTIVATION_RELU

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    LARGE = 0
    SMALL
    PARTS
    DEPTHWISE
    DEPTHWISE_ELEMENTS
    DEPTHWISE_STRIP

cdef enum:
    BLOCK = 256             # threads of depthwise kernels and of sums
    MOST_STEP = 1 << 28     # the largest distance of neighbours: kernels multiply it in 32 bits
    # Tiles. A large one has half as many rows of 8-byte elements; a small one is square.
    LARGE_ROWS = 128
    LARGE_COLUMNS = 64
    SMALL_SIDE = 32
    SMALL_BLOCK = 64        # threads of a small tile
    # Sums that are split into parts. From MANY_PARTS on, SLICES threads add the parts of a sum.
    WAVES = 4               # blocks for each multiprocessor
    PART_DEPTH = 256        # the least depth of a part
    PART_UNIT = 32          # a multiple of every tile's depth
    PART_COST = 64          # multiplications of a sum that take as long as adding a part
    MANY_PARTS = 32
    SLICES = 8
    # In float32, tiles are faster than cuDNN for at most so many taps, and outputs of a dimension.
    MOST_PLAIN_TAPS = 9
    PLAIN_SIDE = 16
    # Depthwise convolutions.
    OUTPUTS = 4             # outputs of a thread
    TAPS = 4                # taps of a block that computes the weight's gradient
    MOST_RESULTS = 4        # the maximum number of results of a channel
    MOST_TAPS = 1024        # the maximum number of taps of a window

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")

# The sizes of the product that an operation computes, in 64 bits; Conv has them in 32.
cdef struct Sizes:
    long long rows, columns, length, groups
    bint depthwise
    int items               # elements of a vector
    int itemsize, sum_size  # bytes of an element, and of an element of a sum
    int multiprocessors

# The sizes in bytes of the kernels' parameters, in their order; the last one is that of all further
# kernels.
PARAM_BYTES = (sizeof(Conv), sizeof(Conv), sizeof(ConvSum), sizeof(Conv), sizeof(Conv),
               sizeof(Conv), sizeof(ConvPhaseWeight), sizeof(ConvPhases))


cdef int activation_code(str name, object activation) except -1:
    cdef int code
    for code in range(len(ACTIVATIONS)):
        if ACTIVATIONS[code] is activation:
            return code
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS.index(activation)
    raise ValueError(f"{name}: activation: expected None or one of "
                     f"{', '.join(map(repr, ACTIVATIONS[1:]))}, got {show(activation)}")


# -- recording -------------------------------------------------------------------------------------


cdef int record_conv(Recorder encoder, ConvPlan* plan, Template template,
                     const Operand* operands) except -1:
    if plan.way == LIBRARY:
        touch(template)
        if record_library_conv(encoder, template, operands):
            return 0
        choose_own(plan, encoder.state.ordinal, operands)   # there is no memory for a workspace
    if plan.way == KERNELS:
        return record_kernels(encoder, &plan.launches.kernels, operands)
    if plan.way == PHASES:
        return record_phases(encoder, &plan.launches.phases, operands)
    return record_halves(encoder, plan, operands) if plan.way == HALVES else 0


cdef int record_kernels(Recorder encoder, Kernels* own, const Operand* operands) except -1:
    """Record one launch, or one into a workspace, and one that adds the parts of each sum."""
    cdef Conv* args = &own.args
    cdef ConvSum* sum = &own.sum
    cdef Operand[4] uses
    cdef Memory workspace
    cdef int i
    args.source, args.other = operands[SOURCE].address, operands[OTHER].address
    if own.workspace == 0:
        args.bias, args.out = operands[BIAS].address, operands[OUT].address
        return record_launch(encoder, &own.launch, args, operands, 4, 1)
    workspace = allocate_workspace(encoder, own.workspace)
    sum.out, sum.bias = operands[OUT].address, operands[BIAS].address
    sum.input = args.out = workspace.address
    for i in range(4):
        uses[i] = operands[i]
    uses[OUT] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])
    record_launch(encoder, &own.launch, args, uses, 3, 1)
    uses[1], uses[2] = uses[OUT], operands[BIAS]
    uses[OUT] = operands[OUT]
    return record_launch(encoder, &own.adding, sum, uses, 3, 1)


cdef int record_halves(Recorder encoder, const ConvPlan* plan, const Operand* operands) except -1:
    """Record two halves of the batch."""
    cdef const Convolution* conv = &plan.conv
    cdef ConvPlan part
    cdef Operand[4] moved
    cdef int i, ordinal = encoder.state.ordinal
    cdef int itemsize = entry_of(ordinal, plan.op, plan.dtype).itemsizes[0]
    cdef long long image = product(conv.sliding.outputs) * conv.results, begin, end
    if plan.op == INPUT_VJP:
        image = product(conv.sliding.sources) * conv.channels
    for begin, end in ((0, conv.batch // 2), (conv.batch // 2, conv.batch)):
        for i in range(4):
            moved[i] = operands[i]
        moved[OUT].address += <unsigned long long>(begin * image * conv.groups * itemsize)
        moved[SOURCE].address += <unsigned long long>(begin * conv.batch_step * itemsize)
        part.conv, part.op, part.dtype = conv[0], plan.op, plan.dtype
        part.conv.batch = end - begin
        record_conv(encoder, &part, choose(&part, ordinal, moved), moved)
    return 0


# -- the choice ------------------------------------------------------------------------------------


cdef Convolution view_of(int op, const Convolution* conv) noexcept:
    """Return the convolution with the windows of the result's positions over the source."""
    cdef Convolution view = conv[0]
    if op == INPUT_VJP:
        view.sliding = reverse(&conv.sliding)
    return view


cdef int set_sizes(Sizes* sizes, int ordinal, int op, int dtype,
                   const Convolution* conv) except -1:
    cdef const Entry* entry = entry_of(ordinal, op, dtype)
    cdef long long taps = product(conv.sliding.taps)
    sizes.items, sizes.itemsize = entry.items, entry.itemsizes[0]
    sizes.sum_size = max(4, sizes.itemsize)
    sizes.multiprocessors = multiprocessors_of(ordinal)
    sizes.groups = conv.groups
    sizes.columns = conv.results
    sizes.rows = conv.batch * product(conv.sliding.outputs)
    sizes.length = taps * conv.channels
    sizes.depthwise = conv.channels == 1 and taps <= MOST_TAPS \
        and 0 < conv.results <= (1 if op == INPUT_VJP else MOST_RESULTS)
    if op == INPUT_VJP:
        sizes.rows = conv.batch * product(conv.sliding.sources)
        sizes.columns, sizes.length = conv.channels, taps * conv.results
    elif op == WEIGHT_VJP:
        sizes.rows, sizes.length = sizes.length, sizes.rows
    return 0


cdef Template choose(ConvPlan* plan, int ordinal, const Operand* operands):
    cdef Sizes sizes
    cdef const Convolution* conv = &plan.conv
    cdef Convolution view = view_of(plan.op, conv)
    cdef Template template = None
    set_sizes(&sizes, ordinal, plan.op, plan.dtype, conv)
    if sizes.rows == 0 or sizes.columns == 0 or sizes.groups == 0:
        plan.way = NOTHING
    elif plan.op != WEIGHT_VJP and view.sliding.spacing[0] > 1 and choose_phases(
            &plan.launches.phases, ordinal, plan.op, plan.dtype, operands[SOURCE].address, &view):
        plan.way = PHASES
    else:
        if sizes.itemsize <= 4 and not has_strips(&sizes, plan.op, operands, conv, &view) \
                and <double>sizes.rows * sizes.length * sizes.columns * sizes.groups >= least \
                and is_served(CUDNN, ordinal) \
                and not outdoes_library(&sizes, plan.op, operands, &view):
            template = template_of(ordinal, plan.op, plan.dtype, operands, conv)
        if template is None:
            choose_own(plan, ordinal, operands)
        else:
            plan.way, plan.template = LIBRARY, <PyObject*>template
    return template


cdef int choose_own(ConvPlan* plan, int ordinal, const Operand* operands) except -1:
    """Choose cyrt's own kernels."""
    cdef Sizes sizes
    cdef Kernels* own = &plan.launches.kernels
    cdef Conv* args = &own.args
    cdef Launch* launch = &own.launch
    cdef int op = plan.op
    cdef const Convolution* conv = &plan.conv
    cdef Convolution view = view_of(op, conv)
    cdef long long channels = conv.results if op == INPUT_VJP else conv.channels, parts
    cdef bint strips
    set_sizes(&sizes, ordinal, op, plan.dtype, conv)
    if op != WEIGHT_VJP and sizes.rows > MAX_NUMERATOR and conv.batch > 1:
        plan.way = HALVES
        return 0
    if max(sizes.rows, sizes.length) > MAX_NUMERATOR \
            or sizes.columns * sizes.groups > MAX_NUMERATOR:
        raise ValueError(f"conv: more than {<long long>MAX_NUMERATOR:,} outputs of an image, "
                         f"channels, or elements of a filter are not supported: "
                         f"{sizes.rows:,} by {sizes.length:,} by {sizes.columns:,} in "
                         f"{sizes.groups:,} groups")
    strips = has_strips(&sizes, op, operands, conv, &view)
    launch.entry = entry_of(ordinal, op, plan.dtype)
    memset(args, 0, sizeof(Conv))
    set_windows(&args.windows, &view.sliding, conv.batch_step, conv.steps)
    args.other_step, args.bias_step = conv.other_step, conv.bias_step
    args.other_group = conv.results * (1 if op == WEIGHT_VJP else conv.other_step)
    args.activation = conv.activation
    args.channels = divider(<unsigned int>max(1, channels))
    args.flags = flags_of(&sizes, op, operands, &view, channels)
    if sizes.depthwise:
        # One group of all channels.
        sizes.columns *= sizes.groups
        sizes.groups = 1
        args.channels = divider(<unsigned int>conv.results)
        parts = choose_strips(&sizes, args, launch, conv.batch) if strips \
            else choose_depthwise(&sizes, op, args, launch, conv.results)
        if op == INPUT_VJP:
            launch.entry = entry_of(ordinal, CONV, plan.dtype)
    else:
        parts = choose_tiles(&sizes, op, args, launch)
    args.rows, args.columns = <unsigned int>sizes.rows, <unsigned int>sizes.columns
    args.length, args.out_step = <unsigned int>sizes.length, sizes.columns * sizes.groups
    if not strips:
        args.groups = divider(<unsigned int>sizes.groups)
    plan.way, own.workspace = KERNELS, 0
    if op == WEIGHT_VJP or parts > 1:
        choose_sum(own, ordinal, op, plan.dtype, &sizes, parts)
    return 0


cdef int choose_sum(Kernels* own, int ordinal, int op, int dtype, const Sizes* sizes,
                    long long parts) except -1:
    """Choose the launch that adds the parts of each sum."""
    cdef Conv* args = &own.args
    cdef ConvSum* sum = &own.sum
    cdef long long count = sizes.rows * sizes.columns * sizes.groups
    cdef unsigned int slices = SLICES if parts >= MANY_PARTS else 1
    if count > MAX_NUMERATOR:
        raise ValueError(f"conv: a gradient of more than {<long long>MAX_NUMERATOR:,} elements is "
                         f"not supported, got {count:,}")
    own.workspace = parts * count * sizes.sum_size
    args.flags = (args.flags & ~CONV_VECTOR_OUT) | CONV_PARTS
    if sizes.columns % sizes.items == 0:
        args.flags |= CONV_VECTOR_OUT
    memset(sum, 0, sizeof(ConvSum))
    sum.bias_step, sum.activation = args.bias_step, args.activation
    sum.rows, sum.columns = (divider(<unsigned int>sizes.rows),
                             divider(<unsigned int>sizes.columns))
    sum.n, sum.count = <unsigned int>count, <unsigned int>parts
    if op == WEIGHT_VJP:
        # A column is a row of the weight.
        sum.row_step, sum.column_step = 1, sizes.rows
        sum.group_step = sizes.rows * sizes.columns
    else:
        sum.row_step, sum.column_step = sizes.columns * sizes.groups, 1
        sum.group_step = sizes.columns
    own.adding.entry, own.adding.variant = entry_of(ordinal, op, dtype), PARTS
    set_geometry(&own.adding.geometry, ceiling(count, BLOCK // slices), BLOCK // slices, slices)
    return 0


# -- layout ----------------------------------------------------------------------------------------


cdef unsigned int flags_of(const Sizes* sizes, int op, const Operand* operands,
                           const Convolution* view, long long channels) noexcept:
    """Return which operands are read and written in vectors."""
    cdef unsigned long long strides = view.batch_step if view.batch > 1 else 0
    cdef long long row = sizes.columns if op != CONV else sizes.length
    cdef unsigned int flags = 0
    cdef int d
    for d in range(view.sliding.ndim):
        if view.sliding.sources[d] > 1:
            strides |= view.steps[d]
    strides |= channels * (sizes.groups if sizes.depthwise else 1)
    if (strides * sizes.itemsize | operands[SOURCE].address) % VECTOR_BYTES == 0:
        flags |= CONV_VECTOR_SOURCE
    if sizes.depthwise and op == WEIGHT_VJP:
        row *= sizes.groups
    if ((row | view.other_step) * sizes.itemsize | operands[OTHER].address) % VECTOR_BYTES == 0:
        flags |= CONV_VECTOR_OTHER
    row = sizes.columns * (sizes.groups if sizes.depthwise else 1)
    if (row * sizes.itemsize | operands[OUT].address) % VECTOR_BYTES == 0:
        flags |= CONV_VECTOR_OUT
    return flags


cdef long long choose_tiles(Sizes* sizes, int op, Conv* args, Launch* launch) except -1:
    """Choose the tiles' size and the parts of the sums, and return the number of parts."""
    cdef long long m = LARGE_ROWS if sizes.itemsize <= 4 else LARGE_ROWS // 2
    cdef long long n = LARGE_COLUMNS, tiles, parts
    tiles = ceiling(sizes.rows, m) * ceiling(sizes.columns, n) * sizes.groups
    launch.variant = LARGE
    if sizes.columns <= SMALL_SIDE or sizes.rows <= m // 2 \
            or (op != WEIGHT_VJP and tiles < sizes.multiprocessors * 3 // 4):
        launch.variant = SMALL
        m = n = SMALL_SIDE
        tiles = ceiling(sizes.rows, m) * ceiling(sizes.columns, n) * sizes.groups
    parts = max(1, min(WAVES * sizes.multiprocessors // tiles, sizes.length // PART_DEPTH))
    if op != WEIGHT_VJP and tiles >= sizes.multiprocessors:
        parts = balance(sizes, tiles, parts) if launch.variant == LARGE else 1
    args.depth = <unsigned int>(max(1, ceiling(ceiling(sizes.length, parts), PART_UNIT))
                                * PART_UNIT)
    parts = max(1, ceiling(sizes.length, args.depth))
    if tiles * parts > MAX_BLOCKS:
        raise ValueError(f"conv: more than {<long long>MAX_BLOCKS:,} tiles are not supported, "
                         f"got {tiles:,}")
    args.tiles_m = divider(<unsigned int>ceiling(sizes.rows, m))
    args.tiles_n = divider(<unsigned int>ceiling(sizes.columns, n))
    set_geometry(&launch.geometry, tiles * parts,
                 SMALL_BLOCK if launch.variant == SMALL else m, 1)
    return parts


cdef long long balance(const Sizes* sizes, long long tiles, long long most) noexcept:
    """Return the number of parts, at most `most`, with which the multiprocessors' work is most
    equal: each gets whole parts of tiles, and adding a part costs as much as PART_COST
    multiplications of a sum."""
    cdef double took, shortest = 0
    cdef long long parts, best = 1
    for parts in range(1, most + 1):
        took = <double>ceiling(tiles * parts, sizes.multiprocessors) / parts
        if parts > 1:
            took += <double>tiles / sizes.multiprocessors * parts * PART_COST / sizes.length
        if parts == 1 or took < shortest:
            shortest, best = took, parts
    return best


cdef bint has_strips(const Sizes* sizes, int op, const Operand* operands, const Convolution* conv,
                     const Convolution* view) noexcept:
    """Return whether threads can take strips of outputs: one channel and one result a group, small
    windows that move by one element in two dimensions, and whole, aligned vectors."""
    cdef const Sliding* s = &view.sliding
    cdef unsigned long long strides
    cdef int d
    if conv.channels != 1 or conv.results != 1 or op == WEIGHT_VJP or s.ndim != 2 \
            or (conv.activation != ACTIVATION_NONE and conv.activation != ACTIVATION_RELU):
        return False
    for d in range(2):
        if s.taps[d] != CONV_STRIP_TAPS or s.stride[d] != 1 or s.spacing[d] != 1 \
                or abs(s.step[d]) != 1 or s.step[d] != s.step[0]:
            return False
    if conv.other_step != CONV_STRIP_TAPS * CONV_STRIP_TAPS \
            or sizes.rows * ceiling(sizes.groups, strip_items(sizes)) > MAX_NUMERATOR:
        return False
    if view.steps[1] >= MOST_STEP:
        return False
    strides = view.batch_step | view.steps[0] | view.steps[1] | sizes.groups
    return (strides * sizes.itemsize | operands[SOURCE].address | operands[OTHER].address
            | operands[OUT].address) % (strip_items(sizes) * sizes.itemsize) == 0


cdef inline int strip_items(const Sizes* sizes) noexcept:
    """Return the channels of a thread that takes strips."""
    return min(<int>CONV_STRIP_ITEMS, sizes.items)


cdef bint outdoes_library(const Sizes* sizes, int op, const Operand* operands,
                          const Convolution* view) noexcept:
    """Return whether large tiles of float32 are faster than cuDNN's plans. In measurements they
    were, with tiles for every multiprocessor, in whole, aligned vectors, if the plans neither round
    to TF32 nor transform images (which they do not for one tap, windows that do not overlap, and
    small images)."""
    cdef const Sliding* s = &view.sliding
    cdef unsigned long long strides = view.batch_step | view.channels | view.results
    cdef long long taps = product(s.taps)
    cdef bint small = True, apart = False
    cdef int d
    if sizes.itemsize != 4 or library.tf32 or op == WEIGHT_VJP or sizes.groups != 1 \
            or taps > MOST_PLAIN_TAPS or sizes.columns <= SMALL_SIDE \
            or ceiling(sizes.rows, LARGE_ROWS) * ceiling(sizes.columns, LARGE_COLUMNS) \
            < sizes.multiprocessors:
        return False
    for d in range(s.ndim):
        if s.spacing[d] != 1:
            return False
        apart |= s.stride[d] > 1
        small &= s.outputs[d] <= PLAIN_SIDE
        strides |= view.steps[d]
    return (taps == 1 or apart or small) and (strides * sizes.itemsize | operands[SOURCE].address
        | operands[OTHER].address | operands[OUT].address) % VECTOR_BYTES == 0


cdef long long choose_strips(const Sizes* sizes, Conv* args, Launch* launch,
                             long long batch) except -1:
    """Choose blocks, and return the number of parts."""
    cdef const Axis* axes = args.windows.axis
    cdef long long vectors = ceiling(sizes.columns, strip_items(sizes))
    cdef long long strips = ceiling(axes[1].outputs.size, CONV_STRIP)
    cdef long long lines = ceiling(axes[0].outputs.size,
                                   CONV_WIDE_LINES if sizes.itemsize > 2 else CONV_LINES)
    args.tiles_n, args.tiles_m = divider(<unsigned int>vectors), divider(<unsigned int>strips)
    args.groups = divider(<unsigned int>lines)
    args.depth = <unsigned int>batch
    launch.variant = DEPTHWISE_STRIP
    set_geometry(&launch.geometry, ceiling(vectors * strips * lines * batch, CONV_STRIP_BLOCK),
                 CONV_STRIP_BLOCK, 1)
    return 1


cdef long long choose_depthwise(Sizes* sizes, int op, Conv* args, Launch* launch,
                                long long results) except -1:
    """Choose threads and blocks, and return the number of parts."""
    cdef unsigned int needed = CONV_VECTOR_SOURCE | CONV_VECTOR_OUT
    cdef unsigned int x, y
    cdef long long items = 1, blocks, parts = 1
    if op == WEIGHT_VJP:
        needed = CONV_VECTOR_SOURCE | CONV_VECTOR_OTHER
    launch.variant = DEPTHWISE_ELEMENTS
    if results == 1 and args.flags & needed == needed:
        launch.variant = DEPTHWISE
        items = sizes.items
    x = power_of_two(ceiling(sizes.columns, items), 1, WARP)
    y = BLOCK // x
    args.tiles_n = divider(<unsigned int>ceiling(sizes.columns, x * items))
    if op == WEIGHT_VJP:
        args.tiles_m = divider(<unsigned int>ceiling(sizes.rows, TAPS))
        blocks = <long long>args.tiles_n.size * args.tiles_m.size
        parts = max(1, min(WAVES * sizes.multiprocessors // blocks,
                           sizes.length // (OUTPUTS * y)))
        args.depth = <unsigned int>max(1, ceiling(sizes.length, parts))
        parts = max(1, ceiling(sizes.length, args.depth))
        blocks *= parts
    else:
        # Blocks of fewer outputs where the device would be idle.
        while y > max(1, WARP // x) and args.tiles_n.size * ceiling(sizes.rows, y * OUTPUTS) \
                < sizes.multiprocessors:
            y //= 2
        blocks = args.tiles_n.size * ceiling(sizes.rows, y * OUTPUTS)
    if blocks > MAX_BLOCKS:
        raise ValueError(f"conv: more than {<long long>MAX_BLOCKS:,} blocks are not supported, "
                         f"got {blocks:,}")
    set_geometry(&launch.geometry, blocks, x, y)
    return parts
