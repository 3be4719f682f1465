# The strided launches that were planned last: programs repeat their shapes.
#
# INVARIANT: a plan depends on its key only: the kernel's types, and shape and strides as the
# operation has them, before the space is simplified.

from cyrt.builtin.elementwise_choice cimport StridedPlan
from cyrt.builtin.entry cimport Entry
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_OPERANDS

cdef enum:
    MOST_DIMS = 6           # the most dimensions of a key
    MOST_WORDS = 2 + MOST_DIMS * (1 + MAX_OPERANDS)

cdef struct Key:
    int count               # words in use; 0: too many dimensions
    unsigned long long[MOST_WORDS] words
    unsigned long long hash

# Set the key of an operation; return a bit for each operand that is a number.
cdef unsigned int set_key(Key* key, const Entry* entry, const Operand* operands, int ndim,
                          const long long* shape) noexcept
# Return the plan stored for the key, or NULL.
cdef const StridedPlan* find_plan(const Key* key) noexcept
# Store a plan; it replaces another one.
cdef void store_plan(const Key* key, const StridedPlan* plan) noexcept
