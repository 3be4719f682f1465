# A plan: the executable graphs of one topology, and how a recording is laid over one of them.
#
# INVARIANTS
# - Laid means equal: what is launched equals what was recorded, node for node. A patch that the
#   driver refuses drops the exec, and a new one is built.
# - An exec is found by a hash of its parameters. Parameters that were never launched are patched
#   into the exec that is most like them; those that come again have one of their own, as long as
#   the cache is at most half full. Where a batch that was launched before is clearly more like it
#   than any exec, that is enough, too: what changes every time is patched alone.
# - A topology that was never seen runs as a chain: see chain. Nodes that do count as patched.
# - A patched parameter costs 0.16 us, a patched grid or block 1.2 to 1.8 with the launch after it
#   (measured): an exec of equal geometry is patched before any other.
# - A hit is exact: equal hashes are followed by a comparison of the integers.
# - A plan holds the functions it runs, and with them their modules. It belongs to one stream.
# - A plan that is being launched is not evicted.

from cyrt.graph.chain cimport Chains
from cyrt.graph.executable cimport Contents, Executable, Outcome
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    VARIANTS = 8            # execs that a plan may have, however little room the cache has
    HISTORY = 256           # launches, remembered
    GEOMETRIES = 16

# Hashes of the geometries that were launched last.
cdef struct Geometries:
    unsigned long long[GEOMETRIES] hashes
    unsigned int count

cdef class Plan:
    cdef StreamState* stream
    cdef Plan newer, older      # in the cache's list by last use
    cdef object key
    cdef unsigned int* topology
    cdef size_t topology_words
    cdef size_t blob_bytes
    cdef int num_nodes
    cdef list owners            # per node: its function, what a child graph belongs to, or None
    cdef Geometry* geometry     # of the first recording; later ones' is in the variants
    cdef char* patched_         # per node: whether the last launch patched it
    cdef Executable** variants
    cdef Executable* last       # launched last; NULL: none was, it ran as a chain
    cdef int num_variants, variant_room
    cdef bint patching          # the last launch patched
    cdef Geometries geometries
    cdef Contents* history      # of the last launches that no exec equalled, a ring
    cdef unsigned int remembered
    cdef int busy               # commits that launch it, or are about to
    cdef Chains chains          # what runs it the first time; None: an exec of its own does
    cdef readonly unsigned long long launches

    cdef void drop(self) noexcept

cdef struct PlanStats:
    unsigned long long hits
    unsigned long long misses
    unsigned long long chained
    unsigned long long equal        # launches of what an exec held already
    unsigned long long patched
    unsigned long long instantiations
    unsigned long long launches
    unsigned long long evictions

# The plan of the recording's topology: found, or new and empty. It is `busy` by one more, which the
# caller takes back. None where finalizers launched the recording meanwhile.
cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats)
# Launches what equals the recording. Runs no Python code.
cdef void launch_plan(Plan plan, Recording* recording, PlanStats* stats, Outcome* outcome) noexcept
# Drops plans used longest ago until count and bytes are within their limits.
cdef int evict(PlanStats* stats) except -1
# What each node runs, for errors and pictures.
cdef list node_names(Recording* recording)
# Drops those of a device that was reset.
cdef int forget_plans(int ordinal) except -1
