# A plan: executable graphs of one topology, and how a recording is laid over one of them.
#
# INVARIANTS
# - Laid means equal: after `lay`, what the exec will run equals what was recorded, node for node. A
#   patch that the driver refuses drops the exec, and a new one is built.
# - A hit is exact: equal hashes are followed by a comparison of the integers.
# - A plan holds the functions it runs, and with them their modules. An exec belongs to one stream.
# - Patching and destroying an exec in flight is safe and acts on later launches only (measured).

from cyrt.driver.cuda cimport CUgraph, CUgraphExec, CUgraphNode, CUresult
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

cdef enum:
    MAX_VARIANTS = 4

cdef struct Variant:
    CUgraph graph
    CUgraphExec exec
    CUgraphNode* nodes
    Geometry* geometry          # what the exec holds
    char* blob
    unsigned long long used     # the cache's clock at its last launch

cdef class Plan:
    cdef StreamState* stream
    cdef Plan newer, older      # in the cache's list by last use
    cdef object key
    cdef unsigned int* topology
    cdef size_t topology_words
    cdef size_t blob_bytes
    cdef int num_nodes
    cdef list owners            # functions and what child graphs belong to
    cdef readonly list names    # of the nodes, for errors and pictures
    cdef readonly list edges    # (source, target, programmatic)
    cdef Variant[MAX_VARIANTS] variants
    cdef int num_variants
    cdef int misses             # launches in a row that had to patch
    cdef size_t bytes
    cdef readonly list patched  # nodes that the last launch patched

    cdef void drop(self) noexcept

cdef struct PlanStats:
    unsigned long long hits
    unsigned long long misses
    unsigned long long patched
    unsigned long long instantiations
    unsigned long long evictions

# The plan of the recording's topology: found, or new and empty.
cdef Plan find(StreamState* stream, Recording* recording, PlanStats* stats)
# Makes one exec equal to the recording and returns it.
cdef CUgraphExec lay(Plan plan, Recording* recording, PlanStats* stats) except NULL
# What each node runs, for errors and pictures.
cdef list node_names(Recording* recording)
# Launches one kernel on the stream.
cdef int launch_now(StreamState* stream, LoadedFunction function, const Geometry* geometry,
                    const char* params) except -1
# Launches the recording's nodes one by one on the stream: no graph.
cdef int launch_directly(StreamState* stream, Recording* recording) except -1
