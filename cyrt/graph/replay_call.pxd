# Calls that are replayed by what the front end gives, often before it chooses a kernel: see replay.
#
# INVARIANTS
# - A front end computes a key of all that it chooses by: the operation, types, sizes and the form
#   of the call. Together with the kernel, the blocks, and the parameters and geometry that the call
#   gives, which are copied, the key determines the node: nothing else is compared.
# - The key is stored with the node when the operation is recorded or replayed in full. LAUNCH: the
#   call gives all of the parameters and the geometry, and the kernel has no further attributes. 0:
#   there is no key.
# - Only what changes nothing but the recording is replayed here. Whatever else is the matter, the
#   operation goes its whole way.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

from cyrt.driver.table cimport READY, faulted, process
from cyrt.graph.commit cimport Recorder
from cyrt.graph.completion cimport handling
from cyrt.graph.hazards cimport begin_uses
from cyrt.graph.recorder cimport mark_pending
from cyrt.graph.recording cimport Geometry, Node, Recording, Use, use_end
from cyrt.graph.replay cimport Replay
from cyrt.runtime.device cimport contexts
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.poison cimport poisoned
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime.submission cimport priority_thread

cdef enum:
    LAUNCH = 1

cdef inline bint is_quiet(Recorder self) noexcept:
    """Return whether the next operation meets no error, no other thread or stream that comes first,
    and no limit of bytes."""
    cdef const StreamState* state = self.state
    return not (poisoned or priority_thread or state.behind or state.failed or state.capturing
                or state.grouping or self.joined or faulted[state.ordinal]) \
        and process == READY and contexts[state.ordinal].epoch == state.epoch \
        and self.bytes < self.max_bytes

cdef inline bint is_replaying(const StreamState* stream) noexcept:
    return stream.encoder != NULL and (<Recorder>stream.encoder).replay.played != 0

cdef inline bint replay_call(void* encoder, unsigned long long key, PyObject* function,
                             const Use* uses, int num_uses, const void* params, size_t nbytes,
                             const Geometry* geometry) noexcept:
    """Return whether the call is the next one of the script that the Recorder is replaying, and if
    so store that, with the first `nbytes` of the parameters, and the geometry unless it is NULL."""
    cdef StreamState* stream = (<Recorder>encoder).state
    cdef Replay* replay = &(<Recorder>encoder).replay
    cdef Recording* script = replay.script
    cdef const Node* node
    cdef Use* own
    cdef Block* block
    cdef int i, index = replay.played
    if index + 1 >= (<Recorder>encoder).policy.complete or (<Recorder>encoder).policy.trying \
            or index == script.num_nodes:
        return False
    node = &script.nodes[index]
    if node.key != key or node.serial != (<LoadedFunction>function).serial \
            or not is_quiet(<Recorder>encoder) \
            or use_end(script, index) - node.first_use != num_uses or (
                (<Recorder>encoder).policy.expected != NULL
                and (<Recorder>encoder).policy.expected[index] != node.function):
        return False
    own = script.uses + node.first_use
    for i in range(num_uses):
        block = uses[i].block
        if own[i].block != block or own[i].access != uses[i].access or block.home != stream \
                or block.num_readers or block.hazard.stream != stream:
            return False
        # The operation uses it, be the other blocks the same or not.
        own[i].generation = block.generation
        begin_uses(block, stream, &(<Recorder>encoder).bytes)
    memcpy(script.blob + node.params, params, nbytes)
    if geometry != NULL:
        script.geometry[index] = geometry[0]
    if replay.verified:             # it is recorded, and compared with the node
        replay.called = True
        return False
    Py_INCREF(<object>function)
    script.owners[index] = function
    replay.played = index + 1
    (<Recorder>encoder).operations += 1
    stream.nodes = index + 1
    stream.pending = True
    stream.idle = False
    if handling:
        mark_pending(<Recorder>encoder)
    return True
