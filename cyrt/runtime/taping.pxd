# Which arrays the tape of a thread follows, and which memory was written since.
#
# INVARIANTS
# - A Memory stores numbers: its tape's, and its node's in that tape. The tape alone owns objects,
#   so no reference leads from an array to a tape.
# - `recording` is 0 unless a tape is open: that is all that an operation checks outside. Tapes have
#   numbers that are never reused, so memory that a closed tape followed is followed no more.
# - A thread has at most one open tape that records. Its levels are bits: a node's mask has those of
#   the levels whose arguments it depends on, and the thread's `live` those that record now. Inside
#   a function that is recorded as a whole, the tape is suspended.
# - As long as a tape exists (`num_tapes`), each write to a block raises the block's version,
#   whoever writes: recorded, replayed and direct operations, copies. What a call asks of tapes, it
#   asks once: an operation that is replayed raises the version anyway, and a launch asks whether
#   a tape exists before it asks whether one is open. An array that a tape follows
#   has the version at which that began: a write that the tape does not know of makes it stale, and
#   using it raises an error.
# - `Block.tape`: the tape that has recorded a write of a value that it follows into the block, and
#   the block's generation. The arrays of the block that it does not follow are stale, too.
# - A view of an array that a tape follows is followed, too. It has no node (-1) until the function
#   that makes it is recorded, and only a function that is recorded as a whole may use it before.
# - A value that no level which records now follows is a constant, and so are its views. An array
#   whose memory constants overwrite as a whole is followed no more, and neither is its block.

from cpython.object cimport Py_TYPE

from cyrt.runtime.memory cimport Memory, array_type, block_of
from cyrt.runtime.state cimport Access, READ, Block

cdef int recording              # number of open tapes
cdef int num_tapes              # number of tapes, also those that are closed and kept

cdef struct Thread:
    unsigned long long tape     # number of its open tape; 0: none
    unsigned long long live     # mask of the levels that record now
    int suspended               # depth of calls inside which nothing is recorded
    const unsigned long long* masks     # the masks of the tape's nodes
    void* current               # the Tape

# Return the calling thread's state.
cdef Thread* this_thread() noexcept
# Open a tape for the thread, and return its number; close it.
cdef unsigned long long open_tape(Thread* thread) except 0
cdef void close_tape(unsigned long long number) noexcept

# Return whether the thread's tape follows an object, and records now. Raise RuntimeError if it is
# stale, or if another thread's open tape follows it.
cdef bint is_followed(object value) except -1
# The same for the calling thread's state, with a short way for arrays that the tape follows, and
# for constants.
cdef inline bint is_followed_by(const Thread* thread, object value) except -1:
    cdef Memory memory
    cdef Block* block
    if <void*>Py_TYPE(value) != array_type:
        return value is not None and type(value) is not float and is_followed(value)
    memory = <Memory>value
    block = block_of(memory)
    if memory.tape == 0:
        if block == NULL or block.tape == 0:
            return False
    elif memory.tape == thread.tape and not thread.suspended and memory.node >= 0 \
            and thread.masks[memory.node] & thread.live \
            and (block == NULL or block.version == memory.version):
        return True
    return is_followed(value)
# Return the tape of a new view of memory that has a tape.
cdef inline unsigned long long tape_of_view(Memory memory) noexcept:
    cdef const Thread* thread = this_thread()
    if memory.tape == thread.tape and memory.node >= 0 \
            and not thread.masks[memory.node] & thread.live:
        return 0
    return memory.tape
# Raise TypeError if the thread's tape follows memory that a kernel uses which is not part of a
# recorded function. `name`: the kernel's.
cdef int refuse_followed(Memory memory, str name) except -1

cdef inline void note_write(Block* block, Access access) noexcept:
    if access != READ:
        block.version += 1
