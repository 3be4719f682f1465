# What streams and memory know of each other.

from cyrt.driver.cuda cimport CUdeviceptr, CUevent, CUstream
from cyrt.runtime.bitset cimport Bits

cdef enum:
    NUM_BINS = 256
    LARGE = 1 << 20         # bytes; from here on a block is a driver allocation of its own
    MOST_KEPT = 8
    PACE_EVENTS = 8

cdef enum BlockState:
    LIVE
    FREE            # in its home stream's bin
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
    StreamState* holder     # the stream in whose bin it has a slot; NULL: none
    int slot
    Block* next             # among those that are about to be given back, or whose memory is gone
    Block* next_resting     # among those freed since the last commit
    BlockState state
    bint shared             # its address was handed out: others may use it on streams of theirs
    unsigned long long taken    # the turn of the places that it was handed out to; 0: none
    int place                   # which of them
    unsigned int keeper         # number of the place that it is kept for; 0: none
    unsigned long long last_use     # number of the operation, while rounds are looked for
    unsigned int generation     # how often it was freed: tells one owner from the next
    unsigned int poison         # number of the error that its contents were lost by; 0: none
    Block* next_unsettled       # among those freed while another stream's use was not launched
    Block* previous_outside     # see runtime/outside
    Block* next_outside
    # Ordering: the stream that wrote last (or that the block was freed on), and those that have
    # read since. A reader waits for `home`; a writer waits for all of them and becomes `home`.
    StreamState* home
    StreamState** readers
    int num_readers
    int max_readers
    Hazard hazard               # of the recording that used it last
    Hazard* others              # of further recordings that read it and are pending
    int num_others

# What a result that outlives its batch asks for, see runtime/places.
cdef struct Kept:
    Block* blocks[MOST_KEPT]    # the one that was added first coming first
    int count

# One of a batch's allocations.
cdef struct Place:
    Block* given                # what it has in this turn; NULL: nothing
    Block* last                 # what it had in the turn before
    Kept* kept                  # NULL: what it had was freed before its batch had ended
    unsigned int number         # no other place has it
    int bin
    bint died                   # what it was given has been freed, and its batch was launched

# The allocations of one batch, in their order.
cdef struct Places:
    unsigned long long key      # which batch of the round
    Place* items
    int count
    int room
    int used                    # by the last batch that was complete; 0: none was
    Places* next                # of the same round

# The blocks of one size class whose home is a stream, each in a slot of its own: in use, free, or
# free and kept for a place.
cdef struct Bin:
    Block** blocks              # by slot; NULL: a vacant one
    Bits free, kept, vacant
    int used                    # slots that are no higher than the highest one in use
    int room

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
    bint pending            # operations are recorded for it and not launched
    bint grouping           # its operations are recorded with no order among them
    bint submitting         # a thread puts work on it, with the GIL released
    int waiting             # threads that wait for their turn to do so
    unsigned long submitter  # the thread whose turn it is, or was last
    unsigned long thread    # number of the only thread that may put work on it; 0: any
    unsigned long long submissions  # turns so far
    unsigned long long links    # waits for other streams that were put on it so far
    unsigned long long put      # commands that were put on it so far, see runtime/pacing
    unsigned long long run      # so many of them are known to have run
    unsigned long long paced    # the last event is behind so many
    unsigned long long next_look    # at this count the events are looked at
    CUevent[PACE_EVENTS] pace_events
    unsigned long long[PACE_EVENTS] pace_puts   # commands before each event
    int pace_first, pace_count      # the events that were not reached
    bint capturing          # what is put on it becomes a graph
    bint outside            # its recording uses memory that is outside
    bint behind             # it is not ordered yet after the device's last undeclared kernel
    bint idle               # it was waited for, and nothing was put on it since
    bint has_exported_handle    # others have its handle: it may never be idle
    unsigned long long recording_epoch
    void* encoder           # the Recorder of it; NULL: none yet
    Places* places          # that ask for the blocks they had before; NULL: the batch has none
    int place               # the next one
    unsigned long long turn     # number of the batch that the places serve
    Places* rounds          # of every batch of the program's round, the one used last first
    unsigned int round      # number of the round that they belong to; 0: none
    Block* resting          # freed since the last commit, the first one freed first
    Block* last_resting
    CUevent marker          # recorded anew for each wait of another stream
    CUevent last_work       # of a wrapped stream: behind the last work that cyrt put on it
    Bin bins[NUM_BINS]
    StreamState* next       # of the same device
