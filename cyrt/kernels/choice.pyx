# cython: cdivision=True
"""How the kernels of kernels_cu are launched: which variant, grid, block and parameters."""

from libc.string cimport memset

from cyrt.kernels.space cimport MAX_OUTER, Divider, Space, divider
from cyrt.kernels.entries cimport Entry, Operand
from cyrt.kernels.launch cimport power_of_two, set_geometry

cdef enum:
    BLOCK = 256             # threads, at most
    STEPS = 3               # of a thread, in grids of at least
    STEPPING = 16384        # blocks: each more than the device runs at once
    MAX_COUNT = 0x7fffffff  # blocks of a grid, and what a Divider divides
    VECTOR = 1              # flags of kernels_cu/elementwise.cu; of the first input:
    BROADCAST = 2
    TILE_ROWS = 8           # as in kernels_cu/transpose.cu
    SIDE = 64               # of a tile, for elements of up to 4 bytes
    WARP = 32

# Ends of the structs Strided and Transpose of kernels_cu.
cdef struct Counts:
    unsigned int num_outer, rows, inner, flags
    Divider chunks


cdef struct TransposeTail:
    Divider tiles_in, tiles_out
    unsigned int size_in, size_out, num_batch


cdef bint cover(Choice* choice, unsigned long long n, unsigned int steps) noexcept:
    cdef unsigned long long threads = (n + choice.entry.items - 1) >> choice.entry.shift
    cdef unsigned long long blocks = (threads + BLOCK * steps - 1) // (BLOCK * steps)
    set_geometry(&choice.geometry, blocks, power_of_two(threads, WARP, BLOCK), 1)
    return blocks <= MAX_COUNT


cdef inline unsigned long long* put_operands(Choice* choice, const Operand* operands,
                                             const long long* offsets,
                                             unsigned int* flags) noexcept:
    """The inputs, 16 bytes each, and the output's address; returns where the rest goes."""
    cdef Entry* entry = choice.entry
    cdef unsigned long long* words = <unsigned long long*>choice.params
    cdef int i
    for i in range(1, entry.num_inputs + 1):
        if operands[i].buffer == NULL:
            words[0] = operands[i].value[0]
            words[1] = operands[i].value[1]
            flags[0] |= <unsigned int>VALUE << 2 * (i - 1)
        else:
            words[0] = operands[i].address + offsets[i] * entry.itemsizes[i]
            words[1] = 0
        words += 2
    words[0] = operands[0].address + offsets[0] * entry.itemsizes[0]
    return words + 1


cdef inline bint vectors(const Choice* choice, int operand) noexcept:
    """Whether the operand's address is aligned to the elements that a thread takes."""
    cdef const Entry* entry = choice.entry
    cdef const unsigned long long* words = <const unsigned long long*>choice.params
    cdef unsigned long long address
    address = words[2 * (operand - 1)] if operand else words[2 * entry.num_inputs]
    return address & (entry.items * entry.itemsizes[operand] - 1) == 0


cdef void choose_aligned(Choice* choice, long long n) noexcept:
    cdef unsigned long long threads = n >> choice.entry.shift
    choice.variant = ALIGNED
    set_geometry(&choice.geometry, (threads + BLOCK - 1) // BLOCK,
                 power_of_two(threads, WARP, BLOCK), 1)


cdef bint choose_dense(Choice* choice, const Operand* operands, const long long* offsets,
                       long long n, unsigned int broadcast) noexcept:
    cdef int i, inputs = choice.entry.num_inputs
    cdef unsigned int flags = 0, steps = 1
    cdef bint aligned
    cdef unsigned long long* words
    cdef unsigned long long* rest = put_operands(choice, operands, offsets, &flags)
    aligned = vectors(choice, 0)
    for i in range(1, inputs + 1):
        if broadcast >> i & 1:
            flags |= <unsigned int>BROADCAST << 2 * (i - 1)
        elif operands[i].buffer != NULL:
            aligned = aligned and vectors(choice, i)
    # A number of up to 8 bytes has room for an address.
    if aligned and broadcast == 0 and takes_aligned(choice.entry, n) \
            and (flags == 0 or inputs == 2 and choice.entry.itemsizes[1] <= 8):
        words = <unsigned long long*>choice.params
        for i in range(1, inputs + 1):
            words[i] = words[2 * i]
        words[inputs + 1] = n >> choice.entry.shift | <unsigned long long>flags << 32
        words[inputs + 2] = 0
        choose_aligned(choice, n)
        return True
    if n >> choice.entry.shift >= <long long>STEPPING * BLOCK:
        steps = STEPS
    rest[0] = n
    rest[1] = flags | (VECTOR if aligned else 0) | <unsigned long long>steps << 32
    rest[2] = 0
    choice.variant = DENSE
    return cover(choice, n, steps)


cdef bint choose_strided(Choice* choice, const Operand* operands, const Space* space) noexcept:
    cdef Entry* entry = choice.entry
    cdef int d, i, count = space.operands, outer = space.ndim - 1
    cdef unsigned int flags = 0, x, y
    cdef unsigned long long rows = 1, inner = space.shape[0], blocks, chunks
    cdef bint aligned
    cdef long long* words
    cdef Divider* dims
    cdef Counts* counts
    choice.variant = STRIDED
    if outer > MAX_OUTER or inner > MAX_COUNT:
        return False
    for d in range(1, space.ndim):
        rows *= space.shape[d]
        if rows > MAX_COUNT:
            return False
    memset(choice.params, 0, sizeof(choice.params))
    words = <long long*>put_operands(choice, operands, space.offsets, &flags)
    aligned = inner % entry.items == 0
    for i in range(count):
        words[i] = space.strides[0][i]
        # A row that is one element is read as such wherever it lies.
        if i and (operands[i].buffer == NULL or space.strides[0][i] == 0):
            continue
        aligned = aligned and space.strides[0][i] == 1 and vectors(choice, i)
        for d in range(1, space.ndim):
            aligned = aligned and space.strides[d][i] % entry.items == 0
    dims = <Divider*>(words + count)
    words = <long long*>(dims + MAX_OUTER)
    for d in range(outer):
        dims[d] = divider(<unsigned int>space.shape[d + 1])
        for i in range(count):
            words[d * count + i] = space.strides[d + 1][i]
    x = power_of_two((inner + entry.items - 1) // entry.items, 1, BLOCK)
    y = power_of_two(rows, 1, BLOCK // x)
    chunks = (inner + <unsigned long long>x * entry.items - 1) // (
        <unsigned long long>x * entry.items)
    blocks = (rows + y - 1) // y * chunks
    counts = <Counts*>(words + MAX_OUTER * count)
    counts.num_outer = outer
    counts.rows = <unsigned int>rows
    counts.inner = <unsigned int>inner
    counts.flags = flags | (VECTOR if aligned else 0)
    counts.chunks = divider(<unsigned int>chunks)
    set_geometry(&choice.geometry, blocks, x, y)
    return blocks <= MAX_COUNT


cdef bint choose_tiled(Choice* choice, const Operand* operands, const Space* space,
                       int along) noexcept:
    cdef int itemsize = choice.entry.itemsizes[0]
    cdef int d, i, batch = 0, wide = 4 // itemsize if itemsize < 4 else 1
    cdef unsigned int flags = 0
    cdef unsigned long long side, tiles_in, tiles_out, blocks = 1
    cdef unsigned long long misaligned
    cdef long long* words
    cdef Divider* dims
    cdef TransposeTail* tail
    if space.ndim - 2 > MAX_OUTER or space.shape[0] > MAX_COUNT or space.shape[along] > MAX_COUNT:
        return False
    memset(choice.params, 0, sizeof(choice.params))
    words = <long long*>put_operands(choice, operands, space.offsets, &flags)
    words[0] = space.strides[0][1]
    words[1] = space.strides[along][0]
    # The input's address comes first, the output's two words later.
    misaligned = (words[0] | words[1]) * itemsize | (words - 1)[0] | (words - 3)[0]
    dims = <Divider*>(words + 2)
    words = <long long*>(dims + MAX_OUTER)
    for d in range(1, space.ndim):
        if d == along:
            continue
        if space.shape[d] > MAX_COUNT:
            return False
        blocks *= space.shape[d]
        if blocks > MAX_COUNT:
            return False
        dims[batch] = divider(<unsigned int>space.shape[d])
        for i in range(2):
            words[2 * batch + i] = space.strides[d][i]
            misaligned |= space.strides[d][i] * itemsize
        batch += 1
    choice.variant = TILED_WIDE if wide > 1 and misaligned % 4 == 0 else TILED
    side = WARP * (wide if choice.variant == TILED_WIDE else 1)
    if itemsize <= 4 and side < SIDE:
        side = SIDE
    tiles_in = (space.shape[along] + side - 1) // side
    tiles_out = (space.shape[0] + side - 1) // side
    tail = <TransposeTail*>(words + 2 * MAX_OUTER)
    tail.tiles_in = divider(<unsigned int>tiles_in)
    tail.tiles_out = divider(<unsigned int>tiles_out)
    tail.size_in = <unsigned int>space.shape[along]
    tail.size_out = <unsigned int>space.shape[0]
    tail.num_batch = batch
    if tiles_in * tiles_out > MAX_COUNT // blocks:
        return False
    set_geometry(&choice.geometry, blocks * tiles_in * tiles_out, WARP, TILE_ROWS)
    return True
