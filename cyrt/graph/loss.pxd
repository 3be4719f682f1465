# Losses: operations that the driver refused to launch, and what depends on them.
#
# INVARIANTS
# - The rest of the batch runs, in order. What a refused operation would have written is lost, and
#   so is what depends on that; see runtime/poison.
# - An error is a number until its exception is raised: numbers are assigned during a stream's turn,
#   in which no Python object is created.
# - The recording's uses show which operations depend on a lost one: they distinguish the owners of
#   memory that was freed and allocated again inside the batch.

from cyrt.driver.cuda cimport CUresult
from cyrt.graph.recording cimport Recording

# Make room for the losses of all nodes. Return False if memory is short.
cdef bint make_losses(Recording* recording) noexcept
# Mark a node as lost because of an error, unless it is lost already. `make_losses` has made room.
cdef void mark_lost(Recording* recording, int node, unsigned int number) noexcept
# Mark a node as lost if it uses lost memory. `before` is the recording that is being launched, for
# which no block is marked yet; NULL: there is none.
cdef void inherit(Recording* recording, int node, const Recording* before) noexcept
# Do the same for all nodes of the stream's next recording, which other threads began while this one
# was launched: memory that they have freed since has no mark.
cdef void propagate_losses(const Recording* recording, Recording* later) noexcept
# Return a number for the error of a refused operation, valid while it has holders; 0: no memory.
cdef unsigned int refuse(const Recording* recording, int node, CUresult result, const char* call,
                         void* where) noexcept
# Mark all operations as lost because of one error: their stream could not be ordered.
cdef unsigned int mark_all_lost(Recording* recording, CUresult result, const char* call,
                           void* where) noexcept
# Mark the memory that the nodes write as lost, or as valid again.
cdef void mark_losses(const Recording* recording) noexcept
# Release the numbers without holders for reuse.
cdef void reclaim() noexcept
# Return a new exception for an error's number.
cdef object error_of(unsigned int number)
# Add `change` to the number of holders of an error's number.
cdef void count_holders(unsigned int number, int change) noexcept
