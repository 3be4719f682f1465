"""The command encoder: what the user records operations with."""

import weakref
from contextlib import contextmanager

from cpython.mem cimport PyMem_Free, PyMem_Malloc

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt.driver.cuda cimport *
from cyrt.graph cimport boundary as boundaries, recorder as recorders
from cyrt.graph import recorder as _recorder
from cyrt.graph.child cimport (
    ChildGraph, begin_capture, copy_graph, discard_capture, end_capture,
)
from cyrt.graph.plan import held as _held
from cyrt.graph.commit cimport Recorder, commit
from cyrt.graph.commit import encoders
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.recording cimport CHILD, Operation, Use
from cyrt.graph.seam cimport kernels
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.event cimport Event
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport Memory, copy_memory, fill_memory, live_block
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.state cimport READ, WRITE
from cyrt.runtime.stream cimport Stream, current_state, stream_of, stream_over
from cyrt.runtime.stream_state cimport refuse_captured
from cyrt.runtime.waiting cimport wait_state


cdef int positive(value, str what) except -1:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected an int, got {type(value).__name__}")
    if not 1 <= value.__index__() < 1 << 31:
        raise ValueError(f"{what}: expected a number of at least 1, got {value}")
    return value


cdef class CommandEncoder(Recorder):
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
                and (<Recorder>target.state.encoder).stream_ is not None:
            raise ValueError("another CommandEncoder was made for the stream")
        if graphs is not None and not isinstance(graphs, bool):
            raise TypeError(f"graphs: expected a bool, got {type(graphs).__name__}")
        if max_ops is not None:
            most_ops = positive(max_ops, "max_ops")
        if max_mb is not None:
            self.max_bytes = <size_t>positive(max_mb, "max_mb") << 20
        recorders.attach(self, target.state, graphs)
        self.stream_ = target
        self.deferred = 1           # its user commits
        encoders[<size_t>self.state] = weakref.ref(self)
        if most_ops and self.boundary.max_ops > 1:
            boundaries.set_limit(&self.boundary, most_ops)

    def __del__(self):
        if self.stream_ is not None and not self.closed:
            recorders.detach(self)

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
        kernels.add_kernel(self, kernel, grid, block, args, smem, cluster, cooperative, reads,
                           writes)

    def add_memcpy(self, dst, src):
        """Record a copy of all bytes; host memory is read, or filled, when the call returns.

        Parameters
        ----------
        dst, src : Buffer, array of another library, or buffer-protocol object
            Of one size; one of them a Buffer, or an array of cyrt's that is contiguous.
        """
        self.own()
        if isinstance(dst, Memory):
            copy_memory(<Memory>dst, src, self.stream, outward=False)
        elif isinstance(src, Memory):
            copy_memory(<Memory>src, dst, self.stream, outward=True)
        else:
            raise TypeError("add_memcpy: expected a Buffer as dst or src, got "
                            f"{type(dst).__name__} and {type(src).__name__}")

    def add_memset(self, buffer, value):
        """Record ``buffer.fill(value)``.

        Parameters
        ----------
        buffer : Buffer or contiguous array
        value : int or NumPy scalar
            An int of 0 to 255 fills bytes; a scalar of 1, 2 or 4 bytes repeats its bytes.
        """
        self.own()
        if not isinstance(buffer, Memory):
            raise TypeError(f"add_memset: expected a Buffer, got {type(buffer).__name__}")
        fill_memory(<Memory>buffer, value, self.stream)

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
        while self.state.pending or self.state.submitting:
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
        """Inside, kernels are not ordered among themselves; what follows waits for all.

        By the memory they use, operations of arrays are ordered after earlier ones, and kernels
        after these. What a kernel inside writes is there behind the block.

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
            recorders.join_group(self)
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
            recorders.detach(self)

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
        if not (isinstance(each, Memory) or hasattr(each, "__cuda_array_interface__")
                or hasattr(each, "__dlpack__")):
            raise TypeError(f"{what}: expected Buffers and arrays, got one {type(each).__name__}")
    return tuple(buffers)


cdef list buffers_of(buffers, str what, bint write):
    if buffers is None:
        return None
    return [each if isinstance(each, Memory) else as_buffer(each, write)
            for each in checked_buffers(buffers, what)]


cdef int uses_of(CommandEncoder self, list buffers, str what, bint write, Use* uses,
                 list foreign) except -1:
    cdef int i = 0
    for buffer in buffers:
        uses[i].block = live_block(<Memory>buffer)
        uses[i].access = WRITE if write else READ
        if uses[i].block.ordinal != self.state.ordinal:
            raise ValueError(f"{what}: a Buffer is of device {uses[i].block.ordinal}, the encoder "
                             f"of device {self.state.ordinal}")
        if is_outside(uses[i].block):
            foreign.append(buffer)
        i += 1
    return i


cdef int add_child(CommandEncoder self, ChildGraph child, list reads, list writes) except -1:
    cdef Operation operation = Operation(
        CHILD, 0, NULL, NULL, child.shape, NULL, NULL, NULL, 0, <void*>child)
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
        recorders.record(self, &operation, uses, count, foreign or None,
               reads is None and writes is None)
    finally:
        PyMem_Free(uses)
    return 0


_recorder.encoder_class = CommandEncoder
