# Plans: a plan stores the executable graphs (execs) of one topology, and makes one of them equal to
# a recording. See plan_cache for how plans are found and evicted.
#
# INVARIANTS
# - What is launched equals what was recorded, node for node. If the driver refuses a patch, the
#   plan drops the exec and builds a new one.
# - A hash of its parameters finds an exec. Parameters that were never launched are patched into the
#   exec that is most like them. Parameters that repeat get a separate exec, as long as the plan's
#   execs occupy at most half of the cache. So does a batch that is clearly more like an earlier
#   batch than like any exec, or most of whose patched nodes would return to what they were before
#   the last patch: after that only what changes every time is patched.
# - From the 33rd on, an exec is added only after patches of parameters that repeat have cost as
#   much as it does: each of a decoder's 256 positions repeats, too, and differs from the others in
#   few nodes.
# - A topology that was never seen runs as a chain: see chain. Its nodes are counted as patched.
# - A patched parameter costs 0.16 us, a patched grid or block 1.2 to 1.8 us with the launch after
#   it (measured): an exec of equal geometry is patched before any other.
# - A plan belongs to one stream. When it leaves the cache, what the program can read of it stays.

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.chain cimport Chains
from cyrt.graph.executable cimport Contents, Executable, Execs, Outcome
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    VARIANTS = 8            # execs that a plan may have even if the cache is full
    UNPAID = 32             # execs of parameters that repeat that a plan gets immediately
    HISTORY = 256           # launches whose contents are remembered
    GEOMETRIES = 16         # launches whose geometry is remembered
    PATCHES_OF_A_NODE = 10  # a node of a new exec costs as much as so many patches: 1.8 us to 0.16

# Hashes of the geometries of the last launches.
cdef struct Geometries:
    unsigned long long[GEOMETRIES] hashes
    unsigned int count

cdef class Plan(Execs):
    cdef unsigned int* topology
    cdef size_t topology_words
    cdef size_t blob_bytes
    cdef int num_nodes
    cdef list names_            # each node's: the name of the kernel that it runs
    cdef Geometry* geometry     # the first recording's; variants store that of later ones
    cdef char* patched_         # each node's: whether the last launch patched it
    cdef Executable** variants
    cdef Executable* last       # the exec launched last; NULL: none, or it was dropped
    cdef int num_variants, variant_room
    cdef bint patching          # the last launch patched nodes
    cdef Geometries geometries
    cdef Contents* history      # a ring: contents of the last launches that no exec was equal to
    cdef unsigned int remembered
    # The patches of contents that repeat, since the last exec was added; counted from UNPAID on.
    cdef unsigned int repeated
    cdef Chains chains          # the chains for the first launch; None: an exec runs it
    cdef readonly unsigned long long launches
    cdef readonly object fusion  # the Fusion of a script that is launched often, else None

cdef struct PlanStats:
    unsigned long long hits
    unsigned long long misses
    unsigned long long chained
    unsigned long long equal        # launches whose recording was equal to an exec
    unsigned long long patched
    unsigned long long instantiations
    unsigned long long launches
    unsigned long long evictions
    unsigned long long fused_plans      # launches of fused plans
    unsigned long long fused_nodes      # operations that ran within fused kernels
    unsigned long long bytes_saved      # bytes that these neither read nor wrote

# Launch an exec or a chain that equals the recording. The function runs no Python code. `around`:
# NULL, or an event before the launch of an exec and one after it.
cdef void launch_plan(Plan plan, Recording* recording, PlanStats* stats, Outcome* outcome,
                      const CUevent* around) noexcept
# Count a launch of the plan, or of the fused one in its place.
cdef void note_launch(Plan plan, PlanStats* stats, const Outcome* outcome) noexcept
# Return what each node runs, for error messages and pictures.
cdef list node_names(Recording* recording)
# Return the name of a NodeKind.
cdef str kind_name(int kind)
# Return a plan for a copy of the topology. The caller checks the copy. Return None if a finalizer
# has launched the recording meanwhile.
cdef Plan new_plan(StreamState* stream, Recording* recording)
# Compare all integers of the topologies.
cdef bint has_topology(Plan plan, const Recording* recording) noexcept

cdef unsigned long long clock       # launches so far: it tells which exec was used longest ago
cdef size_t most_bytes              # CYRT_GRAPH_CACHE_BYTES, which plan_cache reads
