# Where a batch ends.
#
# INVARIANTS
# - What was recorded decides, never time: topologies repeat.
# - Where the program's round is known (see rounds), batches end at the same operations of every
#   round. A round longer than the limit is cut into equal parts, of a short one a batch takes as
#   many as fit.
# - Else, between a minimum and the limit, the batch is cut where an operation equals one that began
#   an earlier batch, by kernel and geometry: boundaries lock to a loop inside the program.
# - A round is looked for while batches are patched, and only then does that cost time.

from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport Trace

cdef enum:
    BEGINNINGS = 16         # operations that began earlier batches, remembered

cdef struct Boundary:
    int max_ops
    int min_ops             # the next operation is looked at from one before this on
    unsigned long long[BEGINNINGS] beginnings
    int num_beginnings
    unsigned long long previous     # the operation before the next one
    bint found              # the batch ends at an operation that was remembered
    int lost                # batches in a row that ended at the limit
    bint seldom             # operations return seldom
    unsigned long long position     # operations launched
    Trace* trace            # NULL: nothing was patched lately
    unsigned long long calm     # operations launched since a batch was patched
    bint searched           # long enough for any round: what is patched changes every time
    unsigned int round      # number of the program's round; 0: none is known
    int period              # its operations
    unsigned long long origin       # a position where one began
    unsigned long long commit       # where the last commit was that the program asked for
    int batches, most_batches       # since that commit; between the two before
    unsigned long long key  # which batch of the round it is

cdef void set_limit(Boundary* boundary, int max_ops) noexcept
# Whether a batch of that many nodes ends before the operation. Asked from one operation before the
# minimum on.
cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept
# The operation begins a batch; `cut_off`: the one before ended by itself, not by a commit.
cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept
# The batch was launched, and so many nodes were patched.
cdef void learn(Boundary* boundary, const Recording* recording,
                unsigned long long patched) noexcept
cdef void forget(Boundary* boundary) noexcept
