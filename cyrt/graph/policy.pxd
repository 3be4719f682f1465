# The policy: at which operations batches end, and which results need memory of their own.
#
# INVARIANTS
# - Only what was recorded decides, never time, so that batches come round: the same operations, and
#   the same addresses (see runtime/sequences). But a fused plan is known to be of no use only when
#   it is compiled, and a search may begin then.
# - SEARCHING: no round is known, and batches end at the limit. FOLLOWING: the program repeats a
#   round, and batches end at the same operations of each round. A batch is launched as soon as its
#   last operation is recorded.
# - A batch is said to come round if few of its nodes are patched. While a round is followed, a
#   batch that uses the same memory as an earlier one also comes round: a program whose cache grows,
#   or whose rate changes each time, needs no other round. Each batch that does not come round
#   increases `restless`, and each one that does decreases it. Batches whose topology was launched
#   only once or twice change nothing, since their addresses settle after some launches.
# - A batch may come round, and its fused plan be of no use, since a result that the plan does not
#   write is alive. Then such batches do not end at the same operation of the round, or the round is
#   longer than it seems. Each such batch increases `unfit`, and each other one decreases it.
# - While `restless` or `unfit` is not 0, operations are stored in a history, in which a round is
#   searched for (SEARCHING), or a longer one, at which kept results and commits repeat, too
#   (FOLLOWING). If `unfit` is large, a round at which lives repeat is preferred. If a long search
#   finds nothing, it pauses, longer each time.
# - All searches that compare lives make at most COMPARISONS comparisons for each operation that is
#   launched, but for those of the last search: the next one waits for as many operations as pay
#   for it.
# - A round that is longer than the limit is cut at the program's commits, if these repeat, and
#   between them into equal parts. A batch contains as many shorter rounds as fit.
# - A commit that the program asks for, or a wait, ends one batch early and moves no other boundary:
#   the next batch is the rest. If a batch is several short rounds, the next one contains as many,
#   counted from the beginning of the round that the commit interrupted.
# - Operations that the program adds to a round sometimes, for example to print a mean, do not move
#   boundaries: an operation that runs another kernel than the round's next one is an extra
#   operation. A batch of several short rounds ends with the one that has it, and the next batch
#   begins again, unless batches become short by that.
# - After MOST_EXTRA extra operations, with fewer expected ones between, the round is lost.
# - The last KNOWN rounds are remembered. While another one runs, or none, a trial begins with an
#   operation that is the first of such a round, or the one at which it was lost: if the next ones
#   match, the round is followed again, and its sites have their blocks. Behind a commit or a wait,
#   such as that of an evaluation between two epochs, the last one is followed at once, until an
#   operation is not the expected one.
# - Inside `batch()`, a round ends no batch before its limit, until a limit was reached once.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.history cimport History
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport Sites, StreamState

cdef enum:
    MOST_EXTRA = 16         # extra operations of a batch
    ON_TRIAL = MOST_EXTRA + 1
    KNOWN = 4               # rounds that are remembered
    MEMORIES = 64           # batches whose memory is remembered

cdef enum State:
    SEARCHING
    FOLLOWING

cdef struct Round:
    int period              # number of its operations
    int length              # number of operations that are cut into batches: a multiple of it
    CUfunction* kernels     # their functions, followed by as many of them again as a batch may have
    int* cuts               # the positions at which batches end; the last one is `length`
    int entry               # the position at which it was lost
    unsigned long long followed     # number of operations that matched
    Sites* sites            # results that outlive their batches, see runtime/sequences

cdef struct Policy:
    StreamState* stream
    int max_ops             # the limit
    int complete            # at this number of operations the batch is launched at once
    State state
    Round* round            # the one that is followed
    Round* known[KNOWN]     # the last ones, that one first
    # For each known round, the number of operations in succession that have matched it, counted
    # from its `entry`, and from its beginning.
    int[KNOWN][2] matching
    bint trying             # each operation is compared with the known rounds
    const CUfunction* expected      # the nodes' functions if the round goes on; else NULL
    int start               # position in the round of the batch's first operation
    bint resumes            # the batch is the rest of one that was cut
    int first               # the first of the batch's nodes that belongs to the round
    int[MOST_EXTRA + 1] extra   # the batch's nodes that are extra operations
    int num_extra
    bint was_extended       # the batch before had extra operations
    int left                # position of the first extra operation that `doubts` counts
    int unlike              # number of the batch's nodes up to the one that lost the round
    # Number of extra operations of earlier batches that had fewer expected ones; ON_TRIAL: the
    # first operation that is not expected ends the round.
    int doubts
    int restless            # how little batches come round
    int unfit               # how little they fit their fused plans
    bint fuses              # batches are compiled to fused plans: how long results live is stored
    bint ended_early        # the batch before was launched before it was complete
    int equal               # operations that must equal those a period before
    History* history        # NULL: batches come round, or the search pauses
    unsigned long long next_search  # the history's `count` at which a round is searched for
    unsigned long long operations   # number of operations launched
    unsigned long long paid         # `operations` that pay for all searches that compared lives
    unsigned long long pause, pause_end     # length of the last pause; `operations` at its end
    unsigned long long[MEMORIES] memories   # hashes of the memory that batches used
    int next_memory

# Set the most operations of a batch.
cdef void set_limit(Policy* policy, StreamState* stream, int max_ops) noexcept
# Learn of an operation while `trying`, or if it is not the expected one.
cdef void note_operation(Policy* policy, int node, CUfunction function) noexcept
# Make the batch end at its limit only.
cdef inline void go_to_limit(Policy* policy) noexcept:
    policy.complete = policy.max_ops
# Plan where the batch that begins ends, also if it begins again, since its operations were dropped.
cdef void plan_batch(Policy* policy) noexcept
# Begin the next batch, since this one is being launched.
cdef void advance(Policy* policy, const Recording* recording) noexcept
# Note that the program commits or waits though nothing is recorded.
cdef void note_commit(Policy* policy) noexcept
# Learn from the batch that was launched: `patched` of its nodes were patched, its topology was
# launched so often before, and whether its fused plan was of no use since results are alive. Return
# whether a round is to be searched for.
cdef bint learn(Policy* policy, const Recording* recording, unsigned long long patched,
                unsigned long long launches, bint unfit) noexcept
# Search for a round while nothing is recorded. Return whether the policy follows another one now.
cdef bint search(Policy* policy) noexcept
# Forget all rounds, and free all memory.
cdef void forget(Policy* policy) noexcept
