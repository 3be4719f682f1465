# An executable graph: built from a recording, patched, launched, destroyed.
#
# INVARIANTS
# - `nodes`, `geometry` and `blob` say what the exec runs, node for node.
# - It belongs to one stream. Patching and destroying it in flight is safe and acts on later
#   launches only (measured).
# - A launch blocks where the driver's queue is full: it releases the GIL, and nothing else may
#   patch or destroy the exec meanwhile.
# - All of it happens during a stream's turn: no Python code runs, and what the driver refuses is
#   told by an Outcome.

from cyrt.driver.cuda cimport CUgraph, CUgraphExec, CUgraphNode, CUresult
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.state cimport StreamState

cdef struct Executable:
    StreamState* stream
    CUgraph graph
    CUgraphExec exec
    CUgraphNode* nodes
    int num_nodes
    Geometry* geometry
    char* blob
    size_t blob_bytes
    unsigned long long used     # the cache's clock at its last launch

# The result of a launch.
cdef struct Outcome:
    CUresult result             # the driver's first refusal, or CUDA_SUCCESS
    const char* call
    int launched                # nodes that were launched before it

# Bytes of host and device memory that the execs take.
cdef size_t held_bytes

# Of the nodes from `first` on, with the recording's edges, or `chained` one after the other.
cdef bint instantiate(Executable* target, StreamState* stream, Recording* recording, int first,
                      int count, bint chained, Outcome* outcome) noexcept
cdef unsigned long long params_hash(const Recording* recording) noexcept
cdef unsigned long long geometry_hash(const Recording* recording) noexcept
cdef bint equal_params(Executable* target, Recording* recording) noexcept
# How many of a few nodes have the parameters that the exec holds: what a patch takes, roughly.
cdef int likeness(const Executable* target, const Recording* recording) noexcept
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
