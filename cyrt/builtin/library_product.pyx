"""Products of matrices by cuBLASLt."""

from functools import partial

from libc.string cimport memcpy

from cyrt.builtin cimport library
from cyrt.builtin.launch cimport WHOLE, record_call
from cyrt.builtin.library cimport CUBLASLT, bindings_of, learn_call
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.dtypes import DTYPES
from cyrt.graph.exact_key cimport Key, add_word
from cyrt.graph.template cimport ALIGNMENT, Template, begin_call_key, find_template, refuse
from cyrt.runtime.device cimport Device, context_of
from cyrt.runtime.memory cimport Memory

# The maximum size of the workspace in bytes, from compute capability 9.0 on, and before that.
WORKSPACE = {True: 32 << 20, False: 4 << 20}

for _each in DTYPES:
    is_library_type[<int>_each.code] = _each.name in (
        "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def decide(int ordinal, served=None):
    """Use the library on a device or not, whatever the device is; None: decide at the next product.
    For tests, which have a library for the emulated device."""
    library.decide(CUBLASLT, ordinal, served)


cdef bint is_matrix_layout(long long rows, long long columns, long long row_step,
                           long long column_step, long long* step, bint* transposed) noexcept:
    """Return whether the library reads such a matrix. Set whether it is the transpose of the matrix
    in memory, which is stored by columns, and the elements between the columns there."""
    transposed[0] = False
    step[0] = column_step if columns > 1 else rows
    if (row_step == 1 or rows == 1) and step[0] >= rows:
        return True
    transposed[0] = True
    step[0] = row_step if rows > 1 else columns
    return (column_step == 1 or columns == 1) and step[0] >= columns


cdef inline int alignment_of(CUdeviceptr address) noexcept:
    """Return the largest power of two that divides the address, at most ALIGNMENT."""
    cdef int rest = <int>(address % ALIGNMENT)
    return rest & -rest if rest else ALIGNMENT


cdef Template find_product(int ordinal, const Matrices* p):
    cdef Key key
    cdef Template template
    cdef int i
    cdef int count = 4 if p.beta[0] or p.beta[1] else 3
    cdef unsigned long long alignments = 0
    cdef bint scaled
    cdef unsigned long long[4] factors
    begin_call_key(&key, CUBLASLT, ordinal)
    for i in range(count):
        alignments = alignments << 8 | alignment_of(p.operands[i].address)
    scaled = count == 4 or p.alpha[0] != 1 or p.alpha[1] != 0
    add_word(&key, alignments << 32 | p.dtype << 16 | p.out_dtype << 8 | (count == 4) << 2
             | scaled << 1 | library.tf32)
    add_word(&key, <unsigned long long>p.m << 32 | <unsigned long long>p.n)
    add_word(&key, <unsigned long long>p.k << 32 | <unsigned long long>p.batch)
    add_word(&key, p.a_m)
    add_word(&key, p.a_k)
    add_word(&key, p.b_k)
    add_word(&key, p.b_n)
    if p.batch > 1:
        add_word(&key, p.a_batch)
        add_word(&key, p.b_batch)
    if scaled:
        memcpy(factors, p.alpha, sizeof(p.alpha))
        memcpy(factors + 2, p.beta, sizeof(p.beta))
        for i in range(4):
            add_word(&key, factors[i])
    if count == 4:
        add_word(&key, p.c_m)
        add_word(&key, p.c_n)
    template = find_template(&key)
    return prepare(ordinal, p, count, &key) if template is None else template


cdef int record_library_product(Recorder encoder, Template template, const Operand* operands,
                                int count) except -1:
    cdef Memory workspace = None
    if template.workspace:
        workspace = allocate_workspace(encoder, template.workspace)
    return record_call(encoder, template, operands, count, 1 | WHOLE, workspace)


cdef object matrix(const Matrices* p, int operand, int dtype, long long rows, long long columns,
                   long long row_step, long long column_step, long long batch_step):
    """Return the library's description of a matrix; None if it cannot read such a matrix."""
    cdef long long step
    cdef bint transposed
    if batch_step < 0 \
            or not is_matrix_layout(rows, columns, row_step, column_step, &step, &transposed):
        return None
    if transposed:
        rows, columns = columns, rows
    return bindings_of(CUBLASLT).Matrix(
        DTYPES[dtype].name, rows, columns, step, bool(transposed), batch_step,
        alignment_of(p.operands[operand].address))


cdef Template prepare(int ordinal, const Matrices* p, int count, Key* key):
    """Learn the product, or learn that the library does not provide it.

    The library stores matrices by columns, so in its terms the result is the transpose, and the
    factors are exchanged.
    """
    cublaslt = bindings_of(CUBLASLT)
    out = matrix(p, 0, p.out_dtype, p.n, p.m, 1, p.n, p.m * p.n)
    b = matrix(p, 2, p.dtype, p.n, p.k, p.b_n, p.b_k, p.b_batch if p.batch > 1 else 0)
    a = matrix(p, 1, p.dtype, p.k, p.m, p.a_k, p.a_m, p.a_batch if p.batch > 1 else 0)
    c = out if count == 3 else matrix(p, 3, p.out_dtype, p.n, p.m, p.c_n, p.c_m, 0)
    if a is None or b is None or c is None or c.transposed:
        return refuse(key, ordinal, "the library reads no such strides")
    make = partial(
        cublaslt.Product, cublaslt.find()[0], ordinal, context_of(ordinal).epoch, (b, a, c, out),
        p.batch, complex(p.alpha[0], p.alpha[1]), complex(p.beta[0], p.beta[1]),
        tf32=bool(library.tf32),
        most_workspace=WORKSPACE[Device(ordinal).compute_capability >= (9, 0)])
    return learn_call(CUBLASLT, key, ordinal, make, p.operands, count,
                      p.batch * p.m * p.n * DTYPES[p.out_dtype].itemsize)
