# `CommandEncoder.add_kernel`: a kernel with its arguments, geometry and launch attributes.

from cyrt.graph.commit cimport Recorder

cdef int record_launch(Recorder recorder, kernel, grid, block, args, smem, cluster,
                       bint cooperative, reads, writes) except -1
