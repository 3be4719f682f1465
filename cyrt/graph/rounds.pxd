# The round of a program: the operations after which it begins to repeat itself.
#
# INVARIANTS
# - Two operations are equal if their kernels are equal, and if the number of operations since the
#   last use is equal for each operand. Addresses, sizes and values do not count, since they may
#   change every round; nor does the block of a result, which the pool chooses.
# - Parts of one round may be equal, such as an optimiser's updates of its tensors. So a round is at
#   least as long as the longest distance between two uses of an operand. If some results are kept,
#   or the program commits or waits, the round is as long as the period of these events.
# - Only what was recorded decides, never time.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport Block

cdef enum:
    MOST_EXTRA = 16         # most such operations in a batch

# The nodes of a batch that do not belong to the program's round.
cdef struct Extra:
    int[MOST_EXTRA] nodes
    int count

# A recorded operation.
cdef struct Step:
    CUfunction function         # of its kernel; NULL: it is not a kernel
    Block* result               # the block that it writes; NULL: none
    unsigned int generation     # of that block at that time
    unsigned int longest        # the most operations since the last use of an operand
    bint kept                   # the result outlived its batch
    bint committed              # the program asked for a commit after it

# The last operations of a recorder.
cdef struct Trace:
    Step* steps                 # a ring
    # A ring of the operations' hashes, stored twice in succession: the last ones are contiguous.
    unsigned long long* hashes
    unsigned long long count    # number of operations so far
    unsigned long long start    # position of the first one
    unsigned long long commit   # the `count` at the program's last commit; 0: there was none
    unsigned long long judged   # number of those whose `kept` is known
    unsigned long long next_look    # the `count` at which a period is searched for next
    int period                  # each operation is compared with the one a period before; 0: none
    int differing               # number of operations that differed from that one
    unsigned long long unlike   # operations up to this `count` are not compared

# Mix a word into a hash, and return the result.
cdef inline unsigned long long mix(unsigned long long h, unsigned long long word) noexcept:
    h = (h ^ word) * 0x9e3779b97f4a7c15u
    return h ^ (h >> 29)

# Return a new trace; NULL: there is no memory.
cdef Trace* new_trace() noexcept
cdef void free_trace(Trace* trace) noexcept
# Append the operations of a batch, except the extra ones. `first` is the position of the batch.
cdef void trace_batch(Trace* trace, const Recording* recording, unsigned long long first,
                      const Extra* extra) noexcept
# Store that the program asked for a commit after the last operation.
cdef void trace_commit(Trace* trace) noexcept
# Return the number of operations of a round; 0: none was found, or it is too early to search.
cdef int find_period(Trace* trace) noexcept
# Return the number of operations between the program's commits if it is the same throughout a
# period, of which it is a part; else 0.
cdef int commit_distance(const Trace* trace, int period) noexcept
# Return whether the last `length` operations equal those a period before.
cdef bint repeats_for(const Trace* trace, int period, int length) noexcept
# Return whether the program's commits among them are a period apart, too, and there is one.
cdef bint commits_repeat_for(const Trace* trace, int period, int length) noexcept
# Set `functions` to what `count` operations run if the last round repeats. The first of them is the
# one that was recorded `since` operations ago.
cdef void fill_expected(const Trace* trace, CUfunction* functions, int period, int since,
                  int count) noexcept
