# The recorder: records operations for one stream, and launches them as graphs.
#
# INVARIANTS
# - All or nothing: an operation that raises leaves the recording as it was; no Python object is
#   made, and nothing waited for, between a recording's first change and its last: a collection, or
#   another thread, may launch it there.
# - Whatever puts work on the stream directly, or hands memory or the stream out, commits first
#   (runtime's `flush`, whose hook this room fills).
# - A commit detaches the recording at once: what a finalizer or another thread records meanwhile
#   is the next batch. One commit of a stream is under way at a time.
# - A bounded number of launched batches is in flight; waiting for the oldest releases the GIL.

from cyrt.driver.cuda cimport CUevent
from cyrt.graph.boundary cimport Boundary
from cyrt.graph.hazards cimport Use
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.ranges cimport Ranges
from cyrt.graph.recording cimport Geometry, Operation, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport Stream

cdef enum:
    IN_FLIGHT = 64          # batches launched and not ended, at most

cdef class Recorder:
    cdef Stream stream_             # of an encoder that the user made
    cdef StreamState* state
    cdef Recording recording, spare         # the next batch's, while one is launched
    cdef unsigned long committer            # the thread whose commit is under way
    cdef unsigned long flusher              # the one that commits first what a commit waits for
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
    cdef list foreign               # Buffers that the recording uses and others may use, too
    cdef Ranges ranges              # their memory, by address
    cdef bint joined                # the next operation comes after all others
    cdef list kept                  # objects that live until the batch has run
    cdef list handlers              # to call when the batch has run
    cdef object in_flight           # deque of (batch, objects)
    cdef Plan plan
    cdef object __weakref__

# The encoder of a stream; made at first use.
cdef Recorder encoder_of(StreamState* state)
# Records an operation. `foreign`: Buffers among its uses that are outside (pool.is_outside), or
# None. `opaque`: it may touch memory that `uses` does not name, and comes after everything.
cdef int record(Recorder self, const Operation* operation, Use* uses, int num_uses,
                list foreign, bint opaque) except -1
cdef int record_kernel(Recorder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, Use* uses, int num_uses, list foreign, bint opaque,
                       unsigned int flags, const unsigned int* cluster) except -1
cdef int commit(Recorder self) except -1
cdef int attach(Recorder self, StreamState* state, graphs) except -1
# The stream goes on without the encoder.
cdef void detach(Recorder self) noexcept
# What follows comes after every operation of the open group.
cdef int join_group(Recorder self) except -1
# Sees which batches have ended, and drops what was kept for them.
cdef int look_back(Recorder self) except -1
