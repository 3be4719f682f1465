"""The functions of `builtin` that `graph` calls."""

from cyrt.builtin import background
from cyrt.builtin.fill cimport fill_launches, record_fill
from cyrt.graph cimport seam


cdef int fuse(object fusion) except -1:
    background.submit(fusion)
    return 0


seam.builtin.record_fill = record_fill
seam.builtin.fill_launches = fill_launches
seam.builtin.fuse = fuse
