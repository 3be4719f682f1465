# Poisoned memory: contents that are lost, since the driver refused to launch the operation that
# would have written them.
#
# INVARIANTS
# - A poisoned block stores the number of the error. The number belongs to one owner of the block:
#   the block is valid again after its next allocation, and after an operation overwrites all of it.
# - Several blocks may cover outside memory (see runtime/outside): overlapping ones are poisoned
#   together.
# - Reading a poisoned block raises the error. An operation that uses the block is not launched, and
#   what it would have written is lost because of the same error.
# - Blocks are marked when the operations that write them are launched or refused, in launch order.
# - Normally nothing is lost and `poisoned` is 0. Whatever raises it calls `disturb`: see
#   runtime/pool and graph/replay_call.

from cyrt.runtime.state cimport Block

cdef int poisoned               # number of blocks and recorded operations that store an error
# Count one more, or one fewer, use of an error's number.
cdef void retain_error(unsigned int number) noexcept
cdef void release_error(unsigned int number) noexcept

# Mark the block's contents as lost because of an error, if the block still has that owner.
cdef void poison(Block* block, unsigned int number, unsigned int generation) noexcept
# Mark the block as valid after an operation has overwritten all of it.
cdef void mark_valid(Block* block) noexcept
# Mark a new block as poisoned if it overlaps a poisoned one.
cdef void copy_error_of_overlap(Block* block) noexcept
# Remove the error from a block that is freed.
cdef void forget_loss(Block* block) noexcept
# Raise the error because of which the block's contents are lost, if any.
cdef int refuse_poisoned(const Block* block) except -1
