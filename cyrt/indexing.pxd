# Conversion of a key of ints, slices, None and Ellipsis to the shape and strides of a view.
#
# INVARIANTS
# - A view is within its source: ints are checked, slices are cut to the size.
# - Keys are read without creating Python objects.

cdef enum:
    BY_ARRAYS = -1

# Return the number of dimensions of the view; BY_ARRAYS if the key holds an array, a bool or a
# sequence. IndexError for a key of too many items.
cdef int view_ndim(object key, int ndim) except -2
# Set the view's shape and strides for a key that view_ndim accepted; return the offset of its
# first element. IndexError for an int out of bounds.
cdef long long read_key(object key, int ndim, const long long* dims, const long long* steps,
                        long long* view_dims, long long* view_steps) except? -1
# Return an index counted from 0.
cdef long long index_at(object index, int axis, long long size) except? -1
