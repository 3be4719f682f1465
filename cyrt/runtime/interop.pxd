from cyrt.runtime.memory cimport Memory

cpdef Memory as_buffer(obj, bint write)
