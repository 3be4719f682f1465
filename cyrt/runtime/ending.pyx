"""Ends driver objects once no work in flight can use them."""

from libc.stdlib cimport free, malloc

from cyrt.driver.cuda cimport *
from cyrt.driver.table cimport MAX_DEVICES, cu
from cyrt.runtime cimport stream as _stream
from cyrt.runtime.device cimport contexts, enter_quietly, leave_quietly
from cyrt.runtime.state cimport StreamState

cdef struct Doomed:
    End end
    size_t handle
    unsigned int epoch
    Doomed* next

cdef Doomed* doomed[MAX_DEVICES]


cdef bint is_idle(int ordinal) noexcept:
    cdef StreamState* state = _stream.states[ordinal]
    cdef CUresult result
    while state != NULL:
        result = CUDA_SUCCESS
        # What is recorded may use it; a query would invalidate a capture.
        if state.pending or state.submitting or state.capturing:
            return False
        if state.owned or state.users > 0:
            result = cu.cuStreamQuery(state.handle)
        elif state.ended and state.marker != NULL:
            result = cu.cuEventQuery(state.marker)
        if result == CUDA_ERROR_NOT_READY:
            return False
        state = state.next
    return True


cdef void end_when_idle(int ordinal, unsigned int epoch, End end, size_t handle) noexcept:
    cdef Doomed* entry = <Doomed*>malloc(sizeof(Doomed))
    if entry == NULL:
        return
    entry.end = end
    entry.handle = handle
    entry.epoch = epoch
    entry.next = doomed[ordinal]
    doomed[ordinal] = entry
    sweep(ordinal)


cdef void sweep(int ordinal) noexcept:
    cdef Doomed* taken
    cdef Doomed* entry
    cdef int entered
    if doomed[ordinal] == NULL:
        return
    entered = enter_quietly(ordinal, contexts[ordinal].epoch)
    if entered < 0:
        return
    if is_idle(ordinal):
        taken = doomed[ordinal]         # ending releases the GIL, and more may come meanwhile
        doomed[ordinal] = NULL
        while taken != NULL:
            entry = taken
            taken = entry.next
            if entry.epoch == contexts[ordinal].epoch:
                with nogil:
                    entry.end(entry.handle)
            free(entry)
    leave_quietly(entered)


_stream.on_idle = sweep
