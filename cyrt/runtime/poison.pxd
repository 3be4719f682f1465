# Contents that were lost: of operations that the driver refused when they were launched.
#
# INVARIANTS
# - A block whose contents were lost carries the number of the error. It belongs to one owner of the
#   block: another allocation of it is whole again, and so is a block that is overwritten wholly.
# - Memory that is outside may have several blocks: those that overlap are lost together.
# - Reading such a block raises that error; an operation that uses it is not launched, and what it
#   would have written is lost by the same error.
# - Blocks are marked when the operations that write them are launched, or are not: in that order.
# - Normally nothing is lost, and `poisoned` is 0: that is all that the hot path looks at.

from cyrt.runtime.state cimport Block

cdef int poisoned               # blocks, and recorded operations
# The number is used by one more, or by one less.
cdef void hold_error(unsigned int number) noexcept
cdef void drop_error(unsigned int number) noexcept

# The block's contents were lost by an error, where it still has that owner.
cdef void poison(Block* block, unsigned int number, unsigned int generation) noexcept
# The block was overwritten wholly.
cdef void heal(Block* block) noexcept
# The block is over memory that was lost, where another block tells so.
cdef void inherit_loss(Block* block) noexcept
# The block is freed.
cdef void forget_loss(Block* block) noexcept
# Raises the error by which the block's contents were lost.
cdef int refuse_poisoned(const Block* block) except -1
