"""Views that go along several dimensions at once: diagonals, windows; views of other types."""

from operator import index

from cyrt.dtypes import dtype as _dtype
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.ndarray cimport Array, check_size, itemsizes, shape_of, view_of
from cyrt.ops.shapes cimport array_of, axis_at, check_ndim


def diagonal(x, /, offset=0, axis1=0, axis2=1):
    """The diagonals of the matrices that two axes make: a view, which may be written.

    Parameters
    ----------
    x : Array
        At least two dimensions.
    offset : int
        Which diagonal: 0 the main one, above it positive, below negative.
    axis1, axis2 : int
        The matrices' rows and columns.

    Returns
    -------
    Array
        x's other dimensions, then the diagonal.

    Raises
    ------
    ValueError
        x has fewer than two dimensions, or the axes are one.
    numpy.exceptions.AxisError
        x has no such axis.
    """
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of(x)
    cdef long long k = index(offset), start = 0, length
    cdef int ndim = 0, d, row, column
    if array.ndim_ < 2:
        raise ValueError("diagonal: expected at least two dimensions, got shape "
                         f"{shape_of(array)}")
    row, column = axis_at(axis1, array.ndim_), axis_at(axis2, array.ndim_)
    if row == column:
        raise ValueError(f"diagonal: axis1 and axis2 are one axis, {row}")
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


def windows(x, length, /):
    """All runs of so many neighbours along the last axis, as a view that cannot be written.

    Parameters
    ----------
    x : Array
        At least as long as the windows.
    length : int

    Returns
    -------
    Array
        Of shape ``(..., n - length + 1, length)``.
    """
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of(x)
    cdef int last = array.ndim_ - 1, d
    check_ndim(array.ndim_ + 1)
    for d in range(array.ndim_):
        dims[d], steps[d] = array.dims[d], array.steps[d]
    dims[last], dims[last + 1] = array.dims[last] - length + 1, length
    steps[last + 1] = array.steps[last]
    check_size(array.ndim_ + 1, dims)
    return view_of(array, array.code, array.ndim_ + 1, dims, steps, 0)


def viewed(x, dtype, /):
    """The bytes of an array as elements of another type: a view.

    Parameters
    ----------
    x : Array
    dtype : DType
        Of another size than x's elements, the last dimension becomes longer or shorter: it has to
        be contiguous, and a multiple of the new elements' size.

    Raises
    ------
    ValueError
        There is no such view.
    """
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef Array array = array_of(x)
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
                         f"{array.strides} is no view of {_dtype(dtype)}: another size of elements "
                         "needs a contiguous last dimension of a multiple of it")
    check_size(array.ndim_, dims)
    return view_of(array, code, array.ndim_, dims, steps, 0)


def layout(x, /):
    """How an array lies in memory.

    Returns
    -------
    tuple of bool
        Contiguous in C order, in Fortran's; may be written; is the memory's own array, no view.
    """
    cdef Array array = array_of(x)
    cdef Array reversed_ = array.T
    cdef bint writable = True
    cdef int d
    for d in range(array.ndim_):
        writable = writable and (array.steps[d] != 0 or array.dims[d] < 2)
    return bool(array.dense), bool(reversed_.dense), bool(writable), array.base is None


def origin(x, /):
    """The address of the first element, to compare: it is not handed out as `Array.ptr` is."""
    return array_of(x).address
