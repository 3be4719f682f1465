# Replay: operations that equal those of an earlier batch are compared with these, not recorded.
#
# INVARIANTS
# - A script is a recording that was launched and kept. While it is replayed, the recorder's own
#   recording is empty, and the first `played` nodes of the script are what was recorded since the
#   last commit. The rest of it belongs to an earlier batch.
# - A node is replayed if the operation has its kernel and attributes, and uses the same blocks in
#   the same way: then its edges, its lane and the topology are the same, too. Parameters and
#   geometry are copied into the script, so nothing depends on their being equal.
# - The uses of a node that is replayed have the generations of their blocks now, and the hazards of
#   these blocks belong to the stream's recording: everybody sees that the memory is in use. Only
#   the writer and the readers are missing there; `stop` stores them.
# - A recording with a barrier is no script: groups without order and opaque operations leave one.
#   Nor is one that uses outside memory other than tensors (see runtime/producer), or memory that
#   several blocks cover: the order of its nodes depends on addresses.
# - A block of a tensor's memory is compared with its generation: that of another is other memory,
#   which may overlap the rest.
# - A recording whose edges follow from more than its operations is no script, either: a block was
#   split, joined or destroyed while the recording used it. The struct of a destroyed block is
#   reused for other memory.
# - A launch that loses operations stops a replay that others have begun meanwhile: the nodes of
#   that one may be lost, too.
# - A script refers to the kernel of a node only while that is replayed, but for built-in kernels,
#   which it keeps. The serial numbers of kernels are never reused, and are compared before anything
#   is read that belongs to a kernel.
# - A replayed batch is launched as it stands. Whatever else happens stops the replay: an operation
#   that differs, or one behind the last node, a commit before the last node, or a free block of
#   memory that is split or joined. Then the nodes replayed so far are copied to the recording. The
#   script stays. But if another script begins with these nodes, and goes on or ends as the batch
#   does, that one is replayed instead.

from libc.string cimport memcmp, memcpy

from cyrt.graph.hazards cimport begin_uses, is_ordered
from cyrt.graph.recording cimport (
    CLUSTER, Node, Operation, Recording, Use, hold_owner, use_end,
)
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block, StreamState

cdef enum:
    MOST_SCRIPTS = 64       # scripts that a recorder keeps

cdef struct Replay:
    bint enabled
    bint verified           # each script is compared with a new recording of its operations
    Recording* script       # the script that is replayed; NULL: none is
    int played              # number of its nodes that were replayed; 0 without a script
    # For replay_call: the next node, and the end of those that calls may replay; both are NULL, or
    # equal, if none may. It holds as long as `table.disturbances` has that value.
    Node* next
    const Node* end
    unsigned long long disturbances
    # If `verified`: a call was found to be the next node, and its operation is going to be compared
    # with that; an operation has differed.
    bint called, differs
    bint early              # the node that was replayed last may load before it waits
    Recording* scripts      # the list of all scripts
    int count
    Recording* last         # the script of the last batch; NULL: that was recorded
    int num_readers         # commits that read a recording, which may be a script by now
    unsigned long long clock        # number of scripts that were launched
    unsigned long long operations   # number of operations that were replayed and launched

# Return whether the block of a script's use has been given to another tensor's memory since.
cdef inline bint is_other_memory(const Use* use) noexcept:
    return use.block.kind == FOREIGN_MEMORY and use.generation != use.block.generation

cdef inline bint is_same_node(const Recording* script, int index, const Operation* operation,
                              const Use* uses, int num_uses) noexcept:
    """Return whether the operation, if it were recorded, would have the node's topology."""
    cdef const Node* node = &script.nodes[index]
    cdef const Use* own = script.uses + node.first_use
    cdef int i
    if node.serial != operation.serial or node.kind != operation.kind \
            or node.flags != operation.flags or node.layout != operation.layout \
            or node.param_bytes != operation.param_bytes \
            or use_end(script, index) - node.first_use != num_uses:
        return False
    for i in range(num_uses):
        if own[i].block != uses[i].block or own[i].access != uses[i].access \
                or is_other_memory(&own[i]):
            return False
    return not node.flags & CLUSTER or memcmp(node.cluster, operation.cluster,
                                              sizeof(node.cluster)) == 0

# Return whether a node that could load early may do so again: what the recording decides is the
# same (see early).
cdef bint may_load_early_again(const StreamState* stream, const Operation* operation,
                               const Use* uses) noexcept

cdef inline bint play(Replay* replay, StreamState* stream, const Operation* operation,
                      const Use* uses, int num_uses, bint ordered, size_t* bytes,
                      unsigned long long* early_loads) noexcept:
    """Return whether the operation is the next one of the script, and if so store that. `ordered`:
    it is ordered after other streams' work, and `hazards.prepare` was called for its uses. Add the
    sizes of blocks that the recording did not use to `bytes`, and 1 to `early_loads` if the
    operation may load before it waits."""
    cdef Recording* script = replay.script
    cdef int i, index = replay.played
    cdef Node* node = &script.nodes[index]
    cdef Use* own
    cdef Block* block
    cdef unsigned int* early = NULL
    if index == script.num_nodes or not is_same_node(script, index, operation, uses, num_uses):
        return False
    for i in range(num_uses):
        block = uses[i].block
        if block.hazard.stream != stream or not (
                ordered or is_ordered(block, stream, uses[i].access)):
            return False
    if operation.early != NULL:
        early = <unsigned int*>(script.blob + node.params + operation.early.word)
        if early[0] == 0:
            early = NULL
        elif not may_load_early_again(stream, operation, uses):
            return False
    own = script.uses + node.first_use
    node.key = operation.key
    for i in range(num_uses):
        block = uses[i].block
        own[i].generation = block.generation
        begin_uses(block, stream, bytes)
    memcpy(script.blob + node.params, operation.params, operation.param_bytes)
    replay.early = early != NULL
    if early != NULL:
        early[0] = 1
        early_loads[0] += 1
    if operation.geometry != NULL:
        script.geometry[index] = operation.geometry[0]
    hold_owner(script, index, operation.owner)
    replay.played = index + 1
    replay.next += replay.next != NULL
    return True

# Begin to replay a script that begins with the operation, which is ordered. Return whether there
# is one.
cdef bint begin(Replay* replay, StreamState* stream, const Operation* operation, const Use* uses,
                int num_uses, size_t* bytes, unsigned long long* early_loads) noexcept
# Go on with another script that begins with the nodes replayed so far. The operation, which is
# ordered, is its next node; or else it has no other nodes. Return whether there is one.
cdef bint go_on(Replay* replay, StreamState* stream, const Operation* operation, const Use* uses,
                int num_uses, size_t* bytes, unsigned long long* early_loads) noexcept
cdef bint end_with_another(Replay* replay) noexcept
# Let no call be replayed by its key, until that is found to be right.
cdef inline void refuse_calls(Replay* replay) noexcept:
    replay.next, replay.end = NULL, NULL

# Replay another script from now on, or none (NULL).
cdef inline void set_script(Replay* replay, Recording* script) noexcept:
    replay.script = script
    refuse_calls(replay)

# Stop replaying, and return the recording of the operations that were replayed: `empty`, or the
# script without memory for a copy. Set `joined` if there is no memory for their hazards: the next
# operation then waits for all of them.
cdef Recording* stop(Replay* replay, const StreamState* stream, Recording* empty,
                     bint* joined) noexcept
# Return the script, all nodes of which were replayed, since it is being launched.
cdef Recording* finish(Replay* replay) noexcept
# Keep a recording that was launched as a script, without references. Return one that is no longer
# kept, which may be the same; NULL: there is none.
cdef Recording* keep(Replay* replay, Recording* recording) noexcept
# Compare an operation with the next node, which its call was found to be.
cdef void check_call(Replay* replay, const Operation* operation, const Use* uses,
                     int num_uses) noexcept
# Raise RuntimeError unless the script equals a new recording of its operations.
cdef int verify(Replay* replay, StreamState* stream) except -1
# Exchange the scripts, none of which is replayed.
cdef void exchange_scripts(Replay* one, Replay* other) noexcept
# Free the scripts that are neither replayed nor launched, unless a commit may read one.
cdef void free_idle(Replay* replay) noexcept
# Free all scripts.
cdef void forget(Replay* replay) noexcept
