# From an operation and its operands to a recorded kernel.
#
# INVARIANTS
# - Everything is checked, and code loaded, before anything is recorded.
# - That operands lie within their Buffers is the caller's to check.

from cpython.object cimport PyObject

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Explained, Operand
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.state cimport Block, StreamState

# Records an operation element by element: unary, binary, ternary, a cast ("to_float32"), a copy; a
# fill is a copy of a value. The output comes first, and is no Operand with a value; then as many
# inputs as the operation has. `dtype` is the last input's. What is empty is dropped.
cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1
# Records start + i * step, the operands 1 and 2, into n contiguous elements. Both are values, of
# the widest type of `dtype`'s kind: 64-bit integer, double, or complex of doubles.
cdef int record_arange(Recorder encoder, int dtype, const Operand* operands,
                       long long n) except -1

# The same of one or two inputs (the second may be NULL) where all lie contiguous: the way of most
# operations, made short. n is the number of elements; the inputs' blocks are living ones.
cdef int record_contiguous(StreamState* stream, int op, int dtype, Memory out, Memory a,
                           Block* a_block, PyObject* b, Block* b_block, long long n) except -1
# The same of an input and a number beside it: on its left, or on its right.
cdef int record_with_number(StreamState* stream, int op, int dtype, Memory out, Memory a,
                            Block* a_block, const unsigned long long* number, bint left,
                            long long n) except -1
# As record_elementwise and record_arange; with `explained` the encoder may be None.
cdef int perform(Recorder encoder, int ordinal, int op, int dtype, const Operand* operands,
                 int ndim, const long long* shape, Explained explained) except -1
cdef int perform_arange(Recorder encoder, int ordinal, int dtype, const Operand* operands,
                        long long n, Explained explained) except -1
