"""Softmax and cross entropy along an axis, and their gradients."""

from libc.string cimport memset

from cyrt import settings
from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport Rows
from cyrt.builtin.softmax cimport record_softmax
from cyrt.dtypes import DTYPES
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.nn.rows cimport (
    array_of, bool_of, check_alike, check_rows, check_type, count_rows,
    may_overwrite, spaced_rows, writable_rows,
)
from cyrt.ops.arguments import axis_of, int_of
from cyrt.ops.copy cimport assign_array, cast, check_device, check_out
from cyrt.ops.promotion cimport INT64, kinds
from cyrt.ops.shapes cimport axis_back, move_axis
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int SOFTMAX = op_code("softmax"), LOG_SOFTMAX = op_code("log_softmax")
cdef int SOFTMAX_VJP = op_code("softmax_vjp")
cdef int CROSS_ENTROPY = op_code("cross_entropy"), CROSS_ENTROPY_VJP = op_code("cross_entropy_vjp")
cdef int INT32 = _dtype("int32").code


cdef Array checked_rows(int op, str argument, object x, object axis, int* position):
    """Check an array and its axis, and set the axis, counted from 0."""
    cdef Array array = array_of(op, argument, x)
    check_rows(op, argument, array)
    position[0] = place_of(axis, array.ndim_, op)
    return array


cdef int place_of(object axis, int ndim, int op) except -1:
    """Return an axis, counted from 0."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis % ndim
    return axis_of(axis, ndim, f"{catalogue.OPS[op]}: axis")


cdef Array along_last(Array x, int axis):
    """Return a view with that axis last."""
    return x if axis == x.ndim_ - 1 else move_axis(x, axis, x.ndim_ - 1)


cdef Array record(int op, Array x, Array gradient, Array targets, Array out,
                  long long ignored=0):
    """Record an operation along the last axis. If `out` is given, it receives the rows; x and `out`
    are views with that axis last."""
    cdef Operand[4] operands
    cdef Rows rows
    cdef Array source, target = out
    count_rows(&rows, x)
    source = spaced_rows(x, &rows.x_step)
    if target is None and op == CROSS_ENTROPY:
        target = new_array(device_of(x), x.code, x.ndim_ - 1, x.dims)
    elif target is None:
        # A copy of x receives its own result.
        target = source if source is not x else new_array(device_of(x), x.code, x.ndim_, x.dims)
    if op != CROSS_ENTROPY:
        writable_rows(target, &rows.out_step)
    memset(operands, 0, sizeof(operands))
    if gradient is not None:
        if op == SOFTMAX_VJP:
            gradient = spaced_rows(gradient, &rows.gradient_step)
        set_operand(&operands[2], gradient)
    if targets is not None:
        set_operand(&operands[3], targets)
    set_operand(&operands[0], target)
    set_operand(&operands[1], source)
    record_softmax(encoder_of(current_state(device_of(x))), op, x.code, operands, &rows,
                   targets is not None and targets.code == INT64, ignored)
    return target


cdef Array apply(int op, object x_, object axis_, object out):
    cdef int axis
    cdef long long step
    cdef Array x = checked_rows(op, "x", x_, axis_, &axis), view, target = None
    view = along_last(x, axis)
    if out is not None:
        target = check_out(catalogue.OPS[op], out, x.code, x.ndim_, x.dims)
        check_device(target, x, catalogue.OPS[op], "out")
        target = along_last(target, axis)
        if target.code != x.code or not writable_rows(target, &step) \
                or not may_overwrite(target, view):
            target = None
    result = record(op, view, None, None, target)
    if target is not None:
        return out
    if out is None:
        return axis_back(result, axis)
    assign_array(along_last(<Array>out, axis), result)
    return out


cdef Array checked_targets(int op, object targets, Array x, int axis, object ignored):
    """Check the targets of x's rows, and return them contiguous, of int32 or int64."""
    cdef Array array = array_of(op, "targets", targets)
    cdef int d
    cdef bint fits = array.ndim_ == x.ndim_ - 1
    check_device(array, x, catalogue.OPS[op], "targets")
    if kinds[array.code] not in b"iu":
        raise TypeError(f"{catalogue.OPS[op]}: targets: expected integers, got "
                        f"{DTYPES[array.code]}")
    for d in range(array.ndim_ if fits else 0):
        fits = fits and array.dims[d] == x.dims[d if d < axis else d + 1]
    if not fits:
        shape = shape_of(x)
        raise ValueError(f"{catalogue.OPS[op]}: targets: expected shape "
                         f"{shape[:axis] + shape[axis + 1:]}, for logits of shape {shape} without "
                         f"axis {axis}, got {shape_of(array)}")
    if x.dims[axis] == 0 and array.count:
        raise ValueError(f"{catalogue.OPS[op]}: logits: no elements along axis {axis}: shape "
                         f"{shape_of(x)}")
    if settings.get("CYRT_CHECK"):
        values = array.numpy()
        check_columns(op, values[values != ignored], axis, x.dims[axis])
    return as_contiguous(array if array.code == INT32 else cast(array, INT64))


cdef int check_columns(int op, object targets, int axis, long long n) except -1:
    for each in (targets.min(), targets.max()) if targets.size else ():
        if not 0 <= int(each) < n:
            raise IndexError(f"{catalogue.OPS[op]}: targets: {each} is out of bounds for axis "
                             f"{axis} with size {n}")
    return 0


def softmax(x, axis=-1, precise=False, *, out=None):
    """Compute the exponentials of the elements, divided by the sum of these along an axis.

    Parameters
    ----------
    x : Array
        float16, bfloat16, float32 or float64, of at least one dimension. It is copied if the axis
        is not contiguous or its rows are not evenly spaced.
    axis : int
        The axis along which the exponentials are added.
    precise : bool
        An argument of MLX's, which has no effect. Sums are always in float32, for float64 in
        float64.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; it may be x.

    Returns
    -------
    Array
        An array of x's shape and type. It is NaN along the axis where an element is NaN or
        infinity, or all are -infinity.

    Raises
    ------
    TypeError
        x is not an array of one of these types.
    ValueError
        x is 0-dimensional, or `out` has another shape.
    numpy.exceptions.AxisError
        x has no such axis.

    Notes
    -----
    The arguments are those of MLX's ``mlx.core.softmax``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.softmax(cyrt.asarray([1.0, 1.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    if recording and (is_followed(x) or is_followed(out)):
        return record_call(softmax, (x, axis, precise, out))
    bool_of("softmax", "precise", precise)
    return apply(SOFTMAX, x, axis, out)


def log_softmax(x, axis=-1, *, out=None):
    """Compute the logarithm of :func:`softmax`, which is also accurate where softmax is small.

    Parameters
    ----------
    x, axis, out
        As for :func:`softmax`.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        The errors of :func:`softmax`.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.log_softmax``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.log_softmax(cyrt.asarray([0.0, 0.0, 1000.0]))
    Array([-1000., -1000.,     0.], dtype=float32)
    """
    if recording and (is_followed(x) or is_followed(out)):
        return record_call(log_softmax, (x, axis, out))
    return apply(LOG_SOFTMAX, x, axis, out)


def softmax_vjp(g, y, axis=-1):
    """Compute the gradient of :func:`softmax` from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of softmax's result, of y's type and shape.
    y : Array
        The result of softmax.
    axis : int
        The axis of the call of softmax.

    Returns
    -------
    Array
        ``y * (g - sum(y * g))``, of y's shape and type.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        The errors of :func:`softmax`; or g differs from y in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> y = cyrt.nn.softmax(cyrt.asarray([0.0, 0.0]))
    >>> cyrt.nn.softmax_vjp(cyrt.asarray([1.0, 0.0]), y)
    Array([ 0.25, -0.25], dtype=float32)
    """
    cdef int axis_
    cdef Array array = checked_rows(SOFTMAX_VJP, "y", y, axis, &axis_)
    cdef Array gradient = array_of(SOFTMAX_VJP, "g", g)
    check_alike(SOFTMAX_VJP, "g", gradient, "y", array)
    result = record(SOFTMAX_VJP, along_last(array, axis_), along_last(gradient, axis_), None, None)
    return axis_back(result, axis_)


def cross_entropy(logits, targets, axis=-1, ignore_index=-100):
    """Compute the negative logarithms of the targets' probabilities, the softmax of logits.

    Parameters
    ----------
    logits : Array
        float16, bfloat16, float32 or float64; their :func:`softmax` gives the probabilities.
    targets : Array
        Integers of the shape of the logits without the axis: indices along the axis, from 0. If an
        index is out of range, its loss is NaN on a GPU. On the emulated device it is a fault, which
        the next wait reports, and with ``CYRT_CHECK=1`` an IndexError.
    axis : int
        The axis of the classes.
    ignore_index : int
        The target whose loss and gradient are 0; it need not be an index of the axis.

    Returns
    -------
    Array
        The losses, of the targets' shape and the logits' type.

    Raises
    ------
    TypeError
        The logits are not an array of one of these types, or the targets are not integers.
    ValueError
        The logits are 0-dimensional, or the targets have another shape.
    IndexError
        A target is out of range, with ``CYRT_CHECK=1``.
    numpy.exceptions.AxisError
        The logits have no such axis.

    Notes
    -----
    This is PyTorch's ``torch.nn.functional.cross_entropy`` with ``reduction="none"``: a mean over
    the rows that are not ignored is ``losses.sum() / (targets != -100).sum()``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.cross_entropy(cyrt.zeros((2, 4)), cyrt.asarray([0, 3]))
    Array([1.3862944, 1.3862944], dtype=float32)
    """
    if recording and is_followed(logits):
        return record_call(cross_entropy, (logits, targets, axis, ignore_index))
    cdef int axis_
    cdef long long ignored = ignore_index if type(ignore_index) is int \
        else int_of(ignore_index, "cross_entropy: ignore_index")
    cdef Array array = checked_rows(CROSS_ENTROPY, "logits", logits, axis, &axis_)
    cdef Array columns = checked_targets(CROSS_ENTROPY, targets, array, axis_, ignored)
    return record(CROSS_ENTROPY, along_last(array, axis_), None, columns, None, ignored)


def cross_entropy_vjp(g, logits, targets, axis=-1, ignore_index=-100):
    """Compute the gradient of :func:`cross_entropy` with respect to the logits.

    Parameters
    ----------
    g : Array
        The gradient of the losses, of their shape and type.
    logits, targets : Array
        As for :func:`cross_entropy`. If a target is out of range, its row of the result is NaN on a
        GPU.
    axis, ignore_index
        As for :func:`cross_entropy`.

    Returns
    -------
    Array
        ``g * (softmax(logits) - one_hot(targets))``, of the logits' shape and type.

    Raises
    ------
    TypeError, ValueError, IndexError, numpy.exceptions.AxisError
        The errors of :func:`cross_entropy`; or g differs from the losses in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> g, targets = cyrt.ones(1), cyrt.asarray([3])
    >>> cyrt.nn.cross_entropy_vjp(g, cyrt.zeros((1, 4)), targets)
    Array([[ 0.25,  0.25,  0.25, -0.75]], dtype=float32)
    """
    cdef int axis_
    cdef long long ignored = ignore_index if type(ignore_index) is int \
        else int_of(ignore_index, "cross_entropy_vjp: ignore_index")
    cdef Array array = checked_rows(CROSS_ENTROPY_VJP, "logits", logits, axis, &axis_)
    cdef Array columns = checked_targets(CROSS_ENTROPY_VJP, targets, array, axis_, ignored)
    cdef Array gradient = array_of(CROSS_ENTROPY_VJP, "g", g)
    check_type(CROSS_ENTROPY_VJP, "g", gradient, "the logits", array)
    if shape_of(gradient) != shape_of(columns):
        raise ValueError(f"cross_entropy_vjp: g: expected shape {shape_of(columns)}, that of the "
                         f"targets, got {shape_of(gradient)}")
    result = record(CROSS_ENTROPY_VJP, along_last(array, axis_), as_contiguous(gradient), columns,
                    None, ignored)
    return axis_back(result, axis_)
