# The recorder: records operations for one stream.
#
# INVARIANTS
# - All or nothing: an operation that raises leaves the recording as it was.
# - An operation is cut off from the last batch and ordered after other streams' work first, and
#   again where other threads could run meanwhile. Then it is appended, with the GIL held and no
#   Python object made or dropped from the last look to the end.
# - Whatever puts work on the stream directly, or hands memory or the stream out, commits first
#   (runtime's `flush`, whose hook this room fills).
# - An operation that uses what is lost is not recorded: what it would have written is lost, too.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Geometry, Operation, Use
from cyrt.runtime.module cimport LoadedFunction
from cyrt.runtime.state cimport Access, Block, StreamState

# The encoder of a stream; made at first use.
cdef Recorder encoder_of(StreamState* state)
# Records an operation. `foreign`: Buffers among its uses that are outside (outside.is_outside), or
# None. `opaque`: it may touch memory that `uses` does not name, and comes after everything.
cdef int record(Recorder self, const Operation* operation, Use* uses, int num_uses,
                list foreign, bint opaque) except -1
cdef int record_kernel(Recorder self, LoadedFunction function, const Geometry* geometry,
                       const char* params, Use* uses, int num_uses, list foreign, bint opaque,
                       unsigned int flags, const unsigned int* cluster) except -1
cdef int attach(Recorder self, StreamState* state, graphs) except -1
# The stream goes on without the encoder.
cdef void detach(Recorder self) noexcept
# What follows comes after every operation of the open group.
cdef int join_group(Recorder self) except -1
# The encoder of the stream is detached.
cdef void end_encoder(StreamState* state) noexcept
# Records a copy within the device.
cdef int record_copy(StreamState* state, Block* target, Access access, CUdeviceptr to,
                     Block* source, CUdeviceptr start, size_t nbytes) except -1
