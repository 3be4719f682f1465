# What must wait for what inside one recording.
#
# INVARIANTS
# - For every block a recording knows the last node that wrote it and all that have read it since:
#   a read waits for the writer (RAW), a write for the writer (WAW) and every reader (WAR).
# - The state lies in the block, so it survives free and reuse, and views share it. It speaks of the
#   recording whose epoch it carries; epochs come from one counter and are never used twice, so a
#   new recording clears nothing.
# - Several recordings may read a block at once: one state lies in the block, the rest in its list.

from cyrt.graph.recording cimport Recording, Use
from cyrt.runtime.state cimport StreamState

# Gives each block a state of the stream's recording, with room for one more reader, and adds the
# bytes of those that had none; returns how many edges `depend` adds at most.
cdef int prepare(const Use* uses, int count, StreamState* stream, size_t* bytes) except -1
# Adds the edges that the uses ask of the open node. Cannot fail after `prepare`.
cdef void depend(Recording* recording, const Use* uses, int count) noexcept
# Notes a node as reader and writer. Cannot fail after `prepare`.
cdef void note(const Use* uses, int count, int node) noexcept
