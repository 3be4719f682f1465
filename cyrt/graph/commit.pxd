# The state of a recorder, and the commit, which launches its recording.
#
# INVARIANTS
# - A commit that has begun is finished. First, while operations can still be added, it launches the
#   work of other streams that must run before, waits for room, and finds the plan. Signal handlers,
#   finalizers and other threads can run then; if they changed anything, the commit begins again.
#   Then, in the stream's turn, the recording is exchanged for an empty one and launched: no Python
#   code runs until the turn has ended.
# - So a recording is launched exactly once, by the thread that comes first. A commit returns when
#   what was recorded before the call has been launched, by this thread or by another.
# - From the launch until the handlers are queued and the kept objects are stored, no Python code
#   runs, so no signal interrupts a commit there: the objects that this takes are made before the
#   turn. Then the recording is cleared, which runs finalizers only.
# - If the driver refuses an operation, only what depends on it is lost, too: see graph/loss.
# - The error of a launch is kept by the stream, and raised once: by the next commit, wait or read
#   on the stream, or by the next operation on it, before that is recorded. While one is kept, a
#   later one is not: reading what was lost raises it.
# - A Recording is freed with its Recorder only, since a commit that another one overtakes still
#   reads the recording that it began with.
# - The references to a batch's tensors are dropped behind the turn: their libraries' streams wait
#   for the batch then, so the tensors' memory may have other owners on these.
# - The number of batches in flight is limited; a wait for the oldest one releases the GIL.
# - Only the thread of a per-thread default stream launches what is recorded for that stream.

from cyrt.driver.cuda cimport CUevent, CUresult
from cyrt.graph.plan cimport Plan, PlanStats
from cyrt.graph.policy cimport Policy
from cyrt.graph.ranges cimport Ranges
from cyrt.graph.recording cimport Recording, Tensors
from cyrt.graph.replay cimport Replay
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime.stream cimport Stream

cdef enum:
    IN_FLIGHT = 64          # most batches that are launched and have not ended

# A commit that is traced: host times in ns of the monotonic clock, and events around the batch.
cdef struct Timing:
    long long begun             # the first operation was recorded; 0: before the trace began
    long long launching, launched   # the turn began and ended; 0: nothing was launched
    CUevent before, after       # NULL: nothing is traced

# Whether a trace is written: `tracer` is not None.
cdef bint tracing
# Return the time of the monotonic clock in ns, which is that of Python's time.perf_counter_ns().
cdef long long now() noexcept

# The error of a launch that was not raised yet.
cdef struct Failure:
    unsigned int error          # the number of a loss's error; 0: the driver's result says all
    CUresult result
    const char* call

cdef class Recorder:
    cdef Stream stream_             # an encoder's that the user created; else None
    cdef StreamState* state
    cdef Recording* recording       # the operations since the last commit; empty during a replay
    cdef Replay replay
    cdef Recording* launching       # the batch that is launched in the turn; else NULL
    cdef Recording* spare           # a list of empty ones
    cdef unsigned long flusher      # the thread that launches what a commit waits for; 0: none
    cdef PlanStats stats_
    cdef unsigned long long operations, commits
    cdef unsigned long long repoints, opaque_captures   # calls of libraries: see template
    cdef Policy policy
    cdef size_t max_bytes, bytes
    cdef unsigned long long num_early_loads     # operations that may load before they wait
    cdef bint graphs, blocking
    cdef bint early_loads           # CYRT_EARLY_LOADS
    cdef unsigned int fuse_after    # launches after which a script is compiled; 0: it never is
    cdef bint direct                # each kernel is launched on the stream at once, without a graph
    cdef bint deferred              # the program commits: uses of outside memory do not
    cdef int batches_open, groups_open  # number of open `batch()` and `concurrent()` blocks
    cdef void* group_scope          # the block that the recording's group belongs to, see scope
    cdef unsigned long long limits  # number of batches that ended at a limit
    cdef bint closed
    # The thread that may use the encoder. 0: every thread may, since several threads have asked for
    # the encoder that their stream has created.
    cdef unsigned long thread
    cdef unsigned long long handled     # epoch of the last recording to which a handler has added
    cdef CUevent[IN_FLIGHT] marks   # after each of the last batches
    cdef unsigned long long batches, ended  # numbers of batches launched; known to have ended
    cdef list launched              # the Plan of each batch in flight, or its operations' names
    # With CYRT_LAUNCH_BLOCKING, `where` is the code line of the operation that is recorded, and
    # `awaited` that of the operation that was launched last; otherwise they are None.
    cdef str where, awaited
    cdef Failure failure            # if `state.failed`
    # Buffers of outside memory that the recording uses; an element None represents all exported
    # memory.
    cdef list foreign
    cdef list spare_foreign         # an empty list for the next recording's Buffers, or None
    cdef Ranges ranges              # the addresses of that memory
    # Counted references to the tensors among it; the array of those of an earlier batch.
    cdef Tensors tensors, spare_tensors
    cdef bint joined                # the next operation waits for all others
    cdef list kept                  # objects that are kept until the batch has ended
    cdef list handlers              # functions to call when the batch has ended
    cdef object in_flight           # deque of [batch, kept objects, Buffers]
    cdef Plan plan                  # the last batch's that had one
    # None, or the operations, which are then listed instead of being recorded:
    # (kind, owner or None, grid, block, bytes of shared memory, parameters)
    cdef list listed
    cdef Timing timing
    cdef object __weakref__

# Return the block of a Buffer; NULL: the Buffer was freed, or None represents all exported memory.
cdef Block* block_of(object buffer) noexcept
# Return the number of operations since the last commit.
cdef inline int num_recorded(Recorder self) noexcept:
    return self.recording.num_nodes + self.replay.played
# Make the operations that were replayed since the last commit the recording.
cdef void stop_replay(Recorder self) noexcept
# An operation may consist of several kernels. Between `begin_operation` and `end_operation`, which
# gets what the former has returned, it is unfinished; behind `continue_operation`, which follows
# the first kernel, it is continued. Such operations may contain others.
cdef struct Unfinished:
    void* recorder      # the Recorder of the thread's unfinished operation; NULL: there is none
    bint continued      # the first kernel of that operation has been recorded
cdef Unfinished begin_operation(Recorder self) noexcept
cdef void continue_operation() noexcept
cdef void end_operation(Unfinished before) noexcept
cdef bint is_unfinished(Recorder self) noexcept
cdef bint is_continued(Recorder self) noexcept
# Begin a batch: set the sequences and sites of its operations' results.
cdef void begin_batch(Recorder self) noexcept
# Return a number for a new recording; it is never reused.
cdef unsigned long long new_epoch() noexcept
# Launch what any thread recorded for the stream before the call, wait for a launch that another one
# has begun, and raise the error of a launch that is kept. `reason`, here and below, tells in traces
# why the caller asks for it: a text that is never freed.
cdef int commit(StreamState* state, const char* reason) except -1
# Launch what is recorded unless that has to wait: the next operation, commit or wait then launches
# it. An error is kept; what a signal handler raises is raised when the call has returned.
cdef void commit_at_end(Recorder self, const char* reason) noexcept
# Launch what is recorded because its one operation must not be left, and raise the operation's
# error. What a signal handler raises is raised when the call has returned.
cdef int commit_now(Recorder self, const char* reason) except -1
# Raise the error of a launch, if one is kept.
cdef int raise_failure(Recorder self) except -1
# Wait, before an operation is recorded, so that its batch can be launched without a wait.
cdef int make_room(Recorder self) except -1
# Find the batches that have ended, and drop what was kept for them.
cdef int release_ended_batches(Recorder self) except -1
# Do so on every stream of every device. A call that has found work ended, by whatever it has asked,
# calls this before it returns: what was kept for that work is dropped, not at the next commit.
cdef int release_all_ended() except -1
# Return a text that names the operations of a device's batches in flight, for error messages.
cdef str suspects(int ordinal)
