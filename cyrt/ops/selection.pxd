# What a key with arrays of indices and masks selects.

from cyrt.ndarray cimport Array
from cyrt.ops.promotion cimport NUM_DTYPES

# Of arrays of indices, by the code of their type: see kernels/gathering.pxd; -1: no integers.
cdef int[NUM_DTYPES] kinds

# A key made plain: a view, and arrays of integers for some of its dimensions.
cdef class Selection:
    cdef Array view
    cdef list arrays
    cdef list dims              # of the view, the first that each is for
    cdef list spans             # and for how many it is: more than one, of a mask's flat positions
    cdef int place              # in the result, of what the arrays are broadcast to

    cdef void add(self, object array, int dim, int span)

cdef bint is_indices(object part)
# Whether a key is arrays of integers and nothing else.
cdef bint all_indices(object key)
# The items of a key; with an Ellipsis, for every dimension.
cdef list plain_parts(object key, int ndim)
# The mask that is all of a key, but for dimensions taken whole after it; else None.
cdef object lone_mask(list parts)
# IndexError where the sizes of a mask are not the array's from an axis on.
cdef int check_mask(object mask, Array x, int axis) except -1
# IndexError where indices are out of range: on the host, and in checking mode of all.
cdef int check_range(object index, int axis, long long size) except -1
# What the items of a key select of an array; what an array of integers selects along an axis, and
# those of a tuple along that and the next ones.
cdef Selection select(Array x, list parts)
cdef Selection along(Array x, object indices, int axis)
