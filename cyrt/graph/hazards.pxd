# Hazards: which operations must wait for which inside one recording.
#
# INVARIANTS
# - For every block a recording knows the last node that wrote it and all nodes that have read it
#   since: a read waits for the writer (RAW), a write for the writer (WAW) and every reader (WAR).
# - The state is stored in the block, so it survives free and reuse, and views share it. It belongs
#   to the recording whose epoch it stores. Epochs come from one counter and are never reused, so a
#   new recording has nothing to clear.
# - Several recordings may read a block at once: the block stores the state of one of them, and the
#   block's list `others` stores the rest.

from cyrt.graph.recording cimport Recording, Use, add_edge
from cyrt.runtime.state cimport READ, Access, Block, Hazard, StreamState
from cyrt.runtime.taping cimport note_write

# Make the state of a block, whose epoch is another one, that of the stream's recording.
cdef int make_current(Block* block, StreamState* stream) except -1
# Make room for more readers. `add_room` returns False without memory.
cdef int grow_readers(Hazard* hazard) except -1
cdef bint add_room(Hazard* hazard) noexcept

# Return whether the stream's next operation may use a block of this context's device memory without
# a wait. That is so if only the stream has used the block since it wrote it, or if the operation
# reads it and the stream alone has read it since another stream wrote it. If several streams have
# read it, the answer is False, and `use` decides: a call here would cost registers. The answer True
# means that the block's state is the stream's, or of a recording that was committed.
cdef inline bint is_ordered(const Block* block, const StreamState* stream,
                            Access access) noexcept:
    return (block.num_readers == 0 and block.home == stream) or (
        block.num_readers == 1 and access == READ and block.readers[0] == stream
        and block.hazard.stream == stream)

# Make the state of a block, which is the stream's, or of a recording that was committed, that of
# the stream's recording. Add the block's size to `bytes` if the recording did not use the block.
cdef inline void begin_uses(Block* block, StreamState* stream, size_t* bytes) noexcept:
    if block.hazard.epoch != stream.recording_epoch:
        block.hazard.stream = stream
        block.hazard.epoch = stream.recording_epoch
        block.hazard.writer = -1
        block.hazard.num_readers = 0
        bytes[0] += block.size

# Give each block a state for the stream's recording, with room for one more reader. Add the sizes
# of blocks that had none to `bytes`. Return the most edges that `depend` can add.
cdef inline int prepare(const Use* uses, int count, StreamState* stream, size_t* bytes) except -1:
    cdef int i, edges = 0
    cdef Block* block
    for i in range(count):
        block = uses[i].block
        if block.hazard.stream == stream:
            begin_uses(block, stream, bytes)
        elif block.hazard.epoch != stream.recording_epoch:
            make_current(block, stream)
            bytes[0] += block.size
        if block.hazard.num_readers + 2 > block.hazard.max_readers:
            grow_readers(&block.hazard)
        edges += 1 + block.hazard.num_readers
    return edges

# Add the edges into the open node that the uses require. It cannot fail after `prepare`.
cdef inline void depend(Recording* recording, const Use* uses, int count) noexcept:
    cdef int i, j
    cdef Hazard* hazard
    for i in range(count):
        hazard = &uses[i].block.hazard
        add_edge(recording, hazard.writer)
        if uses[i].access != READ:
            for j in range(hazard.num_readers):
                add_edge(recording, hazard.readers[j])

# Store the node as reader or writer of a block. There is room for one more reader.
cdef inline void note_use(Hazard* hazard, Access access, int node) noexcept:
    if access != READ:
        hazard.writer = node
        hazard.num_readers = 0
    elif hazard.writer != node and not (
            hazard.num_readers and hazard.readers[hazard.num_readers - 1] == node):
        hazard.readers[hazard.num_readers] = node
        hazard.num_readers += 1

# Store the node as reader or writer of the blocks. It cannot fail after `prepare`.
cdef inline void note(const Use* uses, int count, int node) noexcept:
    cdef int i
    for i in range(count):
        note_use(&uses[i].block.hazard, uses[i].access, node)

# Raise the versions of the blocks that are written: a tape exists.
cdef inline void note_writes(const Use* uses, int count) noexcept:
    cdef int i
    for i in range(count):
        note_write(uses[i].block, uses[i].access)
