"""The command encoder, by which users record operations."""

import weakref
from contextlib import ContextDecorator
from functools import wraps

from cpython.mem cimport PyMem_Free, PyMem_Malloc

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

from cyrt.driver.cuda cimport *
from cyrt.driver.errors import CudaError
from cyrt.graph cimport completion, recorder as recorders
from cyrt.graph.child cimport (
    ChildGraph, begin_capture, copy_graph, discard_capture, end_capture,
)
from cyrt.graph import fusion
from cyrt.graph.plan_cache import cache_size
from cyrt.graph.template import count_templates
from cyrt.graph.commit cimport Recorder, commit, num_recorded
from cyrt.graph.commit import encoders
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.recording cimport CHILD, Operation, Use
from cyrt.graph.scope cimport Scope, close_scope, innermost, open_scope
from cyrt.kernels.encoding cimport record_launch
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.event cimport Event
from cyrt.runtime.integers cimport as_int
from cyrt.runtime.interop cimport as_buffer
from cyrt.runtime.memory cimport Memory, copy_memory, fill_memory, live_block
from cyrt.runtime.outside cimport is_outside
from cyrt.runtime.state cimport READ, WRITE
from cyrt.runtime.stream cimport Stream, current_state, stream_of, stream_over
from cyrt.runtime.stream_state cimport refuse_captured
from cyrt.runtime.waiting cimport wait_state


class _Block(ContextDecorator):
    """A compiled replacement of the context managers of `contextlib.contextmanager`. No signal
    handler runs while it begins or ends a block, so that no signal can leave a block open."""

    def __init__(self, function, arguments, options):
        self.made_of = function, arguments, options
        self.generator = function(*arguments, **options)
        self.begun = False

    def _recreate_cm(self):
        return _Block(*self.made_of)        # a decorated function has a block for each call

    def __enter__(self):
        if self.begun:
            raise RuntimeError("a block begins once: call the function again")
        self.begun = True
        return next(self.generator)

    def __exit__(self, kind, error, traceback):
        if not self.begun:
            raise RuntimeError("a block ends after it has begun: write `with` before it")
        if error is None:
            next(self.generator, None)
            return
        try:
            self.generator.throw(error)
        except BaseException as raised:
            if raised is not error and raised.__cause__ is not error:   # a StopIteration's is
                raise
            error.__traceback__ = traceback


def block(function):
    """Make a function that returns blocks from a generator function; the generator must raise again
    what was raised inside the block."""
    @wraps(function)
    def begin(*arguments, **options):
        return _Block(function, arguments, options)

    return begin


cdef int positive(value, str what) except -1:
    number = as_int(value)
    if number is None:
        raise TypeError(f"{what}: expected an int, got {type(value).__name__}")
    if not 1 <= number < 1 << 31:
        raise ValueError(f"{what}: expected a number of at least 1, got {value}")
    return number


cdef class CommandEncoder(Recorder):
    """CommandEncoder(stream=None, *, max_ops=None, max_mb=None, graphs=None)\n--\n
    A recorder of operations for one stream, which launches them as CUDA graphs.

    ``kernel[grid, block](...)`` records on the current encoder, the encoder of the thread's current
    stream. This class creates another encoder, which is current inside ``with encoder.stream:``.
    The memory that operations read and write decides which of them wait for which. A batch is
    launched by :meth:`commit`, when it reaches a limit, and when its results are needed. Only the
    thread that created the encoder may use it; the encoder that :func:`cyrt.current_encoder`
    returns may be used by every thread that calls that function.

    Parameters
    ----------
    stream : Stream, optional
        The stream whose operations the encoder records; default: a new stream.
    max_ops : int, optional
        The maximum number of operations in a batch (default: ``CYRT_MAX_OPS_PER_GRAPH``).
    max_mb : int, optional
        The maximum memory that a batch uses, in MB, each block counted once (default:
        ``CYRT_MAX_MB_PER_GRAPH``).
    graphs : bool, optional
        False launches each operation immediately, without a graph (default: ``CYRT_GRAPHS``).

    Raises
    ------
    ValueError
        The stream has another CommandEncoder, or a limit is below 1.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.zeros(3)
    >>> with cyrt.CommandEncoder() as encoder:
    ...     encoder.add_memset(x, 1)
    >>> x.view("uint8")[:2]
    Array([1, 1], dtype=uint8)
    """

    def __init__(self, stream=None, *, max_ops=None, max_mb=None, graphs=None):
        cdef Stream target = stream_of(stream, current_ordinal()) if stream is not None \
            else Stream()
        cdef int most_ops = 0
        if self.state != NULL:
            raise RuntimeError("a CommandEncoder is initialised once")
        if graphs is not None and not isinstance(graphs, bool):
            raise TypeError(f"graphs: expected a bool, got {type(graphs).__name__}")
        if max_ops is not None:
            most_ops = positive(max_ops, "max_ops")
        if max_mb is not None:
            self.max_bytes = <size_t>positive(max_mb, "max_mb") << 20
        recorders.attach(self, target.live(), graphs, most_ops)
        self.stream_ = target
        self.deferred = 1           # the user commits, not each use of other libraries' memory
        encoders[<size_t>self.state] = weakref.ref(self)

    def __del__(self):
        if self.stream_ is not None and not self.closed:
            recorders.detach(self)

    cdef int own(self) except -1:
        if self.closed:
            raise RuntimeError("the CommandEncoder is closed")
        if self.state == NULL:
            raise RuntimeError("the CommandEncoder was not initialised")
        if self.thread != 0 and self.thread != PyThread_get_thread_ident():
            raise RuntimeError("the CommandEncoder belongs to another thread")
        return 0

    @property
    def stream(self):
        """The stream on which the batches are launched."""
        if self.state == NULL:
            raise RuntimeError("the CommandEncoder is closed")
        return self.stream_ if self.stream_ is not None else stream_over(self.state)

    @property
    def num_ops(self):
        """The number of operations recorded since the last commit."""
        return num_recorded(self)

    def add_kernel(self, kernel, grid, block, args=(), *, smem=0, cluster=None, cooperative=False,
                   reads=None, writes=None):
        """Record the launch of a kernel.

        Parameters
        ----------
        kernel : Kernel or TritonKernel
        grid, block : int or tuple of up to three ints
            Blocks in the grid, threads in a block; x first. For a TritonKernel, `grid` is that of
            ``kernel[grid]``, and `block` is None, because Triton has chosen it.
        args : tuple or list
            An argument for each parameter, as in ``kernel[grid, block](*args)``.
        smem : int
            Bytes of dynamic shared memory.
        cluster : int or tuple of up to three ints, optional
            Blocks in a cluster; the grid must be a multiple of the cluster. Clusters need compute
            capability 9.0.
        cooperative : bool
            Whether all blocks run at the same time and may synchronise with each other.
        reads, writes : sequence of Buffer or array, optional
            The memory that the kernel reads, and the memory that it writes. `reads` replaces the
            reads that follow from the kernel's signature, and `writes` replaces its writes. Memory
            behind pointers inside structs and behind ``T**`` has to be named here: a kernel with
            such parameters and without both lists waits for all operations before it, and all later
            operations wait for it.

        Raises
        ------
        TypeError, ValueError
            An argument does not match its parameter, a cooperative grid has more blocks than can
            run at the same time, the grid is not a multiple of the cluster, or the device has no
            clusters.

        Examples
        --------
        >>> import cyrt
        >>> code = 'extern "C" __global__ void bump(float* x) { x[threadIdx.x] += 1; }'
        >>> bump, x = cyrt.Kernel(code, "bump"), cyrt.zeros(3)
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_kernel(bump, 1, 3, (x,))
        >>> x
        Array([1., 1., 1.], dtype=float32)
        """
        self.own()
        record_launch(self, kernel, grid, block, args, smem, cluster, cooperative, reads, writes)

    def add_memcpy(self, dst, src, *, bint blocking=True):
        """Record a copy of all bytes of `src` to `dst`.

        Parameters
        ----------
        dst, src : Buffer, array of another library, or buffer-protocol object
            Target and source, of equal size; one of them is a Buffer or a contiguous cyrt array.
        blocking : bool
            Whether the call returns only after host memory has been read or written. With False it
            returns immediately, as :meth:`Buffer.copy_from` describes.

        Raises
        ------
        TypeError, ValueError
            Neither is a Buffer or a cyrt array, the sizes differ, the memory is not contiguous, or
            `blocking` is False and the host memory is pageable.

        Examples
        --------
        >>> import cyrt
        >>> import numpy as np
        >>> x = cyrt.zeros(3)
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_memcpy(x, np.ones(3, np.float32))
        >>> x
        Array([1., 1., 1.], dtype=float32)
        """
        self.own()
        if isinstance(dst, Memory):
            copy_memory(<Memory>dst, src, self.stream, False, blocking)
        elif isinstance(src, Memory):
            copy_memory(<Memory>src, dst, self.stream, True, blocking)
        else:
            raise TypeError("add_memcpy: expected a Buffer as dst or src, got "
                            f"{type(dst).__name__} and {type(src).__name__}")

    def add_memset(self, buffer, value):
        """Record a fill of memory with a pattern, as :meth:`Buffer.fill` does it.

        Parameters
        ----------
        buffer : Buffer or contiguous array
            The memory.
        value : int or NumPy scalar
            An int from 0 to 255 is written into each byte. The bytes of a NumPy scalar of 1, 2 or 4
            bytes are repeated.

        Raises
        ------
        TypeError
            `buffer` is neither a Buffer nor a cyrt array.
        ValueError
            The int is out of range, the scalar has another size, or the size or the address of the
            memory is not a multiple of the scalar's size.
        """
        self.own()
        if not isinstance(buffer, Memory):
            raise TypeError(f"add_memset: expected a Buffer, got {type(buffer).__name__}")
        fill_memory(<Memory>buffer, value, self.stream)

    def add_graph(self, child, *, reads=None, writes=None):
        """Record a graph of another library as one node.

        Parameters
        ----------
        child : int or object
            A ``CUgraph`` handle, or an object whose ``int(child)`` or ``child.handle`` is one. The
            graph is copied during the call: later changes of it have no effect.
        reads, writes : sequence of Buffer or array, optional
            The memory that the graph reads and writes. Without both lists, the node waits for all
            operations before it, and all later operations wait for it.

        Raises
        ------
        CudaError
            The handle is not a graph, or the graph cannot be a child (it has allocation nodes, for
            example).
        """
        cdef size_t handle = graph_handle(child)
        self.own()
        refuse_captured(self.state)
        reading, writing = buffers_of(reads, "reads", False), buffers_of(writes, "writes", True)
        try:
            copied = copy_graph(self.state.ordinal, self.state.epoch, <CUgraph>handle)
        except CudaError as error:
            if error.call == "cuGraphClone":
                error.detail = f"add_graph: {handle:#x} is not a CUgraph handle"
            raise
        add_child(self, copied, reading, writing)

    @block
    def capture(self, *, reads=None, writes=None):
        """Record the work that other libraries put on ``encoder.stream`` inside the block.

        The work becomes one node. If the block raises an exception, the work is discarded. The
        encoder records nothing else inside the block.

        Parameters
        ----------
        reads, writes : sequence of Buffer or array, optional
            The memory that the work reads and writes; the lists are read at the end of the block.
            Without both lists, the node waits for all operations before it, and all later
            operations wait for it.

        Yields
        ------
        Stream
            The encoder's stream.

        Raises
        ------
        RuntimeError
            A capture or ``concurrent()`` is open already, or nothing was put on the stream.
        CudaError
            A call that is not allowed during a capture made the capture invalid.
        """
        cdef ChildGraph child
        self.own()
        if self.state.capturing:
            raise RuntimeError("capture: one is open on the encoder already")
        if self.groups_open and innermost(self, True) != NULL:
            raise RuntimeError("capture: not inside concurrent()")
        checked_buffers(reads, "reads")
        checked_buffers(writes, "writes")
        # An error that is kept is raised now: at the block's end, what was captured would be lost.
        while self.state.pending or self.state.submitting or self.state.failed:
            commit(self.state, b"a capture begins")
        begin_capture(self.state, CU_STREAM_CAPTURE_MODE_RELAXED)
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

    @block
    def concurrent(self):
        """Record the kernels of the block without an order between them.

        Operations after the block wait for all of its kernels. Inside the block, kernels and
        operations on arrays still wait for earlier operations on arrays that use the same memory.
        What a kernel of the block writes is valid only after the block.

        The block belongs to the thread that opens it, and within the thread to the context
        (PEP 567). Operations that other threads or tasks record on the stream meanwhile wait for
        the kernels that the block has recorded, and kernels that the block records later wait for
        these operations. This is also true for kernels of a ``concurrent()`` block of another
        thread or task.

        Yields
        ------
        CommandEncoder
            The encoder.

        Raises
        ------
        RuntimeError
            The caller is inside a ``concurrent()`` block of the encoder already.

        Examples
        --------
        >>> import cyrt
        >>> code = 'extern "C" __global__ void bump(float* x) { x[threadIdx.x] += 1; }'
        >>> bump, x, y = cyrt.Kernel(code, "bump"), cyrt.zeros(3), cyrt.zeros(3)
        >>> with cyrt.CommandEncoder() as encoder:
        ...     with encoder.concurrent():
        ...         encoder.add_kernel(bump, 1, 3, (x,))
        ...         encoder.add_kernel(bump, 1, 3, (y,))
        >>> y
        Array([1., 1., 1.], dtype=float32)
        """
        cdef Scope scope
        self.own()
        if self.groups_open and innermost(self, True) != NULL:
            raise RuntimeError("concurrent: one is open on the encoder already")
        scope = open_scope(self, True)
        try:
            yield self
        finally:
            recorders.leave_group(self, <void*>scope)
            close_scope(scope)

    def record(self, event):
        """Launch the recorded operations, and let an event mark their end.

        Parameters
        ----------
        event : Event
            The event: it is reached when the operations have finished.

        Examples
        --------
        >>> import cyrt
        >>> x, event = cyrt.zeros(3), cyrt.Event()
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_memset(x, 0)
        ...     encoder.record(event)
        >>> event.done  # the end of the block has waited
        True
        """
        self.own()
        checked_event(event).record(self.stream)

    def wait(self, event):
        """Launch the recorded operations, and make later operations wait for an event.

        Parameters
        ----------
        event : Event
            An event that a stream of any device has recorded.

        Examples
        --------
        >>> import cyrt
        >>> x, event = cyrt.ones(3), cyrt.Event().record()
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.wait(event)
        ...     encoder.add_memset(x, 0)
        >>> x
        Array([0., 0., 0.], dtype=float32)
        """
        self.own()
        checked_event(event).wait(self.stream)

    def keep(self, obj):
        """Keep an object alive until the batch that is being recorded has finished.

        Parameters
        ----------
        obj : object
            The object, such as the owner of memory that the operations use.

        Examples
        --------
        >>> import cyrt
        >>> owner = cyrt.Buffer(16)
        >>> view = cyrt.pointer(owner.ptr, 16)  # it does not keep its owner alive
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_memset(view, 0)
        ...     encoder.keep(owner)
        """
        self.own()
        recorders.keep(self, obj)

    def add_completed_handler(self, handler):
        """Call a function when the batch that is being recorded has finished or failed.

        The handlers of a stream run in order, on a thread that cyrt starts. An exception of a
        handler is passed to ``sys.unraisablehook``. Operations that the handler itself records, on
        any stream and device, are launched when it returns.

        Parameters
        ----------
        handler : callable
            A function without arguments.

        Raises
        ------
        TypeError
            `handler` is not callable.

        Examples
        --------
        >>> import threading
        >>> import cyrt
        >>> x, finished = cyrt.zeros(3), threading.Event()
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_memset(x, 0)
        ...     encoder.add_completed_handler(finished.set)
        >>> finished.wait(60)
        True
        """
        self.own()
        if not callable(handler):
            raise TypeError(f"add_completed_handler: expected a callable, got "
                            f"{type(handler).__name__}")
        completion.start()
        if self.handlers is None:
            self.handlers = []
        self.handlers.append(handler)
        recorders.mark_pending(self)

    def commit(self):
        """Launch the recorded operations as one batch; do nothing if there are none.

        Examples
        --------
        >>> import cyrt
        >>> x, encoder = cyrt.zeros(3), cyrt.CommandEncoder()
        >>> encoder.add_memset(x, 0)
        >>> encoder.num_ops
        1
        >>> encoder.commit()
        >>> encoder.num_ops
        0
        >>> encoder.close()
        """
        self.own()
        commit(self.state, b"commit()")

    def synchronize(self):
        """Launch the recorded operations, and wait until all work on the stream has finished.

        Raises
        ------
        CudaError
            Work on the device failed.

        Examples
        --------
        >>> import cyrt
        >>> x, encoder = cyrt.zeros(3), cyrt.CommandEncoder()
        >>> encoder.add_memset(x, 0)
        >>> encoder.synchronize()
        >>> encoder.stream.done
        True
        >>> encoder.close()
        """
        self.own()
        wait_state(self.state)

    def close(self):
        """Launch the recorded operations, wait for them, and detach the encoder from the stream.

        The end of a block ``with encoder:`` does this. A second call has no effect.

        Raises
        ------
        ValueError
            The encoder was created by the stream, not by the user.

        Examples
        --------
        >>> import cyrt
        >>> encoder = cyrt.CommandEncoder()
        >>> encoder.close()
        >>> encoder.commit()
        Traceback (most recent call last):
        RuntimeError: the CommandEncoder is closed
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
        """Return the plan of the last batch.

        Returns
        -------
        Plan or None
            None if no batch was launched as a graph.

        Examples
        --------
        >>> import cyrt
        >>> x = cyrt.zeros(3)
        >>> with cyrt.CommandEncoder() as encoder:
        ...     for _ in range(2):
        ...         encoder.add_memset(x, 0)
        ...         encoder.commit()
        >>> len(encoder.last_plan().nodes)
        1
        """
        return self.plan

    def stats(self):
        """Return counts since the encoder was created.

        Returns
        -------
        dict
            The counts of this encoder:

            - ``operations`` that were recorded, and ``commits``;
            - ``hits`` and ``misses`` of the plan cache, and ``evictions`` from it;
            - ``chained``: commits that ran in order, by graphs that all topologies share, because
              their topology was seen for the first time;
            - ``instantiations`` and ``launches`` of graphs, and the nodes that were ``patched``;
            - ``repoints``: calls of libraries that were recorded as kernels;
            - ``opaque_captures``: calls of libraries that are captured each time;
            - ``early_loads``: operations that may load their weights while the operations before
              them still run;
            - ``replayed``: operations that were compared with an earlier batch, and not recorded
              again;
            - ``fused_plans``: launches of a fused plan instead of a batch's own graph;
              ``fused_nodes``: the operations that ran within its kernels; ``bytes_saved``: the
              bytes that these kernels did not have to read or write.

            The counts of all encoders together:

            - ``plans`` in the cache, and ``bytes_held`` by their graphs and the shared ones;
            - ``hot_plans``: batches that were launched often enough to be compiled;
              ``rejected_plans``: those of them that are not fused (``Plan.fusion`` has the reason);
            - ``templates`` of calls of libraries.

        Examples
        --------
        >>> import cyrt
        >>> x = cyrt.zeros(3)
        >>> with cyrt.CommandEncoder() as encoder:
        ...     encoder.add_memset(x, 0)
        >>> encoder.stats()["operations"], encoder.stats()["commits"]
        (1, 1)
        """
        count, held = cache_size()
        hot, rejected = fusion.counts()
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
            "repoints": self.repoints,
            "opaque_captures": self.opaque_captures,
            "early_loads": self.num_early_loads,
            "replayed": self.replay.operations,
            "fused_plans": self.stats_.fused_plans,
            "fused_nodes": self.stats_.fused_nodes,
            "bytes_saved": self.stats_.bytes_saved,
            "hot_plans": hot,
            "rejected_plans": rejected,
            "plans": count,
            "bytes_held": held,
            "templates": count_templates(),
        }

    def __reduce__(self):
        raise TypeError("a CommandEncoder belongs to this process and is not pickled")

    def __repr__(self):
        return (f"<cyrt.CommandEncoder {'closed' if self.closed else 'with'}"
                f"{'' if self.closed else f' {num_recorded(self)} operations recorded'}>")


def current_encoder():
    """Return the encoder of this thread's current stream.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.ones(3) + 1
    >>> cyrt.current_encoder().stats()["operations"] > 0
    True
    """
    cdef CommandEncoder encoder = encoder_of(current_state(current_ordinal()))
    if encoder.stream_ is None and encoder.thread != PyThread_get_thread_ident():
        encoder.thread = 0
    return encoder


@block
def batch():
    """Record the operations of the block as one batch, which is launched at its end.

    Work on other libraries' memory is launched at the end of the block, too, not after each
    operation. What was recorded before the block is launched first. A block of at most
    ``CYRT_MAX_OPS_PER_GRAPH`` operations is one batch; a longer block is divided at that limit, and
    its remaining operations are divided like those outside of blocks. A batch ends earlier if it
    reaches the limit of memory, at a ``commit()``, and when something needs the recorded work: a
    read of values, a copy between host and device, an event, a read of an address or of a stream's
    handle, or another stream or thread.

    The block belongs to the thread that opens it, and within the thread to the context (PEP 567).
    It does not apply to other threads and tasks that record on the same stream.

    Yields
    ------
    CommandEncoder
        The current encoder.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.zeros(3)
    >>> with cyrt.batch():
    ...     for _ in range(10):
    ...         x += 1
    >>> x
    Array([10., 10., 10.], dtype=float32)
    """
    cdef CommandEncoder encoder = current_encoder()
    cdef Scope scope
    if num_recorded(encoder):
        commit(encoder.state, b"a batch() block begins")
    scope = open_scope(encoder, False)
    try:
        yield encoder
    finally:
        close_scope(scope)
        commit(encoder.state, b"the batch() block ends")


def concurrent():
    """Return ``current_encoder().concurrent()``.

    Examples
    --------
    >>> import cyrt
    >>> bump = cyrt.Kernel('extern "C" __global__ void bump(int* x) { x[0] += 1; }', "bump")
    >>> parts = [cyrt.zeros(1, dtype="int32") for _ in range(4)]
    >>> with cyrt.concurrent():
    ...     for part in parts:
    ...         bump[1, 1](part)
    >>> parts[3]
    Array([1], dtype=int32)
    """
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
        raise ValueError(f"add_graph: {value:#x} is not a CUgraph handle")
    return value


cdef tuple checked_buffers(buffers, str what):
    """Return a checked copy of the list, which the caller may change later."""
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
        CHILD, 0, NULL, NULL, child.shape, NULL, NULL, NULL, 0, <void*>child, NULL, 0,
        NULL)
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
