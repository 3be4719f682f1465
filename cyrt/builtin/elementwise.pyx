# cython: cdivision=True
"""Elementwise operations, casts, copies and fills: the launches of elementwise.cu."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.elementwise_choice cimport (
    ALIGNED, ELEMENTWISE_VALUE, Aligned1, Aligned2, Dense1, Dense2, Dense3, Parameters, Strided1,
    Strided2, Strided3, StridedPlan, choose_aligned, choose_dense, choose_planned, plan_strided,
    takes_aligned,
)
from cyrt.builtin.entry cimport WIDEST, Entry, entry_of, type_of_size
from cyrt.builtin.launch cimport WHOLE, Launch, record_launch
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM, MAX_OPERANDS, MAX_OUTER, Space, simplify
from cyrt.builtin.transpose cimport record_transpose
from cyrt.graph.commit cimport Recorder
from cyrt.graph.exact_key cimport Key, add_words, begin_key, find_plan, store_plan
from cyrt.graph.recorder cimport encoder_of, record_kernel
from cyrt.graph.recording cimport Use
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport READ, Block, StreamState

cdef enum:
    TRANSPOSED = 8          # the shortest dimension that is exchanged through tiles

cdef long long[MAX_NDIM] zero_strides    # strides of a number: 0
cdef long long[4] no_offsets
cdef int COPY = catalogue.OPS.index("copy")


def param_bytes(row):
    """Return the size in bytes of the parameter of each kernel of a row."""
    dense = (sizeof(Dense1), sizeof(Dense2), sizeof(Dense3))
    strided = (sizeof(Strided1), sizeof(Strided2), sizeof(Strided3))
    aligned = (sizeof(Aligned1), sizeof(Aligned2))
    i = len(row.inputs) - 1
    return (dense[i], strided[i], *aligned[i:i + 1])[:len(row.kernels)]


cdef inline int record(Recorder encoder, const Launch* launch, const Parameters* params,
                       const Operand* operands) except -1:
    return record_launch(encoder, launch, params, operands, launch.entry.num_inputs + 1, 1 | WHOLE)


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


cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1:
    cdef Launch launch
    cdef Parameters params
    cdef Space space
    cdef Key key
    cdef const StridedPlan* plan
    cdef const long long* strides[MAX_OPERANDS]
    cdef unsigned int numbers, single = 0
    cdef long long n = 1
    cdef bint contiguous = True
    cdef int i
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    for i in range(ndim):
        n *= shape[i]
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
    if contiguous:
        return record_dense(encoder, &launch, op, operands, no_offsets, n, single if n > 1 else 0)
    numbers = set_key(&key, launch.entry, operands, ndim, shape)
    plan = <const StridedPlan*>find_plan(&key)
    if plan != NULL:
        choose_planned(&launch, &params, plan, operands)
        return record(encoder, &launch, &params, operands)
    simplify(&space, launch.entry.num_inputs + 1, ndim, shape, strides)
    return record_space(encoder, &launch, op, operands, numbers, &space, &key)


cdef int record_aligned(StreamState* stream, Entry* entry, unsigned long long key, Use* uses,
                        int num_uses, const void* params, long long n) except -1:
    cdef Launch launch
    launch.entry = entry
    choose_aligned(&launch, n)
    return record_kernel(encoder_of(stream), <LoadedFunction>entry.functions[<int>ALIGNED],
                         &launch.geometry, <const char*>params, uses, num_uses, None, False, 0,
                         NULL, NULL, key)


cdef int record_unary(StreamState* stream, int op, int dtype, Memory out, Memory a, Block* a_block,
                      long long n) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef Use[2] uses
    cdef Aligned1 params
    if n == 0:
        return 0
    uses[0].block, uses[0].access = a_block, READ
    uses[1].block, uses[1].access = live_block(out), overwriting(out)
    if not takes_aligned(entry, n) or (a.address | out.address) & (WIDEST - 1) \
            or not is_own(uses[0].block) or not is_own(uses[1].block):
        return record_unaligned(stream, entry, op, out, a, NULL, n)
    memset(&params, 0, sizeof(params))      # it ends with padding
    params.inputs[0], params.out = a.address, out.address
    params.vectors = <unsigned int>(n >> entry.shift)
    return record_aligned(stream, entry, call_key(op, dtype, UNARY, n), uses, 2, &params, n)


cdef int record_binary(StreamState* stream, int op, int dtype, Memory out, Memory a,
                       Block* a_block, Memory b, Block* b_block, long long n) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef Use[3] uses
    cdef Aligned2 params
    if n == 0:
        return 0
    uses[0].block, uses[0].access = a_block, READ
    uses[1].block, uses[1].access = b_block, READ
    uses[2].block, uses[2].access = live_block(out), overwriting(out)
    if not takes_aligned(entry, n) or (a.address | b.address | out.address) & (WIDEST - 1) \
            or not is_own(uses[0].block) or not is_own(uses[1].block) \
            or not is_own(uses[2].block):
        return record_unaligned(stream, entry, op, out, a, <PyObject*>b, n)
    params.inputs[0], params.inputs[1], params.out = a.address, b.address, out.address
    params.vectors, params.flags = <unsigned int>(n >> entry.shift), 0
    return record_aligned(stream, entry, call_key(op, dtype, BINARY, n), uses, 3, &params, n)


cdef int record_with_number(StreamState* stream, int op, int dtype, Memory out, Memory a,
                            Block* a_block, const unsigned long long* number, bint left,
                            long long n) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef Use[2] uses
    cdef Launch launch
    cdef Aligned2 params
    cdef Operand[3] operands
    if n == 0:
        return 0
    uses[0].block, uses[0].access = a_block, READ
    uses[1].block, uses[1].access = live_block(out), overwriting(out)
    if entry.itemsizes[1] > 8 or not takes_aligned(entry, n) \
            or (a.address | out.address) & (WIDEST - 1) \
            or not is_own(uses[0].block) or not is_own(uses[1].block):
        operands[0] = Operand(<PyObject*>out, out.address, NULL, [0, 0])
        operands[2 if left else 1] = Operand(<PyObject*>a, a.address, NULL, [0, 0])
        operands[1 if left else 2] = Operand(NULL, 0, NULL, [number[0], number[1]])
        launch.entry = entry
        return record_dense(encoder_of(stream), &launch, op, operands, no_offsets, n, 0)
    params.inputs[left], params.inputs[not left], params.out = a.address, number[0], out.address
    params.vectors = <unsigned int>(n >> entry.shift)
    params.flags = ELEMENTWISE_VALUE if left else ELEMENTWISE_VALUE << 2
    return record_aligned(
        stream, entry, call_key(op, dtype, NUMBER_LEFT if left else NUMBER_RIGHT, n), uses, 2,
        &params, n)


cdef int record_unaligned(StreamState* stream, const Entry* entry, int op, Memory out, Memory a,
                          PyObject* b, long long n) except -1:
    cdef Launch launch
    cdef Operand[3] operands
    launch.entry = entry
    operands[0] = Operand(<PyObject*>out, out.address, NULL, [0, 0])
    operands[1] = Operand(<PyObject*>a, a.address, NULL, [0, 0])
    if b != NULL:
        operands[2] = Operand(b, (<Memory>b).address, NULL, [0, 0])
    return record_dense(encoder_of(stream), &launch, op, operands, no_offsets, n, 0)


cdef int record_dense(Recorder encoder, Launch* launch, int op, const Operand* operands,
                      const long long* offsets, long long n, unsigned int broadcast) except -1:
    cdef Parameters params
    cdef Launch words
    cdef long long[2] starts
    cdef int size = launch.entry.itemsizes[0]
    if op == COPY and size < 16 and broadcast == 0 and operands[1].buffer != NULL \
            and n * size % 16 == 0 and (operands[0].address + offsets[0] * size) % 16 == 0 \
            and (operands[1].address + offsets[1] * size) % 16 == 0 \
            and offsets[0] * size % 16 == 0 and offsets[1] * size % 16 == 0:
        words.entry = entry_of(encoder.state.ordinal, COPY, type_of_size[WIDEST])
        starts[0] = offsets[0] * size // 16
        starts[1] = offsets[1] * size // 16
        return record_dense(encoder, &words, op, operands, starts, n * size // 16, 0)
    if not choose_dense(launch, &params, operands, offsets, n, broadcast):
        raise ValueError(f"{catalogue.OPS[op]}: {n:,} elements are more than a grid covers")
    return record(encoder, launch, &params, operands)


cdef int record_space(Recorder encoder, Launch* launch, int op, const Operand* operands,
                      unsigned int numbers, const Space* space, const Key* key) except -1:
    """Record one launch, or several if the space exceeds one launch. The plan of one strided launch
    is stored, unless `key` is NULL."""
    cdef Parameters params
    cdef StridedPlan plan
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
        return record_dense(encoder, launch, op, operands, space.offsets,
                            space.shape[0] if space.ndim else 1, broadcast)
    if op == COPY and space.strides[0][0] == 1 and space.shape[0] >= TRANSPOSED:
        for along in range(1, space.ndim):
            if space.strides[along][1] == 1 and space.shape[along] >= TRANSPOSED \
                    and record_transpose(encoder, type_of_size[launch.entry.itemsizes[0]],
                                         operands, space, along):
                return 0
    if plan_strided(&plan, launch.entry, numbers, space):
        if key != NULL:
            store_plan(key, &plan, sizeof(plan))
        choose_planned(launch, &params, &plan, operands)
        return record(encoder, launch, &params, operands)
    return record_parts(encoder, launch, op, operands, numbers, space)


cdef int record_parts(Recorder encoder, Launch* launch, int op, const Operand* operands,
                      unsigned int numbers, const Space* whole) except -1:
    """Record a launch for each index of the outermost dimension if there are too many dimensions;
    otherwise two halves."""
    cdef Space part = whole[0]
    cdef int d, i, last = whole.ndim - 1
    cdef long long _index
    if last > MAX_OUTER:
        part.ndim = last
        for _index in range(whole.shape[last]):
            record_space(encoder, launch, op, operands, numbers, &part, NULL)
            for i in range(part.operands):
                part.offsets[i] += whole.strides[last][i]
        return 0
    d = last
    for i in range(last):
        if whole.shape[i] > whole.shape[d]:
            d = i
    part.shape[d] = whole.shape[d] // 2
    record_space(encoder, launch, op, operands, numbers, &part, NULL)
    for i in range(part.operands):
        part.offsets[i] += part.shape[d] * whole.strides[d][i]
    part.shape[d] = whole.shape[d] - part.shape[d]
    return record_space(encoder, launch, op, operands, numbers, &part, NULL)
