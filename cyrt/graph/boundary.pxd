# Where a batch ends.
#
# INVARIANTS
# - What was recorded decides, never time: topologies repeat.
# - Where the program's round is known (see rounds), batches end at the same operations of every
#   round. A round longer than the limit is cut into equal parts, of a short one a batch takes as
#   many as fit.
#   Such a batch is launched with its last operation.
# - A commit that the program asks for, or a wait, cuts one batch and moves no other: the next one
#   is the rest of it. Where a batch is several short rounds the next one has as many again.
# - Operations that the program adds to a round now and then, as to print a mean, do not move the
#   boundaries, either: an operation that runs something else than the round's next one is taken for
#   such an extra one. After MOST_EXTRA of them in a batch the round is what has run instead.
# - Else, between a minimum and the limit, the batch is cut where an operation equals one that began
#   an earlier batch, by kernel and geometry: boundaries lock to a loop inside the program.
# - A round is looked for while batches are patched, and only then does that cost time.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport Extra, Trace

cdef enum:
    BEGINNINGS = 16         # operations that began earlier batches, remembered

cdef struct Boundary:
    int max_ops
    int min_ops             # the next operation is looked at from one before this on
    int complete            # with so many operations the batch is launched at once
    unsigned long long[BEGINNINGS] beginnings
    int num_beginnings
    unsigned long long previous     # the operation before the next one
    bint found              # the batch ends at an operation that was remembered
    int lost                # batches in a row that ended at the limit
    bint seldom             # operations return seldom
    unsigned long long position     # operations launched, but those that are no part of the round
    Trace* trace            # NULL: nothing was patched lately
    unsigned long long calm     # operations launched since a batch was patched
    bint searched           # long enough for any round: what is patched changes every time
    unsigned int round      # number of the program's round; 0: none is known
    int period              # its operations
    CUfunction* functions   # what they run, and the first ones again, as many as a batch may have
    const CUfunction* expected      # what the batch's nodes run; NULL: that is not known
    Extra extra             # its operations that are no part of the round
    Extra last_extra        # those of the batch before
    unsigned long long last_position        # where that batch began
    int length              # operations of which batches are equal parts: a multiple of the period
    unsigned long long origin       # a position where a round began
    unsigned long long commit       # where the last commit was that the program asked for
    unsigned long long key  # where in the `length` operations the batch begins
    bint resumes            # it is what a commit left of the batch of that key
    int restarts            # rounds of the batch that a commit cut and that begins again; 0: none
    bint completed          # the batch before was launched when it was complete

cdef void set_limit(Boundary* boundary, int max_ops) noexcept
# Whether a batch of that many nodes ends before the operation. Asked from one operation before the
# minimum on.
cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept
# The operation begins a batch; `cut_off`: the one before ended before it.
cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept
# The node runs something else than what was expected. Whether it is no part of the round.
cdef bint note_other(Boundary* boundary, int node) noexcept
# The batch is launched: the next one begins.
cdef void advance(Boundary* boundary, const Recording* recording) noexcept
# The batch was launched, and so many nodes were patched.
cdef void learn(Boundary* boundary, const Recording* recording,
                unsigned long long patched) noexcept
cdef void forget(Boundary* boundary) noexcept
