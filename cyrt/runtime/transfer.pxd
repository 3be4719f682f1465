# Copies between host and device memory.
#
# INVARIANTS
# - When `to_device` or `to_host` returns, host memory has been read, or contains the data from the
#   device. `copy_page_locked` returns at once: its caller keeps the host memory until the copy has
#   ended.
# - Waiting for the device releases the GIL and ends on a signal: no blocking driver call is made
#   after work that may never end.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

# Copy from host memory to the device, or from the device to host memory.
cdef int to_device(StreamState* stream, Block* block, Access access, CUdeviceptr target,
                   const char* source, size_t nbytes) except -1
cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1
# Put a copy on the stream between device memory and page-locked host memory, to the latter if
# `outward`. `is_page_locked` says whether the driver knows host memory: it then reads that memory
# when the copy runs, and not during the call as with pageable memory.
cdef int copy_page_locked(StreamState* stream, Block* block, Access access, CUdeviceptr memory,
                          char* host, size_t nbytes, bint outward) except -1
cdef bint is_page_locked(const void* address) noexcept nogil
