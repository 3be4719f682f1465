# An executable graph: built from a recording, patched, launched, destroyed.
#
# INVARIANTS
# - `nodes`, `geometry` and `blob` say what the exec runs, node for node.
# - It belongs to one stream. Patching and destroying it in flight is safe and acts on later
#   launches only (measured).
# - A launch blocks where the driver's queue is full. Naming a kernel for the first time may load
#   its code, and wait for all that is in flight. So launching, building, instantiating and setting
#   a node to another kernel release the GIL; nothing else may patch or destroy the exec meanwhile.
# - All of it happens during a stream's turn: no Python code runs, and what the driver refuses is
#   told by an Outcome.

from cyrt.driver.cuda cimport CUgraph, CUgraphExec, CUgraphNode, CUresult
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.state cimport StreamState

cdef enum:
    SAMPLES = 8                 # nodes that stand for all

# Parameters and geometry of every node, in short.
cdef struct Contents:
    unsigned long long hash
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
    Contents contents           # of what it runs
    unsigned long long used     # the cache's clock at its last launch
    Executable* following       # what was launched after it last, of the same plan

# The result of a launch.
cdef struct Outcome:
    CUresult result             # the driver's first refusal, or CUDA_SUCCESS
    const char* call
    int launched                # nodes that were launched before it

# Bytes of host and device memory that the execs take, and that one of so many nodes takes.
cdef size_t held_bytes
cdef size_t bytes_of(int num_nodes) noexcept

# Of the nodes from `first` on, with the recording's edges, or `chained` one after the other.
cdef bint instantiate(Executable* target, StreamState* stream, Recording* recording, int first,
                      int count, bint chained, Outcome* outcome) noexcept
cdef unsigned long long geometry_hash(const Recording* recording) noexcept
cdef void summarise(const Recording* recording, Contents* contents) noexcept
# How many of a few nodes have the same parameters: what a patch takes, roughly.
cdef inline int likeness(const Contents* one, const Contents* other) noexcept:
    cdef int i, equal = 0
    for i in range(SAMPLES):
        equal += one.samples[i] == other.samples[i]
    return equal
cdef bint equal_params(Executable* target, Recording* recording) noexcept
cdef bint equal_geometry(Executable* target, Recording* recording) noexcept
# Sets the nodes that differ from the recording, and flags them in `patched`; the driver's first
# refusal, where there is one: the exec is then of no use.
cdef CUresult patch(Executable* target, Recording* recording, char* patched) noexcept
# Sets every node, whatever kernel it was, to the recording's from `first` on.
cdef CUresult replace(Executable* target, Recording* recording, int first) noexcept
# The same by a new graph and cuGraphExecUpdate.
cdef CUresult update(Executable* target, Recording* recording) noexcept
cdef CUresult launch(Executable* target) noexcept
cdef void destroy(Executable* target) noexcept
