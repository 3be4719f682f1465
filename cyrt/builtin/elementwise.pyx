# cython: cdivision=True
"""Elementwise operations, casts, copies and fills: the launches of elementwise.cu."""

from libc.string cimport memcpy, memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport WIDEST, Entry, entry_of, type_of_size
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, describe, num_replayed, power_of_two, record_launch, replay_described,
    set_geometry,
)
from cyrt.builtin.space cimport (
    MAX_NDIM, MAX_NUMERATOR, MAX_OPERANDS, MAX_OUTER, Divider, Source, Space, divider, next_part,
    product_of, simplify,
)
from cyrt.builtin.transpose cimport record_transpose
from cyrt.graph.exact_key cimport Key, add_words, begin_key, find_plan, store_plan
from cyrt.graph.recorder cimport record_kernel
from cyrt.graph.recording cimport Geometry, Use
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.pool cimport is_own
from cyrt.runtime.state cimport READ, Block

cdef extern from "params/elementwise.h" nogil:
    enum: ELEMENTWISE_VECTOR, ELEMENTWISE_BROADCAST, ELEMENTWISE_VALUE
    cdef struct Dense1:
        pass
    cdef struct Dense2:
        pass
    cdef struct Dense3:
        unsigned long long out
        long long n
        unsigned int flags, steps
        Source inputs[3]
    cdef struct Aligned1:
        pass
    cdef struct Aligned2:
        unsigned long long out
        unsigned int vectors, flags
        unsigned long long inputs[2]
    cdef struct Strided1:
        pass
    cdef struct Strided2:
        pass
    cdef struct Strided3:
        unsigned long long out
        unsigned int num_outer, rows, inner, flags
        Divider chunks
        Source inputs[3]

cdef extern from *:
    int __builtin_ctz(unsigned int) noexcept

cdef enum:
    BLOCK = 256             # the maximum number of threads
    SMALL = 1 << 20         # the maximum number of vectors of the ALIGNED kernel
    STEPS = 3               # steps of a thread in grids of at least
    STEPPING = 16384        # this many blocks: more than the device runs at once
    TRANSPOSED = 8          # the shortest dimension that is exchanged through tiles

# A strided launch without its addresses and numbers.
cdef struct StridedPlan:
    Geometry geometry
    Strided3 params
    long long offsets[MAX_OPERANDS]     # each operand's first element
    unsigned int vectors        # a bit for each operand that vectors need aligned; 0: no vectors

cdef size_t[MAX_OPERANDS] strided_bytes      # bytes of the parameters, by the number of inputs
strided_bytes[:] = [0, sizeof(Strided1), sizeof(Strided2), sizeof(Strided3)]
cdef long long[MAX_NDIM] zero_strides    # strides of a number: 0
cdef long long[MAX_OPERANDS] no_offsets
cdef int COPY = catalogue.OPS.index("copy")

# The sizes in bytes of the kernels' parameters, in their order, by the number of inputs.
PARAM_BYTES = {
    1: (sizeof(Dense1), sizeof(Strided1), sizeof(Aligned1)),
    2: (sizeof(Dense2), sizeof(Strided2), sizeof(Aligned2)),
    3: (sizeof(Dense3), sizeof(Strided3)),
}


# -- all operands contiguous, or one element for all -----------------------------------------------


cdef bint set_grid(Launch* launch, unsigned long long n, unsigned int steps) noexcept:
    cdef const Entry* entry = launch.entry
    cdef unsigned long long threads = (n + entry.items - 1) >> entry.shift
    cdef unsigned long long blocks = (threads + BLOCK * steps - 1) // (BLOCK * steps)
    set_geometry(&launch.geometry, blocks, power_of_two(threads, WARP, BLOCK), 1)
    return blocks <= MAX_BLOCKS


cdef inline bint is_aligned(const Entry* entry, int operand, unsigned long long address) noexcept:
    """Return whether an address is aligned to the vector of a thread."""
    return address & (entry.items * entry.itemsizes[operand] - 1) == 0


cdef inline unsigned long long address_of(const Entry* entry, const Operand* operands, int i,
                                          const long long* offsets) noexcept:
    return operands[i].address + offsets[i] * entry.itemsizes[i]


cdef inline unsigned int put_inputs(Source* inputs, const Entry* entry, const Operand* operands,
                                    const long long* offsets, unsigned int vectors) noexcept:
    """Set the addresses of the inputs, or their numbers. Return the flags of numbers, and that of
    vectors if the operands whose bits are set in `vectors` are aligned."""
    cdef unsigned int flags = 0
    cdef unsigned long long address = address_of(entry, operands, 0, offsets)
    cdef bint aligned = vectors & 1 and is_aligned(entry, 0, address)
    cdef int i
    for i in range(1, entry.num_inputs + 1):
        if operands[i].buffer == NULL:
            inputs.word[0], inputs.word[1] = operands[i].value[0], operands[i].value[1]
            flags |= <unsigned int>ELEMENTWISE_VALUE << 2 * (i - 1)
        else:
            address = address_of(entry, operands, i, offsets)
            inputs.word[0], inputs.word[1] = address, 0
            aligned = aligned and (not vectors >> i & 1 or is_aligned(entry, i, address))
        inputs += 1
    return flags | ELEMENTWISE_VECTOR if aligned else flags


cdef inline bint fill_aligned(Aligned2* params, const Entry* entry, const Operand* operands,
                              const long long* offsets, long long n) noexcept:
    """Fill the parameters of the ALIGNED kernel. Return False if there is none for the operands."""
    cdef int i
    if entry.functions[<int>ALIGNED] == NULL or n >> entry.shift >= SMALL \
            or n & (entry.items - 1):
        return False
    memset(params, 0, sizeof(params[0]))
    for i in range(entry.num_inputs):
        if operands[i + 1].buffer != NULL:
            params.inputs[i] = address_of(entry, operands, i + 1, offsets)
            if not is_aligned(entry, i + 1, params.inputs[i]):
                return False
        # the number fits into the field of an address
        elif entry.num_inputs == 2 and entry.itemsizes[1] <= 8:
            params.inputs[i] = operands[i + 1].value[0]
            params.flags |= <unsigned int>ELEMENTWISE_VALUE << 2 * i
        else:
            return False
    params.out = address_of(entry, operands, 0, offsets)
    params.vectors = <unsigned int>(n >> entry.shift)
    return is_aligned(entry, 0, params.out)


cdef int record_aligned(Recorder encoder, Launch* launch, int op, int dtype,
                        const Aligned2* params, const Operand* operands, long long n) except -1:
    """Record an ALIGNED launch, with its key if no other library uses the memory."""
    cdef int i, inputs = launch.entry.num_inputs, count = 0
    cdef Use[MAX_OPERANDS] uses
    cdef Block* block
    cdef Form form = UNARY
    cdef bint own = True
    launch.variant = ALIGNED
    set_geometry(&launch.geometry, (params.vectors + BLOCK - 1) // BLOCK,
                 power_of_two(params.vectors, WARP, BLOCK), 1)
    if encoder.listed is not None:      # memory means nothing
        return record(encoder, launch, params, operands)
    if inputs == 2:
        form = BINARY if params.flags == 0 \
            else NUMBER_LEFT if params.flags == ELEMENTWISE_VALUE else NUMBER_RIGHT
    for i in range(1, inputs + 1):
        if operands[i].buffer != NULL:
            block = live_block(<Memory>operands[i].buffer)
            own = own and is_own(block, encoder.state)
            uses[count].block, uses[count].access = block, READ
            count += 1
    block = live_block(<Memory>operands[0].buffer)
    uses[count].block, uses[count].access = block, overwriting(<Memory>operands[0].buffer)
    if not own or not is_own(block, encoder.state):
        return record(encoder, launch, params, operands)
    return record_kernel(encoder, <LoadedFunction>launch.entry.functions[<int>ALIGNED],
                         &launch.geometry, <const char*>params, uses, count + 1, None, False, 0,
                         NULL, NULL, call_key(op, dtype, form, n))


cdef int record_dense(Recorder encoder, Launch* launch, int op, int dtype,
                      const Operand* operands, const long long* offsets, long long n,
                      unsigned int broadcast) except -1:
    """Record a launch for contiguous operands; the inputs in `broadcast` have one element for
    all."""
    cdef Aligned2 aligned
    cdef Dense3 params
    cdef Launch words
    cdef long long[2] starts
    cdef int i, size = launch.entry.itemsizes[0]
    if op == COPY and size < 16 and broadcast == 0 and operands[1].buffer != NULL \
            and n * size % 16 == 0 and (operands[0].address + offsets[0] * size) % 16 == 0 \
            and (operands[1].address + offsets[1] * size) % 16 == 0 \
            and offsets[0] * size % 16 == 0 and offsets[1] * size % 16 == 0:
        words.entry = entry_of(encoder.state.ordinal, COPY, type_of_size[WIDEST])
        starts[0] = offsets[0] * size // 16
        starts[1] = offsets[1] * size // 16
        return record_dense(encoder, &words, op, type_of_size[WIDEST], operands, starts,
                            n * size // 16, 0)
    if broadcast == 0 and fill_aligned(&aligned, launch.entry, operands, offsets, n):
        return record_aligned(encoder, launch, op, dtype, &aligned, operands, n)
    memset(&params, 0, sizeof(params))
    params.out = address_of(launch.entry, operands, 0, offsets)
    params.n = n
    params.steps = STEPS if n >> launch.entry.shift >= <long long>STEPPING * BLOCK else 1
    params.flags = put_inputs(params.inputs, launch.entry, operands, offsets, ~broadcast)
    for i in range(1, launch.entry.num_inputs + 1):
        if broadcast >> i & 1:
            params.flags |= <unsigned int>ELEMENTWISE_BROADCAST << 2 * (i - 1)
    launch.variant = DENSE
    if not set_grid(launch, n, params.steps):
        raise ValueError(f"{catalogue.OPS[op]}: {n:,} elements are more than a grid covers")
    return record(encoder, launch, &params, operands)


cdef inline int record(Recorder encoder, const Launch* launch, const void* params,
                       const Operand* operands) except -1:
    return record_launch(encoder, launch, params, operands, launch.entry.num_inputs + 1, 1 | WHOLE)


# -- any strides -----------------------------------------------------------------------------------


cdef inline bint is_single(const long long* strides, int ndim, const long long* shape) noexcept:
    """Return whether an operand is one element for all."""
    cdef int d
    for d in range(ndim):
        if strides[d] != 0 and shape[d] != 1:
            return False
    return True


cdef unsigned int set_key(Key* key, const Entry* entry, const Operand* operands, int ndim,
                          const long long* shape) noexcept:
    """Set the key of a strided launch; return a bit for each operand that is a number."""
    cdef unsigned int numbers = 0, strided = 0
    cdef int i
    for i in range(entry.num_inputs + 1):
        if operands[i].buffer == NULL:
            numbers |= 1u << i
        elif operands[i].strides != NULL:
            strided |= 1u << i
    begin_key(key, entry, <unsigned int>ndim << 16 | numbers << 8 | strided)
    add_words(key, shape, ndim)
    for i in range(entry.num_inputs + 1):
        if strided >> i & 1:
            add_words(key, operands[i].strides, ndim)
    return numbers


cdef int record_contiguous(Recorder encoder, int op, int dtype, const Operand* operands,
                           long long n) except -1:
    cdef Launch launch
    if n == 0:
        return 0
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    return record_dense(encoder, &launch, op, dtype, operands, no_offsets, n, 0)


cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1:
    cdef Launch launch
    cdef Space space
    cdef Key key
    cdef const StridedPlan* plan
    cdef const long long* strides[MAX_OPERANDS]
    cdef unsigned int numbers, single = 0
    cdef long long n = product_of(shape, 0, ndim)
    cdef bint contiguous = True
    cdef int i, before
    launch.entry, launch.variant = entry_of(encoder.state.ordinal, op, dtype), DENSE
    if n == 0:
        return 0
    for i in range(launch.entry.num_inputs + 1):
        strides[i] = operands[i].strides
        if operands[i].buffer == NULL:
            strides[i] = &zero_strides[0]
        elif strides[i] != NULL:
            if is_single(strides[i], ndim, shape):
                single |= 1u << i
            else:
                contiguous = False
    if n == 1:
        single = 0
    if contiguous and (encoder.replay.script == NULL
                       or (single == 0 and n & (launch.entry.items - 1) == 0)):
        return record_dense(encoder, &launch, op, dtype, operands, no_offsets, n, single)
    numbers = set_key(&key, launch.entry, operands, ndim, shape)
    if replay_described(encoder, &key, operands, launch.entry.num_inputs + 1):
        return 0
    before = num_replayed(encoder)
    if contiguous:
        record_dense(encoder, &launch, op, dtype, operands, no_offsets, n, single)
    else:
        plan = <const StridedPlan*>find_plan(&key)
        if plan != NULL:
            record_planned(encoder, &launch, plan, operands)
        else:
            simplify(&space, launch.entry.num_inputs + 1, ndim, shape, strides)
            record_space(encoder, &launch, op, dtype, operands, numbers, &space, &key)
    describe(encoder, before, &key, operands, launch.entry.num_inputs + 1, &launch)
    return 0


cdef int record_planned(Recorder encoder, Launch* launch, const StridedPlan* plan,
                        const Operand* operands) except -1:
    """Complete a planned launch with the operands' addresses and numbers, and record it."""
    cdef Strided3 params
    memcpy(&params, &plan.params, strided_bytes[launch.entry.num_inputs])
    launch.variant = STRIDED
    launch.geometry = plan.geometry
    params.out = address_of(launch.entry, operands, 0, plan.offsets)
    params.flags = put_inputs(params.inputs, launch.entry, operands, plan.offsets, plan.vectors)
    return record(encoder, launch, &params, operands)


cdef int record_space(Recorder encoder, Launch* launch, int op, int dtype,
                      const Operand* operands, unsigned int numbers, const Space* space,
                      const Key* key) except -1:
    """Record one launch, or several if the space exceeds one launch. The plan of one strided launch
    is stored, unless `key` is NULL."""
    cdef StridedPlan plan
    cdef Space part
    cdef long long done = 0
    cdef unsigned int broadcast = 0
    cdef bint dense = space.ndim <= 1
    cdef int i, along
    if space.ndim == 1:
        dense = space.strides[0][0] == 1
        for i in range(1, space.operands):
            if space.strides[0][i] == 0 and operands[i].buffer != NULL:
                broadcast |= 1u << i
            dense = dense and (space.strides[0][i] == 1 or space.strides[0][i] == 0)
    if dense:
        return record_dense(encoder, launch, op, dtype, operands, space.offsets,
                            space.shape[0] if space.ndim else 1, broadcast)
    if op == COPY and space.strides[0][0] == 1 and space.shape[0] >= TRANSPOSED:
        for along in range(1, space.ndim):
            if space.strides[along][1] == 1 and space.shape[along] >= TRANSPOSED \
                    and record_transpose(encoder, type_of_size[launch.entry.itemsizes[0]],
                                         operands, space, along):
                return 0
    if fill_plan(&plan, launch.entry, numbers, space):
        if key != NULL:
            store_plan(key, &plan, sizeof(plan))
        return record_planned(encoder, launch, &plan, operands)
    part = space[0]
    while next_part(&part, space, &done):
        record_space(encoder, launch, op, dtype, operands, numbers, &part, NULL)
    return 0


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


cdef bint fill_plan(StridedPlan* plan, const Entry* entry, unsigned int numbers,
                    const Space* space) noexcept:
    """Plan a launch for a space of at least one dimension; bit i of `numbers` is set if operand i
    is a number. False if the elements do not fit one launch."""
    cdef Strided3* params = &plan.params
    cdef int d, i, count = space.operands, outer = space.ndim - 1
    # The strides of the innermost dimension and an Outer follow the inputs.
    cdef long long* inner_strides = <long long*>&params.inputs[count - 1]
    cdef Divider* dims = <Divider*>(inner_strides + count)
    cdef long long* strides = <long long*>(dims + <int>MAX_OUTER)
    cdef unsigned int x, y, width
    cdef unsigned long long rows = 1, inner = space.shape[0], blocks, chunks
    cdef unsigned long long within = entry.items - 1
    if outer > MAX_OUTER or inner > MAX_NUMERATOR:
        return False
    memset(plan, 0, sizeof(plan[0]))
    for d in range(outer):
        rows *= space.shape[d + 1]
        if rows > MAX_NUMERATOR:
            return False
        dims[d] = divider(<unsigned int>space.shape[d + 1])
        for i in range(count):
            strides[d * count + i] = space.strides[d + 1][i]
    for i in range(count):
        inner_strides[i] = space.strides[0][i]
        plan.offsets[i] = space.offsets[i]
    plan.vectors = vector_operands(entry, numbers, space)
    x = power_of_two((inner + within) >> entry.shift, 1, BLOCK)
    y = power_of_two(rows, 1, BLOCK // x)
    # log2 of the elements of a row that a block computes
    width = __builtin_ctz(x) + entry.shift
    chunks = (inner + (1ull << width) - 1) >> width
    blocks = ((rows + y - 1) >> __builtin_ctz(y)) * chunks
    params.num_outer = outer
    params.rows = <unsigned int>rows
    params.inner = <unsigned int>inner
    params.chunks = divider(<unsigned int>chunks)
    set_geometry(&plan.geometry, blocks, x, y)
    return blocks <= MAX_BLOCKS
