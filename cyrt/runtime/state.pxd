# What streams and memory know of each other.

from cyrt.driver.cuda cimport CUdeviceptr, CUevent, CUstream

cdef enum:
    NUM_BINS = 256

cdef enum BlockKind:
    DEVICE_MEMORY
    PINNED_MEMORY
    MANAGED_MEMORY
    FOREIGN_MEMORY      # somebody else's: ordered, never freed

cdef struct Block:
    CUdeviceptr address
    size_t size             # bytes taken from the driver or the slab
    int ordinal
    unsigned int epoch      # of the device's context
    BlockKind kind
    int bin                 # size class, -1: returned straight to the driver
    void* slab              # the Slab it is cut from; NULL: a driver allocation of its own
    Block* next             # in a bin
    # Ordering: the stream that wrote last (or that the block was freed on), and those that have
    # read since. A reader waits for `home`; a writer waits for all of them and becomes `home`.
    StreamState* home
    StreamState** readers
    int num_readers
    int max_readers

# One CUstream and the free blocks ordered on it. Never freed: an ended Stream's state serves the
# next Stream of its priority, so no pointer to one dangles.
cdef struct StreamState:
    CUstream handle
    int ordinal
    unsigned int epoch
    int priority
    bint owned              # made here; else wrapped
    int users               # Stream objects that hold it
    bint ended              # wrapped, and its handle perhaps destroyed: the marker says it all
    CUevent marker          # recorded anew for each wait of another stream
    Block* bins[NUM_BINS]
    StreamState* next       # of the same device
