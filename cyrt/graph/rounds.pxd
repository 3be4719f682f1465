# The round of a program: after how many operations it begins again.
#
# INVARIANTS
# - Two operations are equal by their kernel and by how many operations ago each of their operands
#   was used last. Addresses, sizes and values do not count: they may change every round. Neither
#   does what a result is written to, which is the pool's choice.
# - Operations that come round after a part of a round look equal where the parts do, as the tensors
#   of an optimiser's step. A round is no shorter than the longest time between two uses of an
#   operand; and where results are kept now and then, or the program commits or waits, as long as
#   these come round.
# - What was recorded decides, never time.

from cyrt.driver.cuda cimport CUfunction
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport Block

cdef enum:
    MOST_EXTRA = 16         # in a batch

# The operations of a batch that are no part of the program's round: which nodes.
cdef struct Extra:
    int[MOST_EXTRA] nodes
    int count

# An operation that was recorded.
cdef struct Step:
    unsigned long long hash
    CUfunction function         # what it runs; NULL: no kernel
    Block* result               # what it writes
    unsigned int generation
    unsigned int longest        # the most operations since an operand was used
    bint kept                   # the result outlived its batch
    bint committed              # the program asked for a commit behind it

# The last operations of a recorder.
cdef struct Trace:
    Step* steps                 # a ring
    unsigned long long count    # operations so far
    unsigned long long start    # position of the first one
    unsigned long long judged   # those of which `kept` is known
    unsigned long long next_look
    int period                  # that the operations are compared by; 0: none
    int differing               # operations that differed from those a period before
    unsigned long long unlike   # operations up to here are not compared

# Folds a word into a hash.
cdef inline unsigned long long mix(unsigned long long h, unsigned long long word) noexcept:
    h = (h ^ word) * 0x9e3779b97f4a7c15u
    return h ^ (h >> 29)

# Returns NULL where there is no memory.
cdef Trace* new_trace() noexcept
cdef void free_trace(Trace* trace) noexcept
# `first`: the position of the batch.
cdef void trace_batch(Trace* trace, const Recording* recording, unsigned long long first,
                      const Extra* extra) noexcept
# The program asked for a commit.
cdef void trace_commit(Trace* trace) noexcept
# Operations of a round; 0: none is known yet.
cdef int find_period(Trace* trace) noexcept
# What so many operations run, the first of which was recorded `since` operations ago, where the
# last round comes again and again.
cdef void fill_expected(const Trace* trace, CUfunction* functions, int period, int since,
                  int count) noexcept
