# Where a batch ends.
#
# INVARIANTS
# - What was recorded decides, never time: topologies repeat.
# - A loop of L operations cut every M makes L/gcd(L, M) topologies. So between a minimum and the
#   limit the batch is cut where an operation equals one that began an earlier batch: boundaries
#   lock to the loop.
# - Operations are equal by kernel and geometry. Where the commits keep patching, by their
#   parameters too: a loop over many buffers then patches nothing. Where that finds no boundaries,
#   by the kernel alone: sizes and addresses are new all the time, and patched.

from cyrt.graph.recording cimport Operation

cdef enum:
    BEGINNINGS = 16         # operations that began earlier batches, remembered

cdef enum Detail:
    BY_KERNEL
    BY_GEOMETRY
    BY_PARAMETERS

cdef struct Boundary:
    int max_ops, min_ops
    unsigned long long[BEGINNINGS] beginnings
    int num_beginnings
    Detail detail           # what makes two operations equal
    unsigned long long previous     # the operation before the next one
    bint found              # the batch before began at an operation that was remembered
    int patched             # commits in a row that patched
    int patience            # patched commits that it takes to compare by parameters
    int lost                # batches in a row that ended at the limit
    bint seldom             # operations return seldom

cdef void set_limit(Boundary* boundary, int max_ops) noexcept
# Whether a batch of that many nodes ends before the operation. Asked from one operation before the
# minimum on.
cdef bint ends_before(Boundary* boundary, int nodes, bint full, const Operation* next) noexcept
# The operation begins a batch.
cdef void begin(Boundary* boundary, const Operation* first) noexcept
# A batch was launched that ended by itself: what an exec held equalled it, or was patched, or
# neither: it was built.
cdef void learn(Boundary* boundary, bint equal, bint patched) noexcept
