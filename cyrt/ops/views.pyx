"""Views along several dimensions at once: diagonals, windows; views of other types."""

from operator import index
from types import SimpleNamespace

import numpy as np

from cyrt.dtypes import dtype as _dtype
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.error_text import show
from cyrt.ndarray cimport Array, are_apart, itemsizes, shape_of, view_of
from cyrt.ops.shapes cimport array_of, axis_at, check_ndim
from cyrt.runtime.memory cimport READ_ONLY
from cyrt.shape cimport check_size
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call


def diagonal(x, /, offset=0, axis1=0, axis2=1):
    """Return the diagonals of the matrices along two axes as a writable view.

    Parameters
    ----------
    x : Array
        An array of at least two dimensions.
    offset : int
        The diagonal: 0 is the main one, positive numbers are above it, negative ones below.
    axis1, axis2 : int
        The axes of the matrices' rows and columns.

    Returns
    -------
    Array
        A view whose last dimension is the diagonal, after x's other dimensions.

    Raises
    ------
    ValueError
        x has fewer than two dimensions, or the axes are equal.
    numpy.exceptions.AxisError
        x has no such axis.
    """
    if recording and is_followed(x):
        return record_call(diagonal, (x, offset, axis1, axis2))
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("diagonal", x)
    cdef long long k = index(offset), start = 0, length
    cdef int ndim = 0, d, row, column
    if array.ndim_ < 2:
        raise ValueError("diagonal: expected at least two dimensions, got shape "
                         f"{shape_of(array)}")
    row, column = axis_at(axis1, array.ndim_), axis_at(axis2, array.ndim_)
    if row == column:
        raise ValueError(f"diagonal: expected two different axes, got {axis1} and {axis2}")
    for d in range(array.ndim_):
        if d != row and d != column:
            dims[ndim], steps[ndim] = array.dims[d], array.steps[d]
            ndim += 1
    k = max(-array.dims[row], min(k, array.dims[column]))
    length = min(array.dims[row] + min(k, 0), array.dims[column] - max(k, 0))
    if array.count and length:
        start = k * array.steps[column] if k > 0 else -k * array.steps[row]
    dims[ndim], steps[ndim] = length, array.steps[row] + array.steps[column]
    return view_of(array, array.code, ndim + 1, dims, steps, start)


def read_only(Array x not None, /):
    """Return a view of x that cannot be written."""
    cdef Array view = view_of(x, x.code, x.ndim_, x.dims, x.steps, 0)
    view.traits |= READ_ONLY
    return view


def windows(x, length, /):
    """Return all windows of `length` neighbours along the last axis as a view, which is read-only
    if windows overlap.

    Parameters
    ----------
    x : Array
        An array that is at least as long as the windows.
    length : int

    Returns
    -------
    Array
        A view of shape ``(..., n - length + 1, length)``.
    """
    if recording and is_followed(x):
        return record_call(windows, (x, length))
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("sliding_window_view", x), view
    cdef int last = array.ndim_ - 1, d
    check_ndim(array.ndim_ + 1)
    for d in range(array.ndim_):
        dims[d], steps[d] = array.dims[d], array.steps[d]
    dims[last], dims[last + 1] = array.dims[last] - length + 1, length
    steps[last + 1] = array.steps[last]
    check_size(array.ndim_ + 1, dims)
    view = view_of(array, array.code, array.ndim_ + 1, dims, steps, 0)
    if not are_apart(view):
        view.traits |= READ_ONLY
    return view


def view_as(x, dtype, /):
    """View the bytes of an array as elements of another type.

    Parameters
    ----------
    x : Array
    dtype : DType
        The new element type. If its size differs, the last dimension becomes longer or shorter; the
        dimension must be contiguous, and its size in bytes a multiple of the new element's.

    Raises
    ------
    ValueError
        Such a view is not possible.
    """
    if recording and is_followed(x):
        return record_call(view_as, (x, dtype))
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of("view", x)
    if isinstance(dtype, (int, tuple)):
        raise TypeError(f"view: expected an element type, got {show(dtype)}; "
                        f"reshape({show(dtype)}) views "
                        "the elements in another shape")
    cdef int code = _dtype(dtype).code, last = array.ndim_ - 1, d
    cdef long long old = itemsizes[array.code], new = itemsizes[code]
    cdef bint fits = True
    for d in range(array.ndim_):
        dims[d], steps[d] = array.dims[d], array.steps[d] * old
        fits = fits and (d == last or dims[d] < 2 or steps[d] % new == 0)
        steps[d] //= new
    if old != new:
        fits = fits and last >= 0 and array.address % new == 0
        if fits:
            fits = ((array.dims[last] == 1 or array.steps[last] == 1)
                    and array.dims[last] * old % new == 0)
            dims[last], steps[last] = array.dims[last] * old // new, 1
    if not fits:
        raise ValueError(f"view: an array of {array.dtype}, shape {shape_of(array)} and strides "
                         f"{array.strides} cannot be viewed as {_dtype(dtype)}: elements of "
                         "another size need a contiguous last dimension of a multiple of it")
    check_size(array.ndim_, dims)
    return view_of(array, code, array.ndim_, dims, steps, 0)


def layout(x, /):
    """Return how an array is stored in memory.

    Returns
    -------
    tuple of bool
        Whether it is contiguous in C order, contiguous in Fortran order, writable, and the owner of
        its memory.
    """
    cdef Array array = array_of("layout", x)
    cdef Array reversed_ = array.T
    return (bool(array.dense), bool(reversed_.dense), not array.traits & READ_ONLY,
            array.base is None)


def outline(x, /):
    """Return a NumPy array with x's address, shape and strides, whose elements must not be read."""
    return np.asarray(SimpleNamespace(__array_interface__={
        "version": 3,
        "data": (origin(x), True),
        "shape": x.shape,
        "strides": x.strides,
        "typestr": f"|V{x.itemsize}",
    }))


def origin(x, /):
    """Return the address of the first element for comparison, without the effects of
    `Array.ptr`."""
    return array_of("origin", x).address
