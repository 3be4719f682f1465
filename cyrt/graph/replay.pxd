# Replay: operations that equal those of an earlier batch are compared with them, not recorded again.
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
# - A recording with a barrier is no script: groups without order, opaque operations and other
#   libraries' memory are recorded each time.
# - A script refers to the kernels of its nodes while these are replayed only. The serial numbers of
#   kernels are never reused, and are compared before anything is read that belongs to a kernel.
# - A replayed batch is launched as it stands. Whatever else happens stops the replay: an operation
#   that differs, or one behind the last node, a commit before the last node, or a free block of
#   memory that is split or joined. Then the nodes replayed so far are the recording.

from cyrt.graph.recording cimport Operation, Recording, Use
from cyrt.runtime.state cimport StreamState

cdef enum:
    MOST_SCRIPTS = 64       # scripts that a recorder keeps

cdef struct Replay:
    bint enabled
    bint verified           # each script is compared with a new recording of its operations
    Recording* script       # the script that is replayed; NULL: none is
    int played              # number of its nodes that were replayed; 0 without a script
    Recording* scripts      # the list of all scripts
    int count
    Recording* last         # the script of the last batch; NULL: that was recorded
    unsigned long long clock        # number of scripts that were launched
    unsigned long long operations   # number of operations that were replayed and launched

# Return whether the operation is the next one of the script that is replayed, and if so store that.
# `hazards.prepare` was called for the uses. `early_loads` counts those that may load early.
cdef bint play(Replay* replay, const StreamState* stream, const Operation* operation,
               const Use* uses, int num_uses, unsigned long long* early_loads) noexcept
# Begin to replay a script that begins with the operation. Return whether there is one.
cdef bint begin(Replay* replay, const StreamState* stream, const Operation* operation,
                const Use* uses, int num_uses, unsigned long long* early_loads) noexcept
# Stop replaying, and return the recording of the operations that were replayed. Set `joined` if
# there is no memory for their hazards: the next operation then waits for all of them.
cdef Recording* stop(Replay* replay, const StreamState* stream, bint* joined) noexcept
# Return the script, all nodes of which were replayed, since it is being launched.
cdef Recording* finish(Replay* replay) noexcept
# Keep a recording that was launched as a script, without references. Return one that is no longer
# kept, which may be the same; NULL: there is none.
cdef Recording* keep(Replay* replay, Recording* recording) noexcept
# Raise RuntimeError unless the script equals a new recording of its operations.
cdef int verify(Replay* replay, StreamState* stream) except -1
# Free all scripts.
cdef void forget(Replay* replay) noexcept
