# Elementwise operations, casts, copies and fills: the launches of elementwise.cu.
#
# INVARIANTS
# - Operands are checked, and code is loaded, before anything is recorded.
# - The caller checks that operands are inside their Buffers.
# - Grids are one-dimensional, so the limit of 65,535 does not apply; a space that exceeds a grid,
#   or 32-bit counts of rows and columns, is split into several launches.
# - The padding of parameters is zero: equal launches have equal bytes.

from cyrt.builtin.launch cimport Launch
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Kernels of an elementwise operation, in the order of Row.kernels.
cdef enum Variant:
    DENSE = 0
    STRIDED = 1
    ALIGNED = 2

# The form of a call on contiguous operands.
cdef enum Form:
    UNARY
    BINARY
    NUMBER_LEFT
    NUMBER_RIGHT

# The words of the ALIGNED kernel's parameters that depend on memory and numbers: the output's
# address, and from the other on, each input's address or number.
cdef enum:
    OUT_WORD = 0
    INPUT_WORD = 2

# Record an elementwise operation: unary, binary, ternary, a cast ("to_float32"), a copy; a fill is
# a copy of a value. The output comes first, and is never a number; the operation's inputs follow.
# `dtype` is the last input's type. An operation on no elements records nothing.
cdef int record_elementwise(Recorder encoder, int op, int dtype, const Operand* operands,
                            int ndim, const long long* shape) except -1
# Record one on n elements of contiguous arrays, and numbers.
cdef int record_contiguous(Recorder encoder, int op, int dtype, const Operand* operands,
                           long long n) except -1

# Return the key of a call on aligned operands in whole vectors, which no other library uses (see
# graph/replay_call): an operation has 10 bits, a type 8.
cdef inline unsigned long long call_key(unsigned int op, unsigned int dtype, Form form,
                                        long long n) noexcept:
    return <unsigned long long>n << 24 | op << 14 | dtype << 6 | form

# Set the geometry for n elements; each thread processes a vector of them `steps` times. False if a
# grid cannot cover them.
cdef bint set_grid(Launch* launch, unsigned long long n, unsigned int steps) noexcept
