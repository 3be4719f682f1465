"""Products of matrices, vectors and tensors."""

from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.kernels.product cimport record_product
from cyrt.kernels.space cimport MAX_NDIM
from cyrt.kernels.entries cimport Operand, op_code
from cyrt.ndarray cimport (
    Array, densed, device_of, new_array_on, overlaps, set_operand, shape_of, view_of,
)
from cyrt.ops.arguments import axes_of, check_array
from cyrt.ops.copy cimport assign_array, cast
from cyrt.ops.elementwise cimport binary, check_out
from cyrt.ops.promotion cimport kinds, promote
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef int MULTIPLY = op_code("multiply")

# What is multiplied: out[..., i, j] = the sum of a[..., i, :] * b[..., :, j].
cdef struct Factors:
    int ndim
    long long[MAX_NDIM] shape       # ..., m, n
    long long[MAX_NDIM] a           # steps: ..., m, summed
    long long[MAX_NDIM] b           # steps: ..., summed, n
    long long length                # of what is summed
    bint conjugate                  # a


cdef int joint_type(str name, object x1, object x2) except -1:
    """The type of both; TypeError for what is no Array of numbers."""
    cdef int a, b
    if not isinstance(x1, Array) or not isinstance(x2, Array):
        check_array(x1, f"{name}: x1")
        check_array(x2, f"{name}: x2")
    a, b = (<Array>x1).code, (<Array>x2).code
    if kinds[a] == c"b" and kinds[b] == c"b":
        raise TypeError(f"{name}: expected numeric types, got {DTYPES[a]} and {DTYPES[b]}")
    return a if a == b else promote(a, b)


cdef int refuse_shapes(str name, Array a, Array b, str why) except -1:
    raise ValueError(f"{name}: shapes {shape_of(a)} and {shape_of(b)}: {why}")


cdef Array multiply(str name, Array a, Array b, const Factors* factors, int ndim,
                    const long long* dims, Array out):
    """Records the product; `dims` is the shape of the result as it is returned."""
    cdef Operand[3] operands
    cdef Array target = out
    cdef int ordinal = device_of(a)
    cdef StreamState* stream = current_state(ordinal)
    if device_of(b) != ordinal or out is not None and device_of(out) != ordinal:
        raise ValueError(f"{name}: its operands are on the devices {ordinal} and "
                         f"{device_of(b) if device_of(b) != ordinal else device_of(out)}; "
                         "to_device() moves arrays")
    if out is not None:
        check_out(name, out, a.code, ndim, dims)
    if out is None or not out.dense or out.code != a.code or overlaps(out, a) or overlaps(out, b):
        target = new_array_on(stream, a.code, ndim, dims)
    set_operand(&operands[0], target)
    set_operand(&operands[1], a)
    set_operand(&operands[2], b)
    operands[1].strides = factors.a
    operands[2].strides = factors.b
    record_product(encoder_of(stream), ordinal, a.code, operands, factors.ndim, factors.shape,
                   factors.length, factors.conjugate, None)
    if out is not None and target is not out:
        assign_array(out, target)
        return out
    return target


cdef int join_batch(str name, Array a, Array b, int skipped_a, int skipped_b, Factors* factors,
                    int ndim) except -1:
    """The dimensions that are neither summed nor a matrix's: all but the last ones."""
    cdef int d, own_a, own_b
    cdef long long size_a, size_b
    for d in range(ndim):
        own_a = d - ndim + a.ndim_ - skipped_a
        own_b = d - ndim + b.ndim_ - skipped_b
        size_a = a.dims[own_a] if own_a >= 0 else 1
        size_b = b.dims[own_b] if own_b >= 0 else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            refuse_shapes(name, a, b, "their leading dimensions do not broadcast")
        factors.shape[d] = size_b if size_a == 1 else size_a
        factors.a[d] = a.steps[own_a] if size_a != 1 else 0
        factors.b[d] = b.steps[own_b] if size_b != 1 else 0
    return 0


def matmul(x1, x2, /, out=None):
    """The product of matrices; ``x1 @ x2``.

    Parameters
    ----------
    x1 : Array
        Of a numeric type and shape (..., M, K), or (K,): a row, whose dimension M the result lacks.
    x2 : Array
        Of shape (..., K, N), or (K,): a column, whose dimension N the result lacks. The leading
        dimensions broadcast.
    out : Array, optional
        Takes the result; of its shape, and of a type that its kind may be written into.

    Returns
    -------
    Array
        Of shape (..., M, N), and of the type that :func:`cyrt.result_type` gives. Integers wrap;
        16-bit floats are summed in float32.

    Raises
    ------
    ValueError
        Shapes that do not multiply, arrays of two devices; the message names them.
    TypeError
        Two arrays of bool, types that do not promote, a NumPy array.
    """
    cdef Factors factors
    cdef long long[MAX_NDIM] dims
    cdef Array a, b
    cdef int d, batch, ndim, code = joint_type("matmul", x1, x2)
    a, b = <Array>x1, <Array>x2
    if out is not None:
        check_array(out, "matmul: out")
    if a.ndim_ == 0 or b.ndim_ == 0:
        refuse_shapes("matmul", a, b, "a 0-d array is no matrix; multiply it with *")
    cdef int matrix_a = a.ndim_ > 1, matrix_b = b.ndim_ > 1
    factors.length = a.dims[a.ndim_ - 1]
    if factors.length != b.dims[b.ndim_ - 1 - matrix_b]:
        refuse_shapes("matmul", a, b, f"{factors.length} columns do not meet "
                      f"{b.dims[b.ndim_ - 1 - matrix_b]} rows")
    if a.code != code:
        a = cast(a, code)
    if b.code != code:
        b = cast(b, code)
    batch = max(a.ndim_ - 2, b.ndim_ - 2, 0)
    join_batch("matmul", a, b, 1 + matrix_a, 1 + matrix_b, &factors, batch)
    factors.shape[batch] = a.dims[a.ndim_ - 2] if matrix_a else 1
    factors.a[batch] = a.steps[a.ndim_ - 2] if matrix_a else 0
    factors.a[batch + 1] = a.steps[a.ndim_ - 1]
    factors.b[batch] = b.steps[b.ndim_ - 1 - matrix_b]
    factors.shape[batch + 1] = b.dims[b.ndim_ - 1] if matrix_b else 1
    factors.b[batch + 1] = b.steps[b.ndim_ - 1] if matrix_b else 0
    factors.ndim = batch + 2
    factors.conjugate = False
    ndim = batch
    for d in range(batch):
        dims[d] = factors.shape[d]
    if matrix_a:
        dims[ndim] = factors.shape[batch]
        ndim += 1
    if matrix_b:
        dims[ndim] = factors.shape[batch + 1]
        ndim += 1
    return multiply("matmul", a, b, &factors, ndim, dims, <Array>out)


cdef Array moved_last(Array x, int axis):
    """A view with that axis, counted from the end, behind the others."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef int d, kept = 0
    if axis == -1:
        return x
    axis += x.ndim_
    for d in range(x.ndim_):
        if d != axis:
            dims[kept] = x.dims[d]
            steps[kept] = x.steps[d]
            kept += 1
    dims[kept] = x.dims[axis]
    steps[kept] = x.steps[axis]
    return view_of(x, x.code, x.ndim_, dims, steps, 0)


def vecdot(x1, x2, /, *, axis=-1):
    """Dot products of vectors along an axis: the sum of ``conj(x1) * x2``.

    Parameters
    ----------
    x1, x2 : Array
        Of numeric types. They have one size along the axis; their other dimensions broadcast.
    axis : int
        Counted from the end of both: -1 is the last.

    Returns
    -------
    Array
        Of the joint shape without the axis, and of the type that :func:`cyrt.result_type` gives.

    Raises
    ------
    ValueError
        Sizes that differ along the axis, shapes that do not broadcast, arrays of two devices.
    numpy.exceptions.AxisError
        An axis that one of them lacks, or that is not counted from the end.
    """
    cdef Factors factors
    cdef Array a, b
    cdef int code = joint_type("vecdot", x1, x2), ndim
    a, b = <Array>x1, <Array>x2
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"vecdot: axis: expected an int, got {type(axis).__name__}")
    if not -min(a.ndim_, b.ndim_) <= axis.__index__() < 0:
        from numpy.exceptions import AxisError

        raise AxisError(f"vecdot: axis: expected -{min(a.ndim_, b.ndim_)} to -1 for shapes "
                        f"{shape_of(a)} and {shape_of(b)}, got {axis}")
    a, b = moved_last(cast(a, code), axis), moved_last(cast(b, code), axis)
    ndim = max(a.ndim_, b.ndim_) - 1
    factors.length = a.dims[a.ndim_ - 1]
    if factors.length != b.dims[b.ndim_ - 1]:
        refuse_shapes("vecdot", <Array>x1, <Array>x2, f"the sizes along axis {axis} differ")
    join_batch("vecdot", a, b, 1, 1, &factors, ndim)
    factors.shape[ndim] = factors.shape[ndim + 1] = 1
    factors.a[ndim] = factors.b[ndim + 1] = 0
    factors.a[ndim + 1] = a.steps[a.ndim_ - 1]
    factors.b[ndim] = b.steps[b.ndim_ - 1]
    factors.ndim = ndim + 2
    factors.conjugate = kinds[code] == c"c"
    return multiply("vecdot", a, b, &factors, ndim, factors.shape, None)


cdef bint merge(Array x, int first, int last, long long* size, long long* step) noexcept:
    """Whether dimensions first to last are one of a single step, as in what is dense or empty."""
    cdef int d
    size[0] = step[0] = 1
    for d in range(last - 1, first - 1, -1):
        if x.dims[d] == 1:
            continue
        if size[0] == 1:
            step[0] = x.steps[d]
        elif x.count and x.steps[d] != step[0] * size[0]:
            return False
        size[0] *= x.dims[d]
    return True


cdef Array as_matrix(Array x, list order, int rows, long long* sizes, long long* steps):
    """x with its axes in that order, the first ones as one dimension and the rest as another."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] own
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[<int>order[d]]
        own[d] = x.steps[<int>order[d]]
    x = view_of(x, x.code, x.ndim_, dims, own, 0)
    if not (merge(x, 0, rows, &sizes[0], &steps[0])
            and merge(x, rows, x.ndim_, &sizes[1], &steps[1])):
        x = densed(x)
        merge(x, 0, rows, &sizes[0], &steps[0])
        merge(x, rows, x.ndim_, &sizes[1], &steps[1])
    return x


cdef Array contract(str name, Array a, Array b, list summed_a, list summed_b):
    """The sum over axes of a, each with its axis of b; the others of a come before those of b."""
    cdef Factors factors
    cdef long long[MAX_NDIM] dims
    cdef long long[2] sizes_a
    cdef long long[2] sizes_b
    cdef list kept_a = [d for d in range(a.ndim_) if d not in summed_a]
    cdef list kept_b = [d for d in range(b.ndim_) if d not in summed_b]
    cdef int ndim = 0, d
    if len(kept_a) + len(kept_b) > MAX_NDIM:
        refuse_shapes(name, a, b, f"the result has more than {MAX_NDIM} dimensions")
    for d in kept_a:
        dims[ndim] = a.dims[d]
        ndim += 1
    for d in kept_b:
        dims[ndim] = b.dims[d]
        ndim += 1
    a = as_matrix(a, kept_a + summed_a, len(kept_a), sizes_a, factors.a)
    b = as_matrix(b, summed_b + kept_b, len(summed_b), sizes_b, factors.b)
    factors.ndim = 2
    factors.shape[0] = sizes_a[0]
    factors.shape[1] = sizes_b[1]
    factors.length = sizes_a[1]
    factors.conjugate = False
    return multiply(name, a, b, &factors, ndim, dims, None)


def tensordot(x1, x2, /, axes=2):
    """The sum of products over some axes of two arrays.

    Parameters
    ----------
    x1, x2 : Array
        Of numeric types.
    axes : int or tuple of two ints or sequences of int
        So many last axes of x1 with as many first ones of x2; or axes of x1, and for each the axis
        of x2 that it is summed with, which is of the same size.

    Returns
    -------
    Array
        Its dimensions are the other ones of x1, then those of x2; of the type that
        :func:`cyrt.result_type` gives.

    Raises
    ------
    ValueError
        Sizes that differ, other numbers of axes, an axis twice, arrays of two devices.
    numpy.exceptions.AxisError
        An axis that an array lacks.
    """
    cdef Array a, b
    cdef int code = joint_type("tensordot", x1, x2)
    a, b = <Array>x1, <Array>x2
    if hasattr(axes, "__index__"):
        count = axes.__index__()
        if not 0 <= count <= min(a.ndim_, b.ndim_):
            raise ValueError(f"tensordot: axes: expected 0 to {min(a.ndim_, b.ndim_)} for shapes "
                             f"{shape_of(a)} and {shape_of(b)}, got {count}")
        pairs = range(a.ndim_ - count, a.ndim_), range(count)
    else:
        try:
            first, second = [(each,) if hasattr(each, "__index__") else tuple(each)
                             for each in axes]
            pairs = axes_of(first, a.ndim_, "axes"), axes_of(second, b.ndim_, "axes")
        except (TypeError, ValueError) as error:
            if isinstance(error, IndexError):       # AxisError is both
                raise
            raise type(error)("tensordot: axes: expected an int or two sequences of int, got "
                              f"{axes!r}: {error}") from None
    summed_a, summed_b = list(pairs[0]), list(pairs[1])
    if len(summed_a) != len(summed_b) or any(
            a.dims[<int>i] != b.dims[<int>j] for i, j in zip(summed_a, summed_b)):
        refuse_shapes("tensordot", a, b, f"axes {tuple(summed_a)} and {tuple(summed_b)} are not of "
                      "the same sizes")
    return contract("tensordot", cast(a, code), cast(b, code), summed_a, summed_b)


def dot(x1, x2, /, out=None):
    """NumPy's dot: the sum over the last axis of x1 and the last but one of x2.

    Parameters
    ----------
    x1, x2 : Array
        Of numeric types. The only axis of a vector x2 is summed; a 0-d array multiplies.
    out : Array, optional
        Takes the result; of its shape, and of a type that its kind may be written into.

    Returns
    -------
    Array
        Its dimensions are the other ones of x1, then those of x2.

    Raises
    ------
    ValueError
        Sizes that differ, arrays of two devices.
    """
    cdef Array result = sum_axes("dot", x1, x2, -2)
    if out is None:
        return result
    check_out("dot", out, result.code, result.ndim_, result.dims)
    assign_array(<Array>out, result)
    return out


def inner(x1, x2, /):
    """NumPy's inner: the sum over the last axes of both.

    Parameters
    ----------
    x1, x2 : Array
        Of numeric types; a 0-d array multiplies.

    Returns
    -------
    Array
        Its dimensions are the other ones of x1, then those of x2.

    Raises
    ------
    ValueError
        Sizes that differ, arrays of two devices.
    """
    return sum_axes("inner", x1, x2, -1)


cdef object sum_axes(str name, object x1, object x2, int axis):
    """The last axis of x1 with that of x2."""
    cdef Array a, b
    cdef int code = joint_type(name, x1, x2)
    a, b = <Array>x1, <Array>x2
    if a.ndim_ == 0 or b.ndim_ == 0:
        return binary(MULTIPLY, a, b, None)
    axis = b.ndim_ + (axis if b.ndim_ > 1 else -1)
    if a.dims[a.ndim_ - 1] != b.dims[axis]:
        refuse_shapes(name, a, b, f"{a.dims[a.ndim_ - 1]} and {b.dims[axis]} elements are to be "
                      "summed together")
    return contract(name, cast(a, code), cast(b, code), [a.ndim_ - 1], [axis])


def outer(x1, x2, /):
    """The products of every element of x1 with every one of x2.

    Parameters
    ----------
    x1, x2 : Array
        Taken as vectors, in C order.

    Returns
    -------
    Array
        Of shape (x1.size, x2.size), and of the type that :func:`cyrt.result_type` gives.
    """
    cdef Array a = densed(check_array(x1, "outer: x1")), b = densed(check_array(x2, "outer: x2"))
    cdef long long[2] dims
    cdef long long[2] steps
    dims[0], dims[1] = a.count, 1
    steps[0] = steps[1] = 1
    a = view_of(a, a.code, 2, dims, steps, 0)
    return binary(MULTIPLY, a, view_of(b, b.code, 1, &b.count, steps, 0), None)


def matrix_transpose(x, /):
    """A view with the last two dimensions exchanged; ``x.mT``.

    Parameters
    ----------
    x : Array
        Of shape (..., M, N).

    Returns
    -------
    Array
        Of shape (..., N, M); it shares x's memory.

    Raises
    ------
    ValueError
        x has fewer than two dimensions.
    """
    cdef Array a = check_array(x, "matrix_transpose: x")
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] steps
    cdef int d, last = a.ndim_ - 1
    if last < 1:
        raise ValueError("matrix_transpose: expected at least 2 dimensions, got shape "
                         f"{shape_of(a)}")
    for d in range(last - 1):
        dims[d] = a.dims[d]
        steps[d] = a.steps[d]
    dims[last], dims[last - 1] = a.dims[last - 1], a.dims[last]
    steps[last], steps[last - 1] = a.steps[last - 1], a.steps[last]
    return view_of(a, a.code, a.ndim_, dims, steps, 0)
