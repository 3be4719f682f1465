"""Shapes of Python code, and the limit of their number of elements."""

from cpython.bool cimport PyBool_Check
from cpython.number cimport PyIndex_Check, PyNumber_Index

from cyrt.builtin.space cimport MAX_NDIM

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


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


cdef int refuse_shape(object shape, object size) except -1:
    """Raise the error of a shape that has such a size."""
    if not PyIndex_Check(size) or PyBool_Check(size):
        advice = "; the order goes by name, order='F'" if "C" in shape or "F" in shape else ""
        raise TypeError(f"shape: expected ints, got {type(size).__name__} in {shape}{advice}")
    if PyNumber_Index(size) < 0:
        raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
    raise ValueError(f"shape {shape} has more elements than memory can hold")


cdef int read_sizes(tuple shape, long long* dims, int* unknown) except -1:
    cdef long long size
    cdef int d = 0, overflow
    if len(shape) > MAX_NDIM:
        raise ValueError(f"shape: expected at most {MAX_NDIM} dimensions, got {len(shape)}")
    for each in shape:
        if not PyIndex_Check(each) or PyBool_Check(each):
            refuse_shape(shape, each)
        size = PyLong_AsLongLongAndOverflow(each, &overflow)
        if size == -1 and not overflow and unknown != NULL:
            if unknown[0] >= 0:
                raise ValueError(f"reshape: only one size may be -1, got {shape}")
            unknown[0] = d
            size = 1
        if overflow or size < 0 or size > MOST:
            refuse_shape(shape, each)
        dims[d] = size
        d += 1
    return d


cdef tuple tuple_of_shape(object shape):
    if PyIndex_Check(shape) and not getattr(shape, "ndim", 0):
        return (shape,)
    try:
        return tuple(shape)
    except TypeError:
        raise TypeError(f"shape: expected an int or a tuple of ints, got "
                        f"{type(shape).__name__}") from None


cdef int dims_of(object shape, long long* dims) except -1:
    return read_sizes(shape if type(shape) is tuple else tuple_of_shape(shape), dims, NULL)
