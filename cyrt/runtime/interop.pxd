from cyrt.runtime.memory cimport Memory

# `layout`: an empty list, which takes the shape, the strides in bytes or None, the offset in bytes
# of the first element, the kind and the itemsize; None: negative strides are refused.
cpdef Memory as_buffer(obj, bint write, list layout=*)

# (memory, shape, strides in bytes or None, offset in bytes of the first element, kind, itemsize) of
# another library's array, without a copy. The kind is one of "biufc", "E" (bfloat16) or "?".
cdef tuple tensor_of(obj)
