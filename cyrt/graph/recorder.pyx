"""Recording operations for a stream, and launching them as graphs."""

import sys
import threading
from collections import deque

from libc.stdlib cimport free

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt import settings
from cyrt.driver import table as _table
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.graph cimport boundary as boundaries, completion, direct as directly
from cyrt.graph cimport hazards, plan as plans, recording as recordings
from cyrt.graph import completion as _completion
from cyrt.graph.ranges cimport resolve
from cyrt.graph.recording cimport COPY, EMPTY, KERNEL
from cyrt.runtime.device cimport (
    contexts, current_ordinal, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime cimport memory as memories
from cyrt.runtime.memory cimport Memory, end_use, live_block
from cyrt.runtime.pool cimport is_outside, return_rested, use
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block, StreamState
from cyrt.runtime cimport stream as streams
from cyrt.runtime.stream cimport (
    flush, flush_current, foreign_state, order_launched, refuse_captured, wait, wait_state,
)

cdef unsigned long long last_epoch = 0

# Encoders of streams by the state's address: as long-lived as the states, but for those that the
# user made, which are references only.
encoders = {}
# CommandEncoder, which builds on this file.
encoder_class = None
cdef object nvtx = None         # the package, with CYRT_NVTX=1


cdef unsigned long long new_epoch() noexcept:
    global last_epoch
    last_epoch += 1
    return last_epoch


cdef class Recorder:
    def __dealloc__(self):
        recordings.destroy(&self.recording)
        recordings.destroy(&self.spare)
        free(self.ranges.items)


cdef Recorder encoder_of(StreamState* state):
    cdef Recorder encoder
    if state.encoder != NULL:
        return <Recorder>state.encoder
    encoder = encoder_class.__new__(encoder_class)
    attach(encoder, state, None)
    encoders[<size_t>state] = encoder
    return encoder


cdef int attach(Recorder self, StreamState* state, graphs) except -1:
    global nvtx
    self.graphs = settings.get("CYRT_GRAPHS") if graphs is None else graphs
    self.blocking = settings.get("CYRT_LAUNCH_BLOCKING")
    boundaries.set_limit(&self.boundary, 1 if self.blocking or not self.graphs
                         else settings.get("CYRT_MAX_OPS_PER_GRAPH"))
    self.direct = not self.graphs and not self.blocking
    if self.max_bytes == 0:
        self.max_bytes = <size_t>settings.get("CYRT_MAX_MB_PER_GRAPH") << 20
    if settings.get("CYRT_NVTX") and nvtx is None:
        import nvtx as package
        nvtx = package
    self.in_flight = deque()
    self.launched = [None] * IN_FLIGHT
    self.thread = threading.get_ident()
    recordings.clear(&self.recording)
    recordings.clear(&self.spare)
    state.recording_epoch = new_epoch()
    state.encoder = <void*>self
    self.state = state
    return 0


cdef void detach(Recorder self) noexcept:
    """The stream goes on without the encoder that the user made."""
    cdef StreamState* state = self.state
    cdef int entered, i
    try:
        if state.pending:
            commit(self)
        if self.in_flight:
            wait_state(state)       # what was kept for the batches lives until they ended
    except BaseException:
        pass        # the device failed: whoever uses it next is told
    entered = enter_quietly(state.ordinal, state.epoch)
    for i in range(IN_FLIGHT):
        if self.marks[i] != NULL and entered >= 0:
            cu.cuEventDestroy(self.marks[i])
    leave_quietly(entered)
    encoders.pop(<size_t>state, None)
    state.encoder = NULL
    state.pending = False
    state.recording_epoch = new_epoch()
    self.in_flight = None
    self.closed = True


cdef int join_group(Recorder self) except -1:
    """What follows comes after every operation of the group: after one empty node."""
    cdef Recording* recording = &self.recording
    cdef Operation join = Operation(EMPTY, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL)
    if recording.num_nodes > recording.group:
        recordings.reserve(recording, 0, 0)
        recordings.add_barrier(recording)
        recordings.append(recording, &join)
    recording.group = recording.num_nodes
    return 0


cdef int cut(Recorder self, const Operation* operation) except -1:
    """Commit where the batch ends before the operation."""
    cdef int nodes = self.recording.num_nodes
    cdef bint full = self.bytes >= self.max_bytes
    cdef unsigned long long patched = self.stats_.patched, equal = self.stats_.equal
    if nodes == 0:
        boundaries.begin(&self.boundary, operation)
    elif (full or nodes >= self.boundary.min_ops - 1) and (
            boundaries.ends_before(&self.boundary, nodes, full, operation)):
        commit(self)
        boundaries.learn(&self.boundary, self.stats_.equal > equal, self.stats_.patched > patched)
        boundaries.begin(&self.boundary, operation)
    return 0


cdef int add_foreign(Recorder self, list foreign, Use* uses, int num_uses) except -1:
    """Hold others' memory, and find its hazards by address."""
    cdef Block* block
    cdef int i
    if self.foreign is None:
        self.foreign = foreign
    else:
        self.foreign.extend(foreign)
    for i in range(num_uses):
        block = uses[i].block
        if is_outside(block):
            uses[i].block = resolve(&self.ranges, block, &self.joined)
            if uses[i].block != block \
                    and uses[i].block.hazard.epoch == self.state.recording_epoch:
                self.bytes -= min(self.bytes, block.size)       # counted before
    return 0


cdef int record(Recorder self, const Operation* operation, Use* uses, int num_uses,
                list foreign, bint opaque) except -1:
    cdef Recording* recording = &self.recording
    cdef StreamState* state = self.state
    cdef int i, edges, node
    verify(state.ordinal, state.epoch, b"cuLaunchKernel")
    if state.capturing:
        refuse_captured(state)
    if foreign is not None and not self.deferred:
        commit(self)            # others' memory may be what earlier nodes use: stream order
    else:
        cut(self, operation)
    for i in range(num_uses):
        if uses[i].block.kind != FOREIGN_MEMORY:        # the launch orders that
            use(uses[i].block, state, uses[i].write)
        if uses[i].block.hazard.epoch != state.recording_epoch:
            self.bytes += uses[i].block.size
    # From here on nothing can commit, neither another thread nor a finalizer.
    if foreign is not None:
        add_foreign(self, foreign, uses, num_uses)
    if recording.group >= 0 and (opaque or self.joined):
        join_group(self)
    edges = hazards.prepare(uses, num_uses, state)
    recordings.reserve(recording, operation.param_bytes, edges)
    hazards.depend(recording, uses, num_uses)
    if opaque or self.joined:
        recordings.add_barrier(recording)
        self.joined = False
    node = recordings.append(recording, operation)
    # Those of a group do not see each other, but for operations of arrays.
    if recording.group < 0 or operation.kind == KERNEL \
            and (<LoadedFunction>operation.owner).ordered:
        hazards.note(uses, num_uses, node)
    state.pending = True
    state.idle = False
    self.operations += 1
    if self.blocking:
        self.where = caller()
    if self.boundary.max_ops == 1 or (foreign is not None and not self.deferred):
        commit(self)
    return 0


cdef int record_kernel(Recorder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, Use* uses, int num_uses, list foreign, bint opaque,
                       unsigned int flags, const unsigned int* cluster) except -1:
    cdef Operation operation
    cdef int i
    if self.direct and foreign is None and flags == 0:
        refuse_captured(self.state)
        for i in range(num_uses):
            use(uses[i].block, self.state, uses[i].write)
        self.operations += 1
        self.state.idle = False
        return directly.launch_now(self.state, function, geometry, params)
    operation.kind = KERNEL
    operation.flags = flags | recordings.PROGRAMMATIC if function.programmatic else flags
    operation.cluster = cluster
    operation.function = function.handle
    operation.serial = function.serial
    operation.layout = &function.layout
    operation.geometry = geometry
    operation.params = params
    operation.param_bytes = function.layout.nbytes
    operation.owner = <void*>function
    return record(self, &operation, uses, num_uses, foreign, opaque)


cdef str caller():
    """Where the Python code stands that recorded an operation."""
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cyrt":
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _suspects(int ordinal):
    """The operations of a device's batches that were launched and not seen to end."""
    cdef Recorder encoder
    cdef dict counts = {}
    for each in encoders.values():
        encoder = each if isinstance(each, Recorder) else each()
        if encoder is None or encoder.state.ordinal != ordinal \
                or encoder.state.epoch != contexts[ordinal].epoch:
            continue
        if encoder.where:
            return f"The operation was recorded at {encoder.where}."
        for batch in range(encoder.ended, encoder.batches):
            launched = encoder.launched[batch % IN_FLIGHT]
            for name in getattr(launched, "names", launched) or ():
                counts[name] = counts.get(name, 0) + 1
    if not counts:
        return ""
    operations = ", ".join(f"{name} x {n}" if n > 1 else name for name, n in counts.items())
    return (f"Operations in flight: {operations}. CYRT_LAUNCH_BLOCKING=1 names the one that "
            "failed.")


cdef CUresult query_event(void* handle) noexcept nogil:
    return cu.cuEventQuery(<CUevent>handle)


cdef int make_room(Recorder self) except -1:
    """Wait until fewer than IN_FLIGHT batches have not ended."""
    cdef int slot = self.batches % IN_FLIGHT
    cdef int entered
    cdef CUresult result
    if self.marks[slot] == NULL:
        entered = enter(self.state.ordinal, self.state.epoch, b"cuEventCreate")
        result = cu.cuEventCreate(&self.marks[slot], CU_EVENT_DISABLE_TIMING)
        return leave(self.state.ordinal, entered, result, b"cuEventCreate")
    if self.ended + IN_FLIGHT > self.batches:       # seen to have ended already
        return 0
    return wait(self.state.ordinal, self.state.epoch, query_event, self.marks[slot],
                b"cuEventQuery")


cdef int look_back(Recorder self) except -1:
    """See which batches have ended, and drop what was kept for them."""
    if self.batches - self.ended > IN_FLIGHT:
        self.ended = self.batches - IN_FLIGHT
    while self.ended < self.batches and cu.cuEventQuery(
            self.marks[<int>(self.ended % IN_FLIGHT)]) == CUDA_SUCCESS:
        self.ended += 1
    while self.in_flight and self.in_flight[0][0] < self.ended:
        self.in_flight.popleft()
    return 0


cdef int flush_homes(Recorder self) except -1:
    """Before a commit begins: two that are under way never wait for each other."""
    cdef unsigned long outer = self.flusher
    self.flusher = PyThread_get_thread_ident()      # homes may lead back here
    try:
        for home in homes_of(self, self.foreign):
            if <size_t>home != <size_t>self.state:
                flush(<StreamState*><size_t>home)
    finally:
        self.flusher = outer
    return 0


cdef int commit(Recorder self) except -1:
    cdef StreamState* state = self.state
    cdef Recording recording
    cdef unsigned long long epoch
    cdef list foreign, kept, handlers
    if state.capturing:
        return 0                # what is kept, and the handlers, are the next batch's
    if self.foreign is not None and self.flusher != PyThread_get_thread_ident():
        flush_homes(self)
    while state.committing:
        if self.committer == PyThread_get_thread_ident():
            return 0            # a finalizer that runs inside this commit
        verify(state.ordinal, state.epoch, b"cuGraphLaunch")    # a fork, perhaps
        with nogil:
            usleep(20)
    if self.recording.num_nodes == 0 and self.kept is None and self.handlers is None:
        return 0
    # What is recorded from here on, by a finalizer or another thread, is the next batch.
    state.committing = True
    self.committer = PyThread_get_thread_ident()
    recording, self.recording = self.recording, self.spare
    if recording.group >= 0:
        self.recording.group = 0
    foreign, self.foreign = self.foreign, None
    kept, self.kept = self.kept, None
    handlers, self.handlers = self.handlers, None
    epoch, state.recording_epoch = state.recording_epoch, new_epoch()
    state.pending = False
    self.bytes = 0
    self.ranges.count = 0
    try:
        # Also where the launch fails: some of it may be in flight, and the next batch ends later.
        if kept is not None or foreign is not None:
            self.in_flight.append((self.batches, kept, foreign))
        launch(self, &recording, foreign)
    finally:
        return_rested(state, epoch)
        recordings.clear(&recording)
        self.spare = recording
        state.committing = False
        if handlers is not None:
            completion.call_after(state, handlers)
    self.commits += 1
    self.batches += 1
    look_back(self)
    if self.blocking:
        wait_state(state)
    return 0


cdef set homes_of(Recorder self, list foreign):
    """The streams whose work on what a batch uses comes first: those that the producers named,
    the legacy one for what was handed out."""
    cdef StreamState* home
    cdef Block* block
    cdef set homes = set()
    for buffer in foreign:
        block = live_block(<Memory>buffer)
        home = foreign_state(self.state.ordinal, NULL) if block.shared else block.home
        homes.add(<size_t>home)
    return homes


cdef int release_foreign(Recorder self, list foreign) except -1:
    cdef set seen = set()
    cdef Block* block
    for buffer in foreign:
        block = live_block(<Memory>buffer)
        if <size_t>block.home not in seen:
            seen.add(<size_t>block.home)
            end_use(<Memory>buffer, self.state)
    return 0


cdef int launch(Recorder self, Recording* recording, list foreign) except -1:
    cdef StreamState* state = self.state
    cdef CUevent mark
    cdef CUresult result
    cdef int entered = verify(state.ordinal, state.epoch, b"cuGraphLaunch")
    state.idle = False
    make_room(self)
    mark = self.marks[<int>(self.batches % IN_FLIGHT)]
    self.launched[<int>(self.batches % IN_FLIGHT)] = None
    if nvtx is not None:
        nvtx.push_range(f"cyrt: {recording.num_nodes} operations", domain="cyrt")
    try:
        if foreign is not None:
            for home in homes_of(self, foreign):
                order_launched(state, <StreamState*><size_t>home)
        if not state.owned:
            entered = enter(state.ordinal, state.epoch, b"cuGraphLaunch")
        try:
            if recording.num_nodes and self.graphs:
                self.plan = plans.find(state, recording, &self.stats_)
                self.launched[<int>(self.batches % IN_FLIGHT)] = self.plan
                plans.launch_plan(self.plan, recording, &self.stats_)
            elif recording.num_nodes:
                self.launched[<int>(self.batches % IN_FLIGHT)] = plans.node_names(recording)
                directly.launch_nodes(state, recording, 0, recording.num_nodes)
            with nogil:         # it blocks where the driver's queue is full
                result = cu.cuEventRecord(mark, state.handle)
        except BaseException:
            leave_quietly(entered)
            raise
        leave(state.ordinal, entered, result, b"cuEventRecord")
        if foreign is not None:
            release_foreign(self, foreign)
    finally:
        if nvtx is not None:
            nvtx.pop_range(domain="cyrt")
    return 0


cdef int commit_state(StreamState* state) except -1:
    return commit(<Recorder>state.encoder)


cdef int look_back_state(StreamState* state) except -1:
    return look_back(<Recorder>state.encoder)


cdef void end_encoder(StreamState* state) noexcept:
    detach(<Recorder>state.encoder)


cdef int record_copy(StreamState* state, Block* target, CUdeviceptr to, Block* source,
                     CUdeviceptr start, size_t nbytes) except -1:
    """A copy within the device."""
    cdef Operation operation = Operation(COPY, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL)
    cdef unsigned long long[3] params
    cdef Use[2] uses
    params[0], params[1], params[2] = to, start, nbytes
    operation.params = params
    operation.param_bytes = sizeof(params)
    uses[0].block, uses[0].write = source, False
    uses[1].block, uses[1].write = target, True
    return record(encoder_of(state), &operation, uses, 2, None, False)


def _recorded():
    """The recordings that are not launched: how far each is, by its stream's state."""
    found = {}
    for address, each in list(encoders.items()):
        encoder = each if isinstance(each, Recorder) else each()
        if encoder is not None and (<Recorder>encoder).state.pending:
            found[address] = extent(<Recorder>encoder)
    return found


cdef tuple extent(Recorder encoder):
    return (encoder.state.recording_epoch, encoder.recording.num_nodes, len(encoder.kept or ()),
            len(encoder.handlers or ()))


def _launch_added(dict before):
    """Launch the recordings that hold more than they did."""
    failed = None
    for address, found in _recorded().items():
        if found != before.get(address):
            try:
                flush(<StreamState*><size_t>address)
            except Exception as error:      # of one device; the others' are launched all the same
                failed = failed or error
    if failed is not None:
        raise failed


def commit_current():
    """Launch what is recorded for this thread's current stream."""
    flush_current(current_ordinal())


streams.commit_stream = commit_state
streams.look_back = look_back_state
streams.end_encoder = end_encoder
_table.suspects = _suspects
memories.record_copy = record_copy
_completion.recorded = _recorded
_completion.launch_added = _launch_added
