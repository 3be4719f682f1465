# The memory that the pool allocates from the driver and frees.
#
# INVARIANTS
# - A slab, or a driver allocation that is split, is freed only when all of its blocks are in bins.
# - One thread at a time allocates from the driver. So CYRT_MEMORY_LIMIT holds, and what one thread
#   was refused is not what another one is about to receive, or to give back.
# - Memory that a trim gives back counts as reserved until the driver has it.
# - While a trim waits for the device, Python code may run, which may wait for any other thread. So
#   another trim does not wait for it, but takes over what it has taken out of the pool. One thread
#   at a time frees memory, and no Python code runs until it has done so.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.blocks cimport Slab
from cyrt.runtime.state cimport Block

# The memory that a trim has taken out of the pool. It is freed after a wait for the device.
cdef struct Trim:
    Block* blocks
    Slab* slabs
    Trim* next

cdef struct Pool:
    Slab* slabs
    Trim* trims                 # the trims that wait
    unsigned long freer         # the thread that frees memory now; 0: none
    unsigned long allocator     # the thread that allocates from the driver now; 0: none
    size_t reserved             # bytes allocated from the driver
    unsigned long long given_back   # bytes given back to the driver so far
    size_t total                # bytes of the device's memory; 0: not known yet
    size_t most_split           # the most bytes that may be in split allocations
    unsigned long long driver_allocations
    size_t large_made           # bytes in large blocks
    size_t large_in_use
    size_t large_peak           # the most bytes of large blocks in use so far

cdef Pool pools[MAX_DEVICES]

# Why an attempt to allocate from the driver failed. The caller sets `tries` to 0 and `collected` to
# False before the first.
cdef struct Shortage:
    bint collected                  # `give_back` has run the garbage collector
    int tries                       # calls of `give_back` so far
    size_t size                     # bytes wanted from the driver
    bint limited                    # because of CYRT_MEMORY_LIMIT
    unsigned long long given_back   # the value of `Pool.given_back` at the attempt

# Allocate `size` bytes from the driver. Return False if it has too few, or if that would exceed
# CYRT_MEMORY_LIMIT.
cdef bint try_driver(int ordinal, size_t size, CUdeviceptr* address, Shortage* shortage) except -1
# Return a slab with room for `size` more bytes; NULL: there is none, and the driver refused one.
cdef Slab* slab_for(int ordinal, size_t size, Shortage* shortage) except? NULL
# After a failed attempt: give back free memory, else what the garbage collector finds, else plans,
# which do not help if the limit was the reason, or if the device is too small. Return whether
# another attempt may succeed.
cdef bint give_back(int ordinal, Shortage* shortage) except -1
# Allocate `size` bytes; while the driver has too few, give back what is not needed.
cdef int allocate_from_driver(int ordinal, size_t size, CUdeviceptr* address) except -1
# Free all memory that is not in use, and return its size.
cdef size_t trim(int ordinal) except? 1
# Raise OutOfMemoryError with the sizes; `block` is that of the block in which the bytes would lie.
cdef int out_of_memory(int ordinal, size_t nbytes, const char* call, size_t block=*) except -1
