# Kernels and their launch.

from cyrt.driver.cuda cimport CUfunction
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.kernels.packing cimport Param
from cyrt.runtime.module cimport LoadedFunction

cdef class Kernel:
    cdef readonly object module         # cyrt.kernels.Module
    cdef readonly str name
    cdef str symbol
    cdef object signature_              # jit.signature.Signature
    cdef list loaded                    # per device: LoadedFunction or None
    cdef Param* params
    cdef int num_params
    cdef unsigned int param_bytes
    cdef object __weakref__

    cdef LoadedFunction load(self, int ordinal)

cdef class Launch:
    cdef Kernel kernel
    cdef unsigned int grid[3]
    cdef unsigned int block[3]
    cdef unsigned int smem
