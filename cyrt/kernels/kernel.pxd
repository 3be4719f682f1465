# Kernels and their launch.

from cyrt.driver.cuda cimport CUfunction
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.graph.recording cimport Geometry
from cyrt.kernels.packing cimport Param
from cyrt.kernels.vectorcall cimport Vectorcall
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
    cdef bint pdl
    cdef bint opaque                    # may reach memory that no argument names
    cdef dict resident                  # blocks that run at once, by (device, threads, smem)
    cdef dict blocks                    # for_each's, by (device, bits of n, smem)
    cdef tuple config                   # [grid, block, smem], given last, and what was read of it
    cdef Geometry geometry
    cdef object __weakref__

    cdef object block_for(self, n, unsigned int smem)
    cdef LoadedFunction load(self, int ordinal)

cdef class Launch:
    cdef Vectorcall vectorcall
    cdef Kernel kernel
    cdef Geometry geometry
