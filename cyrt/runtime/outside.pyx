# C-level functions only: see outside.pxd.
"""Outside memory: memory that streams unknown to cyrt may use."""

from cyrt.runtime.state cimport Block


cdef void add_outside(Block* block) noexcept:
    cdef Block* first = outside[block.ordinal]
    block.previous_outside = NULL
    block.next_outside = first
    if first != NULL:
        first.previous_outside = block
    outside[block.ordinal] = block


cdef void remove_outside(Block* block) noexcept:
    if block.previous_outside != NULL:
        block.previous_outside.next_outside = block.next_outside
    else:
        outside[block.ordinal] = block.next_outside
    if block.next_outside != NULL:
        block.next_outside.previous_outside = block.previous_outside
    block.previous_outside = block.next_outside = NULL
