# Elementwise operations, casts, copies and fills: the launches of elementwise.cu.
#
# INVARIANTS
# - Operands are checked, and code is loaded, before anything is recorded.
# - The caller checks that operands are inside their Buffers.

from cpython.object cimport PyObject

from cyrt.builtin.entry cimport Entry
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Use
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport DEVICE_MEMORY, Block, StreamState

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

# Return the key of such a call (see graph/replay_call): an operation has 10 bits, a type 8.
cdef inline unsigned long long call_key(int op, int dtype, Form form, long long n) noexcept:
    return <unsigned long long>n << 24 | op << 14 | dtype << 6 | form

# Record an elementwise operation on one or two contiguous inputs with a contiguous output. These
# are short paths for the most frequent cases. n is the number of elements; the inputs' blocks are
# alive, and of the stream's device.
cdef int record_unary(StreamState* stream, int op, int dtype, Memory out, Memory a, Block* a_block,
                      long long n) except -1
cdef int record_binary(StreamState* stream, int op, int dtype, Memory out, Memory a,
                       Block* a_block, Memory b, Block* b_block, long long n) except -1
