from cyrt.runtime.memory cimport Buffer

cpdef Buffer as_buffer(obj, bint write)
