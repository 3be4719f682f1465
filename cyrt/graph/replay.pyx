# C-level functions only: see replay.pxd.
"""Replay: operations that are compared with those of an earlier batch instead of being recorded."""

from libc.string cimport memcmp, memcpy

from cyrt.graph cimport hazards, recording as recordings
from cyrt.graph.recording cimport (
    STEP, Edge, Geometry, Node, Operation, Recording, Use, use_end,
)
from cyrt.runtime.blocks cimport hazard_in
from cyrt.runtime.state cimport DEVICE_MEMORY, READ, Block, Hazard, StreamState


cdef bint may_load_early_again(const StreamState* stream, const Operation* operation,
                               const Use* uses) noexcept:
    cdef const Block* block
    cdef int i
    if stream.has_exported_handle:
        return False
    for i in range(operation.early.use, operation.early.use + operation.early.count):
        block = uses[i].block
        if block.shared or block.kind != DEVICE_MEMORY or block.size == 0:
            return False
    return True


cdef bint begin_alike(const Recording* script, const Recording* other, int count) noexcept:
    """Return whether the scripts begin with the same `count` nodes."""
    cdef const Node* last = &script.nodes[count - 1]
    cdef int i, uses = use_end(script, count - 1)
    if other.nodes[count - 1].topology_end != last.topology_end \
            or other.nodes[count - 1].params != last.params \
            or use_end(other, count - 1) != uses \
            or memcmp(other.topology, script.topology,
                      last.topology_end * sizeof(unsigned int)) != 0:
        return False
    for i in range(uses):
        if other.uses[i].block != script.uses[i].block \
                or other.uses[i].access != script.uses[i].access \
                or is_other_memory(&other.uses[i]):
            return False
    return True


cdef void take_over(Replay* replay, Recording* script, Recording* other, int count) noexcept:
    """Go on with another script, which begins with the same `count` nodes."""
    cdef const Node* last = &script.nodes[count - 1]
    cdef int i
    memcpy(other.geometry, script.geometry, count * sizeof(Geometry))
    memcpy(other.blob, script.blob, last.params + last.param_bytes)
    memcpy(other.uses, script.uses, use_end(script, count - 1) * sizeof(Use))
    for i in range(count):
        other.owners[i], script.owners[i] = script.owners[i], other.owners[i]   # that, or NULL
        other.nodes[i].key = script.nodes[i].key if script.nodes[i].key != STEP else 0
    other.passing = True
    script.busy, other.busy = False, True
    set_script(replay, other)


cdef Recording* find(const Replay* replay, const Operation* operation, const Use* uses,
                     int num_uses) noexcept:
    """Return the script launched last that begins with the nodes replayed so far, and goes on with
    the operation; with none (NULL): that has no other nodes. NULL: there is no such script."""
    cdef Recording* found = NULL
    cdef Recording* each = replay.scripts
    cdef int count = replay.played
    while each != NULL:
        if not each.busy and (found == NULL or each.used > found.used) \
                and (each.num_nodes == count if operation == NULL else each.num_nodes > count
                     and is_same_node(each, count, operation, uses, num_uses)) \
                and (count == 0 or begin_alike(replay.script, each, count)):
            found = each
        each = each.next
    return found


cdef bint begin(Replay* replay, StreamState* stream, const Operation* operation, const Use* uses,
                int num_uses, size_t* bytes, unsigned long long* early_loads) noexcept:
    cdef Recording* script = NULL if replay.last == NULL else replay.last.following
    if script == NULL or script.busy or not is_same_node(script, 0, operation, uses, num_uses):
        script = find(replay, operation, uses, num_uses)    # not the same successor as last time
    if script == NULL:
        return False
    set_script(replay, script)
    if not play(replay, stream, operation, uses, num_uses, True, bytes, early_loads):
        set_script(replay, NULL)
        return False
    script.busy = True
    return True


cdef bint go_on(Replay* replay, StreamState* stream, const Operation* operation, const Use* uses,
                int num_uses, size_t* bytes, unsigned long long* early_loads) noexcept:
    cdef Recording* script = replay.script
    cdef Recording* other = find(replay, operation, uses, num_uses)
    cdef int count = replay.played
    if other == NULL:
        return False
    set_script(replay, other)
    if not play(replay, stream, operation, uses, num_uses, True, bytes, early_loads):
        set_script(replay, script)
        return False
    take_over(replay, script, other, count)
    return True


cdef bint end_with_another(Replay* replay) noexcept:
    cdef Recording* other = find(replay, NULL, NULL, 0)
    if other != NULL:
        take_over(replay, replay.script, other, replay.played)
    return other != NULL


cdef void remove(Replay* replay, Recording* script) noexcept:
    """Take a script out of the list."""
    cdef Recording* each = replay.scripts
    if each == script:
        replay.scripts = script.next
    while each != NULL:
        if each.next == script:
            each.next = script.next
        if each.following == script:
            each.following = NULL
        each = each.next
    if replay.last == script:
        replay.last = NULL
    script.next = script.following = NULL
    script.busy = False
    replay.count -= 1


cdef bint note_uses(const Recording* recording, unsigned long long epoch) noexcept:
    """Store all nodes as writers or readers of their blocks. Return False if there is no memory."""
    cdef const Use* use = recording.uses
    cdef const Use* end
    cdef Hazard* hazard
    cdef bint complete = True
    cdef int node
    for node in range(recording.num_nodes):
        end = recording.uses + use_end(recording, node)
        while use < end:
            hazard = &use.block.hazard
            if hazard.epoch != epoch:
                hazard = hazard_in(use.block, epoch)
            if hazard == NULL:          # the block's memory was freed
                pass
            elif use.access == READ and hazard.num_readers >= hazard.max_readers \
                    and not hazards.add_room(hazard):
                complete = False
            else:
                hazards.note_use(hazard, use.access, node)
            use += 1
    return complete


cdef Recording* stop(Replay* replay, const StreamState* stream, Recording* empty,
                     bint* joined) noexcept:
    cdef Recording* script = replay.script
    cdef Recording* recording = empty
    if recordings.copy_nodes(empty, script, replay.played):
        script.busy = False
    else:
        recording = script
        remove(replay, script)
        recordings.truncate(script, replay.played)
        script.repeats = False
    set_script(replay, NULL)
    replay.played = 0
    if not note_uses(recording, stream.recording_epoch):
        joined[0] = True
    return recording


cdef Recording* finish(Replay* replay) noexcept:
    cdef Recording* script = replay.script
    replay.operations += replay.played
    set_script(replay, NULL)
    replay.played = 0
    script.repeats = False      # until the launch has shown it
    return script


cdef Recording* least_recently_used(const Replay* replay) noexcept:
    cdef Recording* oldest = NULL
    cdef Recording* each = replay.scripts
    while each != NULL:
        if not each.busy and (oldest == NULL or each.used < oldest.used):
            oldest = each
        each = each.next
    return oldest


cdef Recording* keep(Replay* replay, Recording* recording) noexcept:
    cdef Recording* oldest = NULL
    cdef bint known = recording.busy        # it is a script already
    if not recording.repeats:
        if known:
            remove(replay, recording)
        replay.last = NULL
        return recording
    if not known:
        if replay.count == MOST_SCRIPTS:
            oldest = least_recently_used(replay)
            remove(replay, oldest)
        recording.next, replay.scripts = replay.scripts, recording
        recording.following = NULL
        replay.count += 1
    recording.busy = False
    replay.clock += 1
    recording.used = replay.clock
    if replay.last != NULL:
        replay.last.following = recording
    replay.last = recording
    return oldest


cdef bint has_params(const Recording* script, const Node* node,
                     const Operation* operation) noexcept:
    """Return whether the parameters are equal, but for the word that the recorder sets."""
    cdef const char* own = script.blob + node.params
    cdef const char* params = <const char*>operation.params
    cdef size_t word = operation.early.word if operation.early != NULL else node.param_bytes
    cdef size_t end = min(word + sizeof(unsigned int), node.param_bytes)
    return memcmp(own, params, word) == 0 \
        and memcmp(own + end, params + end, node.param_bytes - end) == 0


cdef void check_call(Replay* replay, const Operation* operation, const Use* uses,
                     int num_uses) noexcept:
    cdef const Recording* script = replay.script
    cdef const Node* node
    replay.called = False
    if script == NULL or replay.played == script.num_nodes:     # a finalizer has recorded
        return
    node = &script.nodes[replay.played]
    replay.differs = replay.differs or (node.key != operation.key and node.key != STEP) \
        or not is_same_node(script, replay.played, operation, uses, num_uses) \
        or not has_params(script, node, operation) \
        or memcmp(&script.geometry[replay.played], operation.geometry, sizeof(Geometry)) != 0


cdef void forget_uses(const Recording* script, unsigned long long epoch) noexcept:
    """Remove the script's nodes from the hazards of its blocks."""
    cdef Hazard* hazard
    cdef int i
    for i in range(script.num_uses):
        hazard = hazard_in(script.uses[i].block, epoch)
        if hazard != NULL:
            hazard.writer, hazard.num_readers = -1, 0


cdef int verify(Replay* replay, StreamState* stream) except -1:
    """Record the script's operations again, beside it, and compare the arrays."""
    cdef Recording* script = replay.script
    cdef Recording* again = recordings.new_recording()
    cdef Operation operation
    cdef Node* node
    cdef Use* uses
    cdef size_t ignored = 0
    cdef int i, edges, num_uses
    cdef bint equal
    try:
        for i in range(script.num_nodes):
            node = &script.nodes[i]
            operation.kind, operation.flags, operation.cluster = \
                node.kind, node.flags, node.cluster
            operation.function, operation.serial = node.function, node.serial
            operation.layout, operation.geometry = node.layout, &script.geometry[i]
            operation.params = script.blob + node.params
            operation.param_bytes, operation.owner = node.param_bytes, script.owners[i]
            operation.early, operation.key = NULL, node.key
            operation.tensors = NULL
            num_uses = use_end(script, i) - node.first_use
            uses = recordings.reserve_uses(again, num_uses)
            memcpy(uses, script.uses + node.first_use, num_uses * sizeof(Use))
            edges = hazards.prepare(uses, num_uses, stream, &ignored)
            recordings.reserve(again, node.param_bytes, edges)
            hazards.depend(again, uses, num_uses)
            hazards.note(uses, num_uses, recordings.append(again, &operation, num_uses))
        equal = (not replay.differs and again.num_edges == script.num_edges
                 and again.topology_words == script.topology_words
                 and again.blob_bytes == script.blob_bytes
                 and memcmp(again.topology, script.topology,
                            script.topology_words * sizeof(unsigned int)) == 0
                 and memcmp(again.blob, script.blob, script.blob_bytes) == 0
                 and memcmp(again.geometry, script.geometry,
                            script.num_nodes * sizeof(Geometry)) == 0
                 and memcmp(again.edges, script.edges, script.num_edges * sizeof(Edge)) == 0)
        for i in range(script.num_nodes):
            equal = equal and again.nodes[i].lane == script.nodes[i].lane \
                and again.nodes[i].next_lane == script.nodes[i].next_lane
        replay.differs = False
        if not equal:
            raise RuntimeError(f"CYRT_REPLAY=verify: {script.num_nodes} operations were replayed "
                               "that differ from what would be recorded")
    finally:
        forget_uses(script, stream.recording_epoch)     # a commit that begins again verifies again
        recordings.destroy(again)
    return 0


cdef void exchange_scripts(Replay* one, Replay* other) noexcept:
    one.scripts, other.scripts = other.scripts, one.scripts
    one.count, other.count = other.count, one.count
    one.last, other.last = other.last, one.last
    one.clock, other.clock = other.clock, one.clock


cdef void free_idle(Replay* replay) noexcept:
    cdef Recording* idle = NULL
    cdef Recording* each = replay.scripts
    cdef Recording* next
    if replay.num_readers:
        return
    while each != NULL:
        next = each.next
        if not each.busy:
            remove(replay, each)
            each.next, idle = idle, each
        each = next
    recordings.destroy(idle)        # may run finalizers


cdef void forget(Replay* replay) noexcept:
    set_script(replay, NULL)
    replay.last, replay.played, replay.count = NULL, 0, 0
    recordings.destroy(replay.scripts)
    replay.scripts = NULL
