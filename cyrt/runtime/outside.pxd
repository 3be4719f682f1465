# Outside memory: memory that streams unknown to cyrt may use. It is memory of other libraries, and
# memory of cyrt whose address was exported.
#
# INVARIANTS
# - The list of a device contains exactly the living blocks of that kind. Several of its blocks may
#   cover the same memory: a loss that one of them records is recorded in all that overlap it.
# - A freed block stays `shared` until it has another owner: its next use has to wait for what other
#   libraries did with it.

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block

cdef inline bint is_outside(const Block* block) noexcept:
    return block.shared or block.kind == FOREIGN_MEMORY

# The first block of each device's list.
cdef Block* outside[MAX_DEVICES]

cdef inline bint overlap(const Block* one, const Block* other) noexcept:
    return one.address < other.address + other.size and other.address < one.address + one.size \
        and one.epoch == other.epoch

cdef inline bint contains(const Block* whole, const Block* part) noexcept:
    return whole.address <= part.address and whole.epoch == part.epoch \
        and part.address + part.size <= whole.address + whole.size

# Add a block that has become outside memory; remove one that is freed.
cdef void add_outside(Block* block) noexcept
cdef void remove_outside(Block* block) noexcept
