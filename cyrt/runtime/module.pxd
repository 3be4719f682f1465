# Loaded code: handles only. The public Module and Kernel live in cyrt/kernels.

from cyrt.driver.cuda cimport CUfunction, CUfunction_attribute, CUmodule

cdef class LoadedModule:
    cdef CUmodule handle
    cdef readonly int ordinal
    cdef unsigned int epoch
    cdef object __weakref__

cdef class LoadedFunction:
    cdef CUfunction handle
    cdef readonly LoadedModule module   # code lives as long as a handle into it
    cdef readonly str name
    cdef readonly int max_threads       # per block, as its registers allow
    cdef readonly int static_smem       # bytes of shared memory it declares itself
    cdef int dynamic_smem               # bytes that a launch may ask for now

    cdef int attribute(self, CUfunction_attribute which) except? -1

# Lets launches ask for that much dynamic shared memory; ValueError where the device has less.
cdef int allow_smem(LoadedFunction function, unsigned int nbytes) except -1
