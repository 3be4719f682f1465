"""Products of matrices, vectors and tensors."""

from libc.string cimport memset

from cyrt.dtypes import DTYPES, dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.template cimport Template
from cyrt.builtin.matmul cimport record_product
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.library cimport CUBLASLT, is_served
from cyrt.builtin.library_product cimport (
    Matrices, find_product, is_large, is_library_type, record_library_product,
)
from cyrt.builtin.operand cimport Operand
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, itemsizes, new_array_on, overlaps, set_operand, shape_of,
    view_of,
)
from cyrt.ops.arguments import axes_of, check_array, int_of, is_int, refuse_device
from cyrt.ops.copy cimport assign_array, cast, check_device, check_out, write_out
from cyrt.ops.elementwise cimport binary
from cyrt.ops.promotion cimport BOOL, FLOAT32, kinds, promote
from cyrt.ops.tensors cimport view_operand, view_output
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int MULTIPLY = op_code("multiply"), NOT_EQUAL = op_code("not_equal")
cdef int INT8 = dtype_code("int8"), INT32 = dtype_code("int32")

# A product: out[..., i, j] = the sum of a[..., i, :] * b[..., :, j].
cdef struct Factors:
    int ndim
    long long[MAX_NDIM] shape       # ..., m, n
    long long[MAX_NDIM] a           # steps: ..., m, summed
    long long[MAX_NDIM] b           # steps: ..., summed, n
    long long length                # size of the summed dimension
    bint conjugate                  # whether a is conjugated


cdef int joint_type(str name, object x1, object x2) except -1:
    """Return the promoted type of both; TypeError if one is not an Array."""
    cdef int a, b
    if not isinstance(x1, Array) or not isinstance(x2, Array):
        check_array(x1, f"{name}: x1")
        check_array(x2, f"{name}: x2")
    a, b = (<Array>x1).code, (<Array>x2).code
    return a if a == b else promote(a, b)


cdef object truth_of(str name, Array counts, object out):
    """Return a product of bool, whose elements are true if any of the products that are summed is
    true. These are counted in float32, where a sum of ones is never 0."""
    cdef Array found = binary(NOT_EQUAL, counts, 0, None)
    return found if out is None else write_out(name, found, out)


cdef int refuse_shapes(str name, Array a, Array b, str why) except -1:
    raise ValueError(f"{name}: shapes {shape_of(a)} and {shape_of(b)}: {why}")


cdef bint broadcasts(Array x, int ndim, const long long* dims) noexcept:
    """Return whether an array broadcasts to a shape."""
    cdef int d, first = ndim - x.ndim_
    for d in range(first, ndim):
        if d < 0 or x.dims[d - first] not in (1, dims[d]):
            return False
    return True


cdef Array multiply_by_library(Array a, Array b, Array c, int code, double alpha, double beta):
    """Return alpha * (a @ b) + beta * c, or None if the library cannot compute it. c may be None;
    the result has the type `code`, and so has c."""
    cdef Matrices p
    cdef Operand[4] operands
    cdef long long[2] dims
    cdef int ordinal = device_of(a)
    cdef StreamState* stream
    cdef Template template
    cdef Array out
    if a.ndim_ != 2 or b.ndim_ != 2 or a.code != b.code or a.dims[1] != b.dims[0] \
            or device_of(b) != ordinal or not (is_library_type[code] and a.code == code
                                               or a.code == INT8 and code == INT32):
        return None
    memset(&p, 0, sizeof(p))
    p.operands, p.dtype, p.out_dtype = operands, a.code, code
    p.m, p.n, p.k, p.batch = a.dims[0], b.dims[1], a.dims[1], 1
    p.a_m, p.a_k, p.b_k, p.b_n = a.steps[0], a.steps[1], b.steps[0], b.steps[1]
    p.alpha, p.beta = [alpha, 0], [beta, 0]
    if p.m < 2 or p.n < 2 or not is_large(&p) or not is_served(CUBLASLT, ordinal):
        return None
    if c is not None:
        if c.ndim_ != 2 or c.code != code or device_of(c) != ordinal or c.dims[0] != p.m \
                or c.dims[1] != p.n:
            return None
        p.c_m, p.c_n = c.steps[0], c.steps[1]
        set_operand(&operands[3], c)
    stream = current_state(ordinal)
    dims[0], dims[1] = p.m, p.n
    out = new_array_on(stream, code, 2, dims)
    set_operand(&operands[0], out)
    set_operand(&operands[1], a)
    set_operand(&operands[2], b)
    template = find_product(ordinal, &p)
    if template.refused:
        return None
    record_library_product(encoder_of(stream), template, operands, 3 if c is None else 4)
    return out


cdef Array multiply(str name, Array a, Array b, const Factors* factors, int ndim,
                    const long long* dims, Array out):
    """Record the product; `dims` is the shape of the returned result."""
    cdef Operand[3] operands
    cdef Array target = out
    cdef int ordinal = device_of(a)
    cdef StreamState* stream = current_state(ordinal)
    if device_of(b) != ordinal:
        refuse_device(f"{name}: x2", device_of(b), ordinal)
    if out is not None:
        check_out(name, out, a.code, ndim, dims, ordinal)
    if out is None or not out.dense or out.code != a.code or overlaps(out, a) or overlaps(out, b):
        target = new_array_on(stream, a.code, ndim, dims)
    set_operand(&operands[0], target)
    set_operand(&operands[1], a)
    set_operand(&operands[2], b)
    operands[1].strides = &factors.a[0]
    operands[2].strides = &factors.b[0]
    record_product(encoder_of(stream), a.code, operands, factors.ndim, factors.shape,
                   factors.length, factors.conjugate)
    if out is not None and target is not out:
        assign_array(out, target)
        return out
    return target


cdef int join_batch(str name, Array a, Array b, int skipped_a, int skipped_b, Factors* factors,
                    int ndim) except -1:
    """Set the batch dimensions: all except the last ones, which are summed or a matrix's."""
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


cdef int summed_type(str name, int code, object dtype) except -1:
    """Return the code of the type in which to sum, which is the result's."""
    wanted = _dtype(dtype)
    if promote(code, wanted.code) != wanted.code:
        raise TypeError(f"{name}: dtype: {DTYPES[code]} operands do not promote to {wanted}")
    return wanted.code


cdef object matrix_product(object x1, object x2, object out, object dtype):
    if recording and (is_followed(x1) or is_followed(x2) or is_followed(out)):
        return record_call(matmul, (x1, x2, out, dtype))
    cdef Factors factors
    cdef long long[MAX_NDIM] dims
    cdef Array a, b, product
    cdef int d, batch, ndim, code
    x1, x2 = view_operand(x1), view_operand(x2)
    code = joint_type("matmul", x1, x2)
    if dtype is not None:
        code = summed_type("matmul", code, dtype)
    if code == BOOL:
        product = matrix_product(cast(<Array>x1, FLOAT32), cast(<Array>x2, FLOAT32), None, None)
        return truth_of("matmul", product, out)
    a, b = <Array>x1, <Array>x2
    if a.ndim_ == 0 or b.ndim_ == 0:
        refuse_shapes("matmul", a, b, "a 0-d array is not a matrix; multiply it with *")
    cdef int matrix_a = a.ndim_ > 1, matrix_b = b.ndim_ > 1
    factors.length = a.dims[a.ndim_ - 1]
    if factors.length != b.dims[b.ndim_ - 1 - matrix_b]:
        refuse_shapes("matmul", a, b, f"the last size of x1, {factors.length}, and the "
                      f"{'last but one' if matrix_b else 'only'} size of x2, "
                      f"{b.dims[b.ndim_ - 1 - matrix_b]}, must be equal")
    if a.code != code and a.code == b.code and out is None:
        product = multiply_by_library(a, b, None, code, 1, 0)
        if product is not None:
            return product
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


def matmul(x1, x2, /, out=None, *, dtype=None):
    """Multiply matrices; ``x1 @ x2``.

    Parameters
    ----------
    x1 : Array
        An array of a numeric type and of shape (..., M, K). An array of shape (K,) is a row, and
        the result has no dimension M.
    x2 : Array
        An array of shape (..., K, N). An array of shape (K,) is a column, and the result has no
        dimension N. The leading dimensions broadcast.
    out : Array, optional
        The array that receives the result. It has the result's shape, and a type to which the
        result can be cast within its kind.
    dtype : dtype, optional
        The type in which to multiply and add, for example int32 for operands of int8. The operands
        must promote to it.

    Returns
    -------
    Array
        An array of shape (..., M, N) and of the type of :func:`cyrt.result_type`. Integers wrap,
        and 16-bit floats are summed in float32. For bool, an element is true if any of the products
        that are summed is true.

    Raises
    ------
    ValueError
        The shapes cannot be multiplied, or the arrays are on two devices; the message names them.
    TypeError
        The types do not promote, or an operand is a NumPy array.

    Examples
    --------
    >>> import cyrt
    >>> a = cyrt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> cyrt.matmul(a, cyrt.asarray([1.0, 1.0]))
    Array([3., 7.], dtype=float32)
    """
    if out is None or isinstance(out, Array):
        return matrix_product(x1, x2, out, dtype)
    matrix_product(x1, x2, view_output("matmul", out), dtype)
    return out


def addmm(c, a, b, /, alpha=1.0, beta=1.0):
    """Compute ``alpha * (a @ b) + beta * c``.

    Parameters
    ----------
    c : Array
        An array that broadcasts to the shape of the product.
    a, b : Array
        The factors, as for :func:`matmul`.
    alpha, beta : int or float
        If beta is 0, the values of c are not used.

    Returns
    -------
    Array
        An array of the product's shape, and of the type to which all operands promote.

    Raises
    ------
    ValueError
        The shapes cannot be multiplied, c does not broadcast to the product's shape, or the arrays
        are on two devices.
    TypeError
        An operand is not an Array, or the types do not promote.
    """
    if recording and (is_followed(c) or is_followed(a) or is_followed(b)):
        return record_call(addmm, (c, a, b, alpha, beta))
    cdef Array addend = check_array(view_operand(c), "addmm: c")
    cdef Array product = None
    cdef int joint, code, wide
    a, b = view_operand(a), view_operand(b)
    joint = joint_type("addmm", a, b)
    code = promote(joint, addend.code)
    if joint == BOOL:
        raise TypeError("addmm: expected numeric types, got bool and bool")
    check_device(a, addend, "addmm", "a")
    check_device(b, addend, "addmm", "b")
    if isinstance(alpha, (int, float)) and isinstance(beta, (int, float)) and (
            alpha != 1 or beta != 0):
        product = multiply_by_library(a, b, addend if beta else None, code, alpha, beta)
        if product is not None:
            return product
    # 16-bit types are rounded once, at the end, as by a library.
    wide = FLOAT32 if itemsizes[code] == 2 and kinds[code] == c"f" else code
    product = matrix_product(a, b, None, DTYPES[wide])
    if not broadcasts(addend, product.ndim_, product.dims):
        raise ValueError(f"addmm: c: expected a shape that broadcasts to {product.shape}, got "
                         f"{addend.shape}")
    if alpha != 1:
        product *= alpha
    if beta:
        product += addend if beta == 1 else cast(addend, wide) * beta
    return cast(product, code)


cdef Array move_axis_last(Array x, int axis):
    """Return a view with that axis, counted from the end, as the last one."""
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
    """Compute dot products of vectors along an axis: the sum of ``conj(x1) * x2``.

    Parameters
    ----------
    x1, x2 : Array
        Arrays of numeric types. Their sizes along the axis are equal; their other dimensions
        broadcast.
    axis : int
        The axis, counted from the end of both shapes: -1 is the last.

    Returns
    -------
    Array
        An array of the broadcast shape without the axis, and of the type of
        :func:`cyrt.result_type`.

    Raises
    ------
    ValueError
        The sizes differ along the axis, the shapes do not broadcast, or the arrays are on two
        devices.
    numpy.exceptions.AxisError
        An array lacks the axis, or the axis is not counted from the end.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.vecdot(cyrt.asarray([[1, 2], [3, 4]]), cyrt.asarray([1, 1]))
    Array([3, 7], dtype=int64)
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(vecdot, (x1, x2, axis))
    cdef Factors factors
    cdef Array a, b
    cdef int code, ndim
    x1, x2 = view_operand(x1), view_operand(x2)
    code = joint_type("vecdot", x1, x2)
    if code == BOOL:
        return truth_of("vecdot", vecdot(cast(<Array>x1, FLOAT32), cast(<Array>x2, FLOAT32),
                                         axis=axis), None)
    a, b = <Array>x1, <Array>x2
    axis = int_of(axis, "vecdot: axis")
    if not -min(a.ndim_, b.ndim_) <= axis < 0:
        from numpy.exceptions import AxisError

        raise AxisError(f"vecdot: axis: expected -{min(a.ndim_, b.ndim_)} to -1 for shapes "
                        f"{shape_of(a)} and {shape_of(b)}, got {axis}")
    a, b = move_axis_last(cast(a, code), axis), move_axis_last(cast(b, code), axis)
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
    """Return whether the dimensions from first to last can be one dimension with a single step, as
    in a dense or empty array."""
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
    """View x as a matrix with its axes in that order: the first axes are the rows, the other axes
    the columns."""
    cdef long long[MAX_NDIM] dims
    cdef long long[MAX_NDIM] own
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[<int>order[d]]
        own[d] = x.steps[<int>order[d]]
    x = view_of(x, x.code, x.ndim_, dims, own, 0)
    if not (merge(x, 0, rows, &sizes[0], &steps[0])
            and merge(x, rows, x.ndim_, &sizes[1], &steps[1])):
        x = as_contiguous(x)
        merge(x, 0, rows, &sizes[0], &steps[0])
        merge(x, rows, x.ndim_, &sizes[1], &steps[1])
    return x


cdef Array contract(str name, Array a, Array b, list summed_a, list summed_b):
    """Sum over axes of a, each together with an axis of b. The other axes of a come before those of
    b."""
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
    """Sum products over some axes of two arrays.

    Parameters
    ----------
    x1, x2 : Array
        Arrays of numeric types.
    axes : int or tuple of two ints or sequences of int
        With an int n, the last n axes of x1 are summed with the first n axes of x2. A pair has axes
        of x1, and for each of them the axis of x2 of the same size with which it is summed.

    Returns
    -------
    Array
        An array with the remaining dimensions of x1, then those of x2, and of the type of
        :func:`cyrt.result_type`.

    Raises
    ------
    ValueError
        The sizes or the numbers of axes differ, an axis is repeated, or the arrays are on two
        devices.
    numpy.exceptions.AxisError
        An array lacks an axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.tensordot(cyrt.ones((2, 3, 4)), cyrt.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(tensordot, (x1, x2, axes))
    cdef Array a, b
    cdef int code
    x1, x2 = view_operand(x1), view_operand(x2)
    code = joint_type("tensordot", x1, x2)
    if code == BOOL:
        return truth_of("tensordot", tensordot(cast(<Array>x1, FLOAT32),
                                               cast(<Array>x2, FLOAT32), axes), None)
    a, b = <Array>x1, <Array>x2
    if is_int(axes):
        count = int_of(axes, "tensordot: axes")
        if not 0 <= count <= min(a.ndim_, b.ndim_):
            raise ValueError(f"tensordot: axes: expected 0 to {min(a.ndim_, b.ndim_)} for shapes "
                             f"{shape_of(a)} and {shape_of(b)}, got {count}")
        pairs = range(a.ndim_ - count, a.ndim_), range(count)
    else:
        try:
            first, second = [(each,) if is_int(each) else tuple(each)
                             for each in axes]
            pairs = axes_of(first, a.ndim_, "axes"), axes_of(second, b.ndim_, "axes")
        except (TypeError, ValueError) as error:
            if isinstance(error, IndexError):  # AxisError is both an IndexError and a ValueError
                raise
            raise type(error)("tensordot: axes: expected an int or two sequences of int, got "
                              f"{axes!r}: {error}") from None
    summed_a, summed_b = list(pairs[0]), list(pairs[1])
    if len(summed_a) != len(summed_b) or any(
            a.dims[<int>i] != b.dims[<int>j] for i, j in zip(summed_a, summed_b)):
        refuse_shapes("tensordot", a, b, f"the sizes along axes {tuple(summed_a)} of x1 and "
                      f"{tuple(summed_b)} of x2 must be equal")
    return contract("tensordot", cast(a, code), cast(b, code), summed_a, summed_b)


def dot(x1, x2, /, out=None):
    """Sum products over the last axis of x1 and the last but one of x2, like NumPy's dot.

    Parameters
    ----------
    x1, x2 : Array
        Arrays of numeric types. If x2 is a vector, its only axis is summed. If one of the arrays is
        0-dimensional, the result is the product.
    out : Array, optional
        The array that receives the result. It has the result's shape, and a type to which the
        result can be cast within its kind.

    Returns
    -------
    Array
        An array with the remaining dimensions of x1, then those of x2.

    Raises
    ------
    ValueError
        The sizes differ, or the arrays are on two devices.
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(dot, (x1, x2, out))
    return write_out("dot", sum_axes("dot", x1, x2, -2), out)


def inner(x1, x2, /):
    """Sum products over the last axes of both arrays, like NumPy's inner.

    Parameters
    ----------
    x1, x2 : Array
        Arrays of numeric types. If one of them is 0-dimensional, the result is the product.

    Returns
    -------
    Array
        An array with the remaining dimensions of x1, then those of x2.

    Raises
    ------
    ValueError
        The sizes differ, or the arrays are on two devices.
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(inner, (x1, x2))
    return sum_axes("inner", x1, x2, -1)


cdef object sum_axes(str name, object x1, object x2, int axis):
    """Sum products over the last axis of x1 and that axis of x2."""
    cdef Array a, b
    cdef int code
    x1, x2 = view_operand(x1), view_operand(x2)
    code = joint_type(name, x1, x2)
    a, b = <Array>x1, <Array>x2
    if a.ndim_ == 0 or b.ndim_ == 0:
        return binary(MULTIPLY, a, b, None)
    if code == BOOL:
        return truth_of(name, sum_axes(name, cast(a, FLOAT32), cast(b, FLOAT32), axis), None)
    axis = b.ndim_ + (axis if b.ndim_ > 1 else -1)
    if a.dims[a.ndim_ - 1] != b.dims[axis]:
        refuse_shapes(name, a, b, f"the last size of x1, {a.dims[a.ndim_ - 1]}, and the size of x2 "
                      f"along axis {axis}, {b.dims[axis]}, must be equal")
    return contract(name, cast(a, code), cast(b, code), [a.ndim_ - 1], [axis])


def outer(x1, x2, /, out=None):
    """Multiply every element of x1 by every element of x2.

    Parameters
    ----------
    x1, x2 : Array
        Arrays, flattened in C order.
    out : Array, optional
        An array that receives the result, and is returned. It has the result's shape, and a type of
        the same kind.

    Returns
    -------
    Array
        An array of shape (x1.size, x2.size) and of the type of :func:`cyrt.result_type`.
    """
    if recording and (is_followed(x1) or is_followed(x2)):
        return record_call(outer, (x1, x2, out))
    cdef Array a = as_contiguous(check_array(view_operand(x1), "outer: x1"))
    cdef Array b = as_contiguous(check_array(view_operand(x2), "outer: x2"))
    cdef long long[2] dims
    cdef long long[2] steps
    check_device(b, a, "outer", "x2")
    dims[0], dims[1] = a.count, 1
    steps[0] = steps[1] = 1
    a = view_of(a, a.code, 2, dims, steps, 0)
    return write_out("outer", binary(MULTIPLY, a, view_of(b, b.code, 1, &b.count, steps, 0), None),
                     out)


def matrix_transpose(x, /):
    """Return a view with the last two dimensions exchanged; ``x.mT``.

    Parameters
    ----------
    x : Array
        An array of shape (..., M, N).

    Returns
    -------
    Array
        A view of shape (..., N, M) of x's memory.

    Raises
    ------
    ValueError
        x has fewer than two dimensions.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.matrix_transpose(cyrt.asarray([[1, 2, 3], [4, 5, 6]])).shape
    (3, 2)
    """
    if recording and is_followed(x):
        return record_call(matrix_transpose, (x,))
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
