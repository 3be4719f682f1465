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

from cyrt.graph.recording cimport Recording, Use
from cyrt.runtime.state cimport StreamState

# Give each block a state for the stream's recording, with room for one more reader. Add the sizes
# of blocks that had none to `bytes`. Return the most edges that `depend` can add.
cdef int prepare(const Use* uses, int count, StreamState* stream, size_t* bytes) except -1
# Add the edges into the open node that the uses require. It cannot fail after `prepare`.
cdef void depend(Recording* recording, const Use* uses, int count) noexcept
# Store the node as reader or writer of the blocks. It cannot fail after `prepare`.
cdef void note(const Use* uses, int count, int node) noexcept
