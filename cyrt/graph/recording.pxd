# A recording: the operations since the last commit, as plain arrays.
#
# INVARIANTS
# - Recording makes no driver call and no Python object; the arrays are reused by the next batch.
# - The topology is a sequence of integers built from fields, never from raw structs: for each node
#   its kind, attributes and function serial, then its edges. `hash` folds the same integers.
# - Geometry and parameters are not in the topology: they are patched.
# - Parameter bytes between parameters are zero: equal recordings are equal byte for byte.
# - At most LANES chains cover the nodes, by edges added while recording: a wider graph is slow to
#   launch and gains nothing.
# - No edge follows from others: each node knows the last node of every lane that comes before it.
# - What each node uses is kept until the launch: where the driver refuses a node, what it would
#   have written is lost, and what depends on that.
# - A node that uses what is lost is recorded, and not launched: losses come in the stream's order.

from cyrt.driver.cuda cimport CUfunction
from cyrt.runtime.module cimport Layout
from cyrt.runtime.state cimport Access, Block

cdef enum:
    LANES = 8

cdef enum NodeKind:
    KERNEL
    COPY            # within the device; parameters: target, source, bytes
    EMPTY
    CHILD           # parameters: the CUgraph, and a number that no other child has

cdef enum NodeFlags:
    PROGRAMMATIC = 1        # executes griddepcontrol.wait before it touches global memory
    COOPERATIVE = 2
    CLUSTER = 4

cdef struct Geometry:
    unsigned int grid[3]
    unsigned int block[3]
    unsigned int smem

# The access of an operation to a block, and the generation of the block's owner.
cdef struct Use:
    Block* block
    Access access
    unsigned int generation

# What `append` is told of an operation.
cdef struct Operation:
    NodeKind kind
    unsigned int flags
    const unsigned int* cluster     # NULL: none
    CUfunction function
    unsigned long long serial       # of the function, or what tells one child graph from another
    const Layout* layout
    const Geometry* geometry        # NULL: it has none
    const void* params
    size_t param_bytes
    void* owner                     # LoadedFunction, or what a child graph belongs to

cdef struct Node:
    NodeKind kind
    unsigned int flags
    unsigned int cluster[3]
    CUfunction function
    const Layout* layout        # of the parameters; NULL where there are none
    size_t params               # offset in the blob
    size_t param_bytes
    int first_edge              # in `edges`, up to the next node's
    int first_use               # in `uses`, up to the next node's
    int lane
    int[LANES] before           # the last node of each lane that comes before it, -1: none
    void* owner                 # a reference

cdef struct Edge:
    int source
    int programmatic

cdef struct Recording:
    Node* nodes
    Geometry* geometry
    Edge* edges
    Use* uses
    unsigned int* losses        # numbers of the errors that nodes are lost by; NULL: none is
    char* blob
    unsigned int* topology
    int num_nodes, num_edges
    int open_edge               # where the edges of the next node begin
    int num_uses
    int node_room, edge_room, use_room, loss_room
    size_t blob_bytes, blob_room
    size_t topology_words, topology_room
    unsigned long long hash[2]
    int tails[LANES]            # the last node of each lane, -1: unused
    int next_lane
    int barrier                 # every later node comes after this one; -1: none
    int group                   # nodes from here on are not ordered among themselves; -1: none

# Where the edges into a node end.
cdef inline int edge_end(const Recording* recording, int node) noexcept nogil:
    return recording.nodes[node + 1].first_edge if node + 1 < recording.num_nodes \
        else recording.num_edges
# Where the uses of a node end.
cdef inline int use_end(const Recording* recording, int node) noexcept:
    return recording.nodes[node + 1].first_use if node + 1 < recording.num_nodes \
        else recording.num_uses
# Parameters of the node that has the most; at least 1.
cdef int most_params(const Recording* recording) noexcept nogil
cdef void clear(Recording* recording) noexcept
cdef void destroy(Recording* recording) noexcept
# Makes room for one more node, so that appending cannot fail half-way.
cdef int reserve(Recording* recording, size_t param_bytes, int edges) except -1
# Makes room for the uses of one more node.
cdef inline int reserve_uses(Recording* recording, int count) except -1:
    if recording.num_uses + count > recording.use_room:
        return grow_uses(recording, count)
    return 0
cdef int grow_uses(Recording* recording, int count) except -1
# An edge into the node that `append` adds next; needless ones are dropped.
cdef inline void add_edge(Recording* recording, int source) noexcept:
    if source >= 0 and source >= recording.barrier:     # else the barrier comes after it already
        add_new_edge(recording, source)
cdef void add_new_edge(Recording* recording, int source) noexcept
# Every node so far comes before the one that `append` adds next, and it before all later ones.
cdef void add_barrier(Recording* recording) noexcept
# Index of the new node, with that many of the uses that were kept. Takes a reference to the owner.
cdef int append(Recording* recording, const Operation* operation, int num_uses) noexcept
