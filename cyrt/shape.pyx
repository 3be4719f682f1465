"""Shapes of Python code, and the limit of their number of elements."""

from cpython.number cimport PyIndex_Check, PyNumber_Index

from cyrt.builtin.space cimport MAX_NDIM


cdef int refuse_size(int ndim, const long long* dims) except -1:
    shape = tuple([dims[i] for i in range(ndim)])
    raise ValueError(f"shape {shape} has more elements than memory can hold")


cdef int check_size(int ndim, const long long* dims) except -1:
    cdef long long count = 1
    cdef int d
    for d in range(ndim):
        if dims[d] and not multiply(&count, dims[d]):
            refuse_size(ndim, dims)
    return 0


cdef int dims_of(object shape, long long* dims) except -1:
    cdef int ndim = 0
    if PyIndex_Check(shape) and not getattr(shape, "ndim", 0):
        shape = (shape,)
    try:
        shape = tuple(shape)
    except TypeError:
        raise TypeError(f"shape: expected an int or a tuple of ints, got "
                        f"{type(shape).__name__}") from None
    if len(shape) > MAX_NDIM:
        raise ValueError(f"shape: expected at most {MAX_NDIM} dimensions, got {len(shape)}")
    for each in shape:
        if not PyIndex_Check(each):
            raise TypeError(f"shape: expected ints, got {type(each).__name__} in {shape}")
        size = PyNumber_Index(each)
        if size < 0:
            raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
        if size > MOST:
            raise ValueError(f"shape {shape} has more elements than memory can hold")
        dims[ndim] = size
        ndim += 1
    return ndim
