# Launches on a stream at once, with no graph.
#
# INVARIANTS
# - They happen during the stream's turn: no Python code runs.

from cyrt.driver.cuda cimport CUresult
from cyrt.graph.executable cimport Outcome
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

# One kernel with no attributes; on a wrapped stream its context is current.
cdef CUresult launch_now(StreamState* stream, LoadedFunction function, const Geometry* geometry,
                         const char* params) noexcept
# The recording's nodes from `first` on, one by one in their order, but those that are lost. Where
# the driver refuses one it is lost, too, and the others run; the outcome says what it is only where
# the device answers nothing any more. Returns the number of the first error; 0: there was none.
cdef unsigned int launch_nodes(StreamState* stream, Recording* recording, int first, void* where,
                               Outcome* outcome) noexcept
