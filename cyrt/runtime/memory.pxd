# Buffers: device memory as Python sees it.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.device cimport contexts
from cyrt.runtime.state cimport Block, StreamState

cdef class Buffer:
    cdef Block* block           # NULL once freed, and in a view
    cdef CUdeviceptr address
    cdef size_t size
    cdef Buffer base            # of a view
    cdef object owner           # whose memory it is, where it is not the pool's
    cdef int exports            # the host's views of pinned or managed memory
    cdef object __weakref__

# Records a copy within the device; graph/recorder puts itself here.
cdef int (*record_copy)(StreamState* stream, Block* target, CUdeviceptr to, Block* source,
                        CUdeviceptr start, size_t nbytes) except -1
# Records a fill with a pattern of 1, 2 or 4 bytes; False where it cannot. cyrt/kernels puts itself
# here.
cdef bint (*record_fill)(StreamState* stream, Buffer target, unsigned int pattern,
                         size_t width) except -1
# The block of a living Buffer; ValueError once it was freed, RuntimeError after a reset.
cdef inline Block* live_block(Buffer buffer) except NULL:
    cdef Block* block = buffer.block if buffer.base is None else buffer.base.block
    if block == NULL or block.epoch != contexts[block.ordinal].epoch:
        return refuse_buffer(buffer, block)
    return block
cdef Block* refuse_buffer(Buffer buffer, Block* block) except NULL
# A Buffer over somebody else's memory, ordered after `home`'s work.
cdef Buffer foreign_buffer(CUdeviceptr address, size_t nbytes, int ordinal, StreamState* home,
                           object owner)
# What stands for all variables of a module, and one of them as a view of it.
cdef Buffer variable_block(int ordinal)
cdef Buffer variable_buffer(Buffer all, CUdeviceptr address, size_t nbytes, object owner)
# Before an operation of the stream on the Buffer, and after it was put on the stream.
cdef int begin_use(Buffer buffer, StreamState* stream, bint write) except -1
cdef int end_use(Buffer buffer, StreamState* stream) except -1
