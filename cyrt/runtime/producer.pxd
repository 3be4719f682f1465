# Producers: libraries whose tensors are read by DLPack's C exchange API, without a Python object
# for a tensor.
#
# INVARIANTS
# - A type that is kept is referred to, so its address names no other type.
# - What the API tells of a tensor is used before any other code runs, except code that describes
#   other tensors of the same launch.
# - The memory of a tensor has one block as long as operations that use it are recorded, or a launch
#   holds it: a block is given to other memory only after that, and is then of another generation.
# - A block of a tensor stores no loss for longer: its library writes the memory unseen.

from cpython.object cimport PyObject, PyTypeObject

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.device cimport contexts
from cyrt.runtime.dlpack cimport DLPackExchangeAPI, DLTensor
from cyrt.runtime.state cimport Block, StreamState

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object value) noexcept

# The value of a property or method of a type's objects that answers yes or no.
cdef struct Question:
    void* function          # the C function; NULL: `descriptor` has to be asked
    void* closure
    bint method
    PyObject* name          # NULL: the type has no such attribute

# What a type's objects can do.
cdef struct Producer:
    PyObject* type          # a counted reference
    const DLPackExchangeAPI* api    # NULL: none that is understood
    Question requires_grad, is_conj, is_neg

# The block of a tensor's memory.
cdef struct Known:
    CUdeviceptr address
    size_t size
    Block* block            # NULL: none
    int holders             # number of launches that hold it

# The type that was looked up last: the tensors of a launch mostly have the same one.
cdef const Producer* last_producer
# Return what the object's type can do. The pointer is valid until Python code runs.
cdef inline const Producer* producer_of(PyObject* value) except NULL:
    return last_producer if last_producer.type == <PyObject*>Py_TYPE(<object>value) \
        else find_producer(value)
cdef const Producer* find_producer(PyObject* value) except NULL
# Describe a tensor of such a type. Raise ValueError for one whose elements are not simply those in
# memory: one that requires a gradient, or is to be conjugated or negated.
cdef int describe(const Producer* producer, PyObject* value, DLTensor* tensor) except -1
# Return the state of the library's current stream on a device.
cdef StreamState* work_stream(const DLPackExchangeAPI* api, int ordinal) except NULL
cdef enum:
    ENTRIES = 1024          # most blocks of tensors on a device that are kept

cdef Known* known[MAX_DEVICES]      # hash tables; NULL: none yet
# Return where the search for the entry of an address begins.
cdef inline unsigned int first_entry(CUdeviceptr address) noexcept:
    return <unsigned int>(((address >> 4) * 0x9E3779B97F4A7C15ull) >> 54)
# Return the entry of a tensor's memory, or NULL: more is in use than is kept.
cdef inline Known* known_memory(int ordinal, CUdeviceptr address, size_t size,
                                StreamState* home) except? NULL:
    cdef Known* entry = known[ordinal]
    if entry != NULL:
        entry += first_entry(address)
        if entry.address == address and entry.size == size and entry.block != NULL \
                and entry.block.epoch == contexts[ordinal].epoch and not entry.block.poison:
            entry.block.home = home
            return entry
    return search_known(ordinal, address, size, home)
cdef Known* search_known(int ordinal, CUdeviceptr address, size_t size,
                         StreamState* home) except? NULL
# Return a list of one Buffer, which no memory has, that stands for all memory on which the library
# works on a stream. It is never changed.
cdef list memory_on(StreamState* home)
