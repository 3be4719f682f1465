"""Hazards on memory within one recording: read after write, write after write, write after read."""

from libc.stdlib cimport free, realloc

from cyrt.runtime.allocation cimport reallocate
from cyrt.runtime.state cimport Block, Hazard, StreamState


cdef bint pending(const Hazard* hazard) noexcept:
    """Return whether the recording that the state belongs to has not been committed."""
    return hazard.stream != NULL and hazard.stream.recording_epoch == hazard.epoch


cdef int make_current(Block* block, StreamState* stream) except -1:
    """Move this epoch's state into `block.hazard`, and another pending state into the list."""
    cdef unsigned long long epoch = stream.recording_epoch
    cdef Hazard own = block.hazard
    cdef int i, kept = 0
    for i in range(block.num_others):
        if block.others[i].epoch == epoch:
            block.hazard = block.others[i]
            block.others[i] = own
            return 0
    if not pending(&own):
        block.hazard.stream = stream
        block.hazard.epoch = epoch
        block.hazard.writer = -1
        block.hazard.num_readers = 0
        return 0
    for i in range(block.num_others):           # drop the states of committed recordings
        if pending(&block.others[i]):
            block.others[kept] = block.others[i]
            kept += 1
        else:
            free(block.others[i].readers)
    block.num_others = kept
    block.others = <Hazard*>reallocate(block.others, (kept + 1) * sizeof(Hazard))
    block.others[kept] = own
    block.num_others = kept + 1
    block.hazard.stream = stream
    block.hazard.epoch = epoch
    block.hazard.writer = -1
    block.hazard.num_readers = 0
    block.hazard.max_readers = 0
    block.hazard.readers = NULL
    return 0


cdef bint add_room(Hazard* hazard) noexcept:
    cdef int room = 2 * hazard.max_readers + 4
    cdef int* grown = <int*>realloc(hazard.readers, room * sizeof(int))
    if grown == NULL:
        return False
    hazard.readers = grown
    hazard.max_readers = room
    return True


cdef int grow_readers(Hazard* hazard) except -1:
    if not add_room(hazard):
        raise MemoryError()
    return 0
