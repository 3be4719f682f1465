"""Loops in C that record a built-in kernel, chosen each time or ready."""

from libc.string cimport memset

from cpython.object cimport PyObject

from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport record_kernel
from cyrt.graph.recording cimport Geometry, Use
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.operand cimport Operand
from cyrt.kernels.kernel cimport Kernel
from cyrt.runtime.memory cimport Buffer, live_block
from cyrt.runtime.state cimport READ, WRITE

cdef extern from *:
    """
    #include <time.h>
    static inline double cyrt_dispatch_now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec + t.tv_nsec * 1e-9;
    }
    """
    double cyrt_dispatch_now() noexcept nogil


def record_binary(Recorder encoder not None, str op, str dtype, Buffer out not None,
                  Buffer a not None, Buffer b not None, long long n, int rounds):
    """Seconds that recording ``out = op(a, b)`` takes, `rounds` times, on n elements."""
    cdef Operand operands[3]
    cdef int op_index = op_code(op), dtype_index = dtype_code(dtype)
    cdef double begin
    memset(operands, 0, sizeof(operands))
    operands[0].buffer, operands[0].address = <PyObject*>out, out.address
    operands[1].buffer, operands[1].address = <PyObject*>a, a.address
    operands[2].buffer, operands[2].address = <PyObject*>b, b.address
    begin = cyrt_dispatch_now()
    for _round in range(rounds):
        record_elementwise(encoder, op_index, dtype_index, operands, 1, &n)
    return cyrt_dispatch_now() - begin


def record_ready(Recorder encoder not None, Kernel kernel not None, Buffer out not None,
                 Buffer a not None, Buffer b not None, int rounds):
    """Seconds that recording ``kernel(a, b, out, ...)`` takes with all of it chosen and packed.

    The kernel's other parameters are zero.
    """
    cdef Use uses[3]
    cdef Geometry geometry
    cdef char params[256]
    cdef double begin
    function = kernel.load(encoder.state.ordinal)
    memset(params, 0, sizeof(params))
    geometry.grid[:] = [1, 1, 1]
    geometry.block[:] = [32, 1, 1]
    geometry.smem = 0
    uses[0].block, uses[0].access = live_block(a), READ
    uses[1].block, uses[1].access = live_block(b), READ
    uses[2].block, uses[2].access = live_block(out), WRITE
    begin = cyrt_dispatch_now()
    for _round in range(rounds):
        record_kernel(encoder, function, &geometry, params, uses, 3, None, False, 0, NULL)
    return cyrt_dispatch_now() - begin
