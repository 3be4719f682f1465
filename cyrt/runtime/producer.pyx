# C-level functions only: see producer.pxd.
"""Producers: libraries whose tensors are read by DLPack's C exchange API."""

from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc

from cyrt.driver.cuda cimport CUdeviceptr, CUstream
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.runtime.blocks cimport destroy_block, new_block
from cyrt.runtime.cupy_arrays cimport functions_of_cupy
from cyrt.runtime.device cimport contexts
from cyrt.runtime.dlpack cimport (
    DLPackExchangeAPI, DLTensor, KDL_COMPLEX, KDL_CUDA, KDL_FLOAT,
)
from cyrt.runtime.memory cimport foreign_buffer
from cyrt.runtime.order cimport is_recorded_anywhere
from cyrt.runtime.outside cimport add_outside, remove_outside
from cyrt.runtime.poison cimport copy_error_of_overlap, forget_loss, poisoned
from cyrt.runtime.state cimport FOREIGN_MEMORY, Block, StreamState
from cyrt.runtime.stream_state cimport wrapped_state

cdef extern from *:
    """
    /* Return the C function of an attribute that a type defines in C, or NULL. */
    static inline void* cyrt_function_of(PyObject* attribute, void** closure, int* method) {
        if (Py_IS_TYPE(attribute, &PyGetSetDescr_Type)) {
            PyGetSetDef* field = ((PyGetSetDescrObject*)attribute)->d_getset;
            *closure = field->closure;
            *method = 0;
            return (void*)field->get;
        }
        if (Py_IS_TYPE(attribute, &PyMethodDescr_Type)) {
            PyMethodDef* function = ((PyMethodDescrObject*)attribute)->d_method;
            *closure = NULL;
            *method = 1;
            return function->ml_flags == METH_NOARGS ? (void*)function->ml_meth : NULL;
        }
        *method = PyCallable_Check(attribute);
        return NULL;
    }
    /* Call it: both kinds take the object and a pointer. Return a new reference. */
    static inline PyObject* cyrt_ask(void* function, PyObject* value, void* closure) {
        return ((PyObject* (*)(PyObject*, void*))function)(value, closure);
    }
    """
    void* cyrt_function_of(object attribute, void** closure, bint* method) noexcept
    object cyrt_ask(void* function, object value, void* closure)

cdef enum:
    TYPES = 64              # most types that are known at once
    NEIGHBOURS = 8          # most entries that a search looks at
    DL_MAJOR = 1

cdef Producer[TYPES] producers
last_producer = &producers[0]       # its type is NULL until a type is known
cdef unsigned int next_type         # where a type is replaced next
cdef unsigned int next_entry
# The stream that a library's handle named last on each device.
cdef StreamState* last_stream[MAX_DEVICES]
cdef dict lists = {}                # memory_on of each stream, by the address of its state
cdef StreamState* last_home
cdef list last_list


cdef const DLPackExchangeAPI* api_of(type cls) except? NULL:
    """Return the functions that a type offers in a version that is understood, or NULL."""
    cdef const DLPackExchangeAPI* api
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None or not PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
        return functions_of_cupy(cls)
    api = <const DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
    while api != NULL and api.major != DL_MAJOR:
        api = api.previous
    if api != NULL and (api.dltensor_from_py_object == NULL or api.current_work_stream == NULL):
        return NULL         # the library's `__dlpack__` serves
    return api


cdef Question question(type cls, str name):
    cdef Question found = Question(NULL, NULL, False, NULL)
    attribute = getattr(cls, name, None)
    if attribute is not None:
        found.function = cyrt_function_of(attribute, &found.closure, &found.method)
        found.name = <PyObject*>name        # a constant of this module
    return found


cdef Producer* learn(type cls) except NULL:
    """Find out what a type's objects can do, and keep it."""
    global next_type
    cdef Producer made
    cdef Producer* slot
    cdef PyObject* dropped
    made.api = NULL
    made.requires_grad = made.is_conj = made.is_neg = Question(NULL, NULL, False, NULL)
    try:
        made.api = api_of(cls)
        if made.api != NULL:
            made.requires_grad = question(cls, "requires_grad")
            made.is_conj = question(cls, "is_conj")
            made.is_neg = question(cls, "is_neg")
    except Exception:
        made.api = NULL         # a type that does not answer has no functions
    made.type = <PyObject*>cls
    Py_INCREF(cls)
    slot = &producers[next_type % TYPES]
    next_type += 1
    dropped = slot.type
    slot[0] = made
    if dropped != NULL:
        Py_DECREF(<object>dropped)
    return slot


cdef const Producer* find_producer(PyObject* value) except NULL:
    global last_producer
    cdef PyObject* cls = <PyObject*>Py_TYPE(<object>value)
    cdef int i
    for i in range(TYPES):
        if producers[i].type == cls:
            last_producer = &producers[i]
            return last_producer
        if producers[i].type == NULL:
            break
    last_producer = learn(<type>cls)
    return last_producer


cdef inline bint answers_yes(const Question* question, PyObject* value) except -1:
    if question.name == NULL:
        return False
    if question.function != NULL:
        return cyrt_ask(question.function, <object>value, question.closure)
    answer = getattr(<object>value, <object>question.name)
    return bool(answer() if question.method else answer)


cdef int refuse_tensor(PyObject* value, str why) except -1:
    raise ValueError(f"memory: {type(<object>value).__name__} does not hand it out: it {why}")


cdef inline bint may_be_negated(const DLTensor* tensor) noexcept:
    """Return whether a tensor may be negated when it is read: it is then the imaginary part of a
    conjugated tensor, so each step to another element is even."""
    cdef int i = tensor.ndim
    if tensor.dtype.code == KDL_COMPLEX or tensor.shape == NULL:
        return True
    while i > 0:
        i -= 1
        if tensor.shape[i] != 1:
            return tensor.strides != NULL and tensor.strides[i] & 1 == 0
    return True


cdef int describe(const Producer* producer, PyObject* value, DLTensor* tensor) except -1:
    if answers_yes(&producer.requires_grad, value):
        refuse_tensor(value, "requires a gradient, which is not computed here; pass x.detach()")
    if producer.api.dltensor_from_py_object(<void*>value, tensor) != 0:
        refuse_undescribed(value)
    if tensor.dtype.code >= KDL_FLOAT and may_be_negated(tensor):
        refuse_changed(producer, value, tensor)
    return 0


cdef int refuse_changed(const Producer* producer, PyObject* value,
                        const DLTensor* tensor) except -1:
    """Raise ValueError for a tensor that is conjugated or negated."""
    if tensor.dtype.code == KDL_COMPLEX and answers_yes(&producer.is_conj, value):
        refuse_tensor(value, "is conjugated when it is read; pass x.resolve_conj()")
    if answers_yes(&producer.is_neg, value):
        refuse_tensor(value, "is negated when it is read; pass x.resolve_neg()")
    return 0


cdef int refuse_undescribed(PyObject* value) except -1:
    """Raise the error of a tensor that its library could not describe, with the first line of the
    library's: frames of its C++ functions may follow that."""
    try:
        fail()
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"memory: {type(<object>value).__name__} does not hand it out: {reason}") \
            from None
    return 0


cdef int fail() except? -1:
    """Raise the exception that a C function has set."""
    if PyErr_Occurred() == NULL:
        raise BufferError("the array's library does not describe it, and gives no reason")
    return -1


cdef StreamState* work_stream(const DLPackExchangeAPI* api, int ordinal) except NULL:
    cdef void* handle = NULL
    cdef StreamState* state
    if api.current_work_stream(KDL_CUDA, <int32_t>ordinal, &handle) != 0:
        fail()
    state = last_stream[ordinal]
    # The handle of the per-thread default stream names another stream on each thread.
    if state == NULL or state.handle != <CUstream>handle or state.ended or state.thread \
            or state.epoch != contexts[ordinal].epoch:
        state = wrapped_state(ordinal, <CUstream>handle)
        last_stream[ordinal] = state
    return state


cdef bint is_free(const Known* entry) noexcept:
    """Return whether nothing holds the entry, and no recording uses its memory."""
    return entry.block == NULL or not (entry.holders or is_recorded_anywhere(entry.block))


cdef int give(Known* entry, int ordinal, CUdeviceptr address, size_t size,
              StreamState* home) except -1:
    """Give a free entry to other memory."""
    cdef Block* block = new_block(address, size, ordinal, FOREIGN_MEMORY, home)
    if entry.block != NULL:
        remove_outside(entry.block)
        destroy_block(entry.block)
    entry.address, entry.size, entry.block = address, size, block
    add_outside(block)
    copy_error_of_overlap(block)
    return 0


cdef Known* search_known(int ordinal, CUdeviceptr address, size_t size,
                         StreamState* home) except? NULL:
    cdef Known* table = known[ordinal]
    cdef Known* entry
    cdef Known* chosen = NULL
    cdef unsigned int first, i
    if table == NULL:
        table = known[ordinal] = <Known*>calloc(ENTRIES, sizeof(Known))
        if table == NULL:
            raise MemoryError()
    first = first_entry(address)
    for i in range(first, first + NEIGHBOURS):
        entry = &table[i % ENTRIES]
        if entry.address == address and entry.size == size and entry.block != NULL \
                and entry.block.epoch == contexts[ordinal].epoch:
            if poisoned and entry.block.poison and is_free(entry):
                forget_loss(entry.block)
            entry.block.home = home
            return entry
        if entry.block == NULL:
            chosen = entry
            break
    for i in range(NEIGHBOURS):
        if chosen != NULL:
            break
        entry = &table[(first + (next_entry + i) % NEIGHBOURS) % ENTRIES]
        if is_free(entry):
            chosen = entry
    if chosen != NULL:
        note_given()
        give(chosen, ordinal, address, size, home)
    return chosen


cdef void note_given() noexcept:
    """Let the search for an entry to be given away begin elsewhere each time."""
    global next_entry
    next_entry += 1


cdef list memory_on(StreamState* home):
    global last_home, last_list
    if last_home != home:
        found = lists.get(<size_t>home)
        if found is None:
            found = lists[<size_t>home] = [foreign_buffer(0, 0, home.ordinal, home, None)]
        last_home, last_list = home, found
    return last_list
