# C-level functions only: see submission.pxd.
"""Turns: one thread at a time puts work on a stream."""

from cpython.exc cimport PyErr_CheckSignals
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

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
cdef int waiters                    # number of threads that wait for a turn, or for its end


cdef long long now() noexcept:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec


cdef bint may_begin(const StreamState* stream) noexcept:
    return not stream.submitting and not (
        stream.waiting and stream.submitter == PyThread_get_thread_ident())


cdef bint try_submission(StreamState* stream) noexcept:
    if not may_begin(stream):
        return False
    stream.submitting = True
    stream.submitter = PyThread_get_thread_ident()
    stream.submissions += 1
    stream.idle = False
    return True


cdef void end_submission(StreamState* stream) noexcept:
    stream.submitting = False


cdef int prepare_to_sleep(StreamState* stream, unsigned int* naps) except -1:
    verify(stream.ordinal, stream.epoch, b"cuGraphLaunch")      # raises after a fork or a reset
    naps[0] += 1
    if naps[0] % NAPS == 0:
        PyErr_CheckSignals()
    return 0


cdef int sleep_briefly(StreamState* stream, unsigned int* naps) except -1:
    prepare_to_sleep(stream, naps)
    with nogil:
        usleep(NAP)
    return 0


cdef int sleep_as_waiter(StreamState* stream, unsigned int* naps, int turns) except -1:
    """Sleep briefly; `turns`: 1 if the thread waits for its turn, 0 if for the end of another's.

    The thread is counted until it has the GIL again, so that others take it into account. While it
    runs a signal handler it is not counted, so that the handler does not wait for it.
    """
    global waiters
    prepare_to_sleep(stream, naps)
    stream.waiting += turns
    waiters += 1
    with nogil:
        usleep(NAP)
    stream.waiting -= turns
    waiters -= 1
    return 0


cdef int refuse_own_turn(StreamState* stream) except -1:
    """Raise if this thread has the turn, which only a driver's or a tool's callback can cause."""
    if stream.submitting and stream.submitter == PyThread_get_thread_ident():
        raise RuntimeError("this thread is putting work on the stream just now: nothing can be "
                           "launched or waited for from inside a call of the driver's")
    return 0


cdef int wait_for_turn(StreamState* stream) except -1:
    cdef unsigned int naps = 0
    refuse_own_turn(stream)
    while not may_begin(stream):
        sleep_as_waiter(stream, &naps, 1)
    return 0


cdef int wait_for_submission(StreamState* stream) except -1:
    cdef unsigned int naps = 0
    cdef unsigned long long turn = stream.submissions
    refuse_own_turn(stream)
    while stream.submitting and stream.submissions == turn:
        sleep_as_waiter(stream, &naps, 0)
    return 0


cdef int let_pass(StreamState* stream, long long most) except -1:
    cdef unsigned int naps = 0
    cdef long long begun = now()
    while waiters and now() - begun < most:
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
        priority_begun = now()


cdef void release_priority() noexcept:
    global priority_thread
    if priority_thread == PyThread_get_thread_ident():
        priority_thread = 0
