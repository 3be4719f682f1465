# The Python objects of device memory.
#
# INVARIANTS
# - A Buffer is initialised once: a view of a freed Buffer stays a view of freed memory.
# - The garbage collector tracks memory that may be part of a cycle: memory that has an owner,
#   instances of Python subclasses, and views of these. All other memory refers to nothing that
#   refers back, and is created untracked.
# - An Array that was an ordinary result or view is kept when it dies, with the values of a new one
#   except for its block, address, size and traits, and what Array adds to Memory.

cimport cython
from cpython.object cimport PyObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.runtime.device cimport contexts
from cyrt.runtime.state cimport OVERWRITE, WRITE, Access, Block, StreamState


# Properties of an array. The low bits are its element type: bit `code` of cyrt.dtypes.DTYPES.
cdef enum Trait:
    ELEMENT_TYPES = (1 << 24) - 1
    OTHER_TYPE = 1 << 24        # an element type of another library that cyrt does not have
    SCATTERED = 1 << 25         # the bytes are not exactly those from address to address + size
    READ_ONLY = 1 << 26         # elements share bytes, diag made it, or a view of such an array

cdef extern from "Python.h":
    void PyObject_GC_Track(object)


# The base class of Buffers and Arrays: owns a block, or is a view of a Memory that does.
cdef class Memory:
    cdef Block* block           # NULL after the memory is freed, and in a view
    cdef CUdeviceptr address
    cdef size_t size
    # An array's Traits and the bit of its element type. Bytes have no trait but READ_ONLY.
    cdef unsigned int traits
    cdef bint initialised       # a Buffer has received its memory
    cdef bint tracked           # by the garbage collector
    cdef Memory base            # a view's: the Memory that owns the block
    # The tape that follows it, 0: none; its node there, -1: none; and its block's version when that
    # began, see runtime/taping.
    cdef unsigned long long tape
    cdef int node
    cdef unsigned int version
    cdef object owner           # the object that owns the memory if the pool does not
    cdef void* heap             # host memory that is freed with the object
    cdef object __weakref__


@cython.no_gc       # it has no more references than Memory, which reports them to the collector
cdef class Buffer(Memory):
    cdef int exports            # open buffer-protocol views of pinned or managed memory

cdef extern from *:
    """
    /* Set the references of a new object to None, as Memory's tp_new does, and to no weak ones. */
    #define CYRT_INITIALISE_REFERENCES(memory) do { \
            (memory)->__weakref__ = NULL; \
            Py_INCREF(Py_None); (memory)->base = (void*)Py_None; \
            Py_INCREF(Py_None); (memory)->owner = Py_None; \
        } while (0)
    """
    void CYRT_INITIALISE_REFERENCES(Memory memory)

# Let the garbage collector track a new object whose base or owner may refer to it.
cdef inline void track(Memory memory) noexcept:
    if memory.owner is not None or (memory.base is not None and memory.base.tracked):
        memory.tracked = True
        PyObject_GC_Track(memory)

# The type of arrays; ndarray sets it.
cdef void* array_type

# Dead Arrays that are kept; the `block` of each is the next one.
cdef struct DeadArrays:
    PyObject* first
    int count
cdef DeadArrays dead_arrays

# Return the block of a Buffer; NULL: it was freed. `live_block` raises ValueError then, and
# RuntimeError after a reset.
cdef inline Block* block_of(Memory buffer) noexcept:
    return buffer.block if buffer.block != NULL or buffer.base is None else buffer.base.block
cdef inline Block* live_block(Memory buffer) except NULL:
    cdef Block* block = block_of(buffer)
    if block == NULL or block.epoch != contexts[block.ordinal].epoch:
        return refuse_buffer(buffer, block)
    return block
cdef Block* refuse_buffer(Memory buffer, Block* block) except NULL
# Create a Buffer over another library's memory; its uses are ordered after the work of `home`.
cdef Buffer foreign_buffer(CUdeviceptr address, size_t nbytes, int ordinal, StreamState* home,
                           object owner)
# Create a Buffer that represents all variables of a module, and a view of it for one variable.
cdef Buffer new_variables_buffer(int ordinal)
cdef Buffer variable_buffer(Buffer all, CUdeviceptr address, size_t nbytes, object owner)
# Return the access to the block of an operation that writes all bytes of the memory.
cdef inline Access overwriting(Memory memory) noexcept:
    return WRITE if memory.traits & SCATTERED or (
        memory.base is not None and memory.size != memory.base.size) else OVERWRITE
# Give a Buffer its memory, once. `refuse_initialised` raises if the Buffer already has memory.
cdef int refuse_initialised(Buffer self) except -1
cdef int initialise(Buffer self, Block* block, size_t size) except -1
# Return a number of bytes after checking it; `what` names it in error messages.
cdef size_t byte_count(nbytes, str what) except? 0
# Make other libraries' streams wait for an operation that was put directly on the stream.
cdef int order_foreign_streams(Block* block, StreamState* stream) except -1
# Create a Buffer that is a view of a part of the memory. Raise ValueError if an array is scattered.
cdef Buffer view_bytes(Memory memory, size_t start, size_t nbytes)
# Copy all bytes between device memory and host memory or another Memory, from `memory` if `outward`
# is true, else to it. Or fill all bytes with a pattern. Raise ValueError if they are scattered, or
# if a copy that is not `blocking` uses pageable memory.
cdef int copy_memory(Memory memory, other, stream, bint outward, bint blocking=*) except -1
cdef int fill_memory(Memory memory, value, stream) except -1
# Raise the error of writing to an array that is READ_ONLY.
cdef int refuse_read_only() except -1
# Export the address: from now on other libraries may use the memory on their own streams.
cdef CUdeviceptr export_address(Memory memory) except? 0
