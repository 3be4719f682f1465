# Calls of convolutions and of their gradients: what follows from one is kept, as a program repeats
# its convolutions.
#
# INVARIANTS
# - An answer is kept under everything that selects what a call records, but for its operands'
#   addresses: what the function computes, the values of its arguments, the operands' types,
#   devices, sizes, steps, and their addresses modulo ALIGNMENT.
# - The activation is in the key by its address, so an answer holds it. An answer is kept only if
#   all arguments are in the key.

from cyrt.builtin.window cimport WINDOW_AXES
from cyrt.ndarray cimport Array

cdef enum:
    MOST_DIMS = WINDOW_AXES + 2

# The operation that a public function computes, and the form of its arguments.
cdef struct Function:
    int op                  # the operation's code
    int wanted              # the operands' dimensions; 0: 3 to 5
    bint transposed, flip

# The shape of the operand whose gradient is computed: the caller passes no such operand.
cdef struct Absent:
    int ndim
    long long[MOST_DIMS] dims

# Read that shape.
cdef int read_shape(str name, str argument, object shape, Absent* absent) except -1
# Check and record a call; `name` is for errors. The operands are those of record_conv; the bias is
# None, and `absent` NULL, where there are none. A transposed convolution's output padding is passed
# as `input_dilation`.
cdef Array call(str name, const Function* function, Array source, Array other, Array bias,
                const Absent* absent, object stride, object padding, object dilation,
                object input_dilation, object groups, object activation)
