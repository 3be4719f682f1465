from cyrt.runtime.memory cimport Memory

# Return the memory of another library's array; interop.pyx describes the parameters.
cpdef Memory as_buffer(obj, bint write, list layout=*)

# Make later uses of the view of a tensor wait for the legacy stream, where other libraries work.
cdef int order_after_legacy(Memory memory) except -1
# Return (the DLPack capsule that keeps it, address of the first element, shape, strides in bytes or
# None, kind, itemsize) of another library's array on the host, without a copy.
cdef tuple host_tensor_of(obj)
# Return (memory, shape, strides in bytes or None, offset in bytes of the first element, kind,
# itemsize, whether it is read-only) of another library's array, without a copy. The kind is one of
# "biufc", "E" (bfloat16) or "?".
cdef tuple tensor_of(obj, bint lasting)
