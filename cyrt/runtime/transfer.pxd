# Copies between host and device memory.
#
# INVARIANTS
# - When a call returns, host memory has been read, or contains the data from the device.
# - Waiting for the device releases the GIL and ends on a signal: no blocking driver call is made
#   after work that may never end.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

# Copy from host memory to the device, or from the device to host memory.
cdef int to_device(StreamState* stream, Block* block, Access access, CUdeviceptr target,
                   const char* source, size_t nbytes) except -1
cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1
