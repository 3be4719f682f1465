# Recordings: a recording stores the operations since the last commit in C arrays.
#
# INVARIANTS
# - Recording makes no driver call and creates no Python object; the next batch reuses the arrays.
# - The topology is a sequence of integers built from fields, never from raw structs: for each node
#   its kind, attributes and function serial, then its edges.
# - Geometry and parameters are not part of the topology: they are patched.
# - Bytes between parameters are zero: equal recordings are equal byte for byte.
# - The nodes form at most LANES chains (lanes); edges are added for that while recording. A wider
#   graph is slower to launch and gains nothing.
# - No edge follows from other edges: each node stores, for every lane, the last node before it.
# - The uses of each node are kept until the launch: if the driver refuses a node, what it would
#   have written is lost, and what depends on that.
# - A node that uses lost memory is recorded but not launched, so losses follow the stream's order.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cyrt.driver.cuda cimport CUdeviceptr, CUfunction
from cyrt.runtime.module cimport Layout
from cyrt.runtime.state cimport Access, Block

cdef enum:
    LANES = 8
    STEP_WORDS = 40

# Values of Node.key that several kernels have; see graph/replay_call.
cdef enum:
    LAUNCH = 1
    STEP = 2
    LAUNCH_ON_TENSORS = 3
    CALL_IN_ORDER = 4

cdef enum NodeKind:
    KERNEL
    COPY            # within the device; parameters: target, source, bytes
    EMPTY
    CHILD           # parameters: the CUgraph, and the unique number of the child
    TEMPLATE        # a kernel of a pattern; parameters: the addresses of the call's operands

cdef enum NodeFlags:
    PROGRAMMATIC = 1        # it executes griddepcontrol.wait before it accesses global memory
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

# The blocks that a kernel may load before it waits for its dependencies, if the recording allows
# all of them.
cdef struct EarlyLoad:
    int use, count      # index of the first use of a block that is loaded, and their number
    size_t word         # offset in the parameters of a 32-bit word; 1: the load may come early

# Other libraries' tensors that operations use.
cdef struct Tensors:
    void** objects
    int count
    int room            # number of tensors that the array has room for

# The description of an operation for `append`.
cdef struct Operation:
    NodeKind kind
    unsigned int flags
    const unsigned int* cluster     # NULL: none
    CUfunction function
    unsigned long long serial       # the function's or pattern's, or the shape of the child graph
    const Layout* layout
    const Geometry* geometry        # NULL: none
    const void* params
    size_t param_bytes
    void* owner         # a Runnable; NULL: none
    const EarlyLoad* early          # NULL: none; see graph/early
    unsigned long long key          # the key of the call (see graph/replay_call); 0: it has none
    const Tensors* tensors          # all outside memory that it uses is theirs; NULL: none is

cdef struct Node:
    NodeKind kind
    unsigned int flags
    unsigned int cluster[3]
    CUfunction function
    unsigned long long serial
    unsigned long long key      # the key of the call that recorded the node; 0: it has none
    const Layout* layout        # where a kernel's parameters, or a Pattern's, lie; else NULL
    size_t params               # offset in the blob
    size_t param_bytes
    size_t topology_end         # number of words of the topology up to this node's
    int first_edge              # index in `edges`; the node's edges end at the next node's
    int first_use               # index in `uses`; the node's uses end at the next node's
    int lane
    int next_lane               # the recording's `next_lane` behind this node
    int[LANES] before           # the last node of each lane that runs before this one, -1: none

# A call that its front end has described by words, which determine the parameters and geometry,
# too: see graph/replay_call.
cdef struct Step:
    bint early                  # it may load before it waits
    int count
    unsigned long long[STEP_WORDS] words

# The memory of a use when a batch was launched. Its block may be split, joined or destroyed later.
cdef struct UsedMemory:
    CUdeviceptr address
    size_t size
    bint dead                   # it had another owner

cdef struct Edge:
    int source
    int programmatic

cdef struct Recording:
    Node* nodes
    Geometry* geometry
    void** owners               # each node's: a counted reference or NULL
    bint passing                # some of these may be references that a script does not keep
    Edge* edges
    Use* uses
    unsigned int* losses        # each node's: the number of its error or 0; NULL: none is lost
    char* blob
    unsigned int* topology
    int num_nodes, num_edges
    int open_edge               # index of the first edge of the next node, the open node
    int num_uses
    int node_room, edge_room, use_room, loss_room
    size_t blob_bytes, blob_room
    size_t topology_words, topology_room
    int tails[LANES]            # the last node of each lane, -1: unused
    int next_lane
    int barrier                 # every later node runs after this one; -1: none
    int group                   # nodes from this one on have no order among them; -1: none
    Recording* next             # the next of the recorder's spare recordings, or of its scripts
    # For graph/replay:
    bint once                   # its edges follow from more than its operations: it is no script
    bint repeats                # it was launched as a whole, and may be replayed
    bint busy                   # it is being replayed or launched
    unsigned long long used     # the value of Replay.clock at its last launch
    Step* steps                 # the steps of nodes whose key is STEP; NULL: none
    int step_room
    Recording* following        # the script that was launched after it; NULL: none was
    PyObject* plan              # a counted reference to the Plan that ran it; NULL: none
    # For graph/fusion:
    unsigned int launches       # how often it was launched as a whole
    unsigned int num_fusions    # the Fusions that were made of it, see graph/fusion
    UsedMemory* memory          # the memory of each use at the launch before a compilation, or NULL
    PyObject* fusion            # a counted reference to its Fusion; NULL: none

# Return the end of the range of edges into a node.
cdef inline int edge_end(const Recording* recording, int node) noexcept nogil:
    return recording.nodes[node + 1].first_edge if node + 1 < recording.num_nodes \
        else recording.num_edges
# Return the end of the range of uses of a node.
cdef inline int use_end(const Recording* recording, int node) noexcept:
    return recording.nodes[node + 1].first_use if node + 1 < recording.num_nodes \
        else recording.num_uses
# Return the bytes of room in which any node's parameters can be laid out for the driver.
cdef size_t param_room(const Recording* recording) noexcept nogil
# Return an empty recording.
cdef Recording* new_recording() except NULL
# Drop the references to the owners, which may run finalizers. A script keeps its built-in kernels,
# which live as long as the device's context.
cdef void release_owners(Recording* recording, bint is_script) noexcept
# Keep a reference to the owner of a node of a script, which may have it already.
cdef inline void hold_owner(Recording* recording, int node, void* owner) noexcept:
    if owner != NULL and recording.owners[node] == NULL:
        Py_INCREF(<object>owner)
        recording.owners[node] = owner
        recording.passing = True
# Remove all nodes. The arrays are kept for the next ones; `free_arrays` frees them, too.
cdef void clear(Recording* recording) noexcept
cdef void free_arrays(Recording* recording) noexcept
# Copy the first `count` nodes to an empty recording, with the references to their owners, and leave
# those behind that a script keeps. Return False, with nothing changed, if there is no memory.
cdef bint copy_nodes(Recording* target, Recording* source, int count) noexcept
# Return room for the step of a node, whose key it sets; NULL: there is no memory.
cdef Step* new_step(Recording* recording, int node) noexcept
# Remove the nodes behind the first `count`, of which there are some, of a recording without a
# barrier. The arrays are as after the last of these.
cdef void truncate(Recording* recording, int count) noexcept
# Free the recordings of a list.
cdef void destroy(Recording* first) noexcept
# Make room for one more node, so that `append` cannot fail. A barrier needs LANES edges, and a join
# of a lane one.
cdef inline int reserve(Recording* recording, size_t param_bytes, int edges) except -1:
    if recording.num_nodes >= recording.node_room \
            or recording.num_edges + edges + LANES + 1 > recording.edge_room \
            or recording.blob_bytes + param_bytes + 16 > recording.blob_room \
            or recording.topology_words + edges + LANES + 9 > recording.topology_room:
        grow_arrays(recording, param_bytes, edges + LANES + 1)
    return 0
cdef int grow_arrays(Recording* recording, size_t param_bytes, int edges) except -1
# Make room for the uses of one more node, which may have none, and return their address.
cdef inline Use* reserve_uses(Recording* recording, int count) except NULL:
    if recording.num_uses + count >= recording.use_room:
        grow_uses(recording, count)
    return recording.uses + recording.num_uses
cdef int grow_uses(Recording* recording, int count) except -1
# Make room for more tensors, so that `keep_tensors` cannot fail.
cdef inline int reserve_tensors(Tensors* kept, int count) except -1:
    return grow_tensors(kept, count) if kept.count + count > kept.room else 0
cdef int grow_tensors(Tensors* kept, int count) except -1
# Add references to tensors.
cdef inline void keep_tensors(Tensors* kept, const Tensors* tensors) noexcept:
    cdef int i
    for i in range(tensors.count):
        Py_INCREF(<object>tensors.objects[i])
        kept.objects[kept.count + i] = tensors.objects[i]
    kept.count += tensors.count
# Drop the references, which may run finalizers.
cdef void release_tensors(Tensors* kept) noexcept
# Add an edge into the node that `append` adds next; redundant edges are dropped.
cdef inline void add_edge(Recording* recording, int source) noexcept:
    if source >= 0 and source >= recording.barrier:     # else the barrier already waits for it
        add_new_edge(recording, source)
cdef void add_new_edge(Recording* recording, int source) noexcept
# Make the next node a barrier: it waits for all earlier nodes, and all later nodes wait for it.
cdef void add_barrier(Recording* recording) noexcept
# Append a node and return its index. It takes the next `num_uses` entries of `uses`, and a
# reference to the owner.
cdef int append(Recording* recording, const Operation* operation, int num_uses) noexcept
