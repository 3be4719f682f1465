# The memory that the pool allocates from the driver and frees.
#
# INVARIANTS
# - A slab is freed only when all of its blocks are in bins.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.blocks cimport Slab

cdef struct Pool:
    Slab* slabs
    unsigned int trims          # completed calls of `trim`
    unsigned long trimmer       # the thread that runs `trim` now; 0: none
    size_t in_use               # bytes in allocated blocks
    size_t peak                 # the most bytes in use so far
    size_t cached               # bytes in free blocks and in the uncut parts of slabs
    size_t reserved             # bytes allocated from the driver
    unsigned long long driver_allocations
    size_t large_made           # bytes in large blocks
    size_t large_in_use
    size_t large_peak           # the most bytes of large blocks in use so far

cdef Pool pools[MAX_DEVICES]

# Allocate `size` bytes from the driver; if it has too few, free the cache and try again. `wanted`
# is what the program asked for, which an error names.
cdef int allocate_from_driver(int ordinal, size_t size, size_t wanted,
                              CUdeviceptr* address) except -1
# Return a slab with room for `size` more bytes.
cdef Slab* slab_for(int ordinal, size_t size, size_t wanted) except NULL
# Free all memory that is not in use.
cdef int trim(int ordinal) except -1
# Raise OutOfMemoryError with the sizes; `block` is that of the block in which the bytes would lie.
cdef int out_of_memory(int ordinal, size_t nbytes, const char* call, size_t block=*) except -1
