"""Ranges of addresses of outside memory, within one recording."""

from cyrt.runtime.allocation cimport reallocate
from cyrt.runtime.state cimport Block


cdef Block* resolve(Ranges* ranges, Block* block, bint* joined) except NULL:
    cdef unsigned long long start = block.address, end = block.address + max(block.size, 1)
    cdef Range* item
    cdef Block* found = NULL
    cdef int i, kept = 0
    for i in range(ranges.count):
        item = &ranges.items[i]
        if item.start <= start and end <= item.end \
                and item.generation == item.block.generation:
            return item.block
    if ranges.count == ranges.room:
        ranges.items = <Range*>reallocate(ranges.items, (2 * ranges.room + 8) * sizeof(Range))
        ranges.room = 2 * ranges.room + 8
    for i in range(ranges.count):
        item = &ranges.items[i]
        if item.start < end and start < item.end:
            joined[0] = ranges.joined = True
            start, end = min(start, item.start), max(end, item.end)
            if item.generation == item.block.generation:
                found = item.block
        else:
            ranges.items[kept] = item[0]
            kept += 1
    ranges.items[kept].start = start
    ranges.items[kept].end = end
    ranges.items[kept].block = found if found != NULL else block
    ranges.items[kept].generation = ranges.items[kept].block.generation
    ranges.count = kept + 1
    return ranges.items[kept].block
