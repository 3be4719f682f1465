# Reads and writes of elements at arrays of indices: the launches of gather.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.graph.commit cimport Recorder

cdef extern from "params/gather.h" nogil:
    enum: MAX_INDICES           # the most arrays of indices

# An array of indices within the space.
cdef struct Indices:
    long long size              # the indexed dimension's size, at least 1
    long long stride            # the indexed dimension's stride in elements
    int kind                    # log2 of the bytes of an index, plus 4 if it is unsigned
    # The strides of the array of indices, in elements; 0: the dimension is broadcast.
    long long[MAX_NDIM] strides

# An index space; the last dimension varies fastest. `here` is an array of the space's shape, and
# `there` is the indexed array. Strides are in elements.
cdef struct GatherSpace:
    int ndim, count             # dimensions; arrays of indices
    long long[MAX_NDIM] shape
    long long[MAX_NDIM] here
    # The strides of the dimensions that are not indexed; 0 along the dimensions of the indices.
    long long[MAX_NDIM] there
    Indices[6] indices          # MAX_INDICES

# The operation that is recorded; the numbers are indices in GATHERINGS of builtin/gather.pyx.
cdef enum:
    TAKEN = 0                   # here = there[indices]
    WRITTEN = 1                 # there[indices] = here
    LOCATED = 2                  # here = the offsets of there[indices], uint32 or uint64

# Record a gathering. Operands: `here`, which may be a number where it is written; `there`; the
# arrays of indices. `itemsize` is the size of an element. Offsets are in elements; the
# address of `there` is what is added to all of them, and its memory is not touched. The space is
# simplified in place. Negative indices count from the end; an index out of range traps on the
# emulated device, and is clipped to the range on a GPU.
cdef int record_gather(Recorder encoder, int how, int itemsize, Operand* operands,
                       GatherSpace* space) except -1
