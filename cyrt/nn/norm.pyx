"""Normalisation along the last axis, and its gradients."""

from libc.float cimport DBL_MAX
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.launch cimport VECTOR_BYTES
from cyrt.builtin.norm cimport record_norm, record_norm_vjp
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport Rows
from cyrt.error_text import show
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand, shape_of
from cyrt.nn.rows cimport (
    array_of, bool_of, check_alike, check_rows, check_type, count_rows,
    may_overwrite, spaced_rows, writable_rows,
)
from cyrt.ops.arguments import check_array
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy cimport assign_array, check_device, check_out
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.promotion cimport is_number, python_number
from cyrt.ops.reduce import sum as sum_all
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef int LAYER_NORM = op_code("layer_norm"), LAYER_NORM_VJP = op_code("layer_norm_vjp")
cdef int RMS_NORM = op_code("rms_norm"), RMS_NORM_VJP = op_code("rms_norm_vjp")


cdef double check_eps(int op, object eps) except -1:
    number = python_number(eps) if is_number(eps) else eps
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{catalogue.OPS[op]}: eps: expected a number, got {type(eps).__name__}")
    if not 0 <= number <= DBL_MAX:
        raise ValueError(f"{catalogue.OPS[op]}: eps: expected a finite number of 0 or more, got "
                         f"{eps}")
    return number


cdef int check_parameter(int op, str argument, Array parameter, Array x) except -1:
    cdef long long n = x.dims[x.ndim_ - 1]
    check_type(op, argument, parameter, "x", x)
    if parameter.ndim_ > 1 or (parameter.ndim_ == 1 and parameter.dims[0] != n):
        raise ValueError(f"{catalogue.OPS[op]}: {argument}: expected shape ({n},) or (), for x of "
                         f"shape {shape_of(x)}, got {shape_of(parameter)}")
    return 0


cdef int refuse_parameter(int op, str argument, object value) except -1:
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    if argument == "weight" and all([type(each) is int for each in sizes]):
        # PyTorch's functions take a shape there.
        raise TypeError(f"{catalogue.OPS[op]}: weight: expected an Array, got {show(value)}; the "
                        "last axis is normalized, and its size is not passed")
    check_array(value, f"{catalogue.OPS[op]}: {argument}")      # raises
    return 0


cdef Array dense_parameter(int op, str argument, object parameter, Array x):
    """Check a weight or a bias, and return it, or a copy, as one contiguous, aligned row."""
    cdef Array array
    if parameter is None:
        return None
    if not isinstance(parameter, Array):
        refuse_parameter(op, argument, parameter)
    array = <Array>parameter
    check_parameter(op, argument, array, x)
    if array.ndim_ == 0:
        array = broadcast_to(array, (x.dims[x.ndim_ - 1],))
    if not array.dense:
        return as_contiguous(array)
    return array if array.address % VECTOR_BYTES == 0 else duplicate(array)


cdef inline void set_optional(Operand* operand, Array x) noexcept:
    if x is not None:
        set_operand(operand, x)


cdef Array normalize(int op, object x_, object weight_, object bias_, object eps_, object out):
    cdef Operand[4] operands
    cdef Rows rows
    cdef Array x = array_of(op, "x", x_), weight, bias, source, target = None
    cdef double eps = check_eps(op, eps_)
    check_rows(op, "x", x)
    weight = dense_parameter(op, "weight", weight_, x)
    bias = dense_parameter(op, "bias", bias_, x)
    count_rows(&rows, x)
    source = spaced_rows(x, &rows.x_step)
    if out is not None:
        target = check_out(catalogue.OPS[op], out, x.code, x.ndim_, x.dims)
        check_device(target, x, catalogue.OPS[op], "out")
        if target.code != x.code or not writable_rows(target, &rows.out_step) \
                or not may_overwrite(target, source) or not may_overwrite(target, weight) \
                or not may_overwrite(target, bias):
            target = None
    if target is None:
        # A copy of x receives its own result.
        target = source if source is not x else new_array(device_of(x), x.code, x.ndim_, x.dims)
        writable_rows(target, &rows.out_step)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    set_operand(&operands[1], source)
    set_optional(&operands[2], weight)
    set_optional(&operands[3], bias)
    record_norm(encoder_of(current_state(device_of(x))), op, x.code, operands, &rows, eps)
    if out is None or target is out:
        return target
    assign_array(<Array>out, target)
    return out


cdef Array gradient_target(Array x, Array source, Array g, Array slope, Array weight, bint donate,
                           long long* step):
    """Choose the memory of x's gradient. `source` and `slope` are x and g, or copies of them;
    copies may be overwritten."""
    cdef Array target
    for target in (source, slope):
        if (donate or (target is not x and target is not g)) and writable_rows(target, step) \
                and may_overwrite(target, source) and may_overwrite(target, slope) \
                and may_overwrite(target, weight):
            return target
    target = new_array(device_of(x), x.code, x.ndim_, x.dims)
    writable_rows(target, step)
    return target


cdef Array new_gradient(Array parameter, Array x):
    return None if parameter is None else new_array(device_of(x), x.code, 1,
                                                    &x.dims[x.ndim_ - 1])


cdef Array shaped_gradient(Array gradient, object parameter):
    """Return the gradient of a parameter in its shape; for a single number it is the sum."""
    if gradient is None or (<Array>parameter).ndim_ == 1:
        return gradient
    return sum_all(gradient)


cdef tuple differentiate(int op, object g_, object x_, object weight_, object bias_, object eps_,
                         object donate_):
    cdef Operand[6] operands
    cdef Rows rows
    cdef Array x = array_of(op, "x", x_), g = array_of(op, "g", g_)
    cdef Array weight, source, slope, target, of_weight, of_bias = None
    cdef double eps = check_eps(op, eps_)
    cdef bint donate = bool_of(catalogue.OPS[op], "donate", donate_)
    check_rows(op, "x", x)
    check_alike(op, "g", g, "x", x)
    if bias_ is not None:
        check_parameter(op, "bias", array_of(op, "bias", bias_), x)
        of_bias = new_gradient(<Array>bias_, x)
    weight = dense_parameter(op, "weight", weight_, x)
    count_rows(&rows, x)
    source = spaced_rows(x, &rows.x_step)
    slope = source if g is x else spaced_rows(g, &rows.gradient_step)
    if g is x:
        rows.gradient_step = rows.x_step
    target = gradient_target(x, source, g, slope, weight, donate, &rows.out_step)
    of_weight = new_gradient(weight, x)
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], target)
    set_operand(&operands[1], source)
    set_operand(&operands[2], slope)
    set_optional(&operands[3], weight)
    set_optional(&operands[4], of_weight)
    set_optional(&operands[5], of_bias)
    record_norm_vjp(encoder_of(current_state(device_of(x))), op, x.code, operands, &rows, eps)
    return target, shaped_gradient(of_weight, weight_), shaped_gradient(of_bias, bias_)


def layer_norm(x, weight=None, bias=None, eps=1e-5, *, out=None):
    """Normalise rows along the last axis: subtract their mean, divide by their standard deviation.

    The result is ``(x - mean) / sqrt(variance + eps) * weight + bias``. Mean and variance are
    computed in float32, for float64 in float64, from distances to a mean of the row or of a part of
    it. So a mean that is much larger than the deviation, or a few outliers, do not cost accuracy.

    Parameters
    ----------
    x : Array
        float16, bfloat16, float32 or float64, of at least one dimension. It is copied if its last
        axis is not contiguous or its rows are not evenly spaced.
    weight, bias : Array, optional
        Arrays of x's type, of one dimension and the length of the last axis, or 0-dimensional, with
        any strides. Default: 1 and 0.
    eps : float
        The number that is added to the variance, 0 or more.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; it may be x.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x is not an array of one of these types, or weight or bias have another type.
    ValueError
        x is 0-dimensional, weight or bias have another length, `eps` is negative or not finite,
        `out` has another shape, or an array is on another device than x.

    Notes
    -----
    Ba, Kiros and Hinton, arXiv:1607.06450.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.layer_norm(cyrt.asarray([[1.0, 3.0]]), eps=0)
    Array([[-1.,  1.]], dtype=float32)
    """
    if recording and (is_followed(x) or is_followed(weight) or is_followed(bias)
                      or is_followed(out)):
        return record_call(layer_norm, (x, weight, bias, eps, out))
    return normalize(LAYER_NORM, x, weight, bias, eps, out)


def layer_norm_vjp(g, x, weight=None, bias=None, eps=1e-5, *, donate=False):
    """Compute the gradients of :func:`layer_norm` from that of its result.

    Equal inputs give equal bits, because sums over rows are always added in the same order.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's type and shape.
    x, weight, eps
        As for :func:`layer_norm`.
    bias : Array, optional
        The bias; its values are not read.
    donate : bool
        Whether x and g may be overwritten. The gradient of x is then in the memory of x or g, if
        the layout of one of them allows it.

    Returns
    -------
    tuple of (Array, Array or None, Array or None)
        The gradients of x, weight and bias; None for a parameter that is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`layer_norm`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> x, weight, bias = cyrt.asarray([[1.0, 2.0, 6.0]]), cyrt.ones(3), cyrt.zeros(3)
    >>> g = cyrt.asarray([[1.0, 0.0, 0.0]])
    >>> of_x, of_weight, of_bias = cyrt.nn.layer_norm_vjp(g, x, weight, bias)
    >>> of_x.round(3)
    Array([[ 0.176, -0.22 ,  0.044]], dtype=float32)
    >>> of_bias
    Array([1., 0., 0.], dtype=float32)
    """
    return differentiate(LAYER_NORM_VJP, g, x, weight, bias, eps, donate)


def rms_norm(x, weight=None, eps=1e-5, *, out=None):
    """Divide rows along the last axis by the square root of their mean square.

    The result is ``x / sqrt(mean(x * x) + eps) * weight``, computed in float32, for float64 in
    float64.

    Parameters
    ----------
    x, weight, out
        As for :func:`layer_norm`.
    eps : float
        The number that is added to the mean square, 0 or more.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`layer_norm`.

    Notes
    -----
    Zhang and Sennrich, arXiv:1910.07467.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.nn.rms_norm(cyrt.asarray([[1.0, -1.0], [3.0, 3.0]])).round(3)
    Array([[ 1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    if recording and (is_followed(x) or is_followed(weight) or is_followed(out)):
        return record_call(rms_norm, (x, weight, eps, out))
    return normalize(RMS_NORM, x, weight, None, eps, out)


def rms_norm_vjp(g, x, weight=None, eps=1e-5, *, donate=False):
    """Compute the gradients of :func:`rms_norm` from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result, of x's type and shape.
    x, weight, eps
        As for :func:`rms_norm`.
    donate : bool
        As for :func:`layer_norm_vjp`.

    Returns
    -------
    tuple of (Array, Array or None)
        The gradients of x and of weight; None if the weight is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`rms_norm`; or g differs from x in type or shape.

    Examples
    --------
    >>> import cyrt
    >>> of_x, of_weight = cyrt.nn.rms_norm_vjp(cyrt.ones((1, 2)), cyrt.asarray([[1.0, 7.0]]))
    >>> of_x.round(3)
    Array([[ 0.168, -0.024]], dtype=float32)
    >>> of_weight is None
    True
    """
    return differentiate(RMS_NORM_VJP, g, x, weight, None, eps, donate)[:2]
