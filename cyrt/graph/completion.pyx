"""The thread that calls completion handlers."""

import threading
import time

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject* PyObject_CallNoArgs(PyObject*)    # NULL: an exception is set
    void PyErr_WriteUnraisable(PyObject*)
    void Py_XDECREF(PyObject*)

cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock, int wait)
    void PyThread_release_lock(PyThread_type_lock)

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

from cyrt.driver.capture_mode cimport event_status
from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport READY, cu, disturb, process
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef enum:
    SHORTEST = 20           # microseconds between two polls, at least and at most
    LONGEST = 1000

# A function that the recorder sets, which is called after each handler.
end_handler = None
cdef Mark first = None      # the first mark of some stream, which begins the list of all streams
_thread = None
cdef bint started = False   # whether the thread runs, or some thread is starting it
cdef bint present = False   # whether the thread has begun
cdef Mark current = None    # the mark whose handlers are being called
cdef bint asleep = False    # whether the thread waits for `wake`
cdef PyThread_type_lock wake = NULL     # held but for the moment in which the thread is woken


cdef class Mark:
    def __dealloc__(self):
        cdef int entered
        if self.event != NULL:
            entered = enter_quietly(self.ordinal, self.epoch)
            if entered >= 0:
                cu.cuEventDestroy(self.event)
            leave_quietly(entered)

    cdef bint reached(self) noexcept:
        return (self.event == NULL or process != READY or contexts[self.ordinal].epoch != self.epoch
                or event_status(self.event) != CUDA_ERROR_NOT_READY)


cdef int start() except -1:
    global started, wake
    if started or process != READY:     # a forked child has no completion thread
        return 0
    if wake == NULL:
        wake = PyThread_allocate_lock()
        if wake == NULL:
            raise MemoryError()
        PyThread_acquire_lock(wake, 1)
    started = True
    try:
        threading.Thread(target=_run, name="cyrt completion", daemon=True).start()
    except BaseException:       # an interruption, too, after which the thread may be there or not
        started = False
        raise
    return 0


cdef Mark new_mark(StreamState* stream):
    cdef Mark mark = Mark()
    cdef int entered
    mark.stream, mark.ordinal, mark.epoch = stream, stream.ordinal, stream.epoch
    # If a call fails, the device and the batch have failed, too: an event that was never recorded,
    # or does not exist, counts as reached.
    entered = enter_quietly(stream.ordinal, stream.epoch)
    if entered >= 0:
        cu.cuEventCreate(&mark.event, CU_EVENT_DISABLE_TIMING)
    leave_quietly(entered)
    return mark


cdef void call_when_ended(Mark mark, list handlers) noexcept:
    global asleep
    cdef int entered
    if process != READY:
        return
    mark.handlers = handlers
    if mark.event != NULL:
        entered = enter_quietly(mark.ordinal, mark.epoch)
        if entered >= 0:
            with nogil:         # the call blocks while the driver's queue is full
                cu.cuEventRecord(mark.event, mark.stream.handle)
            mark.stream.put += 1
        leave_quietly(entered)
    queue(mark)
    if asleep:
        asleep = False
        PyThread_release_lock(wake)


cdef void queue(Mark mark) noexcept:
    """Append a mark to those of its stream."""
    global first
    cdef Mark before = None
    cdef Mark found = first
    while found is not None and found.stream != mark.stream:
        before, found = found, found.other
    if found is not None:
        found.last.later = mark
        found.last = mark
        return
    mark.last = mark
    if before is None:
        first = mark
    else:
        before.other = mark


cdef Mark take_reached_mark():
    """Take the first mark of a stream if it was reached; None if there is none."""
    global first
    cdef Mark mark = first
    cdef Mark before = None
    cdef Mark following
    while mark is not None and not mark.reached():
        before, mark = mark, mark.other
    if mark is None:
        return None
    following = mark.later
    if following is None:
        following = mark.other
    else:
        following.last, following.other = mark.last, mark.other
    if before is None:
        first = following
    else:
        before.other = following
    mark.later = mark.last = mark.other = None
    return mark


cdef int sleep() except -1:
    """Sleep until a mark is queued."""
    global asleep
    asleep = True
    with nogil:
        PyThread_acquire_lock(wake, 1)
    return 0


def _run():
    global present, current, _thread
    cdef unsigned int pause = SHORTEST
    cdef Mark mark
    if present:             # it was started twice, since the first start was interrupted
        return
    present = True
    _thread = threading.current_thread()
    while True:
        if first is None:
            sleep()
        current = mark = take_reached_mark()
        if mark is None:
            with nogil:
                usleep(pause)
            pause = min(2 * pause, <unsigned int>LONGEST)
            continue
        pause = SHORTEST
        while mark.handlers:
            call(mark.handlers.pop(0))      # the handler is dropped after its call
        mark.handlers = None
        current = mark = None


cdef void call(handler) noexcept:
    global handling
    cdef PyObject* result
    handling = PyThread_get_thread_ident()
    disturb()
    for function in (handler, end_handler):
        result = PyObject_CallNoArgs(<PyObject*>function)
        if result == NULL:
            PyErr_WriteUnraisable(<PyObject*>function)
        Py_XDECREF(result)
    handling = 0


def drain(double seconds):
    """Wait until every handler has run that is queued now, for at most `seconds`.

    Returns
    -------
    bool
        Whether they have run.
    """
    cdef list awaited = [] if current is None else [current]    # other threads may queue more
    cdef Mark mark = first
    while mark is not None:
        awaited.append(mark.last)
        mark = mark.other
    end = time.monotonic() + seconds
    while process == READY and any([(<Mark>each).handlers is not None for each in awaited]):
        if time.monotonic() >= end:
            return False
        if threading.current_thread() is _thread:
            break
        time.sleep(0.0005)
    return True
