"""Views whose elements are repeated along axes of size 1 and new axes."""

from cyrt.builtin.space cimport MAX_NDIM, tuple_of_sizes
from cyrt.ndarray cimport Array, shape_of, view_of
from cyrt.ops.copy cimport broadcast_steps
from cyrt.ops.shapes cimport array_of
from cyrt.shape cimport check_size, dims_of
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call


cdef int join(int ndim, long long* dims, int other_ndim, const long long* other) noexcept:
    """Broadcast a shape into another; return its number of dimensions, -1 if they do not
    broadcast."""
    cdef int d, grow = other_ndim - ndim
    if grow > 0:
        for d in range(ndim - 1, -1, -1):
            dims[d + grow] = dims[d]
        for d in range(grow):
            dims[d] = 1
        ndim = other_ndim
    for d in range(other_ndim):
        if dims[d + ndim - other_ndim] == 1:
            dims[d + ndim - other_ndim] = other[d]
        elif other[d] != 1 and other[d] != dims[d + ndim - other_ndim]:
            return -1
    return ndim


cdef Array spread(Array x, int ndim, const long long* dims):
    """Return a view broadcast to a shape."""
    cdef long long[MAX_NDIM] steps
    if x.ndim_ > ndim:
        raise ValueError(f"shape {shape_of(x)} does not broadcast to "
                         f"{tuple_of_sizes(ndim, dims)}: it has more dimensions")
    broadcast_steps(x, ndim, dims, steps)
    check_size(ndim, dims)
    return view_of(x, x.code, ndim, dims, steps, 0)


def broadcast_to(x, /, shape):
    """Return a view of another shape, with elements repeated along axes of size 1 and new axes.

    Parameters
    ----------
    x : Array
        An array of any type.
    shape : int or tuple of int
        The new shape.

    Returns
    -------
    Array
        A view. If its elements share memory it is read-only, and so are views of it.

    Raises
    ------
    ValueError
        x does not broadcast to the shape.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.broadcast_to(cyrt.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int64)
    """
    if recording and is_followed(x):
        return record_call(broadcast_to, (x, shape))
    cdef long long[MAX_NDIM] dims
    cdef Array array = array_of("broadcast_to", x)
    return spread(array, dims_of(shape, dims), dims)


def broadcast_arrays(*arrays):
    """Return views of arrays in their common broadcast shape, a tuple; see :func:`broadcast_to`."""
    cdef long long[MAX_NDIM] dims
    cdef list inputs = [array_of("broadcast_arrays", each) for each in arrays]
    cdef int ndim = 0
    for each in inputs:
        ndim = join(ndim, dims, (<Array>each).ndim_, (<Array>each).dims)
        if ndim < 0:
            shapes = " and ".join([str(shape_of(<Array>x)) for x in inputs])
            raise ValueError(f"broadcast_arrays: shapes {shapes} do not broadcast")
    shape = tuple_of_sizes(ndim, dims)
    return tuple([broadcast_to(each, shape) for each in inputs])


def broadcast_shapes(*shapes):
    """Return the broadcast shape of several shapes, a tuple of int.

    Parameters
    ----------
    *shapes : int or tuple of int

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        The shapes do not broadcast.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] other
    cdef int ndim = 0
    for each in shapes:
        ndim = join(ndim, dims, dims_of(each, other), other)
        if ndim < 0:
            raise ValueError("broadcast_shapes: shapes "
                             f"{' and '.join([str(x) for x in shapes])} do not broadcast")
    return tuple_of_sizes(ndim, dims)
