# What streams and memory know of each other.

from cyrt.driver.cuda cimport CUdeviceptr, CUevent, CUstream

cdef enum:
    NUM_BINS = 256

cdef enum BlockState:
    LIVE
    FREE            # in a bin
    RESTING         # freed, and used by a recording that is not committed
    UNSETTLED       # freed, and used by a stream that the home stream cannot be ordered after yet

cdef enum BlockKind:
    DEVICE_MEMORY
    PINNED_MEMORY
    MANAGED_MEMORY
    FOREIGN_MEMORY      # somebody else's: ordered, never freed

# What an operation does with a block.
cdef enum Access:
    READ
    WRITE               # some of it, and perhaps reads
    OVERWRITE           # all of it, and reads nothing

# A block's place in one recording, see graph/hazards.
cdef struct Hazard:
    unsigned long long epoch    # the recording
    StreamState* stream         # whose recording that is
    int writer                  # its last node that wrote, -1: none
    int num_readers             # nodes that have read since
    int max_readers
    int* readers

cdef struct Block:
    CUdeviceptr address
    size_t size             # bytes taken from the driver or the slab
    int ordinal
    unsigned int epoch      # of the device's context
    BlockKind kind
    int bin                 # size class, -1: returned straight to the driver
    void* slab              # the Slab it is cut from; NULL: a driver allocation of its own
    Block* next             # in a bin
    Block* next_resting     # among those freed since the last commit
    BlockState state
    bint shared             # its address was handed out: others may use it on streams of theirs
    unsigned long long taken    # epoch of the recording during which it was handed out
    unsigned int generation     # how often it was freed: tells one owner from the next
    unsigned int poison         # number of the error that its contents were lost by; 0: none
    Block* next_unsettled       # among those freed while another stream's use was not launched
    # Ordering: the stream that wrote last (or that the block was freed on), and those that have
    # read since. A reader waits for `home`; a writer waits for all of them and becomes `home`.
    StreamState* home
    StreamState** readers
    int num_readers
    int max_readers
    Hazard hazard               # of the recording that used it last
    Hazard* others              # of further recordings that read it and are pending
    int num_others

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
    unsigned int streams    # Streams that it has served, one after the other
    bint pending            # operations are recorded for it and not launched
    bint grouping           # its operations are recorded with no order among them
    bint submitting         # a thread puts work on it, with the GIL released
    int waiting             # threads that wait for their turn to do so
    unsigned long submitter  # the thread whose turn it is, or was last
    unsigned long thread    # number of the only thread that may put work on it; 0: any
    unsigned long long submissions  # turns so far
    bint capturing          # what is put on it becomes a graph
    bint outside            # its recording uses memory that is outside
    bint behind             # it is not ordered yet after the device's last undeclared kernel
    bint waited             # somebody waits for it, and nothing was put on it since
    bint idle               # it was waited for, and nothing was put on it since
    bint handed_out         # others have its handle: it may never be idle
    unsigned long long recording_epoch
    void* encoder           # the Recorder of it; NULL: none yet
    Block** taken           # blocks handed out since the last commit, in order
    int num_taken
    int max_taken
    Block* resting          # freed since the last commit, the first one freed first
    Block* last_resting
    CUevent marker          # recorded anew for each wait of another stream
    CUevent last_work       # of a wrapped stream: behind the last work that cyrt put on it
    Block* bins[NUM_BINS]
    StreamState* next       # of the same device
