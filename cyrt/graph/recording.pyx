"""Recordings: the operations since the last commit, in C arrays."""

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from cyrt.graph.pattern cimport Pattern, room_of
from cyrt.runtime.poison cimport release_error

cdef extern from *:
    """
    static inline unsigned long long cyrt_fold(unsigned long long h, unsigned long long word,
                                               unsigned long long prime) {
        h = (h ^ word) * prime;
        return h ^ (h >> 29);
    }
    """
    unsigned long long cyrt_fold(unsigned long long h, unsigned long long word,
                                 unsigned long long prime) noexcept nogil

cdef unsigned long long PRIME_0 = 0x9e3779b97f4a7c15u
cdef unsigned long long PRIME_1 = 0xc2b2ae3d27d4eb4fu


cdef Recording* new_recording() except NULL:
    cdef Recording* recording = <Recording*>calloc(1, sizeof(Recording))
    if recording == NULL:
        raise MemoryError()
    clear(recording)
    return recording


cdef void clear(Recording* recording) noexcept:
    cdef int i
    for i in range(recording.num_nodes):
        if recording.nodes[i].owner != NULL:
            Py_DECREF(<object>recording.nodes[i].owner)
    if recording.losses != NULL:
        for i in range(min(recording.num_nodes, recording.loss_room)):
            if recording.losses[i]:
                release_error(recording.losses[i])
        free(recording.losses)
        recording.losses = NULL
        recording.loss_room = 0
    recording.num_nodes = 0
    recording.num_edges = 0
    recording.num_uses = 0
    recording.open_edge = 0
    recording.blob_bytes = 0
    recording.topology_words = 0
    recording.hash[0] = 0
    recording.hash[1] = 0
    recording.next_lane = 0
    recording.barrier = -1
    recording.group = -1
    for i in range(LANES):
        recording.tails[i] = -1


cdef void free_arrays(Recording* recording) noexcept:
    clear(recording)
    free(recording.nodes)
    free(recording.geometry)
    free(recording.edges)
    free(recording.uses)
    free(recording.blob)
    free(recording.topology)
    memset(recording, 0, sizeof(Recording))
    clear(recording)


cdef void destroy(Recording* first) noexcept:
    cdef Recording* next
    while first != NULL:
        next = first.next
        free_arrays(first)
        free(first)
        first = next


cdef size_t param_room(const Recording* recording) noexcept nogil:
    cdef const Node* node
    cdef size_t room = 1
    cdef int i
    for i in range(recording.num_nodes):
        node = &recording.nodes[i]
        if node.kind == TEMPLATE:
            room = max(room, room_of(<const Pattern*>node.layout))
        elif node.layout != NULL:
            room = max(room, node.layout.count * sizeof(void*))
    return room


cdef void* grown(void* old, size_t bytes) except NULL:
    cdef void* new = realloc(old, bytes)
    if new == NULL:
        raise MemoryError()
    return new


cdef int reserve(Recording* recording, size_t param_bytes, int edges) except -1:
    cdef int room
    cdef size_t bytes
    edges += LANES + 1          # the edges of a barrier, and one to join a lane
    if recording.num_nodes + 1 > recording.node_room:
        room = 2 * recording.node_room + 64
        recording.nodes = <Node*>grown(recording.nodes, room * sizeof(Node))
        recording.geometry = <Geometry*>grown(recording.geometry, room * sizeof(Geometry))
        recording.node_room = room
    if recording.num_edges + edges > recording.edge_room:
        room = 2 * recording.edge_room + edges + 64
        recording.edges = <Edge*>grown(recording.edges, room * sizeof(Edge))
        recording.edge_room = room
    bytes = recording.blob_bytes + param_bytes + 16
    if bytes > recording.blob_room:
        recording.blob = <char*>grown(recording.blob, 2 * bytes)
        recording.blob_room = 2 * bytes
    bytes = recording.topology_words + 8 + edges
    if bytes > recording.topology_room:
        recording.topology = <unsigned int*>grown(recording.topology,
                                                  2 * bytes * sizeof(unsigned int))
        recording.topology_room = 2 * bytes
    return 0


cdef int grow_uses(Recording* recording, int count) except -1:
    cdef int room = 2 * recording.use_room + count + 128
    recording.uses = <Use*>grown(recording.uses, room * sizeof(Use))
    recording.use_room = room
    return 0


cdef void add_new_edge(Recording* recording, int source) noexcept:
    cdef int i
    for i in range(recording.open_edge, recording.num_edges):
        if recording.edges[i].source == source:
            return
    recording.edges[recording.num_edges].source = source
    recording.num_edges += 1


cdef void add_barrier(Recording* recording) noexcept:
    cdef int i
    for i in range(LANES):
        add_edge(recording, recording.tails[i])
        recording.tails[i] = -1
    recording.next_lane = 0
    recording.barrier = recording.num_nodes


cdef inline void fold(Recording* recording, unsigned int word) noexcept:
    recording.topology[recording.topology_words] = word
    recording.topology_words += 1
    recording.hash[0] = cyrt_fold(recording.hash[0], word, PRIME_0)
    recording.hash[1] = cyrt_fold(recording.hash[1], word, PRIME_1)


cdef inline void append_node_words(Recording* recording, unsigned int head,
                           unsigned long long serial) noexcept:
    """Append a node's first three words, hashed as one: a head has far fewer bits than a word."""
    cdef unsigned int* words = recording.topology + recording.topology_words
    cdef unsigned long long both = serial ^ <unsigned long long>head << 40
    words[0], words[1], words[2] = head, <unsigned int>serial, <unsigned int>(serial >> 32)
    recording.topology_words += 3
    recording.hash[0] = cyrt_fold(recording.hash[0], both, PRIME_0)
    recording.hash[1] = cyrt_fold(recording.hash[1], both, PRIME_1)


cdef inline void merge_predecessors(Recording* recording, int* before, int source) noexcept:
    cdef const Node* node = &recording.nodes[source]
    cdef int i
    for i in range(LANES):
        before[i] = max(before[i], node.before[i])
    before[node.lane] = max(before[node.lane], source)


cdef void reduce_edges(Recording* recording, int* before) noexcept:
    """Drop the edges of the open node that follow from others. Set `before` to the last node of
    each lane that runs before the open node."""
    cdef int i, j, source, kept = recording.open_edge
    cdef int barrier = recording.barrier if recording.barrier < recording.num_nodes else -1
    if recording.num_edges == kept + 1 and recording.edges[kept].source > barrier:
        source = recording.edges[kept].source       # the usual case: a single edge
        memcpy(before, recording.nodes[source].before, LANES * sizeof(int))
        before[recording.nodes[source].lane] = source
        return
    for i in range(LANES):
        before[i] = barrier
    for i in range(recording.open_edge, recording.num_edges):
        source = recording.edges[i].source      # sort descending: nodes wait for lower ones only
        j = i
        while j > recording.open_edge and recording.edges[j - 1].source < source:
            recording.edges[j].source = recording.edges[j - 1].source
            j -= 1
        recording.edges[j].source = source
    for i in range(recording.open_edge, recording.num_edges):
        source = recording.edges[i].source
        if before[recording.nodes[source].lane] < source:
            recording.edges[kept].source = source
            kept += 1
            merge_predecessors(recording, before, source)
    recording.num_edges = kept


cdef int choose_lane(Recording* recording, int* before) noexcept:
    """Return a lane whose last node runs before the open node, preferably by an existing edge. If
    there is none, add an edge."""
    cdef int i, source, lane
    for i in range(recording.open_edge, recording.num_edges):
        source = recording.edges[i].source
        lane = recording.nodes[source].lane
        if recording.tails[lane] == source:
            return lane
    for i in range(LANES):
        lane = (recording.next_lane + i) % LANES
        if recording.tails[lane] <= before[lane]:
            recording.next_lane = (lane + 1) % LANES
            return lane
    lane = recording.next_lane
    if recording.group >= 0:        # prefer a lane without nodes of the group
        for i in range(lane, lane + LANES):
            if recording.tails[i % LANES] < recording.group:
                lane = i % LANES
                break
    recording.next_lane = (lane + 1) % LANES
    add_edge(recording, recording.tails[lane])
    reduce_edges(recording, before)
    return lane


cdef int append(Recording* recording, const Operation* operation, int num_uses) noexcept:
    cdef int index = recording.num_nodes
    cdef Node* node = &recording.nodes[index]
    cdef Edge* edge
    cdef unsigned int flags = operation.flags
    cdef size_t end
    cdef int i
    reduce_edges(recording, node.before)
    node.kind = operation.kind
    node.flags = flags
    node.function = operation.function
    node.layout = operation.layout
    node.first_edge = recording.open_edge
    node.first_use = recording.num_uses
    recording.num_uses += num_uses
    node.lane = choose_lane(recording, node.before)
    if recording.barrier >= 0 and recording.barrier != index \
            and recording.num_edges == recording.open_edge:
        recording.edges[recording.num_edges].source = recording.barrier
        recording.num_edges += 1
    recording.tails[node.lane] = index
    node.params = recording.blob_bytes
    node.param_bytes = operation.param_bytes
    memcpy(recording.blob + node.params, operation.params, operation.param_bytes)
    end = node.params + operation.param_bytes
    recording.blob_bytes = (end + 15) & ~<size_t>15
    if recording.blob_bytes != end:
        memset(recording.blob + end, 0, recording.blob_bytes - end)
    if operation.geometry != NULL:
        recording.geometry[index] = operation.geometry[0]
    else:
        memset(&recording.geometry[index], 0, sizeof(Geometry))
    node.owner = operation.owner
    if node.owner != NULL:
        Py_INCREF(<object>node.owner)
    append_node_words(recording, <unsigned int>node.kind | flags << 4
              | <unsigned int>(recording.num_edges - recording.open_edge) << 12, operation.serial)
    if flags & CLUSTER:
        for i in range(3):
            node.cluster[i] = operation.cluster[i]
            fold(recording, node.cluster[i])
    for i in range(recording.open_edge, recording.num_edges):
        edge = &recording.edges[i]
        edge.programmatic = flags & recording.nodes[edge.source].flags & PROGRAMMATIC
        fold(recording, <unsigned int>edge.source << 1 | <unsigned int>edge.programmatic)
    recording.open_edge = recording.num_edges
    recording.num_nodes = index + 1
    return index
