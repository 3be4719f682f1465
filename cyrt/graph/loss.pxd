# Operations that the driver refused when they were launched.
#
# INVARIANTS
# - The rest of the batch runs, in order. What a refused operation would have written is lost, and
#   so is what depends on that; see runtime/poison.
# - An error is a number until its exception is raised: numbers are assigned during a stream's turn,
#   where no Python object is made.
# - Which operations depend on a lost one is read off the recording's uses: memory that was freed
#   and allocated again inside the batch has another owner there.

from cyrt.driver.cuda cimport CUresult
from cyrt.graph.recording cimport Recording

# The operations of a recording that are lost, by the number of the error; all 0 to begin with.
cdef unsigned int* new_losses(const Recording* recording) noexcept
# The number of the error that the operation is lost by, since it uses what is lost; 0: it is not.
cdef unsigned int inherited_loss(const Recording* recording, int node,
                                 const unsigned int* lost) noexcept
# The number of a new error: the driver refused the operation.
cdef unsigned int refuse(const Recording* recording, int node, CUresult result, const char* call,
                         void* where) noexcept
# All operations are lost by one error: their stream could not be ordered.
cdef unsigned int lose_all(const Recording* recording, CUresult result, const char* call,
                           void* where) noexcept
# Marks the memory that the operations from `first` on write: lost, or whole again.
cdef void mark_losses(const Recording* recording, int first, const unsigned int* lost) noexcept
# Numbers that no memory is lost by any more may be used again.
cdef void reclaim() noexcept
