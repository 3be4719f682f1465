# Elementwise operations, casts, copies and fills: the launches of elementwise.cu.
#
# INVARIANTS
# - Operands are checked, and code is loaded, before anything is recorded.
# - The caller checks that operands are inside their Buffers.

from cpython.object cimport PyObject

from cyrt.builtin.elementwise_choice cimport ALIGNED, Aligned1, Aligned2, takes_aligned
from cyrt.builtin.entry cimport WIDEST, Entry, entry_of
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Use
from cyrt.graph.replay_call cimport is_replaying, replay_call
from cyrt.runtime.memory cimport Memory, live_block, overwriting
from cyrt.runtime.state cimport DEVICE_MEMORY, READ, Block, StreamState

# Record an elementwise operation: unary, binary, ternary, a cast ("to_float32"), a copy; a fill is
# a copy of a value. The output comes first, and is never a number; the operation's inputs follow.
# `dtype` is the last input's type. An operation on no elements records nothing.
cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1
# Record the same for an input and a number, which is the left or the right operand.
cdef int record_with_number(StreamState* stream, int op, int dtype, Memory out, Memory a,
                            Block* a_block, const unsigned long long* number, bint left,
                            long long n) except -1

# The form of a call on contiguous operands.
cdef enum Form:
    UNARY
    BINARY
    NUMBER_LEFT
    NUMBER_RIGHT

# Return whether it is memory that no other library uses.
cdef inline bint is_own(const Block* block) noexcept:
    return block.kind == DEVICE_MEMORY and not block.shared

# Record a call on aligned operands in whole vectors, or on others.
cdef int record_aligned(StreamState* stream, Entry* entry, unsigned long long key, Use* uses,
                        int num_uses, const void* params, long long n) except -1
cdef int record_unaligned(StreamState* stream, const Entry* entry, int op, Memory out, Memory a,
                          PyObject* b, long long n) except -1

cdef inline int replay_or_record(
        StreamState* stream, Entry* entry, int op, int dtype, Form form, Use* uses, int num_uses,
        const void* params, size_t nbytes, long long n) except -1:
    """Replay a call on aligned operands if it is the next one of a script, or record it. The first
    `nbytes` of the parameters are addresses and numbers."""
    # The key of the call (see replay_call): an operation has 10 bits, a type 8.
    cdef unsigned long long key = <unsigned long long>n << 24 | op << 14 | dtype << 6 | form
    if is_replaying(stream) and replay_call(stream.encoder, key, entry.functions[<int>ALIGNED],
                                            uses, num_uses, params, nbytes, NULL):
        return 0
    return record_aligned(stream, entry, key, uses, num_uses, params, n)

# Record an elementwise operation on one or two contiguous inputs with a contiguous output. These
# are short paths for the most frequent cases. n is the number of elements; the inputs' blocks are
# alive, and of the stream's device.
cdef int record_unary(StreamState* stream, int op, int dtype, Memory out, Memory a, Block* a_block,
                      long long n) except -1
cdef inline int record_binary(StreamState* stream, int op, int dtype, Memory out, Memory a,
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
    return replay_or_record(stream, entry, op, dtype, BINARY, uses, 3, &params, 24, n)
