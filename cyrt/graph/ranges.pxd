# Ranges: the addresses of outside memory (see runtime/outside) that one recording uses.
#
# INVARIANTS
# - Ranges do not overlap: one block stores the hazards of each live range of addresses.
# - Exported memory of cyrt has ranges, too, since views by other libraries are the same memory.

from cyrt.runtime.state cimport Block

cdef struct Range:
    unsigned long long start, end
    Block* block
    unsigned int generation     # the block's; it was freed if that is another one now

cdef struct Ranges:
    Range* items
    int count, room
    bint joined                 # ranges were joined: a block may have another one's range

# Forget all ranges: a recording begins.
cdef inline void forget_ranges(Ranges* ranges) noexcept:
    ranges.count, ranges.joined = 0, False

# Return the block that stores the hazards of the given block's memory. Set `joined` if the memory
# overlaps ranges that were separate until now: the operation must then wait for all others.
cdef Block* resolve(Ranges* ranges, Block* block, bint* joined) except NULL
