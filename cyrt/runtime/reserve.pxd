# What the pool takes from the driver, and what it gives back.
#
# INVARIANTS
# - A slab goes back to the driver only when all of its blocks lie in bins.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.blocks cimport Slab

cdef struct Pool:
    Slab* slabs
    unsigned int trims          # how often memory was given back
    unsigned long trimmer       # the thread that gives it back just now; 0: none
    size_t in_use               # bytes in blocks handed out
    size_t peak
    size_t cached               # bytes in free blocks and uncut slabs
    size_t reserved             # bytes taken from the driver
    unsigned long long driver_allocations
    size_t large_made           # bytes in large blocks
    size_t large_in_use
    size_t large_peak           # the most of them

cdef Pool pools[MAX_DEVICES]

# `size` bytes of the driver's; where there are none, again after the cache was given back.
cdef int from_driver(int ordinal, size_t size, CUdeviceptr* address) except -1
# A slab with room for `size` bytes more.
cdef Slab* slab_for(int ordinal, size_t size) except NULL
# Gives everything free back to the driver.
cdef int trim(int ordinal) except -1
# Raises, with the sizes.
cdef int out_of_memory(int ordinal, size_t nbytes, const char* call) except -1
