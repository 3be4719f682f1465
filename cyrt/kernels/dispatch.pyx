# cython: cdivision=True
"""From an operation and its operands to a recorded kernel."""

from cpython.object cimport PyObject

from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recording cimport Use
from cyrt.graph.recorder cimport Recorder, encoder_of, record_kernel
from cyrt.kernels import catalogue
from cyrt.kernels.choice cimport (
    ALIGNED, VALUE, Choice, choose_aligned, choose_dense, choose_strided, choose_tiled, cover,
    takes_aligned,
)
from cyrt.kernels.row import BY_SIZE
from cyrt.kernels.space cimport MAX_NDIM, MAX_OPERANDS, MAX_OUTER, Space, simplify
from cyrt.kernels.entries cimport Entry, Explained, Operand, WHOLE, entry_of, record_entry
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.poison cimport poisoned
from cyrt.runtime.state cimport DEVICE_MEMORY, READ, WRITE, Block, StreamState

cdef enum:
    TRANSPOSED = 8          # dimensions that short are not exchanged through tiles

cdef long long[MAX_NDIM] nowhere    # strides of a value: 0
cdef long long[4] no_offsets
cdef int COPY = catalogue.OPS.index("copy")
cdef int TRANSPOSE = catalogue.OPS.index("transpose")
cdef int ARANGE = catalogue.OPS.index("arange")
cdef int WORDS = _dtype("complex128").code      # 16 bytes, to copy by


cdef inline int record(Recorder encoder, const Choice* choice, const Operand* operands,
                       Explained explained) except -1:
    return record_entry(encoder, choice.entry, choice.variant, &choice.geometry, choice.params,
                        operands, choice.entry.num_inputs + 1, 1 | WHOLE, explained)


cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1:
    return perform(encoder, encoder.state.ordinal, op, dtype, operands, ndim, shape, None)


cdef int perform(Recorder encoder, int ordinal, int op, int dtype, const Operand* operands,
                 int ndim, const long long* shape, Explained explained) except -1:
    cdef Choice choice
    cdef Space space
    cdef const long long* strides[MAX_OPERANDS]
    cdef long long n = 1
    cdef bint contiguous = True
    cdef int i
    choice.entry = entry_of(ordinal, op, dtype)
    for i in range(ndim):
        n *= shape[i]
    if n == 0:
        return 0
    for i in range(choice.entry.num_inputs + 1):
        strides[i] = operands[i].strides
        if operands[i].buffer == NULL:
            strides[i] = &nowhere[0]
        elif strides[i] != NULL:
            contiguous = False
    if contiguous:
        return record_dense(encoder, ordinal, &choice, op, operands, no_offsets, n, 0, explained)
    simplify(&space, choice.entry.num_inputs + 1, ndim, shape, strides)
    return record_space(encoder, ordinal, &choice, op, operands, &space, explained)


cdef inline bint is_own(const Block* block, int ordinal) noexcept:
    return block.kind == DEVICE_MEMORY and not block.shared and block.ordinal == ordinal


cdef int record_contiguous(StreamState* stream, int op, int dtype, Memory out, Memory a,
                           Block* a_block, PyObject* b, Block* b_block, long long n) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef Recorder encoder
    cdef Use[3] uses
    cdef Choice choice
    cdef unsigned long long* words = <unsigned long long*>choice.params
    cdef unsigned long long misaligned
    cdef int inputs = 1 if b == NULL else 2
    uses[0].block = a_block
    if b != NULL:
        uses[1].block = b_block
    uses[inputs].block = live_block(out)
    words[0] = a.address
    words[1] = words[2] = out.address
    words[3] = 0
    misaligned = (a.address & (entry.items * entry.itemsizes[1] - 1)) \
        | (out.address & (entry.items * entry.itemsizes[0] - 1))
    if b != NULL:
        words[1] = (<Memory>b).address
        misaligned |= words[1] & (entry.items * entry.itemsizes[2] - 1)
    if n == 0:
        return 0
    if misaligned or not takes_aligned(entry, n) \
            or not (is_own(uses[0].block, stream.ordinal)
                    and is_own(uses[inputs - 1].block, stream.ordinal)
                    and is_own(uses[inputs].block, stream.ordinal)):
        return record_slowly(stream, op, dtype, out, a, b, n)
    words[inputs + 1] = n >> entry.shift
    choice.entry = entry
    choose_aligned(&choice, n)
    uses[0].access = uses[inputs - 1].access = READ
    uses[inputs].access = overwriting(out) if poisoned else WRITE
    encoder = encoder_of(stream)
    return record_kernel(encoder, <LoadedFunction>entry.functions[<int>ALIGNED], &choice.geometry,
                         choice.params, uses, inputs + 1, None, False, 0, NULL)


cdef int record_with_number(StreamState* stream, int op, int dtype, Memory out, Memory a,
                            Block* a_block, const unsigned long long* number, bint left,
                            long long n) except -1:
    cdef Entry* entry = entry_of(stream.ordinal, op, dtype)
    cdef Use[2] uses
    cdef Choice choice
    cdef Operand[3] operands
    cdef unsigned long long* words = <unsigned long long*>choice.params
    if n == 0:
        return 0
    uses[0].block = a_block
    uses[1].block = live_block(out)
    if entry.itemsizes[1] > 8 or not takes_aligned(entry, n) \
            or a.address & (entry.items * entry.itemsizes[1] - 1) \
            or out.address & (entry.items * entry.itemsizes[0] - 1) \
            or not (is_own(uses[0].block, stream.ordinal)
                    and is_own(uses[1].block, stream.ordinal)):
        operands[0] = Operand(<PyObject*>out, out.address, NULL, [0, 0])
        operands[2 if left else 1] = Operand(<PyObject*>a, a.address, NULL, [0, 0])
        operands[1 if left else 2] = Operand(NULL, 0, NULL, [number[0], number[1]])
        return record_elementwise(encoder_of(stream), op, dtype, operands, 1, &n)
    words[left] = a.address
    words[not left] = number[0]
    words[2] = out.address
    words[3] = n >> entry.shift | <unsigned long long>(VALUE if left else VALUE << 2) << 32
    choice.entry = entry
    choose_aligned(&choice, n)
    uses[0].access = READ
    uses[1].access = overwriting(out) if poisoned else WRITE
    return record_kernel(encoder_of(stream), <LoadedFunction>entry.functions[<int>ALIGNED],
                         &choice.geometry, choice.params, uses, 2, None, False, 0, NULL)


cdef int record_slowly(StreamState* stream, int op, int dtype, Memory out, Memory a, PyObject* b,
                       long long n) except -1:
    cdef Operand[3] operands
    operands[0] = Operand(<PyObject*>out, out.address, NULL, [0, 0])
    operands[1] = Operand(<PyObject*>a, a.address, NULL, [0, 0])
    if b != NULL:
        operands[2] = Operand(b, (<Memory>b).address, NULL, [0, 0])
    return record_elementwise(encoder_of(stream), op, dtype, operands, 1, &n)


cdef int record_dense(Recorder encoder, int ordinal, Choice* choice, int op,
                      const Operand* operands, const long long* offsets, long long n,
                      unsigned int broadcast, Explained explained) except -1:
    cdef long long[2] starts
    cdef Entry* entry = choice.entry
    cdef int size = entry.itemsizes[0]
    if op == COPY and size < 16 and broadcast == 0 and operands[1].buffer != NULL \
            and n * size % 16 == 0 and (operands[0].address + offsets[0] * size) % 16 == 0 \
            and (operands[1].address + offsets[1] * size) % 16 == 0 \
            and offsets[0] * size % 16 == 0 and offsets[1] * size % 16 == 0:
        choice.entry = entry_of(ordinal, COPY, WORDS)
        starts[0] = offsets[0] * size // 16
        starts[1] = offsets[1] * size // 16
        return record_dense(encoder, ordinal, choice, op, operands, starts, n * size // 16, 0,
                            explained)
    if not choose_dense(choice, operands, offsets, n, broadcast):
        raise ValueError(f"{catalogue.OPS[op]}: {n:,} elements are more than a grid covers")
    return record(encoder, choice, operands, explained)


cdef int record_space(Recorder encoder, int ordinal, Choice* choice, int op,
                      const Operand* operands, const Space* space, Explained explained) except -1:
    """One launch; several where the space is too much for one."""
    cdef Entry* entry = choice.entry
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
        return record_dense(encoder, ordinal, choice, op, operands, space.offsets,
                            space.shape[0] if space.ndim else 1, broadcast, explained)
    if op == COPY and space.strides[0][0] == 1 and space.shape[0] >= TRANSPOSED:
        for along in range(1, space.ndim):
            if space.strides[along][1] == 1 and space.shape[along] >= TRANSPOSED:
                choice.entry = entry_of(ordinal, TRANSPOSE,
                                        dtype_of_size(entry.itemsizes[0]))
                if choose_tiled(choice, operands, space, along):
                    return record(encoder, choice, operands, explained)
                choice.entry = entry
    if choose_strided(choice, operands, space):
        return record(encoder, choice, operands, explained)
    return record_parts(encoder, ordinal, choice, op, operands, space, explained)


cdef int record_parts(Recorder encoder, int ordinal, Choice* choice, int op,
                      const Operand* operands, const Space* whole, Explained explained) except -1:
    """Index by index of the outermost dimension where there are too many; else two halves."""
    cdef Space part = whole[0]
    cdef int d, i, last = whole.ndim - 1
    cdef long long _index
    if last > MAX_OUTER:
        part.ndim = last
        for _index in range(whole.shape[last]):
            record_space(encoder, ordinal, choice, op, operands, &part, explained)
            for i in range(part.operands):
                part.offsets[i] += whole.strides[last][i]
        return 0
    d = last
    for i in range(last):
        if whole.shape[i] > whole.shape[d]:
            d = i
    part.shape[d] = whole.shape[d] // 2
    record_space(encoder, ordinal, choice, op, operands, &part, explained)
    for i in range(part.operands):
        part.offsets[i] += part.shape[d] * whole.strides[d][i]
    part.shape[d] = whole.shape[d] - part.shape[d]
    return record_space(encoder, ordinal, choice, op, operands, &part, explained)


cdef int dtype_of_size(int itemsize) except -1:
    return _dtype(BY_SIZE[itemsize]).code


cdef int record_arange(Recorder encoder, int dtype, const Operand* operands,
                       long long n) except -1:
    return perform_arange(encoder, encoder.state.ordinal, dtype, operands, n, None)


cdef int perform_arange(Recorder encoder, int ordinal, int dtype, const Operand* operands,
                        long long n, Explained explained) except -1:
    cdef Choice choice
    cdef unsigned long long* words = <unsigned long long*>choice.params
    cdef int i
    choice.entry = entry_of(ordinal, ARANGE, dtype)
    if n == 0:
        return 0
    choice.variant = 0
    for i in range(4):
        words[i] = operands[1 + i // 2].value[i % 2]
    words[4] = operands[0].address
    words[5] = n
    if not cover(&choice, n, 1):
        raise ValueError(f"arange: {n:,} elements are more than a grid covers")
    return record(encoder, &choice, operands, explained)
