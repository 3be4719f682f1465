# The state of a recorder, and the commit, which launches its recording.
#
# INVARIANTS
# - A commit is entered once and finished. First, with the recording still attached, other streams'
#   work that comes before is launched, room is waited for, and the plan is found: signals,
#   finalizers and other threads run there, and where they changed anything it begins again. Then,
#   in the stream's turn, the recording is exchanged for an empty one and launched: no Python code
#   runs until the turn has ended.
# - So a recording is launched exactly once, by whoever comes first. A commit returns when what was
#   recorded before it was called has been launched, by this thread or by another.
# - A refused operation loses nothing but what depends on it: see graph/loss.
# - A bounded number of launched batches is in flight; waiting for the oldest releases the GIL.
# - The per-thread default stream's recording is launched by its thread.

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.boundary cimport Boundary
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.ranges cimport Ranges
from cyrt.graph.recording cimport Recording
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport Stream

cdef enum:
    IN_FLIGHT = 64          # batches launched and not ended, at most

cdef class Recorder:
    cdef Stream stream_             # of an encoder that the user made
    cdef StreamState* state
    cdef Recording recording        # since the last commit
    cdef Recording launching        # the batch whose turn it is; else empty
    cdef unsigned long flusher      # the thread that launches first what a commit waits for
    cdef PlanStats stats_
    cdef unsigned long long operations, commits
    cdef Boundary boundary
    cdef size_t max_bytes, bytes
    cdef bint graphs, blocking
    cdef bint direct                # every kernel is launched on the stream at once
    cdef int deferred               # depth of `batch()`: others' memory does not commit
    cdef bint closed
    cdef unsigned long thread
    cdef CUevent[IN_FLIGHT] marks   # behind each of the last batches
    cdef unsigned long long batches, ended  # launched; seen to have ended
    cdef list launched              # the Plan of each batch in flight, or its operations' names
    cdef str where                  # with CYRT_LAUNCH_BLOCKING: who recorded the last operation
    # Buffers that the recording uses and others may use, too; None among them: any memory that was
    # handed out.
    cdef list foreign
    cdef Ranges ranges              # their memory, by address
    cdef bint joined                # the next operation comes after all others
    cdef list kept                  # objects that live until the batch has run
    cdef list handlers              # to call when the batch has run
    cdef object in_flight           # deque of (batch, objects)
    cdef Plan plan
    cdef object __weakref__

cdef unsigned long long new_epoch() noexcept
# Launches what was recorded before the call.
cdef int commit(Recorder self) except -1
# Sees which batches have ended, and drops what was kept for them.
cdef int release_ended_batches(Recorder self) except -1
# Names the operations of a device's batches that were launched and not seen to end.
cdef str suspects(int ordinal)
