# Contents that were lost: of operations that the driver refused when they were launched.
#
# INVARIANTS
# - A block whose contents were lost carries the number of the error. It belongs to one owner of the
#   block: another allocation of it is whole again, and so is a block that is overwritten wholly.
# - Reading such a block raises that error; an operation that uses it is not recorded, and what it
#   would have written is lost by the same error.
# - Normally no block is lost, and `poisoned` is 0: that is all that the hot path looks at.

from cyrt.runtime.state cimport Block

cdef int poisoned               # blocks
# The exception of a number; graph/loss puts itself here.
cdef object (*error_of)(unsigned int number)
# The number is used by one block more, or by one less; it puts these here, too.
cdef void (*hold_error)(unsigned int number) noexcept
cdef void (*drop_error)(unsigned int number) noexcept

cdef void poison(Block* block, unsigned int number, unsigned int generation) noexcept
cdef void heal(Block* block) noexcept
# Raises the error by which the block's contents were lost.
cdef int refuse_poisoned(const Block* block) except -1
