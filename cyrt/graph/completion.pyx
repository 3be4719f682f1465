"""The thread that calls completion handlers."""

import threading
import time
from collections import deque

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyObject_CallNoArgs(PyObject*)    # NULL: an exception is set
    void PyErr_WriteUnraisable(PyObject*)
    void Py_XDECREF(PyObject*)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport READY, cu, process
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef enum:
    SHORTEST = 20           # microseconds between two polls, at least and at most
    LONGEST = 1000

# A function that the recorder sets, which is called after each handler.
end_handler = None
_wake = threading.Condition()
_queues = {}                # a deque of Mark for each stream
_thread = None
cdef bint started = False   # whether the thread runs, or some thread is starting it
cdef bint running = False   # whether handlers are being called


cdef class Mark:
    """An event after a batch, and the handlers to call when it is reached."""
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


cdef int start() except -1:
    global started
    if started or process != READY:     # a forked child has no completion thread
        return 0
    started = True
    try:
        threading.Thread(target=_run, name="cyrt completion", daemon=True).start()
    except BaseException:       # an interruption, too, after which the thread may be there or not
        started = False
        raise
    return 0


cdef int call_when_ended(StreamState* stream, list handlers) except -1:
    cdef Mark mark = Mark()
    cdef int entered
    if process != READY:
        return 0
    mark.ordinal, mark.epoch, mark.handlers = stream.ordinal, stream.epoch, handlers
    entered = enter_quietly(stream.ordinal, stream.epoch)
    # If a call fails, the device and the batch have failed, too: an event that was never recorded,
    # or does not exist, counts as reached.
    if entered >= 0 and cu.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS:
        with nogil:             # the call blocks while the driver's queue is full
            cu.cuEventRecord(mark.event, stream.handle)
        stream.put += 1
    leave_quietly(entered)
    with _wake:
        _queues.setdefault(<size_t>stream, deque()).append(mark)
        _wake.notify()
    return 0


cdef Mark take_reached_mark():
    """Take a mark that was reached from the front of a stream's queue; None if there is none."""
    cdef Mark mark
    # Finalizers add to the dict, too, on this thread. None runs while a list of its keys is made:
    # that creates no object that the collector tracks, as a list of its items would.
    for stream in list(_queues):
        queue = _queues[stream]         # only this thread removes one
        mark = queue[0]
        if mark.reached():
            queue.popleft()
            if not queue:
                del _queues[stream]
            return mark
    return None


def _run():
    global running, _thread
    cdef unsigned int pause = SHORTEST
    cdef Mark mark
    with _wake:
        if _thread is not None:     # it was started twice, since the first start was interrupted
            return
        _thread = threading.current_thread()
    while True:
        with _wake:
            while not _queues:
                _wake.wait()
            mark = take_reached_mark()
            running = mark is not None
        if mark is None:
            with nogil:
                usleep(pause)
            pause = min(2 * pause, <unsigned int>LONGEST)
            continue
        pause = SHORTEST
        while mark.handlers:
            call(mark.handlers.pop(0))      # the handler is dropped after its call
        mark = None
        running = False


cdef void call(handler) noexcept:
    global handling
    cdef PyObject* result
    handling = PyThread_get_thread_ident()
    for function in (handler, end_handler):
        result = PyObject_CallNoArgs(<PyObject*>function)
        if result == NULL:
            PyErr_WriteUnraisable(<PyObject*>function)
        Py_XDECREF(result)
    handling = 0


def drain(double seconds):
    """Wait until every handler has run, for at most `seconds`."""
    end = time.monotonic() + seconds
    while process == READY and (_queues or running) and time.monotonic() < end \
            and threading.current_thread() is not _thread:
        time.sleep(0.0005)
