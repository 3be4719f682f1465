# Elements picked by arrays of indices, and put there: which kernel, grid and parameters.

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.graph.recorder cimport Recorder
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Explained, Operand

cdef enum:
    MAX_INDICES = 6         # arrays of indices, at most

# What an array of indices does in the space.
cdef struct Index:
    long long size              # of the dimension that it indexes, at least 1
    long long stride            # of that dimension, in elements
    int kind                    # log2 of its items' bytes, plus 4 where they have no sign
    long long[MAX_NDIM] strides     # its own, in elements, 0 where it is repeated

# An index space; the last dimension varies fastest.
cdef struct Picks:
    int ndim, count             # dimensions; arrays of indices
    long long[MAX_NDIM] shape
    long long[MAX_NDIM] here    # strides in elements, of what the indices have no say in
    long long[MAX_NDIM] there   # and of the other, where they are of no dimension that is indexed
    Index[MAX_INDICES] index

# Records here = there[indices], or with `put` there[indices] = here. Operands: `here`, which may be
# a value where it is put; `there`; the arrays of indices. `itemsize` is that of the elements. The
# space is simplified in place. Negative indices count from the end; what lies outside is taken for
# the nearest inside. With `explained` the encoder may be None.
cdef int record_picks(Recorder encoder, int ordinal, bint put, int itemsize, Operand* operands,
                      Picks* space, Explained explained) except -1
