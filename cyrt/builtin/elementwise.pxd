# Elementwise operations, casts, copies and fills: the launches of elementwise.cu.
#
# INVARIANTS
# - Operands are checked, and code is loaded, before anything is recorded.
# - The caller checks that operands are inside their Buffers.

from cpython.object cimport PyObject

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport Block, StreamState

# Record an elementwise operation: unary, binary, ternary, a cast ("to_float32"), a copy; a fill is
# a copy of a value. The output comes first, and is never a number; the operation's inputs follow.
# `dtype` is the last input's type. An operation on no elements records nothing.
cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1
# Record the same for one or two contiguous inputs (the second may be NULL) and a contiguous
# output. It is a short path for the most frequent case. n is the number of elements; the inputs'
# blocks are alive.
cdef int record_contiguous(StreamState* stream, int op, int dtype, Memory out, Memory a,
                           Block* a_block, PyObject* b, Block* b_block, long long n) except -1
# Record the same for an input and a number, which is the left or the right operand.
cdef int record_with_number(StreamState* stream, int op, int dtype, Memory out, Memory a,
                            Block* a_block, const unsigned long long* number, bint left,
                            long long n) except -1
