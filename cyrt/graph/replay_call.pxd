# Calls that are replayed by what the front end gives, often before it chooses a kernel: see replay.
#
# INVARIANTS
# - A front end computes a key of all that it chooses by: the operation, types, sizes and the form
#   of the call. Together with the kernel, the blocks, and the parameters and geometry that the call
#   gives, which are copied, the key determines the node: nothing else is compared.
# - The key is stored with the node when the operation is recorded or replayed in full. LAUNCH: the
#   call gives all of the parameters and the geometry, and the kernel has no further attributes. 0:
#   there is no key.
# - LAUNCH_ON_TENSORS: a LAUNCH on memory of which some is that of tensors. CALL_IN_ORDER: a kernel
#   of a template whose kernels run in order; the call gives the parameters.
# - STEP: the front end has described the call by words, with the blocks and addresses of its
#   operands. A call with the same words has the same parameters and geometry, too: nothing is
#   copied. The words are stored where the node of a script is replayed in full, and hold until that
#   or another call's parameters are copied: then the key is another one.
# - Only what changes nothing but the recording is replayed here. Whatever else is the matter, the
#   operation goes its whole way, which opens the short one: no error, no other thread or stream
#   comes first. Whoever changes that calls `disturb`, which closes it.
# - Neither the limit of bytes nor a join is asked for: the script ends where its blocks reach that
#   limit, and no script begins behind what leaves a join. A thread that asks to go first waits
#   until the batch ends, at most.
# - While a batch is replayed, its stream has operations recorded. So it is neither being captured
#   nor behind another stream's undeclared work: either begins when nothing is recorded.

from cpython.object cimport PyObject

from cyrt.driver.table cimport READY, disturbances, faulted, process
from cyrt.graph.commit cimport IN_FLIGHT, Recorder
from cyrt.graph.completion cimport handling
from cyrt.graph.hazards cimport begin_uses, is_ordered, note_writes
from cyrt.graph.policy cimport Policy
from cyrt.graph.recorder cimport commit_if_complete
from cyrt.graph.recording cimport (
    LAUNCH, STEP, Geometry, Node, Recording, Step, Use, hold_owner, use_end,
)
from cyrt.graph.replay cimport Replay, refuse_calls
from cyrt.runtime.device cimport contexts
from cyrt.runtime.pacing cimport has_room
from cyrt.runtime.poison cimport poisoned
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime.taping cimport num_tapes
from cyrt.runtime.submission cimport priority_thread

cdef inline bint is_quiet(Recorder self) noexcept:
    """Return whether the next operation meets no error, and no other thread or stream that comes
    first."""
    cdef const StreamState* state = self.state
    return not (poisoned or priority_thread or state.failed or state.grouping
                or faulted[state.ordinal]) \
        and process == READY and contexts[state.ordinal].epoch == state.epoch

cdef inline void admit_calls(Recorder self) noexcept:
    """Let calls be replayed by their keys, up to the operation that ends the batch. That is one of
    them if the batch could be launched now without a wait."""
    cdef Replay* replay = &self.replay
    cdef int count = self.policy.complete
    refuse_calls(replay)
    if replay.script != NULL and not self.policy.trying and not handling and is_quiet(self):
        if not has_room(self.state) or self.ended + IN_FLIGHT <= self.batches:
            count -= 1
        replay.next = replay.script.nodes + replay.played
        replay.end = replay.script.nodes + min(count, replay.script.num_nodes)
        replay.disturbances = disturbances

# Return the next node of the stream's script if it has the key, and may be replayed; else NULL.
cdef inline Node* next_call(const StreamState* stream, unsigned long long key) noexcept:
    cdef const Replay* replay
    cdef const Policy* policy
    if stream.encoder == NULL:
        return NULL
    replay = &(<Recorder>stream.encoder).replay
    policy = &(<Recorder>stream.encoder).policy
    if replay.next >= replay.end or replay.next.key != key \
            or replay.disturbances != disturbances or (
                policy.expected != NULL
                and policy.expected[replay.played] != replay.next.function):
        return NULL
    return replay.next

# Return that node's geometry, uses with their number, parameters, and step.
cdef inline Geometry* geometry_of(const StreamState* stream) noexcept:
    cdef const Replay* replay = &(<Recorder>stream.encoder).replay
    return &replay.script.geometry[replay.played]
cdef inline Use* uses_of(const StreamState* stream, const Node* node) noexcept:
    return (<Recorder>stream.encoder).replay.script.uses + node.first_use
cdef inline int num_uses_of(const StreamState* stream, const Node* node) noexcept:
    cdef const Replay* replay = &(<Recorder>stream.encoder).replay
    return use_end(replay.script, replay.played) - node.first_use
cdef inline Step* step_of(const StreamState* stream) noexcept:
    cdef const Replay* replay = &(<Recorder>stream.encoder).replay
    return &replay.script.steps[replay.played]
cdef inline void* params_of(const StreamState* stream, const Node* node) noexcept:
    return (<Recorder>stream.encoder).replay.script.blob + node.params

# Return whether an operand has the block of a use, which is ordered.
cdef inline bint is_same_use(const Use* use, const Block* block,
                             const StreamState* stream) noexcept:
    return use.block == block and is_ordered(block, stream, use.access)

# Keep a reference to the kernel of the next node, which may not be built-in.
cdef inline void hold_kernel(StreamState* stream, PyObject* function) noexcept:
    cdef Replay* replay = &(<Recorder>stream.encoder).replay
    hold_owner(replay.script, replay.played, function)

# Replay the next node with these uses. If the node completes the batch, the batch is launched, so
# that the node may not be read any more. The script has a reference to the node's kernel. The
# caller has raised the versions of the blocks that the node writes (see runtime/taping).
cdef inline void replay_without_versions(StreamState* stream, Use* uses, int num_uses) noexcept:
    cdef Replay* replay = &(<Recorder>stream.encoder).replay
    cdef unsigned long long* operations = &(<Recorder>stream.encoder).operations
    cdef int i
    for i in range(num_uses):
        uses[i].generation = uses[i].block.generation
        begin_uses(uses[i].block, stream, &(<Recorder>stream.encoder).bytes)
    replay.next += 1
    replay.played += 1
    stream.nodes = replay.played
    operations[0] += 1          # by a pointer, without a reference to the encoder
    if replay.played == (<Recorder>stream.encoder).policy.complete:
        commit_if_complete(<Recorder>stream.encoder, None)

# Raise the versions of the blocks that the next node writes, and replay the node.
cdef inline void replay_next(StreamState* stream, Use* uses, int num_uses) noexcept:
    if num_tapes:
        note_writes(uses, num_uses)
    replay_without_versions(stream, uses, num_uses)

# Return whether calls are not replayed: their operations are recorded, and compared with the next
# node, to which the parameters have been copied. `note_call` stores that this is to be done.
cdef inline bint is_verified(const StreamState* stream) noexcept:
    return (<Recorder>stream.encoder).replay.verified
cdef inline void note_call(const StreamState* stream) noexcept:
    (<Recorder>stream.encoder).replay.called = True

# Replay the next node, to which the parameters and the geometry have been copied, unless calls are
# verified. `function`: its kernel, to which a reference is kept; NULL: it is built-in.
cdef inline bint replay_copied(StreamState* stream, PyObject* function, Use* uses,
                               int num_uses) noexcept:
    if is_verified(stream):
        note_call(stream)
        return False
    if function != NULL:
        hold_kernel(stream, function)
    replay_next(stream, uses, num_uses)
    return True
