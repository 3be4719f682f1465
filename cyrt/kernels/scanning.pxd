# How the kernels of scan.cu and compact.cu are launched.

from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.entries cimport Operand

# Sums or products, `op`, of the elements up to each: of operand 1, of shape (rows, n, inner), along
# its middle, into operand 0, of families.scan.result's type; with `initial` that is one longer
# there and begins with 0 or 1. Both contiguous.
cdef int record_scan(Recorder encoder, int op, int dtype, const Operand* operands, long long rows,
                     long long n, long long inner, bint initial) except -1

# Of a mask of n bools, operand 1, contiguous: tiles of this many.
cdef enum:
    MASK_TILE = 8192
# How many of each tile are true, into operand 0, int64.
cdef int record_counts(Recorder encoder, const Operand* operands, long long n) except -1
# What the mask selects, in order, into operand 0: of operand 2, n elements, contiguous; where its
# buffer is NULL their positions, int64. Operand 3 has, of each tile, how many are true before it,
# int64; its buffer may be NULL where there is one tile.
cdef int record_select(Recorder encoder, int dtype, const Operand* operands, long long n) except -1
