# The tape: what a function that is differentiated did, and how its gradient is computed.
#
# INVARIANTS
# - A node is a call of a function that has a rule, an argument of a differentiated function (a
#   leaf), or one of several results. Its parents have lower numbers. Numbers are not reused as long
#   as a tape exists.
# - A call keeps what its gradient needs, as the parameters of the rule's functions name it, and
#   only that: values are dropped when the gradient of a tape that is not kept has passed them.
# - The functions of rules are written with cyrt's own, which an outer level records. A rule whose
#   function calls a kernel without a rule also has a composition, which an outer level records
#   instead.
# - The order of the gradient is the reverse of that of recording.
# - Gradients are added in place only in an array that the tape has made for that, by an addition, a
#   copy or zeros, and that nobody else has.
# - Nothing that other threads record comes into a tape: it belongs to the thread that opened it.

cimport cython
from cpython.object cimport PyObject

from cyrt.ndarray cimport Array
from cyrt.runtime.state cimport Block
from cyrt.runtime.taping cimport Thread

cdef enum:
    MOST_OPERANDS = 16
    FIRST_FLOAT = 9             # element types from this code on have gradients

cdef enum NodeKind:
    CALL
    LEAF
    OUTPUT                  # one of several results; its parent is the call

cdef struct Node:
    PyObject* rule          # those of calls; both are owned
    PyObject* plan
    PyObject* code          # the user's, where the call was made: owned
    int offset
    short kind
    short dtype
    int result              # an output's index; of a call, the number of results, 0: a single one
    int num_parents
    int first_parent
    int num_values
    int first_value
    int ndim
    int first_size
    unsigned long long versions


@cython.final
@cython.no_gc_clear
cdef class Tape:
    cdef unsigned long long number
    cdef int levels             # number of levels that are not closed
    cdef int holders            # number of functions that need the values later
    cdef Node* nodes
    cdef unsigned long long* masks      # levels on whose arguments a node depends
    cdef int* parents
    cdef PyObject** values
    cdef long long* sizes
    cdef int num_nodes, num_parents, num_values, num_sizes
    cdef int most_nodes, most_parents, most_values, most_sizes
    # The last write in place that was recorded: the block, its version before, and whether the
    # tape had recorded another write into it.
    cdef Block* written
    cdef unsigned int version_before
    cdef bint written_before
    # A copy of the values that the current call overwrites through `out`, if its gradient needs
    # them; else None.
    cdef Array overwritten
    # Views of the arguments of the levels that are not closed.
    cdef list leaves


# A function that is differentiated in this thread, from the call to its gradient. `end_level` also
# follows an error: no lower level depends on its arguments alone.
@cython.final
@cython.no_gc_clear
cdef class Level:
    cdef Tape tape
    cdef Thread before          # the thread's state, if the level has opened the tape
    cdef int depth, start, num_leaves, end
    cdef bint opened, stopped, closed
    # Return a view of an argument that the tape follows.
    cdef Array leaf(self, Array x)
    # Return the node of a value that depends on the level's arguments; -1 if it does not.
    cdef int find_node(self, object x) except -2
    # Record no more at this level; end it.
    cdef int stop_recording(self) noexcept
    cdef int end_level(self) noexcept
    # Keep the values as long as the tape exists.
    cdef int hold(self) noexcept
    # Return the gradients of the leaves from those of nodes; None is zero. `keep`: the values are
    # needed again.
    cdef list differentiate(self, list nodes, list gradients, bint keep)

cdef class Rule:
    cdef readonly object function
    cdef str name
    cdef tuple parameters           # names of the function's parameters
    cdef int num_operands, num_positional
    cdef tuple keywords             # names of the parameters for keywords only
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

# A function that computes an elementwise operation of the catalogue. The last operand is `out`, or
# None. It returns a new reference, or sets an error and returns NULL.
ctypedef PyObject* (*Operation)(int op, PyObject** operands) noexcept
# Return operation(op, operands), which is recorded as one node if the tape follows an operand. A
# sequence of values that are followed becomes an array first.
cdef object call_operation(int op, PyObject** operands, int count, Operation operation)

# Raise TypeError if the tape follows an array whose value becomes a number: a constant.
cdef int refuse_number(object x, str what) except -1
