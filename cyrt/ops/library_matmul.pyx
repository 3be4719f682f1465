"""Products of matrices that only a library multiplies: with an addend, or of a wider type."""

from libc.string cimport memset

from cyrt.builtin.entry cimport dtype_code
from cyrt.builtin.library cimport CUBLASLT, is_served
from cyrt.builtin.library_product cimport (
    Matrices, is_large, is_library_type, record_library_product,
)
from cyrt.builtin.operand cimport Operand
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, device_of, new_array_on, set_operand
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef int INT8 = dtype_code("int8"), INT32 = dtype_code("int32")


cdef Array multiply_by_library(Array a, Array b, Array c, int code, double alpha, double beta):
    cdef Matrices p
    cdef Operand[4] operands
    cdef long long[2] dims
    cdef int ordinal = device_of(a)
    cdef StreamState* stream
    cdef Array out
    if a.ndim_ != 2 or b.ndim_ != 2 or a.code != b.code or a.dims[1] != b.dims[0] \
            or device_of(b) != ordinal or not (is_library_type[code] and a.code == code
                                               or a.code == INT8 and code == INT32):
        return None
    memset(&p, 0, sizeof(p))
    p.operands, p.dtype, p.out_dtype = operands, a.code, code
    p.m, p.n, p.k, p.batch = a.dims[0], b.dims[1], a.dims[1], 1
    p.a_m, p.a_k, p.b_k, p.b_n = a.steps[0], a.steps[1], b.steps[0], b.steps[1]
    p.alpha, p.beta = [alpha, 0], [beta, 0]
    if p.m < 2 or p.n < 2 or not is_large(&p) or not is_served(CUBLASLT, ordinal):
        return None
    if c is not None:
        if c.ndim_ != 2 or c.code != code or device_of(c) != ordinal or c.dims[0] != p.m \
                or c.dims[1] != p.n:
            return None
        p.c_m, p.c_n = c.steps[0], c.steps[1]
        set_operand(&operands[3], c)
    stream = current_state(ordinal)
    dims[0], dims[1] = p.m, p.n
    out = new_array_on(stream, code, 2, dims)
    set_operand(&operands[0], out)
    set_operand(&operands[1], a)
    set_operand(&operands[2], b)
    return out if record_library_product(encoder_of(stream), &p) else None
