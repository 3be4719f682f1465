# C-level functions only: see workspace.pxd.
"""Temporary memory of kernels."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.pool cimport allocate

cdef int COPY = op_code("copy"), UINT32 = dtype_code("uint32")


cdef Memory allocate_workspace(Recorder encoder, long long nbytes):
    cdef Memory memory = Memory.__new__(Memory)
    memory.block = allocate(encoder.state, nbytes)
    memory.address = memory.block.address
    memory.size = nbytes
    return memory


cdef int fill_zeros(Recorder encoder, Memory workspace, long long nbytes) except -1:
    """Record a kernel instead of a memset node, which makes a graph's launch slow between
    kernels."""
    cdef Operand[2] operands
    cdef long long count = nbytes // 4
    memset(operands, 0, sizeof(operands))
    operands[0].buffer = <PyObject*>workspace
    operands[0].address = workspace.address
    return record_elementwise(encoder, COPY, UINT32, operands, 1, &count)
