# Launches on a stream at once, with no graph (CYRT_GRAPHS=0).

from cyrt.driver.cuda cimport CUresult
from cyrt.graph.recording cimport Geometry, Recording
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport StreamState

# One kernel with no attributes.
cdef int launch_now(StreamState* stream, LoadedFunction function, const Geometry* geometry,
                    const char* params) except -1
# The recording's nodes from `first` on, one by one in their order.
cdef int launch_nodes(StreamState* stream, Recording* recording, int first, int count) except -1
