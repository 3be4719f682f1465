# The command encoder: the recorder's public class.

from cyrt.graph.commit cimport Recorder

cdef class CommandEncoder(Recorder):
    # Raise an error unless the encoder is open and belongs to this thread.
    cdef int own(self) except -1
