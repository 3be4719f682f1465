# C-level functions only: see rows.pxd.
"""Arrays as rows for kernels: rows along the last axis, at equal distances in memory."""

from cyrt.builtin import catalogue
from cyrt.builtin.row_grid cimport Rows
from cyrt.dtypes import DTYPES
from cyrt.ndarray cimport Array, as_contiguous, overlaps, shape_of
from cyrt.ops.arguments import check_array, check_bool
from cyrt.ops.copy cimport check_device
from cyrt.ops.promotion cimport outputs
from cyrt.runtime.memory cimport READ_ONLY


cdef void count_rows(Rows* rows, Array x) noexcept:
    rows.n = x.dims[x.ndim_ - 1]
    rows.rows = x.count // rows.n if rows.n else 0
    rows.x_step = rows.gradient_step = rows.out_step = 0


cdef bint are_spaced(Array x, long long* step) noexcept:
    """Return whether rows are contiguous and evenly spaced; set their distance."""
    cdef int d, last = x.ndim_ - 1
    cdef long long rows = 1
    step[0] = 0
    if x.dims[last] > 1 and x.steps[last] != 1:
        return False
    for d in range(last - 1, -1, -1):
        if x.dims[d] == 1:
            continue
        if rows == 1:
            step[0] = x.steps[d]
        elif x.steps[d] != step[0] * rows:
            return False
        rows *= x.dims[d]
    return True


cdef Array spaced_rows(Array x, long long* step):
    if not are_spaced(x, step):
        x = as_contiguous(x)
        are_spaced(x, step)
    return x


cdef bint writable_rows(Array x, long long* step) noexcept:
    return not x.traits & READ_ONLY and are_spaced(x, step)


cdef bint may_overwrite(Array target, Array operand) noexcept:
    cdef int d
    if operand is None or not overlaps(target, operand):
        return True
    if target.address != operand.address or target.code != operand.code \
            or target.ndim_ != operand.ndim_:
        return False
    for d in range(target.ndim_):
        if target.dims[d] != operand.dims[d] \
                or (target.dims[d] != 1 and target.steps[d] != operand.steps[d]):
            return False
    return True


cdef Array array_of(int op, str argument, object x):
    if isinstance(x, Array):
        return <Array>x
    return check_array(x, f"{catalogue.OPS[op]}: {argument}")


cdef int check_rows(int op, str argument, Array x) except -1:
    if outputs[op][x.code] < 0:
        catalogue.row(catalogue.OPS[op], DTYPES[x.code].name)       # raises
    if x.ndim_ == 0:
        raise ValueError(f"{catalogue.OPS[op]}: {argument}: expected at least one dimension, got "
                         "shape ()")
    return 0


cdef bint bool_of(str name, str argument, object value) except -1:
    if value is True or value is False:
        return value is True
    return check_bool(value, f"{name}: {argument}")


cdef int check_type(int op, str argument, Array other, str first, Array x) except -1:
    if other.code != x.code:
        raise TypeError(f"{catalogue.OPS[op]}: {argument}: expected {DTYPES[x.code]}, the type of "
                        f"{first}, got {DTYPES[other.code]}")
    return check_device(other, x, catalogue.OPS[op], argument)


cdef int check_alike(int op, str argument, Array other, str first, Array x) except -1:
    cdef int d
    cdef bint alike = other.ndim_ == x.ndim_
    check_type(op, argument, other, first, x)
    for d in range(x.ndim_ if alike else 0):
        alike = alike and other.dims[d] == x.dims[d]
    if not alike:
        raise ValueError(f"{catalogue.OPS[op]}: {argument}: expected shape {shape_of(x)}, that of "
                         f"{first}, got {shape_of(other)}")
    return 0
