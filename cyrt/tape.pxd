# The tape: what a function that is differentiated did, and how its gradient is computed.
#
# INVARIANTS
# - A node is a call of a function that has a rule, an argument of a differentiated function (a
#   leaf), or one of several results. Its parents have lower numbers. Numbers are not reused as long
#   as a tape exists.
# - A call keeps what its gradient needs, as the parameters of the rule's functions name it, and
#   only that: values are dropped when the gradient of a tape that is not kept has passed them.
# - The functions of rules are written with cyrt's own, which an outer level records. A rule whose
#   function calls a kernel without a rule also has a composition, which an outer level records in
#   its place.
# - The order of the gradient is the reverse of that of recording.
# - Gradients are added in place only in an array that the tape has made for that, by an addition, a
#   copy or zeros, and that nobody else has.
# - Nothing that other threads record comes into a tape: it belongs to the thread that opened it.

from cpython.object cimport PyObject

cdef enum:
    MOST_OPERANDS = 16

# What is known of a call before the function runs.
cdef struct Call:
    unsigned long long mask         # levels that follow an operand; 0: the result is a constant
    unsigned long long versions     # sum of the versions of the arguments that are kept
    unsigned int operands           # bit of each operand that is followed
    int num_parents
    unsigned int before             # version of the memory of `out`
    bint inside                     # `out` was followed
    PyObject* plan                  # the rule's for these operands; borrowed

cdef class Rule:
    cdef readonly object function
    cdef str name
    cdef tuple parameters           # names of the function's parameters
    cdef int num_operands, num_positional
    cdef short[MOST_OPERANDS] operands      # their positions among the parameters
    cdef int out                    # position of `out`; -1: none
    cdef bint sequence              # the one operand is a sequence of arrays
    cdef bint constant              # the result is a constant
    cdef bint strict                # gradients have the shapes and types of the operands
    cdef str refusal                # why there is no gradient
    cdef list parts
    cdef dict plans                 # by the bits of the operands that are followed
    cdef object last_plan           # the one that was used last, and its bits
    cdef unsigned int last_operands

# Return function(*arguments), which is recorded as one node.
cdef object record_call(object function, tuple arguments)
# The rules of elementwise operations, by operation.
cdef Rule rule_of(int op)
# Find the operands that are followed, and suspend the tape; resume it, and record the call, of
# which `out`, or None, has received the result. Between them, the function runs; if it raises,
# `abandon` resumes the tape.
cdef int begin_call(Rule rule, PyObject** arguments, Py_ssize_t count, Call* call) except -1
cdef object end_call(Rule rule, PyObject** arguments, Py_ssize_t count, const Call* call,
                     object result, object out)
cdef void abandon_call() noexcept
# Raise TypeError if the tape follows an array whose value becomes a number: a constant.
cdef int refuse_number(object x, str what) except -1
