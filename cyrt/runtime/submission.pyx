# C-level functions only: see submission.pxd.
"""Turns: one thread at a time puts work on a stream."""

from cpython.exc cimport PyErr_CheckSignals
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from cyrt.driver.table cimport disturb
from cyrt.runtime.device cimport verify
from cyrt.runtime.state cimport StreamState

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()

cdef enum:
    NAP = 20                # microseconds
    NAPS = 500              # naps between two checks for signals
    PATIENCE = 50_000_000   # nanoseconds in which other threads go first

cdef long long priority_begun       # when the thread that has priority got it


cdef long long now() noexcept:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec


cdef bint try_submission(StreamState* stream) noexcept:
    cdef unsigned long thread = PyThread_get_thread_ident()
    if stream.submitting or (stream.waiting and stream.submitter == thread):
        return False
    stream.submitting = True
    stream.submitter = thread
    stream.submissions += 1
    stream.idle = False
    return True


cdef void end_submission(StreamState* stream) noexcept:
    stream.submitting = False


cdef int sleep_briefly(StreamState* stream, unsigned int* naps) except -1:
    verify(stream.ordinal, stream.epoch, b"cuGraphLaunch")      # raises after a fork or a reset
    naps[0] += 1
    if naps[0] % NAPS == 0:
        PyErr_CheckSignals()
    with nogil:
        usleep(NAP)
    return 0


cdef int refuse_own_turn(StreamState* stream) except -1:
    """Raise if this thread has the turn, which only a driver's or a tool's callback can cause."""
    if stream.submitting and stream.submitter == PyThread_get_thread_ident():
        raise RuntimeError("this thread is putting work on the stream just now: nothing can be "
                           "launched or waited for from inside a call of the driver's")
    return 0


cdef int wait_for_turn(StreamState* stream) except -1:
    cdef unsigned int naps = 0
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef long long begun = now()
    refuse_own_turn(stream)
    stream.waiting += 1
    try:
        while stream.submitting or (stream.waiting > 1 and stream.submitter == thread):
            sleep_briefly(stream, &naps)
            if now() - begun > PATIENCE and not stream.submitting:
                stream.submitter = 0    # the other waiter may be this thread, in an outer call
    finally:
        stream.waiting -= 1
    return 0


cdef int wait_for_submission(StreamState* stream) except -1:
    cdef unsigned int naps = 0
    cdef unsigned long long turn = stream.submissions
    refuse_own_turn(stream)
    while stream.submitting and stream.submissions == turn:
        sleep_briefly(stream, &naps)
    return 0


cdef int yield_to_priority_thread(StreamState* stream) except -1:
    global priority_thread
    cdef unsigned int naps = 0
    while priority_thread != 0 and priority_thread != PyThread_get_thread_ident():
        if now() - priority_begun > PATIENCE:
            priority_thread = 0
        else:
            sleep_briefly(stream, &naps)
    return 0


cdef void request_priority() noexcept:
    global priority_thread, priority_begun
    if priority_thread == 0:
        priority_thread = PyThread_get_thread_ident()
        disturb()
        priority_begun = now()


cdef void release_priority() noexcept:
    global priority_thread
    if priority_thread == PyThread_get_thread_ident():
        priority_thread = 0
