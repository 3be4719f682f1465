"""Hazards on memory within one recording: read after write, write after write, write after read."""

from libc.stdlib cimport free, realloc

from cyrt.graph.recording cimport Recording, Use, add_edge
from cyrt.runtime.state cimport READ, Block, Hazard, StreamState


cdef bint pending(const Hazard* hazard) noexcept:
    """Return whether the recording that the state belongs to has not been committed."""
    return hazard.stream != NULL and hazard.stream.recording_epoch == hazard.epoch


cdef int make_current(Block* block, unsigned long long epoch) except -1:
    """Move this epoch's state into `block.hazard`, and another pending state into the list."""
    cdef Hazard own = block.hazard
    cdef Hazard* grown
    cdef int i, kept = 0
    for i in range(block.num_others):
        if block.others[i].epoch == epoch:
            block.hazard = block.others[i]
            block.others[i] = own
            return 0
    if not pending(&own):
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
    grown = <Hazard*>realloc(block.others, (kept + 1) * sizeof(Hazard))
    if grown == NULL:
        raise MemoryError()
    block.others = grown
    block.others[kept] = own
    block.num_others = kept + 1
    block.hazard.epoch = epoch
    block.hazard.writer = -1
    block.hazard.num_readers = 0
    block.hazard.max_readers = 0
    block.hazard.readers = NULL
    return 0


cdef int prepare(const Use* uses, int count, StreamState* stream, size_t* bytes) except -1:
    cdef int i, room, edges = 0
    cdef Block* block
    cdef int* grown
    for i in range(count):
        block = uses[i].block
        if block.hazard.epoch != stream.recording_epoch:
            make_current(block, stream.recording_epoch)
            block.hazard.stream = stream
            bytes[0] += block.size
        if block.hazard.num_readers + 2 > block.hazard.max_readers:
            room = 2 * block.hazard.max_readers + 4
            grown = <int*>realloc(block.hazard.readers, room * sizeof(int))
            if grown == NULL:
                raise MemoryError()
            block.hazard.readers = grown
            block.hazard.max_readers = room
        edges += 1 + block.hazard.num_readers
    return edges


cdef void depend(Recording* recording, const Use* uses, int count) noexcept:
    cdef int i, j
    cdef Hazard* hazard
    for i in range(count):
        hazard = &uses[i].block.hazard
        add_edge(recording, hazard.writer)
        if uses[i].access != READ:
            for j in range(hazard.num_readers):
                add_edge(recording, hazard.readers[j])


cdef void note(const Use* uses, int count, int node) noexcept:
    cdef int i
    cdef Hazard* hazard
    for i in range(count):
        hazard = &uses[i].block.hazard
        if uses[i].access != READ:
            hazard.writer = node
            hazard.num_readers = 0
        elif hazard.writer != node and not (
                hazard.num_readers and hazard.readers[hazard.num_readers - 1] == node):
            hazard.readers[hazard.num_readers] = node
            hazard.num_readers += 1
