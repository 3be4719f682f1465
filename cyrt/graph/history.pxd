# The history of a recorder: its last operations, in which the round of the program shows.
#
# INVARIANTS
# - Two operations are alike if their kernels are equal, and if the number of operations since the
#   last use is equal for each operand. Addresses, sizes and values do not count, since they may
#   change every round; nor does the block of a result. An operand that was last used before the
#   operations that are compared shows nothing.
# - Parts of one round may be alike, such as an optimiser's updates of its tensors. So a round is at
#   least as long as the longest distance between two uses of an operand. If some results are kept,
#   or live for longer than others, or the program commits or waits, the round is as long as the
#   period of these events.
# - How long a result lives is known at launches only: after some operations it was alive, and after
#   more it was not. Lives repeat at a period if no result was alive for as long as one that is some
#   periods apart, and had died by then.
# - While a complete batch is launched, its last operation still has its operands. After a commit of
#   the program it has not: a result that is dead then may have lived for one operation longer.
# - Only what was recorded decides, never time.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport Block

cdef enum:
    LENGTH = 16384              # operations that are stored, a power of two
    LONGEST = 8192              # most operations of a round

# An operation.
cdef struct HistoryStep:
    CUfunction function         # the function of its kernel; NULL: it is not a kernel
    # A hash of the kernel and of the distances to its operands' last uses; 0: a distance is not
    # known.
    unsigned long long hash
    unsigned int longest        # the longest of these distances
    unsigned int lived          # after so many operations, itself included, the result was alive
    unsigned int died           # after so many it was not
    bint kept                   # the result was alive when the batch after its own was launched
    bint committed              # the program asked for a commit after it
    Block* result               # the block that it writes; NULL: none
    unsigned int generation     # the block's generation when the operation was recorded

cdef struct History:
    HistoryStep* steps          # a ring
    unsigned long long count    # number of operations so far
    unsigned long long base     # operations from this one on are one program's
    unsigned long long judged   # number of operations whose `kept` is known
    unsigned long long first    # what is added to their numbers in the blocks that they use

cdef unsigned long long comparisons     # number of operations that all searches have compared

# Return an empty history; NULL: there is no memory.
cdef History* new_history() noexcept
cdef void free_history(History* history) noexcept
cdef inline HistoryStep* step_at(const History* history, unsigned long long number) noexcept:
    return &history.steps[number % LENGTH]
# Append the operations of a batch that is being launched: it is complete, or the program has
# committed. `lives`: store how long results live.
cdef void append_batch(History* history, const Recording* recording, bint committed,
                       bint lives) noexcept
# Store that the program asked for a commit after the last operation.
cdef void append_commit(History* history) noexcept
# Return the shortest period of the last `equal` operations; 0: there is none.
cdef int find_period(const History* history, int equal) noexcept
# Return the shortest multiple of the period at which kept results repeat and, if `lives`, lives. A
# multiple at which commits repeat, too, is preferred. The result is 0 if there is none.
cdef int find_multiple(const History* history, int period, bint lives) noexcept
