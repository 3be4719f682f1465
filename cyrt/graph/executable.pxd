# Executable graphs (execs): built from a recording, patched, launched and destroyed.
#
# INVARIANTS
# - `nodes`, `geometry` and `blob` describe what the exec runs, node for node.
# - An exec belongs to one stream. Patching or destroying it in flight is safe and affects later
#   launches only (measured).
# - A launch blocks while the driver's queue is full. A node's first use of a kernel may load its
#   code, and wait for all work in flight. So launching, building, instantiating and setting a node
#   to another kernel release the GIL; no other thread may patch or destroy the exec meanwhile.
# - All of this happens during a stream's turn: no Python code runs, and an Outcome reports what the
#   driver refuses.
# - What the cache holds (Execs) keeps the code that its execs run, and nothing else of a kernel:
#   see Code in runtime/module. It can be read at any time: execs are taken out of it before they
#   are destroyed, which releases the GIL, and their code is released after that.

from cyrt.driver.cuda cimport (
    CUevent, CUgraph, CUgraphExec, CUgraphNode, CUlaunchAttribute, CUresult,
)
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    SAMPLES = 8                 # nodes that are hashed to estimate how many of all nodes are equal
    MOST_ATTRIBUTES = 2         # the most attributes that the launch of a kernel has

# A summary of the parameters and geometry of all nodes.
cdef struct Contents:
    unsigned long long hash
    unsigned long long geometry     # the geometry's hash
    unsigned int[SAMPLES] samples

cdef struct Executable:
    StreamState* stream
    CUgraph graph
    CUgraphExec exec
    CUgraphNode* nodes
    int num_nodes
    Geometry* geometry
    char* blob
    size_t blob_bytes
    Contents contents           # summary of what the exec runs
    unsigned int* replaced      # hashes of the parameters that each node had before its last patch
    unsigned long long used     # the clock of the plan cache at the exec's last launch
    Executable* following       # the exec of the same plan that was launched after its last launch

# The execs of a stream that leave the cache together: those of a Plan, or those of Chains.
cdef class Execs:
    cdef StreamState* stream
    cdef Execs newer, older     # neighbours in the cache's list, which is ordered by last use
    cdef object key             # the key under which the cache finds them
    cdef list code              # the Code of each node, or lists of these
    cdef bint cached            # the cache finds them
    cdef int busy               # commits that launch them, or are about to

    # Return the bytes that they occupy.
    cdef size_t held(self) noexcept
    # Destroy them and release their code, which may unload modules.
    cdef void drop(self) noexcept

# The result of a launch.
cdef struct Outcome:
    CUresult result             # the driver's first refusal, or CUDA_SUCCESS
    const char* call            # the driver function that returned it
    int launched                # number of nodes that were launched before it

# Bytes of host and device memory that all execs occupy, those of chains included, and an exec of
# `num_nodes` nodes.
cdef size_t held_bytes
cdef size_t bytes_of(int num_nodes) noexcept

# Set the attributes that a kernel's launch needs for its flags, and return their number.
cdef int set_attributes(CUlaunchAttribute* attributes, unsigned int flags,
                        const unsigned int* cluster) noexcept nogil
# Instantiate a graph in the current context; CUDA_ERROR_OUT_OF_MEMORY if its device has too little
# memory left to try.
cdef CUresult instantiate_graph(CUgraphExec* exec, CUgraph graph) noexcept nogil
# Instantiate the first `count` nodes, with the recording's edges, or, if `chained`, one after the
# other. Return False, with the reason in `outcome`, if the driver refuses.
cdef bint instantiate(Executable* target, StreamState* stream, Recording* recording, int count,
                      bint chained, Outcome* outcome) noexcept
cdef unsigned long long hash_of(const void* bytes, size_t count) noexcept
cdef void summarise(const Recording* recording, Contents* contents) noexcept
# Return how many of the sampled nodes have equal parameters: an estimate of the cost of a patch.
cdef inline int likeness(const Contents* one, const Contents* other) noexcept:
    cdef int i, equal = 0
    for i in range(SAMPLES):
        equal += one.samples[i] == other.samples[i]
    return equal
cdef bint equal_params(Executable* target, Recording* recording) noexcept
cdef bint equal_geometry(Executable* target, Recording* recording) noexcept
# Return how many nodes differ from the recording; above `most`, counting ends.
cdef int count_differing(const Executable* target, const Recording* recording, int most) noexcept
# Flag the nodes that differ from the recording, and return their number. Set `returning` to how
# many of them get the parameters that they had before their last patch.
cdef int find_differing(const Executable* target, const Recording* recording, char* differing,
                        int* returning) noexcept
# Set the flagged nodes to the recording's. If the driver refuses one, stop and return its error:
# the exec can then no longer be used.
cdef CUresult patch(Executable* target, Recording* recording, const char* differing) noexcept
# Allocate room for the parameter pointers of the node that has the most; the caller frees it.
cdef void** pointer_room(Recording* recording) noexcept nogil
# Set every node, whatever its kernel was, to the recording's nodes from `first` on. `pointers` is
# room for the parameters' pointers, from `pointer_room`.
cdef CUresult replace(Executable* target, Recording* recording, int first,
                      void** pointers) noexcept
# Launch an exec. `around`: NULL, or an event before the launch and one after it; if these cannot be
# recorded, their time cannot be read.
cdef CUresult launch(Executable* target, const CUevent* around) noexcept
cdef void destroy(Executable* target) noexcept
