"""Recording operations for a stream, and launching them as graphs."""

import sys
import threading
import weakref
from collections import deque
from contextlib import contextmanager

from cpython.mem cimport PyMem_Free, PyMem_Malloc
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
from cyrt.graph.child cimport (
    ChildGraph, begin_capture, copy_graph, discard_capture, end_capture,
)
from cyrt.graph.plan import held as _held
from cyrt.graph.ranges cimport resolve
from cyrt.graph.recording cimport CHILD, COPY, EMPTY, KERNEL
from cyrt.runtime.device cimport (
    current_ordinal, enter, enter_quietly, leave, leave_quietly, verify,
)
from cyrt.runtime.event cimport Event
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime cimport memory as memories
from cyrt.runtime.memory cimport Buffer, end_use, live_block
from cyrt.runtime.pool cimport is_outside, return_rested, use
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block, StreamState
from cyrt.runtime cimport stream as streams
from cyrt.runtime.stream cimport (
    Stream, current_state, flush, flush_current, foreign_state, order_launched, refuse_captured,
    stream_of, stream_over, wait, wait_state,
)

cdef unsigned long long last_epoch = 0

# Encoders of streams by the state's address: as long-lived as the states, but for those that the
# user made, which are references only.
_encoders = {}
cdef object nvtx = None         # the package, with CYRT_NVTX=1


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
    stream; this class makes a further one, which is current inside ``with encoder.stream:``. What
    operations read and write decides what waits for what. A batch is launched by :meth:`commit`,
    by a limit, and by whatever needs its results. It belongs to the thread that made it.

    Parameters
    ----------
    stream : Stream, optional
        Whose operations it records; a new stream where left out.
    max_ops : int, optional
        Operations in a batch, at most (``CYRT_MAX_OPS_PER_GRAPH``).
    max_mb : int, optional
        MB of memory that a batch touches, each block once, at most (``CYRT_MAX_MB_PER_GRAPH``).
    graphs : bool, optional
        False launches every operation on the stream at once (``CYRT_GRAPHS``).

    Raises
    ------
    ValueError
        Another CommandEncoder was made for the stream.
    """

    def __init__(self, stream=None, *, max_ops=None, max_mb=None, graphs=None):
        cdef Stream target = stream_of(stream, current_ordinal()) if stream is not None \
            else Stream()
        cdef int most_ops = 0
        if self.state != NULL:
            raise RuntimeError("a CommandEncoder is initialised once")
        if target.live().encoder != NULL \
                and (<CommandEncoder>target.state.encoder).stream_ is not None:
            raise ValueError("another CommandEncoder was made for the stream")
        if graphs is not None and not isinstance(graphs, bool):
            raise TypeError(f"graphs: expected a bool, got {type(graphs).__name__}")
        if max_ops is not None:
            most_ops = positive(max_ops, "max_ops")
        if max_mb is not None:
            self.max_bytes = <size_t>positive(max_mb, "max_mb") << 20
        if target.state.encoder != NULL:
            detach(<CommandEncoder>target.state.encoder)    # this one takes its place
        attach(self, target.state, graphs)
        self.stream_ = target
        self.deferred = 1           # its user commits
        _encoders[<size_t>self.state] = weakref.ref(self)
        if most_ops and self.boundary.max_ops > 1:
            boundaries.set_limit(&self.boundary, most_ops)

    def __del__(self):
        if self.stream_ is not None and not self.closed:
            detach(self)

    def __dealloc__(self):
        recordings.destroy(&self.recording)
        recordings.destroy(&self.spare)
        free(self.ranges.items)

    cdef int own(self) except -1:
        if self.closed:
            raise RuntimeError("the CommandEncoder is closed")
        if self.state == NULL:
            raise RuntimeError("the CommandEncoder was not initialised")
        if self.thread != PyThread_get_thread_ident():
            raise RuntimeError("the CommandEncoder belongs to another thread")
        return 0

    @property
    def stream(self):
        """The stream that the batches are launched on."""
        if self.state == NULL:
            raise RuntimeError("the CommandEncoder is closed")
        return self.stream_ if self.stream_ is not None else stream_over(self.state)

    @property
    def num_ops(self):
        """Operations recorded since the last commit."""
        return self.recording.num_nodes

    def add_kernel(self, kernel, grid, block, args=(), *, smem=0, cluster=None, cooperative=False,
                   reads=None, writes=None):
        """Record a kernel.

        Parameters
        ----------
        kernel : Kernel
        grid, block : int or tuple of up to three ints
            Blocks in the grid, threads in a block; x first.
        args : sequence
            One for each parameter, as in ``kernel[grid, block](*args)``.
        smem : int
            Bytes of dynamic shared memory.
        cluster : int or tuple of up to three ints, optional
            Blocks in a cluster; the grid is a multiple of it. Compute capability 9.0 and above.
        cooperative : bool
            All blocks run at once and may synchronise with each other.
        reads, writes : sequence of Buffer or array, optional
            What it reads or writes: replaces what the signature says of reads, or of writes.
            Memory behind pointers inside structs has to be named so; else the operation is
            ordered against everything.

        Raises
        ------
        TypeError, ValueError
            An argument does not fit; more blocks than can run at once; a cluster that the grid is
            no multiple of, or on a device that has none.
        """
        self.own()
        add_kernel(self, kernel, grid, block, args, smem, cluster, cooperative, reads, writes)

    def add_memcpy(self, dst, src):
        """Record a copy of all bytes; host memory is read, or filled, when the call returns.

        Parameters
        ----------
        dst, src : Buffer, array of another library, or buffer-protocol object
            Of one size; one of them a Buffer.
        """
        self.own()
        if isinstance(dst, Buffer):
            dst.copy_from(src, self.stream)
        elif isinstance(src, Buffer):
            src.copy_to(dst, self.stream)
        else:
            raise TypeError("add_memcpy: expected a Buffer as dst or src, got "
                            f"{type(dst).__name__} and {type(src).__name__}")

    def add_memset(self, buffer, value):
        """Record ``buffer.fill(value)``.

        Parameters
        ----------
        buffer : Buffer
        value : int or NumPy scalar
            An int of 0 to 255 fills bytes; a scalar of 1, 2 or 4 bytes repeats its bytes.
        """
        self.own()
        if not isinstance(buffer, Buffer):
            raise TypeError(f"add_memset: expected a Buffer, got {type(buffer).__name__}")
        buffer.fill(value, self.stream)

    def add_graph(self, child, *, reads=None, writes=None):
        """Record a graph made elsewhere, as one node.

        Parameters
        ----------
        child : int or object
            A ``CUgraph`` handle, or what gives one by ``int(child)`` or ``child.handle``. It is
            copied as it is now.
        reads, writes : sequence of Buffer or array, optional
            What it reads and writes; ordered against everything where neither is given.

        Raises
        ------
        CudaError
            The handle is no graph, or one that cannot be a child (with allocation nodes, say).
        """
        cdef size_t handle = graph_handle(child)
        self.own()
        refuse_captured(self.state)
        reading, writing = buffers_of(reads, "reads", False), buffers_of(writes, "writes", True)
        add_child(self, copy_graph(self.state.ordinal, self.state.epoch, <CUgraph>handle),
                  reading, writing)

    @contextmanager
    def capture(self, *, reads=None, writes=None):
        """Inside, what other libraries put on ``encoder.stream`` becomes one node.

        An exception discards it. Nothing is recorded on the encoder meanwhile.

        Parameters
        ----------
        reads, writes : sequence of Buffer or array, optional
            What it reads and writes, looked at when the block ends; ordered against everything
            where neither is given.

        Yields
        ------
        Stream

        Raises
        ------
        RuntimeError
            A capture is open already; nothing was put on the stream.
        CudaError
            The capture was invalidated: a call that is not allowed during one was made.
        """
        cdef ChildGraph child
        self.own()
        if self.state.capturing:
            raise RuntimeError("capture: one is open on the encoder already")
        if self.recording.group >= 0:
            raise RuntimeError("capture: not inside concurrent()")
        checked_buffers(reads, "reads")
        checked_buffers(writes, "writes")
        commit(self)
        begin_capture(self.state)
        try:
            yield self.stream
        except BaseException:
            discard_capture(self.state)
            raise
        child = end_capture(self.state)
        if child.num_nodes == 0:
            raise RuntimeError("capture: nothing was put on encoder.stream; make it the other "
                               "library's current stream inside the block")
        add_child(self, child, buffers_of(reads, "reads", False),
                  buffers_of(writes, "writes", True))

    @contextmanager
    def concurrent(self):
        """Inside, operations are not ordered among themselves; what follows waits for all.

        Raises
        ------
        RuntimeError
            Nested.
        """
        self.own()
        if self.recording.group >= 0:
            raise RuntimeError("concurrent: one is open on the encoder already")
        self.recording.group = self.recording.num_nodes
        self.state.grouping = True
        try:
            yield self
        finally:
            self.state.grouping = False
            join_group(self)
            self.recording.group = -1

    def record(self, event):
        """Put an event's mark behind what is recorded; launches that.

        Parameters
        ----------
        event : Event
        """
        self.own()
        checked_event(event).record(self.stream)

    def wait(self, event):
        """Let what is recorded from now on wait for an event; launches what is recorded.

        Parameters
        ----------
        event : Event
        """
        self.own()
        checked_event(event).wait(self.stream)

    def keep(self, obj):
        """Keep an object alive until the batch being recorded has ended."""
        self.own()
        if self.kept is None:
            self.kept = []
        self.kept.append(obj)
        self.state.pending = True
        self.state.idle = False

    def add_completed_handler(self, handler):
        """Call a function once the batch being recorded has ended, or has failed.

        Handlers run on a thread of cyrt's own, in their order. What one raises goes to
        ``sys.unraisablehook``; what it records is launched when it returns.

        Parameters
        ----------
        handler : callable
            Called with no argument.
        """
        self.own()
        if not callable(handler):
            raise TypeError(f"add_completed_handler: expected a callable, got "
                            f"{type(handler).__name__}")
        if self.handlers is None:
            self.handlers = []
        self.handlers.append(handler)
        self.state.pending = True
        self.state.idle = False

    def commit(self):
        """Launch what is recorded; nothing where there is nothing."""
        self.own()
        commit(self)

    def synchronize(self):
        """Launch what is recorded and wait until it has ended."""
        self.own()
        wait_state(self.state)

    def close(self):
        """Launch what is recorded, wait for it and let go of the stream.

        Raises
        ------
        ValueError
            It is the encoder that a stream has of itself.
        """
        if self.closed:
            return
        self.own()
        if self.stream_ is None:
            raise ValueError("close: a stream's own encoder ends with its stream")
        refuse_captured(self.state)
        try:
            wait_state(self.state)
        finally:
            detach(self)

    def __enter__(self):
        self.own()
        return self

    def __exit__(self, *exc):
        self.close()

    def last_plan(self):
        """The Plan of the last batch, or None."""
        return self.plan

    def stats(self):
        """Counts since the encoder was made.

        Returns
        -------
        dict
            ``operations``, ``commits``; ``hits`` and ``misses`` of the plan cache; commits
            ``chained`` (a topology's first, run in order by graphs that serve all topologies);
            nodes ``patched``, ``instantiations``, graph ``launches``, ``evictions``; and of all
            encoders, ``plans`` and the ``bytes_held`` by them.
        """
        count, held = _held()
        return {
            "operations": self.operations,
            "commits": self.commits,
            "hits": self.stats_.hits,
            "misses": self.stats_.misses,
            "chained": self.stats_.chained,
            "patched": self.stats_.patched,
            "instantiations": self.stats_.instantiations,
            "launches": self.stats_.launches,
            "evictions": self.stats_.evictions,
            "plans": count,
            "bytes_held": held,
        }

    def __reduce__(self):
        raise TypeError("a CommandEncoder belongs to this process and is not pickled")

    def __repr__(self):
        return (f"<cyrt.CommandEncoder {'closed' if self.closed else 'with'}"
                f"{'' if self.closed else f' {self.recording.num_nodes} operations recorded'}>")


def current_encoder():
    """The encoder of this thread's current stream."""
    cdef CommandEncoder encoder = encoder_of(current_state(current_ordinal()))
    if encoder.stream_ is None:
        encoder.thread = PyThread_get_thread_ident()    # another thread's stream, once
    return encoder


def commit_current():
    """Launch what is recorded for this thread's current stream."""
    flush_current(current_ordinal())


@contextmanager
def batch():
    """Inside, work on other libraries' memory does not commit by itself: the block's end does.

    Yields
    ------
    CommandEncoder
        The current one.
    """
    cdef CommandEncoder encoder = current_encoder()
    encoder.deferred += 1
    try:
        yield encoder
    finally:
        encoder.deferred -= 1
        commit(encoder)


def concurrent():
    """``current_encoder().concurrent()``."""
    return current_encoder().concurrent()


cdef CommandEncoder encoder_of(StreamState* state):
    cdef CommandEncoder encoder
    if state.encoder != NULL:
        return <CommandEncoder>state.encoder
    encoder = CommandEncoder.__new__(CommandEncoder)
    attach(encoder, state, None)
    _encoders[<size_t>state] = encoder
    return encoder


cdef int attach(CommandEncoder self, StreamState* state, graphs) except -1:
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


cdef void detach(CommandEncoder self) noexcept:
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
    _encoders.pop(<size_t>state, None)
    state.encoder = NULL
    state.pending = False
    state.recording_epoch = new_epoch()
    self.in_flight = None
    self.closed = True


cdef Event checked_event(event):
    if not isinstance(event, Event):
        raise TypeError(f"expected an Event, got {type(event).__name__}")
    return <Event>event


cdef size_t graph_handle(child) except? 0:
    value = child
    if not isinstance(value, int):
        value = getattr(child, "handle", child)
        try:
            value = int(value)
        except (TypeError, ValueError):
            raise TypeError("add_graph: expected a CUgraph handle as an int, or an object that "
                            f"gives one, got {type(child).__name__}") from None
    if not 0 < value < 1 << 64:
        raise ValueError(f"add_graph: {value:#x} is no CUgraph handle")
    return value


cdef tuple checked_buffers(buffers, str what):
    """As they are now: whoever gave the list may change it."""
    if buffers is None:
        return None
    if not isinstance(buffers, (list, tuple, set, frozenset)):
        raise TypeError(f"{what}: expected a list of Buffers and arrays, got "
                        f"{type(buffers).__name__}")
    for each in buffers:
        if not (isinstance(each, Buffer) or hasattr(each, "__cuda_array_interface__")
                or hasattr(each, "__dlpack__")):
            raise TypeError(f"{what}: expected Buffers and arrays, got one {type(each).__name__}")
    return tuple(buffers)


cdef list buffers_of(buffers, str what, bint write):
    if buffers is None:
        return None
    return [each if isinstance(each, Buffer) else as_buffer(each, write)
            for each in checked_buffers(buffers, what)]


cdef int uses_of(CommandEncoder self, list buffers, str what, bint write, Use* uses,
                 list foreign) except -1:
    cdef int i = 0
    for buffer in buffers:
        uses[i].block, uses[i].write = live_block(<Buffer>buffer), write
        if uses[i].block.ordinal != self.state.ordinal:
            raise ValueError(f"{what}: a Buffer is of device {uses[i].block.ordinal}, the encoder "
                             f"of device {self.state.ordinal}")
        if is_outside(uses[i].block):
            foreign.append(buffer)
        i += 1
    return i


cdef int add_child(CommandEncoder self, ChildGraph child, list reads, list writes) except -1:
    cdef Operation operation = Operation(
        CHILD, 0, NULL, NULL, child.num_nodes, NULL, NULL, NULL, 0, <void*>child)
    cdef unsigned long long[2] params
    cdef list foreign = []
    cdef int count = 0
    cdef Use* uses = <Use*>PyMem_Malloc((len(reads or ()) + len(writes or ()) + 1) * sizeof(Use))
    if uses == NULL:
        raise MemoryError()
    try:
        if reads is not None:
            count += uses_of(self, reads, "reads", False, uses, foreign)
        if writes is not None:
            count += uses_of(self, writes, "writes", True, uses + count, foreign)
        params[0], params[1] = <size_t>child.graph, child.serial
        operation.params = params
        operation.param_bytes = sizeof(params)
        record(self, &operation, uses, count, foreign or None,
               reads is None and writes is None)
    finally:
        PyMem_Free(uses)
    return 0


cdef int join_group(CommandEncoder self) except -1:
    """What follows comes after every operation of the group: after one empty node."""
    cdef Recording* recording = &self.recording
    cdef Operation join = Operation(EMPTY, 0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL)
    if recording.num_nodes > recording.group:
        recordings.reserve(recording, 0, 0)
        recordings.add_barrier(recording)
        recordings.append(recording, &join)
    recording.group = recording.num_nodes
    return 0


cdef int cut(CommandEncoder self, const Operation* operation) except -1:
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


cdef int add_foreign(CommandEncoder self, list foreign, Use* uses, int num_uses) except -1:
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


cdef int record(CommandEncoder self, const Operation* operation, Use* uses, int num_uses,
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
    if recording.group < 0:         # those of a group do not see each other
        hazards.note(uses, num_uses, node)
    state.pending = True
    state.idle = False
    self.operations += 1
    if self.blocking:
        self.where = caller()
    if self.boundary.max_ops == 1 or (foreign is not None and not self.deferred):
        commit(self)
    return 0


cdef int record_kernel(CommandEncoder self, LoadedFunction function, const Geometry* geometry,
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
    cdef CommandEncoder encoder
    cdef dict counts = {}
    for each in _encoders.values():
        encoder = each if isinstance(each, CommandEncoder) else each()
        if encoder is None or encoder.state.ordinal != ordinal:
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


cdef int make_room(CommandEncoder self) except -1:
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


cdef int flush_homes(CommandEncoder self) except -1:
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


cdef int commit(CommandEncoder self) except -1:
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


cdef set homes_of(CommandEncoder self, list foreign):
    """The streams whose work on what a batch uses comes first: those that the producers named,
    the legacy one for what was handed out."""
    cdef StreamState* home
    cdef Block* block
    cdef set homes = set()
    for buffer in foreign:
        block = live_block(<Buffer>buffer)
        home = foreign_state(self.state.ordinal, NULL) if block.shared else block.home
        homes.add(<size_t>home)
    return homes


cdef int release_foreign(CommandEncoder self, list foreign) except -1:
    cdef set seen = set()
    cdef Block* block
    for buffer in foreign:
        block = live_block(<Buffer>buffer)
        if <size_t>block.home not in seen:
            seen.add(<size_t>block.home)
            end_use(<Buffer>buffer, self.state)
    return 0


cdef int launch(CommandEncoder self, Recording* recording, list foreign) except -1:
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
    return commit(<CommandEncoder>state.encoder)


cdef int look_back_state(StreamState* state) except -1:
    return look_back(<CommandEncoder>state.encoder)


cdef void end_encoder(StreamState* state) noexcept:
    detach(<CommandEncoder>state.encoder)


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


streams.commit_stream = commit_state
streams.look_back = look_back_state
streams.end_encoder = end_encoder
_table.suspects = _suspects
memories.record_copy = record_copy
_completion.after_each = commit_current
