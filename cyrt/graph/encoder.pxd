# The command encoder: a recorder as the user sees it.

from cyrt.graph.commit cimport Recorder

cdef class CommandEncoder(Recorder):
    cdef int own(self) except -1

# Records `encoder.add_kernel`'s; cyrt/kernels, which knows what a Kernel is, puts itself here.
cdef int (*add_kernel)(CommandEncoder self, kernel, grid, block, args, smem, cluster,
                       bint cooperative, reads, writes) except -1
