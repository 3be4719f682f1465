"""Operations along an axis, for kernels that take contiguous rows."""

from cyrt.builtin.space cimport MAX_NDIM
from cyrt.ndarray cimport Array, as_contiguous, view_of


cdef Array move_axis(Array x, int axis, int to):
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef int d, own
    for d in range(x.ndim_):
        own = d
        if d == to:
            own = axis
        elif axis < to and axis <= d < to:
            own = d + 1
        elif to < axis and to < d <= axis:
            own = d - 1
        dims[d] = x.dims[own]
        steps[d] = x.steps[own]
    return view_of(x, x.code, x.ndim_, dims, steps, 0)


cdef Array axis_last(Array x, int axis):
    return as_contiguous(x if axis == x.ndim_ - 1 else move_axis(x, axis, x.ndim_ - 1))


cdef Array axis_back(Array rows, int axis):
    return as_contiguous(rows if axis == rows.ndim_ - 1 else move_axis(rows, rows.ndim_ - 1, axis))


cdef Array flat(Array x):
    cdef long long one = 1
    x = as_contiguous(x)
    return x if x.ndim_ == 1 else view_of(x, x.code, 1, &x.count, &one, 0)
