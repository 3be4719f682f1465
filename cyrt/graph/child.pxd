# Graphs made elsewhere, as nodes: given by handle, or captured from a stream.
#
# INVARIANTS
# - Two children may take one node's place in turn only where an update carries all that they differ
#   by. It carries parameters and geometry; what it does not carry, without a word (cluster
#   dimensions, measured), is the child's shape, and part of the topology: the types of the nodes,
#   the attributes of kernels, the edges with their types, and those of children inside.

from cyrt.driver.cuda cimport CUgraph
from cyrt.runtime.state cimport StreamState

cdef class ChildGraph:
    cdef CUgraph graph          # a copy of the one that was given, which nobody else owns
    cdef unsigned long long serial      # a number that no other child gets
    cdef unsigned long long shape       # a number for each shape
    cdef size_t num_nodes
    cdef int ordinal
    cdef unsigned int epoch

# A copy of a graph as it is now: its owner may change or destroy it afterwards.
cdef ChildGraph copy_graph(int ordinal, unsigned int epoch, CUgraph graph)
cdef int begin_capture(StreamState* stream) except -1
cdef ChildGraph end_capture(StreamState* stream)
# Whatever became of the capture.
cdef void discard_capture(StreamState* stream) noexcept
