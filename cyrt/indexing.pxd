# Conversion of a key of ints, slices, None and Ellipsis to the shape and strides of a view.
#
# INVARIANTS
# - A view is within its source: ints are checked, slices are cut to the size.
# - Keys are read without creating Python objects.

from cyrt.builtin.space cimport MAX_NDIM

cdef struct View:
    int ndim
    long long offset            # the first element's, in elements
    long long[MAX_NDIM] dims    # shape
    long long[MAX_NDIM] steps   # strides in elements

# Set the view of an array of that shape and strides. Return False if the key holds an array, a bool
# or a sequence. IndexError for a key of too many items, or an int out of bounds.
cdef bint read_key(object key, int ndim, const long long* dims, const long long* steps,
                   View* view) except -1
# Return an index counted from 0.
cdef long long index_at(object index, int axis, long long size) except? -1
