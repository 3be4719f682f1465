from cyrt.runtime.memory cimport Memory

cpdef Memory as_buffer(obj, bint write)

# (memory, shape, strides in bytes or None, offset in bytes of the first element, kind, itemsize) of
# another library's array, without a copy. The kind is one of "biufc", "E" (bfloat16) or "?".
cdef tuple tensor_of(obj)
