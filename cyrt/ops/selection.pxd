# Selection by a key with arrays of indices and masks.

from cyrt.ndarray cimport Array
from cyrt.ops.promotion cimport NUM_DTYPES

# Kinds of arrays of indices, by the code of their type: see builtin/gather.pxd; -1: no integers.
cdef int[NUM_DTYPES] kinds

# A parsed key: a view, and arrays of integers for some of its dimensions.
cdef class Selection:
    cdef Array view
    cdef list arrays
    cdef list dims              # the first dimension of the view that each array indexes
    # the number of dimensions that each indexes: several for a mask's flat positions
    cdef list spans
    cdef int axis               # the first dimension of the broadcast indices in the result

    cdef void add(self, object array, int dim, int span)

cdef bint is_indices(object part)
# Return whether a key is arrays of integers and nothing else.
cdef bint all_indices(object key)
# Return the items of a key; with an Ellipsis, for every dimension.
cdef list parse_items(object key, int ndim)
# Return the mask of a key that is one mask, followed by whole dimensions at most; otherwise None.
cdef object only_mask(list parts)
# Raise an IndexError if the sizes of a mask differ from the array's from an axis on.
cdef int check_mask(object mask, Array x, int axis) except -1
# Raise an IndexError if indices on the host are out of range; in checking mode, any indices.
cdef int check_range(object index, int axis, long long size) except -1
# Return the selection of a key's items from an array; the selection of an array of integers along
# an axis, or of a tuple of them along that axis and the next ones.
cdef Selection select(Array x, list parts)
cdef Selection along(Array x, object indices, int axis)
