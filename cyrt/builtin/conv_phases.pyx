# cython: cdivision=True
# C-level functions only: see conv_phases.pxd.
"""Convolutions of a source whose elements are a stride apart, to few channels."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin cimport library
from cyrt.builtin.convolution cimport BIAS, OTHER, OUT, SOURCE
from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, VECTOR_BYTES, Launch, ceiling, multiprocessors_of, record_launch, set_geometry,
)
from cyrt.builtin.library cimport CUDNN, is_served
from cyrt.builtin.row_grid cimport fits
from cyrt.builtin.space cimport MAX_NUMERATOR, divider
from cyrt.builtin.window cimport Sliding
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.runtime.memory cimport Memory

cdef extern from "params/conv.h" nogil:
    enum: PHASE_COLUMNS, PHASE_STRIPS, PHASE_VECTORS, PHASE_STAGES, PHASE_BLOCK
    enum: PHASE_BLOCK_MULTIPLY_ADD, PHASE_SUMS, PHASE_LINES, PHASE_LINES_OF_MOST

# Kernels of conv, in the order of Row.kernels.
cdef enum Variant:
    WEIGHT = 6
    TENSOR                  # 8 sums of a position, and then 16
    MULTIPLY_ADD = 9        # 4, 8, 12 and 16

cdef enum:
    BLOCK = 256
    SPREAD = 5              # multiprocessors for each tile, at most: else other kernels are faster
    MOST_STRIDE = 4
    MOST_TAPS = 32          # the maximum number of taps of a position's window in a dimension

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")


cdef inline long long floor_quotient(long long n, long long divisor) noexcept:
    """Return the quotient rounded towards minus infinity; `//` is C's division in this file."""
    return n // divisor if n >= 0 else -ceiling(-n, divisor)


cdef bint set_phases(ConvPhases* args, ConvPhaseWeight* weight, const Sliding* s) noexcept:
    """Set the windows of positions in two dimensions; return whether they are phases' windows.

    Output p and the source's element e meet at tap p + origin - stride * e of the filter. For
    position i, p is stride * i + phase - shift, so that e - i lies between two numbers, for all
    phases and taps. The shift is the one for which these numbers are nearest to each other."""
    cdef long long stride = s.spacing[0], origin, low, high
    cdef unsigned int shift
    cdef int d
    if s.ndim != 2 or s.spacing[1] != stride or not 1 < stride <= MOST_STRIDE:
        return False
    weight.stride = args.stride = <unsigned int>stride
    weight.backwards = s.step[0] > 0 if s.taps[0] > 1 else s.step[1] > 0
    for d in range(2):
        if s.stride[d] != 1 or (s.taps[d] > 1 and s.step[d] != (1 if weight.backwards else -1)):
            return False
        args.taps[d] = 0
        for shift in range(<unsigned int>stride):
            origin = s.origin[d] - shift
            if weight.backwards:
                origin += s.taps[d] - 1
            low = -floor_quotient(s.taps[d] - 1 - origin, stride)
            high = floor_quotient(origin + stride - 1, stride)
            if args.taps[d] == 0 or high - low + 1 < args.taps[d]:
                args.taps[d], args.shift[d] = <unsigned int>(high - low + 1), shift
                args.first[d] = <int>low
                weight.first[d] = <int>(origin - stride * low)
        if args.taps[d] > MOST_TAPS:
            return False
        weight.taps[d], weight.filter[d] = args.taps[d], <unsigned int>s.taps[d]
        args.sources[d], args.outputs[d] = <unsigned int>s.sources[d], <unsigned int>s.outputs[d]
    return True


cdef void set_used(ConvPhases* args, const ConvPhaseWeight* weight, long long results,
                   long long sums) noexcept:
    """Set which taps each quarter of the sums has."""
    cdef unsigned int[2][MOST_STRIDE] taps
    cdef unsigned int phase, tap, sum, quarter
    cdef int d
    for d in range(2):
        for phase in range(args.stride):
            taps[d][phase] = 0
            for tap in range(args.taps[d]):
                if 0 <= weight.first[d] + <int>phase - <int>(tap * args.stride) \
                        < <int>weight.filter[d]:
                    taps[d][phase] |= 1u << tap
    for sum in range(args.stride * args.stride * <unsigned int>results):
        phase, quarter = sum // <unsigned int>results, sum * 4 // <unsigned int>sums
        args.used[0][quarter] |= taps[0][phase // args.stride]
        args.used[1][quarter] |= taps[1][phase % args.stride]


cdef bint choose_phases(Phases* phases, int ordinal, int op, int dtype,
                        unsigned long long source, const Convolution* view) except -1:
    cdef ConvPhases* args = &phases.args
    cdef Launch* launch = &phases.launch
    cdef long long channels = view.channels, results = view.results
    cdef long long sums, items, lines, positions, tiles, of_step
    cdef int itemsize
    cdef bint tensor
    memset(phases, 0, sizeof(Phases))
    if view.groups != 1 or not set_phases(args, &phases.weight, &view.sliding):
        return False
    if op == INPUT_VJP:
        channels, results = results, channels
    launch.entry = entry_of(ordinal, CONV, dtype)
    itemsize, items = launch.entry.itemsizes[0], launch.entry.items
    sums = args.stride * args.stride * results
    if itemsize > 4 or sums > PHASE_SUMS or channels < 1 \
            or ((view.batch_step | view.steps[0] | view.steps[1] | channels) * itemsize
                | source) % VECTOR_BYTES:
        return False
    is_served(CUDNN, ordinal)       # it reads CYRT_TF32 into `library.tf32`, too
    tensor = itemsize == 2 or library.tf32
    if tensor:
        launch.variant = TENSOR + (sums > 8)
        sums = 16 if sums > 8 else 8
    else:
        sums = ceiling(sums, 4) * 4
        launch.variant = MULTIPLY_ADD + <int>sums // 4 - 1
    lines = PHASE_LINES if tensor or sums < PHASE_SUMS else PHASE_LINES_OF_MOST
    lines *= PHASE_STRIPS
    args.tiles_m = divider(<unsigned int>ceiling(
        ceiling(args.outputs[1] + args.shift[1], args.stride), PHASE_COLUMNS))
    args.tiles_n = divider(<unsigned int>ceiling(
        ceiling(args.outputs[0] + args.shift[0], args.stride), lines))
    tiles = args.tiles_m.size * <long long>args.tiles_n.size * view.batch
    args.width = divider(PHASE_COLUMNS + args.taps[1] - 1)
    positions = args.width.size * (lines + args.taps[0] - 1)
    of_step = args.taps[0] * args.taps[1] * PHASE_VECTORS * sums
    args.vectors = <unsigned int>(channels // items)
    args.steps = <unsigned int>ceiling(args.vectors, PHASE_VECTORS)
    if SPREAD * tiles < multiprocessors_of(ordinal) or tiles > MAX_BLOCKS \
            or args.steps * of_step * items > MAX_NUMERATOR:
        return False
    set_geometry(&launch.geometry, tiles, PHASE_BLOCK if tensor else PHASE_BLOCK_MULTIPLY_ADD, 1)
    launch.geometry.smem = <unsigned int>max(
        PHASE_STAGES * (positions * PHASE_VECTORS + of_step) * VECTOR_BYTES,
        lines * PHASE_COLUMNS * (sums + 1) * 4)
    if not fits(launch):
        return False

    if not tensor:
        set_used(args, &phases.weight, results, sums)
    phases.workspace = args.steps * of_step * VECTOR_BYTES
    args.batch_step, args.bias_step = view.batch_step, view.bias_step
    args.step[0], args.step[1] = view.steps[0], view.steps[1]
    args.run = divider(<unsigned int>(args.stride * results))
    args.channels = divider(<unsigned int>results)
    args.activation = view.activation
    choose_arrangement(phases, op, view, args.steps * of_step * items, channels, results, sums)
    return True


cdef void choose_arrangement(Phases* phases, int op, const Convolution* view, long long n,
                             long long channels, long long results, long long sums) noexcept:
    """Choose the launch that arranges the weight in the workspace."""
    cdef ConvPhaseWeight* args = &phases.weight
    phases.arranging.entry, phases.arranging.variant = phases.launch.entry, WEIGHT
    args.tap_step = view.channels
    args.source_step, args.result_step = 1, view.other_step
    if op == INPUT_VJP:
        args.source_step, args.result_step = view.other_step, 1
    args.sources, args.results = <unsigned int>channels, <unsigned int>results
    args.sums, args.n = <unsigned int>sums, <unsigned int>n
    set_geometry(&phases.arranging.geometry, ceiling(n, BLOCK), BLOCK, 1)


cdef int record_phases(Recorder encoder, Phases* phases, const Operand* operands) except -1:
    cdef Operand[4] uses
    cdef Operand[2] moved
    cdef Memory workspace = allocate_workspace(encoder, phases.workspace)
    cdef int i
    for i in range(4):
        uses[i] = operands[i]
    uses[OTHER] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])
    phases.weight.weight, phases.weight.out = operands[OTHER].address, workspace.address
    phases.args.source, phases.args.other = operands[SOURCE].address, workspace.address
    phases.args.bias, phases.args.out = operands[BIAS].address, operands[OUT].address
    moved[0], moved[1] = uses[OTHER], operands[OTHER]
    record_launch(encoder, &phases.arranging, &phases.weight, moved, 2, 1)
    return record_launch(encoder, &phases.launch, &phases.args, uses, 4, 1)
