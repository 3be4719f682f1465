# `CommandEncoder.add_kernel`: a kernel with its arguments, geometry and launch attributes.

cdef int add_kernel(object encoder, kernel, grid, block, args, smem, cluster, bint cooperative,
                    reads, writes) except -1
