# Boundaries: the operations at which batches end.
#
# INVARIANTS
# - Only what was recorded decides, never time, so that topologies repeat.
# - If the program's round is known (see rounds), batches end at the same operations of every round.
#   A round longer than the limit is cut into equal parts; if the program's commits cut it into
#   equal parts within the limit, each batch may contain as many of these parts as fit, since the
#   commits may stop. Of a round that is not longer, a batch contains as many as fit. A batch is
#   launched as soon as its last operation is recorded.
# - A commit that the program asks for, or a wait, ends one batch early and moves no other boundary:
#   the next batch is the rest. If a batch is several short rounds, the next one contains as many,
#   counted from the beginning of the round that the commit interrupted.
# - Inside `batch()`, the program's round and loop end no batch before its limit, until a limit was
#   reached once. If such a batch ends at the limit, what follows it, up to the round's next
#   boundary, is a batch with places of its own.
# - Operations that the program adds to a round sometimes, for example to print a mean, do not move
#   boundaries, either: an operation that runs another kernel than the round's next one is an extra
#   operation. After MOST_EXTRA of them in a batch the round is in doubt: another program may run.
# - If a batch is several short rounds, it ends with the one that has an extra operation, and the
#   next one begins again, as after a commit: so an operation that comes with every tenth round is
#   at the same place of its batch each time. Behind a batch with an extra operation this is done
#   only where it leaves half of the limit, or more.
# - While the round is in doubt, a round is searched for, nothing is an extra operation, and batches
#   have no places. At each commit or wait that comes before a batch is complete, or when nothing is
#   recorded, the known round is tried again, from its beginning: after an evaluation between two
#   epochs, for example, it goes on, and its places have their blocks. A round that is found to
#   repeat for DOUBTED operations replaces it, unless it contains the known one, and that needs no
#   patches. If what runs instead has the known period, too, it becomes the round; a loop of a
#   shorter period must repeat for DOUBTED operations before.
# - A shorter round replaces one that is not in doubt if the operations have repeated themselves so
#   for as long as the known one: a loop in a long round repeats itself, too.
# - A round begins at the program's last commit, so that it can be tried after a later one.
# - If no round is known, a batch ends, between a minimum and the limit, before an operation whose
#   kernel and geometry equal those of an operation that began an earlier batch: so boundaries stay
#   at the same operation of a loop in the program.
# - A round, or a longer one than is known, is searched for only while batches are patched; at other
#   times this costs nothing. After a long search the search pauses, longer each time, until batches
#   are no longer patched or another program runs.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Operation, Recording
from cyrt.graph.rounds cimport Extra, Trace

cdef enum:
    BEGINNINGS = 16         # number of operations that began earlier batches and are remembered

cdef enum Belief:
    CERTAIN                 # it runs, perhaps with extra operations; or no round is known
    TRIED                   # it has been in doubt, and is tried again
    DOUBTFUL                # another program may run: `expected` is NULL

cdef struct Boundary:
    int max_ops             # the limit
    int min_ops             # the minimum; from one operation less on, `ends_before` is called
    int complete            # at this number of operations the batch is launched at once
    int planned             # its first value; with it, the batch has all its operations
    unsigned long long[BEGINNINGS] beginnings       # their hashes
    int num_beginnings
    unsigned long long previous     # hash of the operation before the next one
    bint found              # the batch ended before an operation that was remembered
    int lost                # number of consecutive batches that ended at the limit
    bint seldom             # remembered operations repeat seldom
    unsigned long long position     # number of operations launched, without the extra ones
    Trace* trace            # NULL: no recent batch was patched
    bint patched            # the batch before was patched, or another program runs
    unsigned long long calm     # number of operations launched since the round's were patched
    unsigned int new_topologies     # grows with batches of new topologies, else shrinks
    bint searched           # for longer than any round: what is patched changes every time
    unsigned long long pause    # number of operations without a search after a long one
    unsigned long long pause_end    # position at which that pause ends
    unsigned int round      # number of the program's round; 0: none is known
    int period              # number of its operations
    CUfunction* functions   # what they run, followed by a repetition as long as a batch may be
    const CUfunction* expected      # what the batch's nodes should run; NULL: not known
    Belief belief           # about the known round
    bint mismatched         # the batch before was not part of the round
    int doubts              # 0: the round is not in doubt; 1: for the first time; 2: again
    bint confirmed          # the round was in doubt, and `begin` has found its period again
    Extra extra             # the batch's extra operations
    Extra last_extra        # those of the batch before
    unsigned long long last_position        # where that batch began
    int length              # operations that are cut into equal batches: a multiple of the period
    int part                # operations of each of these batches; the last one may have fewer
    unsigned long long origin       # a position where a round began
    unsigned long long commit       # position of the last commit that the program asked for
    unsigned long long key  # index in the `length` operations at which the batch begins
    bint resumes            # the batch is the rest of the batch with that key
    bint shortened          # an extra operation ends the batch with its short round
    int restarts            # rounds of the batch that begins again, since it was cut; 0: none
    bint completed          # the batch before had all its operations when it was launched

# Set the most operations of a batch.
cdef void set_limit(Boundary* boundary, int max_ops) noexcept
# Return whether a batch of that many nodes ends before the operation. Call it from min_ops - 1
# nodes on.
cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept
# Begin a batch with the operation; `cut_off`: the last batch ended because of `ends_before`.
cdef void begin(Boundary* boundary, const Operation* first, bint cut_off) noexcept
# Make the batch end at its limit only.
cdef void go_to_limit(Boundary* boundary) noexcept
# Begin the batch again, since its operations were dropped.
cdef void restart(Boundary* boundary) noexcept
# Store that the node runs another kernel than expected. Return whether it is an extra operation.
cdef bint note_other(Boundary* boundary, int node) noexcept
# Begin the next batch, since this one is being launched.
cdef void advance(Boundary* boundary, const Recording* recording) noexcept
# Note that the program commits or waits though nothing is recorded. Return whether the next batch
# begins a round.
cdef bint note_empty_commit(Boundary* boundary) noexcept
# Learn from a batch that was launched: `patched` of its nodes were patched. If `new_topology`, no
# graph had its topology.
cdef void learn(Boundary* boundary, const Recording* recording, unsigned long long patched,
                bint new_topology) noexcept
# Free all memory and forget the round.
cdef void forget(Boundary* boundary) noexcept
