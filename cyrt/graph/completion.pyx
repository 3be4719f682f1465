"""The completion thread."""

import threading
import time
from collections import deque
from functools import partial

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyObject_CallNoArgs(PyObject*)    # NULL: what it raised is set
    void PyErr_WriteUnraisable(PyObject*)
    void Py_XDECREF(PyObject*)

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport READY, cu, process
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef enum:
    SHORTEST = 20           # microseconds between two looks
    LONGEST = 1000

# The recorder puts these here. The first tells how far each recording is, before a handler is
# called; the second launches those that the handler added to.
recorded = None
launch_added = None
_wake = threading.Condition()
_queues = {}                # by stream: deque of Mark
_thread = None
cdef bint running = False   # a handler is being called


cdef class Mark:
    """An event behind a batch, and what to call when it is reached."""
    cdef CUevent event
    cdef int ordinal
    cdef unsigned int epoch
    cdef list handlers

    def __dealloc__(self):
        cdef int entered
        if self.event != NULL:
            entered = enter_quietly(self.ordinal, self.epoch)
            if entered >= 0:
                cu.cuEventDestroy(self.event)
            leave_quietly(entered)

    cdef bint reached(self) noexcept:
        return (self.event == NULL or process != READY or contexts[self.ordinal].epoch != self.epoch
                or cu.cuEventQuery(self.event) != CUDA_ERROR_NOT_READY)


cdef int call_after(StreamState* stream, list handlers) except -1:
    global _thread
    cdef Mark mark = Mark()
    cdef int entered
    if process != READY:        # a forked child, which has no thread for it
        return 0
    mark.ordinal, mark.epoch, mark.handlers = stream.ordinal, stream.epoch, handlers
    entered = enter_quietly(stream.ordinal, stream.epoch)
    # Where this fails, the device did and the batch with it: an event that was never recorded,
    # or none, is reached.
    if entered >= 0 and cu.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS:
        with nogil:             # it blocks where the driver's queue is full
            cu.cuEventRecord(mark.event, stream.handle)
        stream.put += 1
    leave_quietly(entered)
    with _wake:
        _queues.setdefault(<size_t>stream, deque()).append(mark)
        if _thread is None:
            thread = threading.Thread(target=_run, name="cyrt completion", daemon=True)
            thread.start()
            _thread = thread
        _wake.notify()
    return 0


cdef Mark next_reached():
    """The first mark of a stream that has been reached, taken from its queue."""
    cdef Mark mark
    for stream, queue in list(_queues.items()):
        mark = queue[0]
        if mark.reached():
            queue.popleft()
            if not queue:
                del _queues[stream]
            return mark
    return None


def _run():
    global running
    cdef unsigned int pause = SHORTEST
    cdef Mark mark
    while True:
        with _wake:
            while not _queues:
                _wake.wait()
            mark = next_reached()
            running = mark is not None
        if mark is None:
            with nogil:
                usleep(pause)
            pause = min(2 * pause, <unsigned int>LONGEST)
            continue
        pause = SHORTEST
        while mark.handlers:
            call(mark.handlers.pop(0))      # what a handler holds ends with its call
        mark = None
        running = False


cdef void call(handler) noexcept:
    cdef PyObject* result
    before = recorded()
    for function in (handler, partial(launch_added, before)):
        result = PyObject_CallNoArgs(<PyObject*>function)
        if result == NULL:
            PyErr_WriteUnraisable(<PyObject*>function)
        Py_XDECREF(result)


def drain(double seconds):
    """Wait until every handler has run, `seconds` at most."""
    end = time.monotonic() + seconds
    while process == READY and (_queues or running) and time.monotonic() < end \
            and threading.current_thread() is not _thread:
        time.sleep(0.0005)
