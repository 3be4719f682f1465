# A recorder that lists operations instead of recording them. It waits for nothing, orders nothing,
# and never commits.

from cyrt.graph.commit cimport Recorder
from cyrt.graph.recording cimport Operation


cdef class Explainer(Recorder):
    cdef list operations        # (kind, owner or None, grid, block, shared bytes, parameters)

cdef int list_operation(Explainer self, const Operation* operation) except -1
