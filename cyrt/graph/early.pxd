# Early loads: in programmatic launch a kernel may run while the kernels that it depends on still
# do. Before griddepcontrol.wait it may load what none of them writes, such as weights.
#
# INVARIANTS
# - Such a load can be stale if a kernel before it in its graph writes the memory, through any
#   number of kernels that let their dependents start before they wait. It is never stale behind a
#   full edge, behind an event, or in the next graph on the stream (measured on an H200; the cases
#   are in tests/graph/test_early.py). So it may come early if no operation of its recording has
#   written the block. What other streams wrote is ordered by events, what earlier recordings wrote
#   belongs to other graphs.
# - What writes without noting it as a hazard is excluded. Opaque operations, and the end of a
#   `concurrent()` group, leave a barrier in the recording, and an open group may contain writers.
#   Other libraries may write what is shared with them. The variables of a module have an empty
#   block.
# - A kernel that others launch with programmatic serialisation could end before what is before it
#   on the stream, and the next graph then waits for too little. So the stream is cyrt's own, and
#   nobody else has its handle. What cyrt launches without a graph has no such serialisation.
# - The recording alone decides, when the operation is appended, and never the time. The decision
#   is a parameter: it is patched as others are, and the topology does not depend on it.

from cyrt.graph.recording cimport PROGRAMMATIC, EarlyLoad, Node, Recording, Use
from cyrt.runtime.state cimport DEVICE_MEMORY, Block, StreamState

# Return whether the last node may load what it would, blocks whose hazards it has noted, before it
# waits.
cdef inline bint may_load_early(const Recording* recording, const StreamState* stream,
                                const Use* uses, const EarlyLoad* early) noexcept:
    cdef const Block* block
    cdef int i
    if recording.barrier >= 0 or recording.group >= 0 or not stream.owned \
            or stream.has_exported_handle \
            or not recording.nodes[recording.num_nodes - 1].flags & PROGRAMMATIC:
        return False
    for i in range(early.use, early.use + early.count):
        block = uses[i].block
        if block.hazard.writer >= 0 or block.kind != DEVICE_MEMORY or block.size == 0 \
                or block.shared:
            return False
    return True

# Tell the last node, by the 32-bit word at that offset of its parameters, that it may.
cdef inline void allow_early_load(Recording* recording, size_t word) noexcept:
    cdef const Node* node = &recording.nodes[recording.num_nodes - 1]
    (<unsigned int*>(recording.blob + node.params + word))[0] = 1
