# Child graphs: graphs of other libraries that run as one node, passed as a handle or captured from
# a stream. Only one that was captured has `code`: that of the call.
#
# INVARIANTS
# - An update may replace one child of a node by another only if it carries everything in which they
#   differ. It carries parameters and geometry. It silently omits the rest (cluster dimensions,
#   measured). That rest is the child's shape, and part of the topology: the types of the nodes, the
#   attributes of kernels, the edges with their types, and the same of nested child graphs.

from cyrt.driver.cuda cimport (
    CUgraph, CUgraphNode, CUkernelNodeAttrID, CUresult, CUstreamCaptureMode,
)
from cyrt.runtime.module cimport Runnable
from cyrt.runtime.state cimport StreamState

cdef class ChildGraph(Runnable):
    cdef CUgraph graph          # a copy of the original graph, which only this object owns
    cdef unsigned long long serial      # a unique number
    cdef unsigned long long shape       # the number of the child's shape
    cdef size_t num_nodes
    cdef int ordinal
    cdef unsigned int epoch

cdef enum:
    NUM_ATTRIBUTES = 11
cdef CUkernelNodeAttrID[NUM_ATTRIBUTES] ATTRIBUTES      # those that a kernel node may have
# Return the bytes of each of these attributes of a kernel node, or None.
cdef list attributes_of(CUgraphNode node)

# Append a sorted tuple of the graph's edges to the list: indices by the dict of nodes, ports and
# type. Nothing is appended if there are none, or if the driver does not tell their types.
cdef CUresult describe_edges(CUgraph graph, dict numbers, list found) except *

# Copy a graph as it is now: its owner may change or destroy it afterwards.
cdef ChildGraph copy_graph(int ordinal, unsigned int epoch, CUgraph graph)
# Begin a capture of the stream, or end it and return its graph: a copy, or the graph itself, which
# the caller destroys.
cdef int begin_capture(StreamState* stream, CUstreamCaptureMode mode) except -1
cdef ChildGraph end_capture(StreamState* stream)
cdef CUgraph take_graph(StreamState* stream) except NULL
# End the capture, drop its graph, and return the driver's result, that of an invalid capture, too.
cdef CUresult discard_capture(StreamState* stream) noexcept
