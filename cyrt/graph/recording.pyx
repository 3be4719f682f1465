"""Recordings: the operations since the last commit, in C arrays."""

from cpython.ref cimport Py_CLEAR, Py_DECREF, Py_INCREF
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from cyrt.graph.pattern cimport Pattern, room_of
from cyrt.runtime.allocation cimport allocate_zeroed, reallocate
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.poison cimport release_error

cdef extern from *:
    """
    /* Four lanes at a time. */
    typedef int cyrt_quad __attribute__((vector_size(16)));

    /* Set each lane's node to the later one of two. */
    static inline void cyrt_merge_lanes(int* lanes, const int* others) {
        cyrt_quad one, other, later;
        for (int i = 0; i < 8; i += 4) {
            memcpy(&one, lanes + i, sizeof(one));
            memcpy(&other, others + i, sizeof(other));
            later = one > other;
            one = (one & later) | (other & ~later);
            memcpy(lanes + i, &one, sizeof(one));
        }
    }
    /* Return the set of lanes, as bits, whose tail runs before a node. */
    static inline unsigned int cyrt_ended_lanes(const int* tails, const int* before) {
        const cyrt_quad bits = {1, 2, 4, 8};
        cyrt_quad tail, last, found = {0};
        unsigned int words[4];
        for (int i = 0; i < 8; i += 4) {
            memcpy(&tail, tails + i, sizeof(tail));
            memcpy(&last, before + i, sizeof(last));
            found |= (tail <= last) & (bits << i);
        }
        memcpy(words, &found, sizeof(words));
        return words[0] | words[1] | words[2] | words[3];
    }
    /* Return the first lane of a set that is not empty, beginning at a lane. */
    static inline int cyrt_first_lane(unsigned int lanes, int start) {
        return (start + __builtin_ctz(lanes >> start | lanes << (8 - start))) & 7;
    }
    """
    void merge_lanes "cyrt_merge_lanes"(int* lanes, const int* others) noexcept nogil
    unsigned int ended_lanes "cyrt_ended_lanes"(const int* tails, const int* before) noexcept nogil
    int first_lane "cyrt_first_lane"(unsigned int lanes, int start) noexcept nogil


cdef Recording* new_recording() except NULL:
    cdef Recording* recording = <Recording*>allocate_zeroed(sizeof(Recording))
    clear(recording)
    return recording


cdef inline bint has_built_in(const Recording* recording, int node) noexcept:
    """Return whether a node's owner is a built-in kernel."""
    return recording.nodes[node].kind == KERNEL \
        and (<LoadedFunction>recording.owners[node]).ordered


cdef void release_range(Recording* recording, int first, bint is_script) noexcept:
    cdef void* owner
    cdef int i
    for i in range(first, recording.num_nodes):
        owner = recording.owners[i]
        if owner != NULL and not (is_script and has_built_in(recording, i)):
            recording.owners[i] = NULL
            Py_DECREF(<object>owner)


cdef void release_owners(Recording* recording, bint is_script) noexcept:
    if recording.passing or not is_script:
        release_range(recording, 0, is_script)
        recording.passing = False


cdef void clear(Recording* recording) noexcept:
    cdef int i
    release_owners(recording, False)
    if recording.losses != NULL:
        for i in range(min(recording.num_nodes, recording.loss_room)):
            if recording.losses[i]:
                release_error(recording.losses[i])
        free(recording.losses)
        recording.losses = NULL
        recording.loss_room = 0
    recording.repeats = recording.once = False
    recording.launches = recording.num_fusions = 0
    free(recording.memory)
    recording.memory = NULL
    Py_CLEAR(recording.fusion)
    Py_CLEAR(recording.plan)
    recording.num_nodes = 0
    recording.num_edges = 0
    recording.num_uses = 0
    recording.open_edge = 0
    recording.blob_bytes = 0
    recording.topology_words = 0
    recording.next_lane = 0
    recording.barrier = -1
    recording.group = -1
    for i in range(LANES):
        recording.tails[i] = -1


cdef void free_arrays(Recording* recording) noexcept:
    clear(recording)
    free(recording.nodes)
    free(recording.geometry)
    free(recording.owners)
    free(recording.edges)
    free(recording.uses)
    free(recording.blob)
    free(recording.topology)
    free(recording.steps)
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


cdef int grow_nodes(Recording* recording, int room) except -1:
    recording.nodes = <Node*>reallocate(recording.nodes, room * sizeof(Node))
    recording.geometry = <Geometry*>reallocate(recording.geometry, room * sizeof(Geometry))
    recording.owners = <void**>reallocate(recording.owners, room * sizeof(void*))
    recording.node_room = room
    return 0


cdef int grow_arrays(Recording* recording, size_t param_bytes, int edges) except -1:
    cdef int room
    cdef size_t bytes
    if recording.num_nodes >= recording.node_room:
        grow_nodes(recording, 2 * recording.node_room + 64)
    if recording.num_edges + edges > recording.edge_room:
        room = 2 * recording.edge_room + edges + 64
        recording.edges = <Edge*>reallocate(recording.edges, room * sizeof(Edge))
        recording.edge_room = room
    bytes = recording.blob_bytes + param_bytes + 16
    if bytes > recording.blob_room:
        recording.blob = <char*>reallocate(recording.blob, 2 * bytes)
        recording.blob_room = 2 * bytes
    bytes = recording.topology_words + 8 + edges
    if bytes > recording.topology_room:
        recording.topology = <unsigned int*>reallocate(recording.topology,
                                                  2 * bytes * sizeof(unsigned int))
        recording.topology_room = 2 * bytes
    return 0


cdef void set_end(Recording* recording, const Recording* source, int count) noexcept:
    """Set the numbers of a recording to those of `source`, which may be the same one, behind its
    first `count` nodes."""
    cdef const Node* last = &source.nodes[count - 1]
    cdef int i
    recording.num_edges = recording.open_edge = edge_end(source, count - 1)
    recording.num_uses = use_end(source, count - 1)
    recording.blob_bytes = (last.params + last.param_bytes + 15) & ~<size_t>15
    recording.topology_words = last.topology_end
    recording.next_lane = last.next_lane
    for i in range(LANES):
        recording.tails[i] = -1
    for i in range(count):
        recording.tails[source.nodes[i].lane] = i
    recording.num_nodes = count


cdef void truncate(Recording* recording, int count) noexcept:
    release_range(recording, count, False)
    set_end(recording, recording, count)
    recording.launches = recording.num_fusions = 0      # it is another batch
    Py_CLEAR(recording.fusion)


cdef bint copy_nodes(Recording* target, Recording* source, int count) noexcept:
    cdef const Node* last = &source.nodes[count - 1]
    cdef int i
    try:
        if target.node_room <= count:
            grow_nodes(target, 2 * count)
        grow_arrays(target, last.params + last.param_bytes,
                    max(edge_end(source, count - 1), <int>last.topology_end))
        reserve_uses(target, use_end(source, count - 1))
    except MemoryError:
        return False
    set_end(target, source, count)
    memcpy(target.nodes, source.nodes, count * sizeof(Node))
    memcpy(target.geometry, source.geometry, count * sizeof(Geometry))
    memcpy(target.edges, source.edges, target.num_edges * sizeof(Edge))
    memcpy(target.uses, source.uses, target.num_uses * sizeof(Use))
    memcpy(target.blob, source.blob, target.blob_bytes)
    memcpy(target.topology, source.topology, target.topology_words * sizeof(unsigned int))
    for i in range(count):
        target.owners[i] = source.owners[i]
        if target.owners[i] != NULL and has_built_in(source, i):
            Py_INCREF(<object>target.owners[i])
        else:
            source.owners[i] = NULL
        if target.nodes[i].key == STEP:
            target.nodes[i].key = 0
    target.passing = True
    return True


cdef Step* new_step(Recording* recording, int node) noexcept:
    cdef Step* steps
    if recording.step_room < recording.num_nodes:
        steps = <Step*>realloc(recording.steps, recording.num_nodes * sizeof(Step))
        if steps == NULL:
            return NULL
        recording.steps, recording.step_room = steps, recording.num_nodes
    recording.nodes[node].key = STEP
    return &recording.steps[node]


cdef int grow_uses(Recording* recording, int count) except -1:
    cdef int room = 2 * recording.use_room + count + 128
    recording.uses = <Use*>reallocate(recording.uses, room * sizeof(Use))
    recording.use_room = room
    return 0


cdef int grow_tensors(Tensors* kept, int count) except -1:
    cdef int room = 2 * kept.room + count + 64
    kept.objects = <void**>reallocate(kept.objects, room * sizeof(void*))
    kept.room = room
    return 0


cdef void release_tensors(Tensors* kept) noexcept:
    while kept.count:
        kept.count -= 1
        Py_DECREF(<object>kept.objects[kept.count])


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


cdef inline void merge_predecessors(Recording* recording, int* before, int source) noexcept:
    cdef const Node* node = &recording.nodes[source]
    merge_lanes(before, node.before)
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
    cdef unsigned int ended
    cdef int i, source, lane
    for i in range(recording.open_edge, recording.num_edges):
        source = recording.edges[i].source
        lane = recording.nodes[source].lane
        if recording.tails[lane] == source:
            return lane
    ended = ended_lanes(recording.tails, before)
    lane = first_lane(ended, recording.next_lane) if ended else recording.next_lane
    if ended:
        recording.next_lane = (lane + 1) & (LANES - 1)
        return lane
    if recording.group >= 0:        # prefer a lane without nodes of the group
        for i in range(lane, lane + LANES):
            if recording.tails[i & (LANES - 1)] < recording.group:
                lane = i & (LANES - 1)
                break
    recording.next_lane = (lane + 1) & (LANES - 1)
    add_edge(recording, recording.tails[lane])
    reduce_edges(recording, before)
    return lane


cdef int append(Recording* recording, const Operation* operation, int num_uses) noexcept:
    cdef int index = recording.num_nodes
    cdef Node* node = &recording.nodes[index]
    cdef Edge* edge
    cdef unsigned int* words
    cdef unsigned int flags = operation.flags
    cdef size_t end
    cdef int i
    reduce_edges(recording, node.before)
    node.kind = operation.kind
    node.flags = flags
    node.function = operation.function
    node.serial = operation.serial
    node.key = operation.key
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
    recording.owners[index] = NULL
    hold_owner(recording, index, operation.owner)
    words = recording.topology + recording.topology_words
    words[0] = <unsigned int>node.kind | flags << 4 \
        | <unsigned int>(recording.num_edges - recording.open_edge) << 12
    words[1], words[2] = <unsigned int>operation.serial, <unsigned int>(operation.serial >> 32)
    words += 3
    if flags & CLUSTER:
        for i in range(3):
            node.cluster[i] = operation.cluster[i]
            words[i] = node.cluster[i]
        words += 3
    for i in range(recording.open_edge, recording.num_edges):
        edge = &recording.edges[i]
        edge.programmatic = flags & recording.nodes[edge.source].flags & PROGRAMMATIC
        words[0] = <unsigned int>edge.source << 1 | <unsigned int>edge.programmatic
        words += 1
    recording.topology_words = node.topology_end = words - recording.topology
    node.next_lane = recording.next_lane
    recording.open_edge = recording.num_edges
    recording.num_nodes = index + 1
    return index
