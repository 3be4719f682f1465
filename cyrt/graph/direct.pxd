# Direct launches: operations that are put on a stream at once, without a graph.
#
# INVARIANTS
# - They happen during the stream's turn: no Python code runs.

from cyrt.driver.cuda cimport CUresult
from cyrt.graph.executable cimport Outcome
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

# Launch one kernel. `flags` may have COOPERATIVE and, if there is a `cluster`, CLUSTER. The context
# of a wrapped stream must be current.
cdef CUresult launch_kernel_directly(StreamState* stream, LoadedFunction function,
                                     const Geometry* geometry, const char* params,
                                     unsigned int flags, const unsigned int* cluster) noexcept
# Launch the recording's nodes from `first` on, one by one in their order, except lost ones. A node
# that the driver refuses is lost, too, and the others run; `outcome` has an error only if no other
# node could be launched. Return the number of the first error; 0: there was none.
cdef unsigned int launch_nodes(StreamState* stream, Recording* recording, int first, void* where,
                               Outcome* outcome) noexcept
