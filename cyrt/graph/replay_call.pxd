# Calls that are replayed before anything is chosen: see replay.
#
# INVARIANTS
# - A front end computes a key of all that it chooses by, except the memory: the operation, types,
#   sizes and the form of the call. Together with the kernel, the blocks and the first words of the
#   parameters, which are the addresses, the key determines the node: nothing else is compared.
# - The key is stored with the node when the operation is recorded or replayed in full. 0: none.
# - Only what changes nothing but the recording is replayed here. Whatever else is the matter, the
#   operation goes its whole way.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cyrt.driver.table cimport READY, faulted, process
from cyrt.graph.commit cimport Recorder
from cyrt.graph.completion cimport handling
from cyrt.graph.hazards cimport begin_uses
from cyrt.graph.recorder cimport mark_pending
from cyrt.graph.recording cimport Node, Recording, Use, use_end
from cyrt.runtime.device cimport contexts
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.poison cimport poisoned
from cyrt.runtime.state cimport DEVICE_MEMORY, Block, StreamState
from cyrt.runtime.submission cimport priority_thread

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

cdef inline bint replay_call(StreamState* stream, unsigned long long key, PyObject* function,
                             const Use* uses, int num_uses, const unsigned long long* words,
                             int num_words, int number) noexcept:
    """Return whether the call is the next one of the script that the stream is replaying, and if so
    store that. Word `number` is a number that may differ; -1: there is none."""
    cdef Recorder self = <Recorder>stream.encoder
    cdef Recording* script
    cdef const Node* node
    cdef Use* own
    cdef Block* block
    cdef unsigned long long* stored
    cdef int i, index = self.replay.played
    if index + 1 >= self.policy.complete or self.policy.trying \
            or index == self.replay.script.num_nodes:
        return False
    script = self.replay.script
    node = &script.nodes[index]
    if node.key != key or node.serial != (<LoadedFunction>function).serial or not is_quiet(self) \
            or use_end(script, index) - node.first_use != num_uses or (
                self.policy.expected != NULL and self.policy.expected[index] != node.function):
        return False
    own = script.uses + node.first_use
    for i in range(num_uses):
        block = uses[i].block
        if own[i].block != block or own[i].access != uses[i].access or block.home != stream \
                or block.num_readers or block.shared or block.kind != DEVICE_MEMORY \
                or block.hazard.stream != stream:
            return False
    stored = <unsigned long long*>(script.blob + node.params)
    for i in range(num_words):
        if i != number and stored[i] != words[i]:
            return False
    if number >= 0:
        stored[number] = words[number]
    if self.replay.verified:        # it is recorded, and compared with the node
        self.replay.called = True
        return False
    for i in range(num_uses):
        block = own[i].block
        own[i].generation = block.generation
        begin_uses(block, stream, &self.bytes)
    Py_INCREF(<object>function)
    script.owners[index] = function
    self.replay.played = index + 1
    self.operations += 1
    stream.nodes = index + 1
    stream.pending = True
    stream.idle = False
    if handling:
        mark_pending(self)
    return True
