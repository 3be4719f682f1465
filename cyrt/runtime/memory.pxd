# Device memory as Python sees it.
#
# INVARIANTS
# - A Buffer is initialised once: a view of a freed one stays a view of freed memory.
# - The garbage collector tracks memory that may be part of a cycle: memory that has an owner,
#   instances of Python's subclasses, and views of these. All other memory refers to nothing that
#   refers back, and is born untracked.

cimport cython

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.device cimport contexts
from cyrt.runtime.state cimport OVERWRITE, WRITE, Access, Block, StreamState


# Traits of an array. The lower bits are its element type: bit `code` of cyrt.dtypes.DTYPES.
cdef enum Trait:
    ELEMENT_TYPES = (1 << 24) - 1
    OTHER_TYPE = 1 << 24        # another library's, and none of cyrt's
    SCATTERED = 1 << 25         # its bytes are not those from address to address + size
    REPEATED = 1 << 26          # elements share bytes: a stride of 0 in a dimension above 1

cdef extern from "Python.h":
    void PyObject_GC_Track(object)


# What Buffers and Arrays are over: a block, or a view of somebody's.
cdef class Memory:
    cdef Block* block           # NULL once freed, and in a view
    cdef CUdeviceptr address
    cdef size_t size
    cdef unsigned int traits    # of an array: bit of its element type, Trait; of bytes: 0
    cdef bint initialised       # of a Buffer: it has got its memory
    cdef bint tracked           # by the garbage collector
    cdef Memory base            # of a view: what owns the block
    cdef object owner           # whose memory it is, where it is not the pool's
    cdef void* heap             # freed with it
    cdef object __weakref__


@cython.no_gc       # it refers to what Memory refers to, which tells the collector of it
cdef class Buffer(Memory):
    cdef int exports            # the host's views of pinned or managed memory

# Tells the collector of a new object whose base or owner may refer to it.
cdef inline void track(Memory memory) noexcept:
    if memory.owner is not None or (memory.base is not None and memory.base.tracked):
        memory.tracked = True
        PyObject_GC_Track(memory)

# The block of a living Buffer; ValueError once it was freed, RuntimeError after a reset.
cdef inline Block* live_block(Memory buffer) except NULL:
    cdef Block* block = buffer.block if buffer.base is None else buffer.base.block
    if block == NULL or block.epoch != contexts[block.ordinal].epoch:
        return refuse_buffer(buffer, block)
    return block
cdef Block* refuse_buffer(Memory buffer, Block* block) except NULL
# A Buffer over somebody else's memory, ordered after `home`'s work.
cdef Buffer foreign_buffer(CUdeviceptr address, size_t nbytes, int ordinal, StreamState* home,
                           object owner)
# What stands for all variables of a module, and one of them as a view of it.
cdef Buffer variable_block(int ordinal)
cdef Buffer variable_buffer(Buffer all, CUdeviceptr address, size_t nbytes, object owner)
# What writing all of the memory's bytes does with its block.
cdef inline Access overwriting(Memory memory) noexcept:
    return WRITE if memory.traits & SCATTERED or (
        memory.base is not None and memory.size != memory.base.size) else OVERWRITE
# Gives a Buffer its memory, once. `refuse_initialised` raises where it has got some.
cdef int refuse_initialised(Buffer self) except -1
cdef int initialise(Buffer self, Block* block, size_t size) except -1
# A number of bytes; `what` names it in errors.
cdef size_t byte_count(nbytes, str what) except? 0
# After an operation was put on the stream directly: memory of others is never late.
cdef int end_use(Block* block, StreamState* stream) except -1
# Copies all bytes between memory of a device and host memory or another's; `outward`: from the
# first. Fills all bytes with a pattern. ValueError where they are scattered.
cdef int copy_memory(Memory memory, other, stream, bint outward) except -1
cdef int fill_memory(Memory memory, value, stream) except -1
# Hands the address out: others may use the memory on streams of their own from now on.
cdef CUdeviceptr export_address(Memory memory) except? 0
