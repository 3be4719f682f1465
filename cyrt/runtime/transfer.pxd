# Copies between host and device memory.
#
# INVARIANTS
# - What leaves the host has been read when the call returns; what comes from the device is there.
# - Waiting for the device releases the GIL and ends on a signal: no blocking driver call is made
#   behind work that may never end.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

cdef int to_device(StreamState* stream, Block* block, Access access, CUdeviceptr target,
                   const char* source, size_t nbytes) except -1
cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1
