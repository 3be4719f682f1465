# Copies between host and device memory.
#
# INVARIANTS
# - When `to_device` or `to_host` returns, host memory has been read, or contains the data from the
#   device. `copy_directly` returns at once: its caller keeps page-locked host memory until the copy
#   has ended.
# - Waiting for the device releases the GIL and ends on a signal: no blocking driver call is made
#   after work that may never end.
# - A copy is whole: operations of other threads come before it or after it. To the device, as much
#   as the ring holds goes in one turn of the stream, unless nothing uses the stream and the block;
#   to the host, one chunk does. Another copy goes in one turn of the ring's own stream, see
#   runtime/order. It first waits for the work that uses the block, and for the chunks: the thread
#   then waits only for the chunks that it has put on that stream, and from the first one to the
#   last it runs no Python code, which might wait for the end of the turn or use the block.
# - The generation of the block is taken at the call, and compared after each release of the GIL.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.state cimport Access, Block, StreamState

# Copy from host memory to the device, or from the device to host memory.
cdef int to_device(StreamState* stream, Block* block, Access access, CUdeviceptr target,
                   const char* source, size_t nbytes) except -1
cdef int to_host(StreamState* stream, Block* block, char* target, CUdeviceptr source,
                 size_t nbytes) except -1
# Put a copy between device and host memory, to the latter if `outward`, on the stream without a
# chunk. `is_page_locked` says whether the driver knows host memory: it then reads that memory when
# the copy runs, and not during the call as with pageable memory.
cdef int copy_directly(StreamState* stream, Block* block, Access access, CUdeviceptr memory,
                       char* host, size_t nbytes, bint outward) except -1
cdef bint is_page_locked(const void* address) noexcept nogil
