# The states of streams and of blocks of memory, which refer to each other.

from cyrt.driver.cuda cimport CUdeviceptr, CUevent, CUstream
from cyrt.runtime.bitset cimport Bits

cdef enum:
    NUM_BINS = 256
    LARGE = 1 << 20         # bytes; blocks of this size or more are not cut from slabs
    SMALL_BINS = 40         # the classes of smaller blocks are below this number
    OWN = 8                 # most blocks of a site, see runtime/sequences
    PACE_EVENTS = 8

cdef enum BlockState:
    LIVE
    FREE            # the block is in a bin of its home stream
    RESTING         # freed, but used by a recording that is not committed
    UNSETTLED       # freed, but home cannot wait yet for another stream; see runtime/freed
    CAPTURED        # freed, but the graph of another library's capture uses it

cdef enum BlockKind:
    DEVICE_MEMORY
    PINNED_MEMORY
    MANAGED_MEMORY
    FOREIGN_MEMORY      # another library's: cyrt orders its uses, but never frees it

# The access of an operation to a block.
cdef enum Access:
    READ
    WRITE               # writes a part of the block, and may read
    OVERWRITE           # writes all of the block, and reads nothing of it

# The nodes of one recording that use a block, see graph/hazards.
cdef struct Hazard:
    unsigned long long epoch    # the recording's
    StreamState* stream         # the one that the recording belongs to
    int writer                  # the last node that wrote the block, -1: none
    int num_readers             # number of nodes that have read it since
    int max_readers
    int* readers

cdef struct Block:
    # A block begins with a cache line. What every operation reads fits in the first one, what an
    # allocation and a release need besides in the second.
    short ordinal
    signed char kind        # a BlockKind
    signed char shared      # its address was exported: other libraries may use it on their streams
    unsigned int epoch      # number of resets of the device when the block was made
    unsigned int generation     # how often it was freed: it differs from one owner to the next
    # Order: the stream that wrote the block last (or on which it was freed), and those that have
    # read it since. A reader waits for `home`; a writer waits for all and becomes `home`.
    int num_readers
    StreamState* home
    Hazard hazard               # how the last recording used the block
    size_t size             # bytes of the block itself, at least `asked`
    CUdeviceptr address
    void* slab              # the Slab it is cut from; NULL: it is large
    StreamState* holder     # the stream in whose bin it has a slot; NULL: none
    Block* next_resting     # the next of the stream's RESTING blocks
    int slot
    int entry                   # 1 + its index in the sequence that has it; 0: none has it
    unsigned int site           # `number` of the site that has it; 0: none has it
    unsigned int version        # number of writes as long as tapes exist, see runtime/taping
    short bin               # size class, -1: returned directly to the driver
    signed char state       # a BlockState
    unsigned int poison         # number of the error that lost its contents; 0: none
    size_t asked            # bytes that its owner asked for
    Block* before           # a large block that is a part of a driver allocation has the parts
    Block* after            # before and after it; NULL: none
    StreamState** readers
    int max_readers
    int num_others
    Hazard* others              # those of other recordings that read it and are not committed
    unsigned long long tape     # the tape that has recorded a write of what it follows; 0: none
    # Number of the operation that used it last, and the generation then; they are stored while a
    # round is searched for.
    unsigned long long last_use
    unsigned int last_generation
    Block* next             # the next of the blocks to be freed, or of those whose memory was freed
    Block* next_unsettled       # the next of the device's UNSETTLED blocks
    Block* previous_outside     # see runtime/outside
    Block* next_outside
    int captures            # number of captures of other libraries whose graphs use it

# The blocks of a result that outlives its batch, see runtime/sequences.
cdef struct Site:
    int position                # the position of its operation in the round
    unsigned int number         # unique
    int idle                    # number of batches in succession that the result did not outlive
    int count
    Block* own[OWN]             # some of them may have been lost since

# The sites of one round, in the order of their positions; one that no operation has is the last.
cdef struct Sites:
    Site* items
    int count, room
    StreamState* stream
    Sites* next                 # the next of the stream's

# The small blocks of one class in the order in which a batch allocates them, see runtime/sequences.
cdef struct Sequence:
    Block** blocks              # NULL: none
    int count, room
    int next                    # index of the next allocation's

# The blocks of one size class that a stream holds, each in its own slot. Every allocation may have
# those in `free`.
cdef struct Bin:
    Block** blocks              # by slot; NULL: the slot is vacant
    Bits free, vacant
    Sequence sequence
    int used                    # number of slots used so far, those vacant again included
    int room

# The memory of a device that is allocated now.
cdef struct Usage:
    size_t in_use               # bytes that the owners of the allocated blocks asked for
    size_t peak                 # the most bytes in use so far

# One CUstream and the free blocks ordered on it. It is never freed, so that no pointer to it
# dangles: a new Stream of the same priority reuses the state of an ended Stream.
cdef struct StreamState:
    # A wait for all streams of a device reads the fields down to `submitting`: they share one cache
    # line.
    CUstream handle
    StreamState* next       # the next of the device's streams
    void* encoder           # its Recorder; NULL: none yet
    int ordinal
    unsigned int epoch
    bint owned              # cyrt created the CUstream; else it is wrapped
    bint capturing          # what is put on it becomes a part of a graph
    bint idle               # a thread waited for it, and nothing was put on it since
    bint failed             # its encoder keeps the error of a launch, which was not raised yet
    bint pending            # operations are recorded for it that are not launched
    bint submitting         # a thread puts work on it: its turn, in which it may release the GIL
    int priority
    int users               # number of Stream objects that use it
    bint explained          # its operations are listed, not launched: its memory has no contents
    bint ended              # wrapped, its handle perhaps destroyed: `marker` is after all its work
    bint wants_commits      # a commit reaches its encoder even if nothing is recorded
    bint grouping           # operations are recorded without order among them
    int waiting             # number of threads that wait for their turn
    unsigned long submitter  # the thread that has the turn, or had the last one
    unsigned long thread    # number of the only thread that may put work on it; 0: any thread may
    unsigned long long submissions  # number of turns so far
    unsigned long long links    # number of waits for other streams put on it so far
    unsigned long long put      # number of commands put on it so far, see runtime/pacing
    unsigned long long run      # number of those that are known to have run
    unsigned long long paced    # number of commands before the last event
    unsigned long long next_look    # the value of `put` at which the events are queried next
    CUevent[PACE_EVENTS] pace_events
    unsigned long long[PACE_EVENTS] pace_puts   # number of commands before each event
    int pace_first, pace_count      # the ring of events that may not have been reached
    bint outside            # its recording uses outside memory
    bint behind             # it does not wait yet for the device's last undeclared kernel
    bint has_exported_handle    # other libraries have its handle: it is never `idle`
    unsigned long long recording_epoch
    Usage* usage            # its device's
    # The value of `table.disturbances` when its results could last be released without further
    # checks, see runtime/pool.
    unsigned long long undisturbed
    int nodes               # number of nodes that are recorded; -1: the stream records no batches
    int earlier             # number of nodes of the batches that the recorded one continues
    int position            # plus `nodes`: the next operation's position in the round
    Site* site              # the first site that is not before it; NULL: no round is known
    Sites* sites            # the sites of all rounds that are known
    size_t sequence_bytes   # bytes of the blocks of its sequences
    unsigned long long last_batch   # number of the last batch of all streams that began on it
    Block* resting          # the list of RESTING blocks, in the order in which they were freed
    Block* last_resting
    CUevent marker          # recorded again for each wait of another stream
    CUevent last_work       # a wrapped stream's: after the last work that cyrt put on it
    bint unmarked           # work was put behind that event, which is recorded when it is needed
    unsigned long long* failure     # see runtime/failure; NULL: no kernel reports failures yet
    Bin bins[NUM_BINS]
