# Memory on its way back to its home stream's bins.
#
# INVARIANTS
# - Freeing launches and waits for nothing, and never raises. Where several streams used the block,
#   or its address was exported, one stream is made to wait for the others; where that is not
#   possible yet, or the driver's queue of one of them is long, the block waits in a list.
# - A small block that the recording uses stays out of its bin until the commit: its reuse inside
#   one batch would order work that is otherwise independent; inside `concurrent()` it would not
#   even be ordered.

from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.state cimport Block, StreamState

# Freed, and used by streams whose use is not launched yet, or with no memory for its slot.
cdef Block* unsettled[MAX_DEVICES]

# Returns a block of a bin.
cdef void give_back(Block* block) noexcept
# The stream's recording is exchanged for the next one, or dropped: what rested returns to the bins.
cdef void return_rested(StreamState* stream) noexcept
# Returns the blocks to the pool that were freed before another stream's use of them was launched,
# where it is launched by now. Keeps the GIL.
cdef void settle_freed(int ordinal) noexcept
# Launches what keeps blocks of a size class from being settled.
cdef int launch_unsettled(int ordinal, int bin) except -1
