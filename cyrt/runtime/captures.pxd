# Captures of streams by other libraries, such as PyTorch's for `torch.cuda.graph`.
#
# INVARIANTS
# - What is put on a captured stream becomes a part of a graph, which its library launches later and
#   unseen. So no other stream waits for a captured one, or the reverse: no event is recorded on it,
#   and it is neither queried nor waited for.
# - The memory of cyrt and the code that such a graph uses live as long as the graph and what was
#   instantiated from it. The graph has a user object, whose destructor the driver calls on a thread
#   of its own: it only queues what was kept, without the GIL and without a call of the driver.
# - Memory that is freed while a graph uses it has no other owner before the graph has ended.

from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUresult
from cyrt.runtime.state cimport Block, StreamState

# What the graph of a capture keeps.
cdef struct Kept:
    unsigned long long capture      # its number, which is never reused
    PyObject* objects               # a list
    Block** blocks
    int count, room
    Kept* next                      # the next of those whose graphs have ended

cdef Kept* ended                    # a list of those; other threads of the driver add to it

# Prepare a block for an operation that a capture contains: wait for the work on it that is
# launched. Return whether there was some, so that other threads could run. Raise RuntimeError if
# there is recorded work on it, which the graph would not contain.
cdef bint settle(const Block* block) except -1
# Raise that error if a recording uses memory of other libraries, or, if `all`, any memory.
cdef int refuse_recorded(int ordinal, bint all) except -1
# Return what the graph of the stream's capture keeps.
cdef Kept* kept_by(StreamState* stream) except NULL
# Keep an object, or a block of memory of cyrt, which other libraries use from now on.
cdef int keep_object(Kept* kept, object value) except -1
cdef int keep_block(Kept* kept, Block* block) except -1
# Release what was kept for graphs that have ended.
cdef inline void release_ended() noexcept:
    if ended != NULL:
        release_all_ended()
cdef void release_all_ended() noexcept
