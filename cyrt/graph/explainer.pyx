# C-level functions only: see explainer.pxd.
"""A recorder that lists operations."""

from libc.limits cimport INT_MAX


cdef class Explainer(Recorder):
    def __cinit__(self):
        self.operations = []
        self.policy.complete = INT_MAX      # no operation completes a batch


cdef int list_operation(Explainer self, const Operation* operation) except -1:
    cdef tuple grid = None, block = None
    cdef unsigned int smem = 0
    if operation.geometry != NULL:
        grid = operation.geometry.grid[0], operation.geometry.grid[1], operation.geometry.grid[2]
        block = operation.geometry.block[0], operation.geometry.block[1], \
            operation.geometry.block[2]
        smem = operation.geometry.smem
    self.operations.append((
        <int>operation.kind, None if operation.owner == NULL else <object>operation.owner, grid,
        block, smem, (<const char*>operation.params)[:operation.param_bytes]))
    return 0
