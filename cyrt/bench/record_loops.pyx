"""Loops in C that record a built-in kernel, a product or a library's call."""

from libc.string cimport memset

from cpython.object cimport PyObject

from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport record_kernel
from cyrt.graph.recording cimport Geometry, Use
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.matmul cimport record_product
from cyrt.builtin.operand cimport Operand
from cyrt.graph.template cimport Template, record_template
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
        record_kernel(encoder, function, &geometry, params, uses, 3, None, False, 0, NULL, NULL)
    return cyrt_dispatch_now() - begin


def record_matmul(Recorder encoder not None, str dtype, Buffer out not None, Buffer a not None,
                  Buffer b not None, long long m, long long k, long long n, int rounds):
    """Seconds that recording the product ``out = a @ b`` takes, of shapes (m, k) and (k, n)."""
    cdef Operand operands[3]
    cdef long long[2] shape
    cdef long long[2] a_steps
    cdef long long[2] b_steps
    cdef int dtype_index = dtype_code(dtype)
    cdef double begin
    memset(operands, 0, sizeof(operands))
    operands[0].buffer, operands[0].address = <PyObject*>out, out.address
    operands[1].buffer, operands[1].address = <PyObject*>a, a.address
    operands[2].buffer, operands[2].address = <PyObject*>b, b.address
    shape[0], shape[1] = m, n
    a_steps[0], a_steps[1] = k, 1
    b_steps[0], b_steps[1] = n, 1
    operands[1].strides, operands[2].strides = a_steps, b_steps
    begin = cyrt_dispatch_now()
    for _round in range(rounds):
        record_product(encoder, dtype_index, operands, 2, shape, k, False)
    return cyrt_dispatch_now() - begin


def record_repointed(Recorder encoder not None, Template template not None, Buffer out not None,
                     Buffer a not None, Buffer b not None, int rounds):
    """Seconds that recording a template's call takes, of the operands out, a and b."""
    cdef Use uses[3]
    cdef unsigned long long[3] addresses
    cdef double begin
    addresses[0], addresses[1], addresses[2] = out.address, a.address, b.address
    uses[0].block, uses[0].access = live_block(a), READ
    uses[1].block, uses[1].access = live_block(b), READ
    uses[2].block, uses[2].access = live_block(out), WRITE
    begin = cyrt_dispatch_now()
    for _round in range(rounds):
        record_template(encoder, template, addresses, 3, uses, 3, None)
    return cyrt_dispatch_now() - begin
