# C-level functions only: see poison.pxd.
"""Blocks whose contents were lost."""

from cyrt.runtime.state cimport Block


cdef void poison(Block* block, unsigned int number, unsigned int generation) noexcept:
    global poisoned
    if block.generation != generation:      # it has a new owner
        return
    if block.poison == number:
        return
    heal(block)
    hold_error(number)
    block.poison = number
    poisoned += 1


cdef void heal(Block* block) noexcept:
    global poisoned
    if block.poison:
        drop_error(block.poison)
        block.poison = 0
        poisoned -= 1


cdef int refuse_poisoned(const Block* block) except -1:
    if block.poison:
        raise error_of(block.poison)
    return 0
