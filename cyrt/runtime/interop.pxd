from cyrt.runtime.memory cimport Memory

# Return the memory of another library's array; interop.pyx describes the parameters.
cpdef Memory as_buffer(obj, bint write, list layout=*)

# Return (memory, shape, strides in bytes or None, offset in bytes of the first element, kind,
# itemsize, whether it is read-only) of another library's array, without a copy. The kind is one of
# "biufc", "E" (bfloat16) or "?".
cdef tuple tensor_of(obj)
