# The command encoder: records operations for one stream, and launches them as graphs.
#
# INVARIANTS
# - All or nothing: an operation that raises leaves the recording as it was; no Python object is
#   made between a recording's first change and its last.
# - Where the batch ends depends on what was recorded, never on time: topologies repeat.
# - Whatever puts work on the stream directly, or hands memory or the stream out, commits first
#   (runtime's `flush`, whose hook this room fills).
# - A bounded number of launched batches is in flight; waiting for the oldest releases the GIL.

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.hazards cimport Use
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport Stream

cdef enum:
    IN_FLIGHT = 64          # batches launched and not ended, at most
    BEGINNINGS = 16         # operations that began earlier batches, remembered

cdef class CommandEncoder:
    cdef Stream stream_
    cdef StreamState* state
    cdef Recording recording, spare         # the next batch's, while one is launched
    cdef unsigned long committer
    cdef PlanStats stats_
    cdef unsigned long long operations, commits
    cdef int max_ops, min_ops
    cdef size_t max_bytes, bytes
    cdef bint graphs, blocking
    cdef bint direct                # every kernel is launched on the stream at once
    cdef int deferred               # depth of `batch()`: foreign memory does not commit
    cdef bint concurrent_
    cdef bint closed
    cdef unsigned long thread
    cdef unsigned long long[BEGINNINGS] beginnings
    cdef int num_beginnings
    cdef CUevent[IN_FLIGHT] marks   # behind each of the last batches
    cdef unsigned long long batches, ended  # launched; seen to have ended
    cdef list names                 # of the operations of each batch in flight
    cdef str where                  # with CYRT_LAUNCH_BLOCKING: who recorded the last operation
    cdef list foreign               # Buffers of others that the recording uses
    cdef list kept                  # objects that live until the batch has run
    cdef object in_flight           # deque of (batch, objects)
    cdef Plan plan

    cdef int own(self) except -1

# The encoder of a stream; made at first use.
cdef CommandEncoder encoder_of(StreamState* state)
# Records a kernel. `foreign`: Buffers of others among its arguments, or None. `opaque`: it may
# touch memory that no argument names, and is ordered against everything.
cdef int record_kernel(CommandEncoder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, const Use* uses, int num_uses, list foreign,
                       bint opaque, unsigned int flags, const unsigned int* cluster) except -1
cdef int commit(CommandEncoder self) except -1
