# Factorizations of matrices: the launches of linalg.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.state cimport StreamState

cdef extern from "params/linalg.h" nogil:
    enum:
        LINALG_UPPER
        LINALG_TRANSPOSED
        LINALG_CONJUGATE
        LINALG_UNIT
        LINALG_IDENTITY
        LINALG_LOG
        LINALG_VECTORS
        LINALG_HERMITIAN
        LINALG_REFLECTIONS
        LINALG_PART
        LINALG_ROWS
        LINALG_ROW_BYTES
        LINALG_LOWER
        LINALG_TILE
        LINALG_SWEEPS
        LINALG_SPARE
    cdef struct Linalg:
        unsigned long long a, b, x, y, z, info, failure, work
        long long work_size
        unsigned int site, m, n, k, flags, tiles, round

# The operands of a launch, each contiguous. Those that an operation does not have are empty.
cdef enum:
    X           # results
    Y
    Z
    INFO
    A
    B
    NUM_OPERANDS

# Return the address of the stream's failure word; see runtime/failure.
cdef unsigned long long failure_word(StreamState* stream) except? 0
# Return whether a block's shared memory can hold what it needs for a matrix.
cdef bint fits(StreamState* stream, int op, int dtype, const Linalg* params) except -1
# Record the launches of an operation on `batch` matrices, which are at least one. `params` has the
# sizes, the flags and the failure's site.
cdef int record_linalg(Recorder encoder, int op, int dtype, Linalg* params,
                       const Operand* operands, long long batch) except -1
