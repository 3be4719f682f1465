"""Memory that kernels need besides their operands."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.dispatch cimport record_elementwise
from cyrt.kernels.entries cimport Operand, dtype_code, op_code
from cyrt.runtime.memory cimport Buffer

cdef int COPY = op_code("copy"), UINT32 = dtype_code("uint32")


cdef int fill_zeros(Recorder encoder, Buffer scratch, long long nbytes) except -1:
    """As a kernel: a memset node among kernels makes a graph's launch slow."""
    cdef Operand[2] operands
    cdef long long count = nbytes // 4
    memset(operands, 0, sizeof(operands))
    operands[0].buffer = <PyObject*>scratch
    operands[0].address = scratch.address
    return record_elementwise(encoder, COPY, UINT32, operands, 1, &count)
