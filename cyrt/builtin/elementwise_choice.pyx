# C-level functions only: see elementwise_choice.pxd.
# cython: cdivision=True
"""The choice of an elementwise launch: variant, grid, block and parameters."""

from libc.string cimport memset

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.grid cimport MAX_BLOCKS, power_of_two, set_geometry
from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NUMERATOR, MAX_OUTER, Source, Space, divider

cdef extern from "params/elementwise.h" nogil:
    enum: ELEMENTWISE_VECTOR
    enum: ELEMENTWISE_BROADCAST

cdef extern from *:
    int __builtin_ctz(unsigned int) noexcept

cdef enum:
    BLOCK = 256             # The most threads
    STEPS = 3               # steps of a thread in grids of at least
    STEPPING = 16384        # this many blocks: more than the device runs at once
    WARP = 32

# Parameter structs by the number of inputs.
ctypedef fused Dense:
    Dense1
    Dense2
    Dense3

ctypedef fused Strided:
    Strided1
    Strided2
    Strided3

ctypedef fused Aligned:
    Aligned1
    Aligned2

ctypedef fused Inputs:
    Dense1
    Dense2
    Dense3
    Strided1
    Strided2
    Strided3


cdef bint set_grid(Launch* launch, unsigned long long n, unsigned int steps) noexcept:
    cdef const Entry* entry = launch.entry
    cdef unsigned long long threads = (n + entry.items - 1) >> entry.shift
    cdef unsigned long long blocks = (threads + BLOCK * steps - 1) // (BLOCK * steps)
    set_geometry(&launch.geometry, blocks, power_of_two(threads, WARP, BLOCK), 1)
    return blocks <= MAX_BLOCKS


cdef inline unsigned int put_operands(Inputs* params, const Entry* entry, const Operand* operands,
                                      const long long* offsets) noexcept:
    """Set the addresses of the inputs and the output; return the flags of inputs that are
    numbers."""
    cdef unsigned int flags = 0
    cdef int i
    for i in range(<int>(sizeof(params.inputs) // sizeof(Source))):
        if operands[i + 1].buffer == NULL:
            params.inputs[i].word[0] = operands[i + 1].value[0]
            params.inputs[i].word[1] = operands[i + 1].value[1]
            flags |= <unsigned int>ELEMENTWISE_VALUE << 2 * i
        else:
            params.inputs[i].word[0] = \
                operands[i + 1].address + offsets[i + 1] * entry.itemsizes[i + 1]
            params.inputs[i].word[1] = 0
    params.out = operands[0].address + offsets[0] * entry.itemsizes[0]
    return flags


cdef inline bint is_aligned(const Entry* entry, int operand, unsigned long long address) noexcept:
    """Return whether an address is aligned to the vector of a thread."""
    return address & (entry.items * entry.itemsizes[operand] - 1) == 0


cdef void choose_aligned(Launch* launch, long long n) noexcept:
    cdef unsigned long long threads = n >> launch.entry.shift
    launch.variant = ALIGNED
    set_geometry(&launch.geometry, (threads + BLOCK - 1) // BLOCK,
                 power_of_two(threads, WARP, BLOCK), 1)


cdef bint fill_aligned(Aligned* params, Launch* launch, const Operand* operands,
                       const long long* offsets, long long n) noexcept:
    """Fill the parameters. Return False if an operand is not aligned to vectors, or is a number
    that the kernel does not take."""
    cdef const Entry* entry = launch.entry
    cdef unsigned int flags = 0
    cdef int i
    memset(params, 0, sizeof(params[0]))
    for i in range(<int>(sizeof(params.inputs) // sizeof(params.inputs[0]))):
        if operands[i + 1].buffer != NULL:
            params.inputs[i] = operands[i + 1].address + offsets[i + 1] * entry.itemsizes[i + 1]
            if not is_aligned(entry, i + 1, params.inputs[i]):
                return False
        # the number fits into the field of an address
        elif Aligned is Aligned2 and entry.itemsizes[1] <= 8:
            params.inputs[i] = operands[i + 1].value[0]
            flags |= <unsigned int>ELEMENTWISE_VALUE << 2 * i
        else:
            return False
    params.out = operands[0].address + offsets[0] * entry.itemsizes[0]
    params.vectors = <unsigned int>(n >> entry.shift)
    params.flags = flags
    choose_aligned(launch, n)
    return is_aligned(entry, 0, params.out)


cdef bint fill_dense(Dense* params, Launch* launch, const Operand* operands,
                     const long long* offsets, long long n, unsigned int broadcast) noexcept:
    cdef const Entry* entry = launch.entry
    cdef unsigned int steps = 1, flags
    cdef bint aligned
    cdef int i
    memset(params, 0, sizeof(params[0]))
    flags = put_operands(params, entry, operands, offsets)
    aligned = is_aligned(entry, 0, params.out)
    for i in range(1, entry.num_inputs + 1):
        if broadcast >> i & 1:
            flags |= <unsigned int>ELEMENTWISE_BROADCAST << 2 * (i - 1)
        elif operands[i].buffer != NULL:
            aligned = aligned and is_aligned(entry, i, params.inputs[i - 1].word[0])
    if n >> entry.shift >= <long long>STEPPING * BLOCK:
        steps = STEPS
    params.n = n
    params.flags = flags | (ELEMENTWISE_VECTOR if aligned else 0)
    params.steps = steps
    launch.variant = DENSE
    return set_grid(launch, n, steps)


cdef bint choose_dense(Launch* launch, Parameters* params, const Operand* operands,
                       const long long* offsets, long long n, unsigned int broadcast) noexcept:
    cdef int inputs = launch.entry.num_inputs
    if broadcast == 0 and takes_aligned(launch.entry, n):
        if inputs == 1 and fill_aligned(&params.aligned1, launch, operands, offsets, n):
            return True
        if inputs == 2 and fill_aligned(&params.aligned2, launch, operands, offsets, n):
            return True
    if inputs == 1:
        return fill_dense(&params.dense1, launch, operands, offsets, n, broadcast)
    if inputs == 2:
        return fill_dense(&params.dense2, launch, operands, offsets, n, broadcast)
    return fill_dense(&params.dense3, launch, operands, offsets, n, broadcast)


cdef unsigned int vector_operands(const Entry* entry, unsigned int numbers,
                                  const Space* space) noexcept:
    """Return a bit for each operand that has to be aligned if vectors are used, or 0 if the strides
    forbid them."""
    cdef unsigned long long within = entry.items - 1    # the bits of an index within a vector
    cdef unsigned int found = 0
    cdef int d, i
    if space.shape[0] & within:
        return 0
    for i in range(space.operands):
        # An input of one element per row needs no alignment.
        if i and (numbers >> i & 1 or space.strides[0][i] == 0):
            continue
        if space.strides[0][i] != 1:
            return 0
        for d in range(1, space.ndim):
            if space.strides[d][i] & within:
                return 0
        found |= 1u << i
    return found


cdef bint fill_plan(Strided* params, StridedPlan* plan, const Entry* entry, unsigned int numbers,
                    const Space* space) noexcept:
    cdef int d, i, count = space.operands, outer = space.ndim - 1
    cdef unsigned int x, y, width
    cdef unsigned long long rows = 1, inner = space.shape[0], blocks, chunks
    cdef unsigned long long within = entry.items - 1
    for d in range(1, space.ndim):
        rows *= space.shape[d]
        if rows > MAX_NUMERATOR:
            return False
    memset(params, 0, sizeof(params[0]))
    for i in range(count):
        params.inner_strides[i] = space.strides[0][i]
        plan.offsets[i] = space.offsets[i]
    for d in range(outer):
        params.outer.dims[d] = divider(<unsigned int>space.shape[d + 1])
        for i in range(count):
            params.outer.strides[d][i] = space.strides[d + 1][i]
    plan.vectors = vector_operands(entry, numbers, space)
    x = power_of_two((inner + within) >> entry.shift, 1, BLOCK)
    y = power_of_two(rows, 1, BLOCK // x)
    width = __builtin_ctz(x) + entry.shift          # log2 of a block's elements of one row
    chunks = (inner + (1ull << width) - 1) >> width
    blocks = ((rows + y - 1) >> __builtin_ctz(y)) * chunks
    params.num_outer = outer
    params.rows = <unsigned int>rows
    params.inner = <unsigned int>inner
    params.chunks = divider(<unsigned int>chunks)
    set_geometry(&plan.geometry, blocks, x, y)
    return blocks <= MAX_BLOCKS


cdef bint plan_strided(StridedPlan* plan, const Entry* entry, unsigned int numbers,
                       const Space* space) noexcept:
    if space.ndim - 1 > MAX_OUTER or space.shape[0] > MAX_NUMERATOR:
        return False
    if entry.num_inputs == 1:
        return fill_plan(&plan.params.strided1, plan, entry, numbers, space)
    if entry.num_inputs == 2:
        return fill_plan(&plan.params.strided2, plan, entry, numbers, space)
    return fill_plan(&plan.params.strided3, plan, entry, numbers, space)


cdef inline void put_planned(Strided* params, const Strided* planned, const StridedPlan* plan,
                             const Entry* entry, const Operand* operands) noexcept:
    cdef unsigned int flags
    cdef bint aligned = plan.vectors != 0
    cdef int i
    params[0] = planned[0]
    flags = put_operands(params, entry, operands, plan.offsets)
    if aligned and not is_aligned(entry, 0, params.out):
        aligned = False
    for i in range(1, entry.num_inputs + 1):
        if plan.vectors >> i & 1 and not is_aligned(entry, i, params.inputs[i - 1].word[0]):
            aligned = False
    params.flags = flags | (ELEMENTWISE_VECTOR if aligned else 0)


cdef void choose_planned(Launch* launch, Parameters* params, const StridedPlan* plan,
                         const Operand* operands) noexcept:
    cdef const Entry* entry = launch.entry
    launch.variant = STRIDED
    launch.geometry = plan.geometry
    if entry.num_inputs == 1:
        put_planned(&params.strided1, &plan.params.strided1, plan, entry, operands)
    elif entry.num_inputs == 2:
        put_planned(&params.strided2, &plan.params.strided2, plan, entry, operands)
    else:
        put_planned(&params.strided3, &plan.params.strided3, plan, entry, operands)
