"""Recording operations for a stream, and launching them as graphs."""

import sys
import threading
from collections import deque
from contextlib import contextmanager

from libc.string cimport memset

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt import settings
from cyrt.driver import table as _table
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.graph cimport hazards, plan as plans, recording as recordings
from cyrt.graph.plan import held as _held
from cyrt.graph.recording cimport COPY, KERNEL
from cyrt.runtime.device cimport current_ordinal, enter, leave, verify
from cyrt.runtime cimport memory as memories
from cyrt.runtime.memory cimport Buffer, end_use, live_block
from cyrt.runtime.pool cimport return_rested, use
from cyrt.runtime.state cimport Block, StreamState
from cyrt.runtime cimport stream as streams
from cyrt.runtime.stream cimport current_state, stream_of, wait, wait_state

cdef unsigned long long last_epoch = 0

# Encoders of streams, by the state's address: as long-lived as the states.
_encoders = {}


cdef int positive(value, str what) except -1:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected an int, got {type(value).__name__}")
    if not 1 <= value.__index__() < 1 << 31:
        raise ValueError(f"{what}: expected a number of at least 1, got {value}")
    return value


cdef unsigned long long new_epoch() noexcept:
    global last_epoch
    last_epoch += 1
    return last_epoch


cdef class CommandEncoder:
    """Records operations for one stream, and launches them as CUDA graphs.

    ``kernel[grid, block](...)`` records on the current encoder, the one of the thread's current
    stream. What operations read and write decides what waits for what. A batch is launched by
    :meth:`commit`, by a limit, and by whatever needs its results.

    Parameters
    ----------
    stream : Stream, optional
        Whose operations it records; a new stream where left out. All encoders of a stream share
        its recording.
    max_ops : int, optional
        Operations in a batch, at most (``CYRT_MAX_OPS_PER_GRAPH``).
    max_mb : int, optional
        MB of memory that a batch touches, at most (``CYRT_MAX_MB_PER_GRAPH``).
    """

    def __init__(self, stream=None, *, max_ops=None, max_mb=None):
        cdef Stream target = stream_of(stream, current_ordinal()) if stream is not None \
            else Stream()
        if self.state != NULL:
            raise RuntimeError("a CommandEncoder is initialised once")
        if target.state.encoder != NULL:
            raise ValueError("the stream has an encoder already: it is cyrt.current_encoder() "
                             "inside `with stream:`")
        attach(self, target.state)
        self.stream_ = target
        if max_ops is not None:
            self.max_ops = positive(max_ops, "max_ops")
            self.min_ops = (self.max_ops + 1) // 2
        if max_mb is not None:
            self.max_bytes = <size_t>positive(max_mb, "max_mb") << 20

    cdef int own(self) except -1:
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("the CommandEncoder belongs to another thread")
        return 0

    @property
    def stream(self):
        """The stream that the batches are launched on; handing it out commits."""
        return self.stream_

    @property
    def num_ops(self):
        """Operations recorded since the last commit."""
        return self.recording.num_nodes

    def commit(self):
        """Launch what is recorded; nothing where there is nothing."""
        self.own()
        commit(self)

    def synchronize(self):
        """Launch what is recorded and wait until it has ended."""
        self.own()
        wait_state(self.state)

    def keep(self, obj):
        """Keep an object alive until the batch being recorded has ended."""
        self.own()
        if self.kept is None:
            self.kept = []
        self.kept.append(obj)

    def last_plan(self):
        """The Plan of the last batch, or None."""
        return self.plan

    def stats(self):
        """Counts since the encoder was made.

        Returns
        -------
        dict
            ``operations``, ``commits``, ``hits`` and ``misses`` of the plan cache, nodes
            ``patched``, ``instantiations``, ``evictions``; and of all encoders, ``plans`` and
            ``bytes_held`` by them.
        """
        count, held = _held()
        return {
            "operations": self.operations,
            "commits": self.commits,
            "hits": self.stats_.hits,
            "misses": self.stats_.misses,
            "patched": self.stats_.patched,
            "instantiations": self.stats_.instantiations,
            "evictions": self.stats_.evictions,
            "plans": count,
            "bytes_held": held,
        }

    def __repr__(self):
        return f"<cyrt.CommandEncoder with {self.recording.num_nodes} operations recorded>"


def current_encoder():
    """The encoder of this thread's current stream."""
    cdef CommandEncoder encoder = encoder_of(current_state(current_ordinal()))
    encoder.thread = PyThread_get_thread_ident()    # streams of ended threads are used again
    return encoder


def commit_current():
    """Launch what is recorded for this thread's current stream."""
    commit(encoder_of(current_state(current_ordinal())))


@contextmanager
def batch():
    """Inside, work on other libraries' memory does not commit by itself: the block's end does.

    Yields
    ------
    CommandEncoder
        The current one.
    """
    cdef CommandEncoder encoder = encoder_of(current_state(current_ordinal()))
    encoder.deferred += 1
    try:
        yield encoder
    finally:
        encoder.deferred -= 1
        commit(encoder)


cdef CommandEncoder encoder_of(StreamState* state):
    cdef CommandEncoder encoder
    if state.encoder != NULL:
        return <CommandEncoder>state.encoder
    encoder = CommandEncoder.__new__(CommandEncoder)
    attach(encoder, state)
    return encoder


cdef int attach(CommandEncoder self, StreamState* state) except -1:
    self.state = state
    self.graphs = settings.get("CYRT_GRAPHS")
    self.blocking = settings.get("CYRT_LAUNCH_BLOCKING")
    self.max_ops = 1 if self.blocking or not self.graphs else settings.get("CYRT_MAX_OPS_PER_GRAPH")
    self.direct = not self.graphs and not self.blocking
    self.min_ops = (self.max_ops + 1) // 2
    self.max_bytes = <size_t>settings.get("CYRT_MAX_MB_PER_GRAPH") << 20
    self.in_flight = deque()
    self.names = [None] * IN_FLIGHT
    self.thread = threading.get_ident()
    recordings.clear(&self.recording)
    recordings.clear(&self.spare)
    state.recording_epoch = new_epoch()
    state.encoder = <void*>self
    _encoders[<size_t>state] = self
    return 0


cdef unsigned long long operation_hash(unsigned long long serial,
                                       const Geometry* geometry) noexcept:
    cdef unsigned long long h = serial * 0x9e3779b97f4a7c15u
    h = (h ^ geometry.grid[0]) * 0xc2b2ae3d27d4eb4fu
    h = (h ^ geometry.grid[1] ^ <unsigned long long>geometry.grid[2] << 32) * 0x9e3779b97f4a7c15u
    return (h ^ geometry.block[0] ^ <unsigned long long>geometry.block[1] << 20) | 1


cdef bint began_before(CommandEncoder self, unsigned long long h) noexcept:
    cdef int i
    for i in range(self.num_beginnings):
        if self.beginnings[i] == h:
            return True
    return False


cdef int cut(CommandEncoder self, unsigned long long serial, const Geometry* geometry) except -1:
    """Commit where the batch is full, or where a loop comes round: boundaries lock to the loop."""
    cdef int nodes = self.recording.num_nodes
    cdef unsigned long long h
    if nodes and nodes < self.min_ops and self.bytes < self.max_bytes:
        return 0
    h = operation_hash(serial, geometry)
    if nodes >= self.max_ops or self.bytes >= self.max_bytes \
            or (nodes and began_before(self, h)):
        commit(self)
    if self.recording.num_nodes == 0 and not began_before(self, h):
        if self.num_beginnings == BEGINNINGS:
            self.num_beginnings = 0
        self.beginnings[self.num_beginnings] = h
        self.num_beginnings += 1
    return 0


cdef int record_kernel(CommandEncoder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, const Use* uses, int num_uses, list foreign,
                       bint opaque, unsigned int flags, const unsigned int* cluster) except -1:
    cdef Recording* recording = &self.recording
    cdef StreamState* state = self.state
    cdef int i, edges
    verify(state.ordinal, state.epoch, b"cuLaunchKernel")
    if self.direct and foreign is None:
        for i in range(num_uses):
            use(uses[i].block, state, uses[i].write)
        self.operations += 1
        return plans.launch_now(state, function, geometry, params)
    if foreign is not None and not self.deferred:
        commit(self)            # others' memory may be what earlier nodes use: stream order
    elif not self.concurrent_:
        cut(self, function.serial, geometry)
    for i in range(num_uses):
        use(uses[i].block, state, uses[i].write)
        if uses[i].block.hazard.epoch != state.recording_epoch:
            self.bytes += uses[i].block.size
    edges = hazards.prepare(uses, num_uses, state)
    recordings.reserve(recording, function.layout.nbytes, edges)
    if function.programmatic:
        flags |= recordings.PROGRAMMATIC
    hazards.connect(recording, uses, num_uses)
    if opaque or foreign is not None:
        recordings.add_barrier(recording)
    recordings.append(recording, KERNEL, flags, function.handle, function.serial,
                      &function.layout, geometry, cluster, params, function.layout.nbytes,
                      <void*>function)
    state.pending = True
    self.operations += 1
    if self.blocking:
        self.where = caller()
    if foreign is not None:
        self.foreign = foreign if self.foreign is None else self.foreign + foreign
        if not self.deferred:
            commit(self)
    elif self.max_ops == 1:
        commit(self)
    return 0


cdef str caller():
    """Where the Python code stands that recorded an operation."""
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cyrt":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _suspects(int ordinal):
    """The operations of a device's batches that were launched and not seen to end."""
    cdef CommandEncoder encoder
    cdef dict counts = {}
    for each in _encoders.values():
        encoder = each
        if encoder.state.ordinal != ordinal:
            continue
        if encoder.where:
            return f"The operation was recorded at {encoder.where}."
        for batch in range(encoder.ended, encoder.batches):
            for name in encoder.names[batch % IN_FLIGHT] or ():
                counts[name] = counts.get(name, 0) + 1
    if not counts:
        return ""
    operations = ", ".join(f"{name} x {n}" if n > 1 else name for name, n in counts.items())
    return (f"Operations in flight: {operations}. CYRT_LAUNCH_BLOCKING=1 names the one that "
            "failed.")


cdef CUresult query_event(void* handle) noexcept nogil:
    return cu.cuEventQuery(<CUevent>handle)


cdef int make_room(CommandEncoder self) except -1:
    """Wait until fewer than IN_FLIGHT batches have not ended."""
    cdef int slot = self.batches % IN_FLIGHT
    cdef int entered
    cdef CUresult result
    if self.marks[slot] == NULL:
        entered = enter(self.state.ordinal, self.state.epoch, b"cuEventCreate")
        result = cu.cuEventCreate(&self.marks[slot], CU_EVENT_DISABLE_TIMING)
        return leave(self.state.ordinal, entered, result, b"cuEventCreate")
    return wait(self.state.ordinal, self.state.epoch, query_event, self.marks[slot],
                b"cuEventQuery")


cdef int look_back(CommandEncoder self) except -1:
    """See which batches have ended, and drop what was kept for them."""
    if self.batches - self.ended > IN_FLIGHT:
        self.ended = self.batches - IN_FLIGHT
    while self.ended < self.batches and cu.cuEventQuery(
            self.marks[<int>(self.ended % IN_FLIGHT)]) == CUDA_SUCCESS:
        self.ended += 1
    while self.in_flight and self.in_flight[0][0] < self.ended:
        self.in_flight.popleft()
    return 0


cdef int commit(CommandEncoder self) except -1:
    cdef StreamState* state = self.state
    cdef Recording recording
    cdef unsigned long long epoch
    cdef list foreign, kept
    while state.committing:
        if self.committer == PyThread_get_thread_ident():
            return 0            # a finalizer that runs inside this commit
        with nogil:
            usleep(20)
    if self.recording.num_nodes == 0 and self.kept is None:
        return 0
    # What is recorded from here on, by a finalizer or another thread, is the next batch.
    state.committing = True
    self.committer = PyThread_get_thread_ident()
    recording, self.recording = self.recording, self.spare
    foreign, self.foreign = self.foreign, None
    kept, self.kept = self.kept, None
    epoch, state.recording_epoch = state.recording_epoch, new_epoch()
    state.pending = False
    self.bytes = 0
    try:
        launch(self, &recording, foreign)
    finally:
        return_rested(state, epoch)
        recordings.clear(&recording)
        self.spare = recording
        state.committing = False
    self.commits += 1
    if kept is not None or foreign is not None:
        self.in_flight.append((self.batches, kept, foreign))
    self.batches += 1
    look_back(self)
    if foreign is not None:
        for buffer in foreign:
            end_use(<Buffer>buffer, state)
    if self.blocking:
        wait_state(state)
    return 0


cdef int launch(CommandEncoder self, Recording* recording, list foreign) except -1:
    cdef StreamState* state = self.state
    cdef CUevent mark
    cdef CUgraphExec executable = NULL
    cdef CUresult result = CUDA_SUCCESS
    cdef int entered = verify(state.ordinal, state.epoch, b"cuGraphLaunch")
    make_room(self)
    mark = self.marks[<int>(self.batches % IN_FLIGHT)]
    if foreign is not None:
        for buffer in foreign:
            use(live_block(<Buffer>buffer), state, True)
    if recording.num_nodes and self.graphs:
        self.plan = plans.find(state, recording, &self.stats_)
        executable = plans.lay(self.plan, recording, &self.stats_)
        self.names[<int>(self.batches % IN_FLIGHT)] = self.plan.names
    elif recording.num_nodes:
        self.names[<int>(self.batches % IN_FLIGHT)] = plans.node_names(recording)
        plans.launch_directly(state, recording)
    if not state.owned:
        entered = enter(state.ordinal, state.epoch, b"cuGraphLaunch")
    if executable != NULL:
        result = cu.cuGraphLaunch(executable, state.handle)
    if result == CUDA_SUCCESS:
        result = cu.cuEventRecord(mark, state.handle)
    return leave(state.ordinal, entered, result, b"cuGraphLaunch")


cdef int commit_state(StreamState* state) except -1:
    return commit(<CommandEncoder>state.encoder)


cdef int record_copy(StreamState* state, Block* target, CUdeviceptr to, Block* source,
                     CUdeviceptr start, size_t nbytes) except -1:
    """A copy within the device."""
    cdef CommandEncoder self = encoder_of(state)
    cdef Recording* recording = &self.recording
    cdef Use[2] uses
    cdef unsigned long long[3] params
    cdef int i, edges
    cdef Geometry geometry
    verify(state.ordinal, state.epoch, b"cuMemcpyAsync")
    memset(&geometry, 0, sizeof(geometry))
    params[0], params[1], params[2] = to, start, nbytes
    uses[0].block, uses[0].write = source, False
    uses[1].block, uses[1].write = target, True
    cut(self, 0, &geometry)
    for i in range(2):
        use(uses[i].block, state, uses[i].write)
        if uses[i].block.hazard.epoch != state.recording_epoch:
            self.bytes += uses[i].block.size
    edges = hazards.prepare(uses, 2, state)
    recordings.reserve(recording, sizeof(params), edges)
    hazards.connect(recording, uses, 2)
    recordings.append(recording, COPY, 0, NULL, 0, NULL, NULL, NULL, params, sizeof(params), NULL)
    state.pending = True
    self.operations += 1
    if self.max_ops == 1:
        commit(self)
    return 0


streams.commit_stream = commit_state
_table.suspects = _suspects
memories.record_copy = record_copy
