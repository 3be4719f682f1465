# Memory that cyrt did not allocate, in one recording: by address.
#
# INVARIANTS
# - Ranges do not overlap: each live range of addresses has one block that keeps its hazards.
# - Memory of cyrt's own that was handed out is here too: others' views of it are the same memory.

from cyrt.runtime.state cimport Block

cdef struct Range:
    unsigned long long start, end
    Block* block
    unsigned int generation     # of the block: where it differs, the block was freed since

cdef struct Ranges:
    Range* items
    int count, room

# The block that keeps the hazards of the block's memory. `joined` is set where it lies across
# ranges that were told apart until now: the operation comes after all others then.
cdef Block* resolve(Ranges* ranges, Block* block, bint* joined) except NULL
