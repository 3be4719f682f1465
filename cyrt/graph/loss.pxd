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

# Room for the losses of all nodes; False: there is no memory.
cdef bint make_losses(Recording* recording) noexcept
# A node is lost by an error, where it was not lost before; there is room for it.
cdef void lose(Recording* recording, int node, unsigned int number) noexcept
# A node is lost where it uses what is lost. `before`: the recording that is being launched, whose
# marks are not set yet; NULL: there is none.
cdef void inherit(Recording* recording, int node, const Recording* before) noexcept
# The same for all nodes of the stream's next recording, which other threads began while this one
# was launched: memory that they have freed since has no mark.
cdef void carry(const Recording* recording, Recording* later) noexcept
# The number of a new error: the driver refused the operation. It lasts while something holds it.
cdef unsigned int refuse(const Recording* recording, int node, CUresult result, const char* call,
                         void* where) noexcept
# All operations are lost by one error: their stream could not be ordered.
cdef unsigned int lose_all(Recording* recording, CUresult result, const char* call,
                           void* where) noexcept
# Marks the memory that the nodes write: lost, or whole again.
cdef void mark_losses(const Recording* recording) noexcept
# Numbers that nothing is lost by any more may be used again.
cdef void reclaim() noexcept
# A new exception for an error's number.
cdef object error_of(unsigned int number)
# The number is used by so many more.
cdef void count_holders(unsigned int number, int change) noexcept
