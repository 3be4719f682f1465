# C-level functions only: see poison.pxd.
"""Poisoned blocks, whose contents are lost."""

from cyrt.driver.table cimport disturb
from cyrt.runtime.outside cimport contains, is_outside, outside, overlap
from cyrt.runtime.seam cimport graph
from cyrt.runtime.state cimport Block


cdef void retain_error(unsigned int number) noexcept:
    global poisoned
    poisoned += 1
    disturb()
    graph.count_holders(number, 1)


cdef void release_error(unsigned int number) noexcept:
    global poisoned
    poisoned -= 1
    graph.count_holders(number, -1)


cdef void mark(Block* block, unsigned int number) noexcept:
    """Set the error number of this block only."""
    if block.poison == number:
        return
    if block.poison:
        release_error(block.poison)
    if number:
        retain_error(number)
    block.poison = number


cdef void poison(Block* block, unsigned int number, unsigned int generation) noexcept:
    cdef Block* other
    if block.generation != generation:      # it has a new owner
        return
    mark(block, number)
    if is_outside(block):
        other = outside[block.ordinal]
        while other != NULL:
            if overlap(other, block):
                mark(other, number)
            other = other.next_outside


cdef void mark_valid(Block* block) noexcept:
    cdef Block* other
    mark(block, 0)
    if poisoned and is_outside(block):
        other = outside[block.ordinal]
        while other != NULL:
            if contains(block, other):
                mark(other, 0)
            other = other.next_outside


cdef void copy_error_of_overlap(Block* block) noexcept:
    cdef Block* other = outside[block.ordinal] if poisoned else NULL
    while other != NULL and not (other.poison and overlap(other, block)):
        other = other.next_outside
    if other != NULL:
        mark(block, other.poison)


cdef void forget_loss(Block* block) noexcept:
    mark(block, 0)


cdef int refuse_poisoned(const Block* block) except -1:
    if block.poison:
        raise graph.error_of(block.poison)
    return 0
