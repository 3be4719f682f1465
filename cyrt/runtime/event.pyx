"""Events: points in a stream to wait for, or to measure time between."""

from cyrt.driver.capture_mode cimport event_status, relax, restore
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport cu
from cyrt.runtime.device cimport (
    Device, context_of, enter, enter_quietly, leave, leave_quietly, ordinal_of,
)
from cyrt.runtime.pacing cimport wait_for_room
from cyrt.runtime.seam cimport graph
from cyrt.runtime.stream cimport Stream, stream_of
from cyrt.runtime.stream_state cimport flush
from cyrt.runtime.waiting cimport query_event, wait


cdef class Event:
    """Event(device=None, *, timing=True)\n--\n
    A point in the work of a stream, set by `record`.

    Parameters
    ----------
    device : Device or int, optional
        Default: the current device.
    timing : bool
        False creates an event that cannot measure time and costs a little less.

    Examples
    --------
    >>> import cyrt
    >>> begin = cyrt.Event().record()
    >>> x = cyrt.ones(1000) * 2
    >>> end = cyrt.Event().record()
    >>> begin.elapsed_time(end) >= 0  # milliseconds
    True
    """

    def __init__(self, device=None, *, bint timing=True):
        cdef int ordinal = ordinal_of(device)
        cdef unsigned int epoch = context_of(ordinal).epoch
        cdef int entered
        if self.handle != NULL:
            raise RuntimeError("an Event is initialised once")
        entered = enter(ordinal, epoch, b"cuEventCreate")
        leave(ordinal, entered,
              cu.cuEventCreate(&self.handle, CU_EVENT_DEFAULT if timing
                               else CU_EVENT_DISABLE_TIMING), b"cuEventCreate")
        self.ordinal = ordinal
        self.epoch = epoch
        self.timing = timing

    def __dealloc__(self):
        cdef int entered
        if self.handle != NULL:
            entered = enter_quietly(self.ordinal, self.epoch)
            if entered >= 0:
                cu.cuEventDestroy(self.handle)
                leave_quietly(entered)

    cdef int live(self) except -1:
        if self.handle == NULL:
            raise RuntimeError("the Event was not initialised")
        return 0

    @property
    def handle(self):
        """The ``CUevent``, as an int."""
        self.live()
        return <size_t>self.handle

    @property
    def device(self):
        """The device for which the event was created."""
        self.live()
        return Device(self.ordinal)

    def record(self, stream=None):
        """Record the event after the work that is on the stream now.

        Parameters
        ----------
        stream : Stream, optional
            A Stream or any object with ``__cuda_stream__``; default: the current stream.

        Returns
        -------
        Event
            This event.
        """
        cdef Stream target
        cdef CUresult result
        cdef int entered
        self.live()
        target = stream_of(stream, self.ordinal)
        if target.state.ordinal != self.ordinal:
            raise ValueError(f"the event is of device {self.ordinal}, the stream of device "
                             f"{target.state.ordinal}")
        flush(target.state, b"an event is recorded")
        wait_for_room(target.state)
        entered = enter(self.ordinal, self.epoch, b"cuEventRecord")
        with nogil:             # the call blocks while the driver's queue is full
            result = cu.cuEventRecord(self.handle, target.state.handle)
        target.state.put += 1
        leave(self.ordinal, entered, result, b"cuEventRecord")
        self.recorded = True
        return self

    def wait(self, stream=None):
        """Make all later work on the stream wait for the event.

        Parameters
        ----------
        stream : Stream, optional
            A stream of any device; default: the current stream.
        """
        self.live()
        self._make_wait(stream_of(stream, self.ordinal))

    def _make_wait(self, Stream later not None):
        cdef int entered
        self.live()
        flush(later.live(), b"later work waits for an event")
        wait_for_room(later.state)
        later.state.idle = False
        later.state.links += 1
        later.state.put += 1
        leave_quietly(enter(self.ordinal, self.epoch, b"cuStreamWaitEvent"))
        entered = enter(later.state.ordinal, later.state.epoch, b"cuStreamWaitEvent")
        leave(later.state.ordinal, entered,
              cu.cuStreamWaitEvent(later.state.handle, self.handle, 0), b"cuStreamWaitEvent")

    @property
    def done(self):
        """Whether the work before the event has finished; True if the event was never recorded."""
        cdef int entered
        cdef CUresult result
        self.live()
        entered = enter(self.ordinal, self.epoch, b"cuEventQuery")
        result = event_status(self.handle)
        if result == CUDA_ERROR_NOT_READY:
            leave_quietly(entered)
            return False
        leave(self.ordinal, entered, result, b"cuEventQuery")
        graph.release_all_ended()
        return True

    def synchronize(self):
        """Wait until the work before the event has finished. Ctrl-C ends the wait."""
        self.live()
        wait(self.ordinal, self.epoch, query_event, self.handle, b"cuEventQuery")
        graph.release_all_ended()

    def elapsed_time(self, Event end not None):
        """Return the milliseconds from this event to a later one, after waiting for both.

        Parameters
        ----------
        end : Event
            The later event, of the same device.

        Raises
        ------
        ValueError
            One of the events was created with ``timing=False`` or never recorded, or the events are
            of different devices.
        """
        cdef float milliseconds = 0
        cdef CUstreamCaptureMode before
        cdef CUresult result
        cdef int entered
        for name, event in (("the first event", self), ("the second event", end)):
            (<Event>event).live()
            if not (<Event>event).timing:
                raise ValueError(f"{name} was made with timing=False and cannot measure")
            if not (<Event>event).recorded:
                raise ValueError(f"{name} was never recorded")
        if self.ordinal != end.ordinal:
            raise ValueError(f"the events are of devices {self.ordinal} and {end.ordinal}; "
                             "only events of one device measure")
        self.synchronize()
        end.synchronize()
        entered = enter(self.ordinal, self.epoch, b"cuEventElapsedTime")
        before = relax()
        result = cu.cuEventElapsedTime(&milliseconds, self.handle, end.handle)
        restore(before)
        leave(self.ordinal, entered, result, b"cuEventElapsedTime")
        return milliseconds

    def __reduce__(self):
        raise TypeError("an Event belongs to this process and is not pickled")

    def __repr__(self):
        if self.handle == NULL:
            return "<cyrt.Event, not initialised>"
        return f"<cyrt.Event {<size_t>self.handle:#x} on device {self.ordinal}>"
