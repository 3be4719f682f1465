# The command encoder: a recorder as the user sees it.

from cyrt.graph.commit cimport Recorder

cdef class CommandEncoder(Recorder):
    cdef int own(self) except -1
