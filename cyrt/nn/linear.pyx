"""Linear layers, and their gradients."""

import math

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.launch cimport VECTOR_BYTES
from cyrt.builtin.linear cimport (
    BIAS, FEW_LINEAR_ROWS, NORM, NORM_BIAS, OUT, RESIDUAL, WEIGHT, X, Layer, activation_code,
    is_fused, record_linear, takes_layer_norm,
)
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, itemsizes, new_array_on, set_operand, shape_of,
)
from cyrt.nn.activations import (
    gelu, gelu_tanh, gelu_tanh_vjp, gelu_vjp, relu, relu_vjp, silu, silu_vjp, swiglu,
)
from cyrt.nn.gated import swiglu_vjp
from cyrt.nn.norm cimport check_eps, dense_parameter
from cyrt.nn.norm import layer_norm as _layer_norm
from cyrt.nn.norm import rms_norm as _rms_norm
from cyrt.nn.rows cimport spaced_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.manipulation import concat
from cyrt.ops.matmul import matmul
from cyrt.ops.promotion cimport promote
from cyrt.ops.reduce import sum as sum_over
from cyrt.ops.shapes import reshape, split
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

# The function of each activation that a product of many rows needs.
cdef dict FUNCTIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
cdef dict GRADIENTS = {"relu": relu_vjp, "gelu": gelu_vjp, "gelu_tanh": gelu_tanh_vjp,
                       "silu": silu_vjp}
cdef int LAYER_NORM = op_code("layer_norm")
cdef int RMS_NORM = op_code("rms_norm")
cdef bint[64] is_floating           # whether the element type of a code is

for _each in DTYPES:
    is_floating[<int>_each.code] = _each.kind == "f"


def linear(x, weight, bias=None, activation=None, residual=None, *, rms_norm=None,
           layer_norm=None):
    """Compute a linear layer: the product with a matrix of weights, and the steps before and after
    it.

    The result is ``residual + activation(normalised @ weight.mT + bias)``, where x is normalised if
    there is a norm. The layer is one operation, which rounds only the result, if all of these
    conditions hold; otherwise each step is a separate operation:

    - there are at most 16 rows, of float16, bfloat16 or float32;
    - all operands have the same type;
    - the weight's rows are contiguous and aligned to 16 bytes.

    For two or more rows, the result of the norm is rounded, too. A norm is a separate operation if
    it lacks a weight or a bias; a layer_norm is also separate for two or more rows, and in a large
    layer.

    Parameters
    ----------
    x : Array
        Inputs of a floating-point type and shape (..., in).
    weight : Array
        Shape (out, in).
    bias : Array, optional
        Shape (out,).
    activation : str, optional
        "relu", "gelu", "gelu_tanh", "silu" or "swiglu". For "swiglu" the first half of the weight's
        rows computes the gate, and the result has out / 2 features.
    residual : Array, optional
        An array of the result's shape, which is added at the end.
    rms_norm : tuple, optional
        The arguments (weight, eps) of an :func:`rms_norm` of x; the weight may be None.
    layer_norm : tuple, optional
        The arguments (weight, bias, eps) of a :func:`layer_norm` of x; the weight and the bias may
        be None. There is at most one of the two norms.

    Returns
    -------
    Array
        An array of shape (..., out), and of the type to which the operands promote.

    Raises
    ------
    ValueError
        The shapes do not fit, or the activation does not exist.
    TypeError
        An operand is not an Array, x or weight has no floating-point type, or the types do not
        promote. A norm is not a tuple of that length, or both norms are given.

    Notes
    -----
    The arguments have the order of PyTorch's ``torch.nn.functional.linear``. The gated layers are
    those of Shazeer, arXiv:2002.05202.

    Examples
    --------
    >>> import cyrt
    >>> x, w = cyrt.asarray([[1.0, -2.0]]), cyrt.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> cyrt.nn.linear(x, w, activation="relu")
    Array([[1., 0.]], dtype=float32)
    """
    if recording and follows((x, weight, bias, residual, rms_norm, layer_norm)):
        return record_layer(x, weight, bias, activation, residual, rms_norm, layer_norm)
    cdef Array result
    cdef tuple norm = None
    if rms_norm is not None or layer_norm is not None:
        norm = norm_of(rms_norm, layer_norm)
    check_operands("linear", x, weight, bias, activation)
    if residual is not None:
        check_result("linear", "residual", residual, x, weight, activation)
    result = record_fused(x, weight, bias, activation, residual, norm)
    return compose(x, weight, bias, activation, residual, norm) if result is None else result


def linear_vjp(g, x, weight, bias=None, activation=None):
    """Compute the gradients of :func:`linear` from that of its result, by products.

    The input of the activation is computed again. The gradient of a residual is g itself. For the
    gradients of a norm use :func:`rms_norm_vjp` and :func:`layer_norm_vjp`; pass the normalised
    array as x here.

    Parameters
    ----------
    g : Array
        The gradient of the result, of its shape and type.
    x, weight, bias, activation
        As for :func:`linear`.

    Returns
    -------
    tuple of (Array, Array, Array or None)
        The gradients of x, weight and bias, of their shapes and types; None if the bias is None.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`linear`; or g has another type or shape than the result.

    Examples
    --------
    >>> import cyrt
    >>> x, w = cyrt.asarray([[1.0, -2.0]]), cyrt.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> dx, dw, _ = cyrt.nn.linear_vjp(cyrt.ones((1, 2)), x, w, activation="relu")
    >>> dx, dw
    (Array([[1., 0.]], dtype=float32), Array([[ 1., -2.],
           [ 0.,  0.]], dtype=float32))
    """
    cdef str name = "linear_vjp"
    cdef Array y
    check_operands(name, x, weight, bias, activation)
    check_result(name, "g", g, x, weight, activation)
    if bias is not None and not is_floating[(<Array>bias).code]:
        raise TypeError(f"{name}: bias: expected a real floating-point type, got {bias.dtype}")
    wanted = DTYPES[result_code(x, weight, bias)]
    if g.dtype != wanted:
        raise TypeError(f"{name}: g: expected {wanted}, the type of the result, got {g.dtype}")
    if activation is not None:
        y = product(x, weight, bias)
        if activation == "swiglu":
            g = concat(swiglu_vjp(g, *halves(y)), axis=-1)
        else:
            g = GRADIENTS[activation](g, y)
    of_x, of_weight, of_bias = gradients(g, x, weight, bias, (True, True, True))
    return (cast(of_x, (<Array>x).code), cast(of_weight, (<Array>weight).code),
            None if bias is None else cast(of_bias, (<Array>bias).code))


def gradients(g, x, weight, bias, tuple wanted):
    """Return the wanted gradients of ``x @ weight.mT + bias``, in the types of the products."""
    count = math.prod(x.shape[:x.ndim - 1])
    rows = reshape(g, (count, weight.shape[0]))
    return (matmul(g, weight) if wanted[0] else None,
            matmul(rows.mT, reshape(x, (count, weight.shape[1]))) if wanted[1] else None,
            sum_over(rows, 0) if bias is not None and wanted[2] else None)


cdef bint follows(tuple operands) except -1:
    for each in operands:
        if is_followed(each):
            return True
        if isinstance(each, tuple):             # the arguments of a norm
            for inner in each:
                if is_followed(inner):
                    return True
    return False


cdef object record_layer(x, weight, bias, activation, residual, rms_norm, layer_norm):
    """Record a layer whose gradients are wanted: as one operation with relu, whose gradient needs
    only the result, and otherwise as one operation for each step."""
    if rms_norm is not None or layer_norm is not None:
        x = normalize(x, norm_of(rms_norm, layer_norm))
    activation_code("linear", activation)
    apart = None if activation == "relu" and residual is None else activation
    y = record_call(linear, (x, weight, bias, None if apart else activation, None, None, None))
    if apart == "swiglu":
        y = swiglu(*split(y, 2, -1))
    elif apart is not None:
        y = FUNCTIONS[apart](y)
    return y if residual is None else residual + y


cdef tuple norm_of(object rms_norm, object layer_norm):
    """Check the norms, and return the arguments of the one that is given."""
    if rms_norm is not None and layer_norm is not None:
        raise TypeError("linear: rms_norm and layer_norm: expected at most one of them, got both")
    if layer_norm is None:
        if not isinstance(rms_norm, tuple) or len(rms_norm) != 2:
            raise TypeError("linear: rms_norm: expected a tuple (weight, eps), got "
                            f"{rms_norm!r}")
        return rms_norm
    if not isinstance(layer_norm, tuple) or len(layer_norm) != 3:
        raise TypeError("linear: layer_norm: expected a tuple (weight, bias, eps), got "
                        f"{layer_norm!r}")
    return layer_norm


cdef int check_operands(str name, object x_, object weight_, object bias_,
                        object activation) except -1:
    cdef Array x, weight, bias
    if not isinstance(x_, Array):
        check_array(x_, f"{name}: x")
    if not isinstance(weight_, Array):
        check_array(weight_, f"{name}: weight")
    if bias_ is not None and not isinstance(bias_, Array):
        check_array(bias_, f"{name}: bias")
    x, weight, bias = <Array>x_, <Array>weight_, <Array>bias_
    if not is_floating[x.code] or not is_floating[weight.code]:
        raise TypeError(f"{name}: expected x and weight of floating-point types, got "
                        f"{DTYPES[x.code]} and {DTYPES[weight.code]}")
    if x.ndim_ == 0 or weight.ndim_ != 2 or x.dims[x.ndim_ - 1] != weight.dims[1]:
        raise ValueError(f"{name}: expected x of shape (..., in) and weight of shape (out, in), "
                         f"got {shape_of(x)} and {shape_of(weight)}")
    if bias is not None and (bias.ndim_ != 1 or bias.dims[0] != weight.dims[0]):
        raise ValueError(f"{name}: bias: expected shape {shape_of(weight)[:1]}, got "
                         f"{shape_of(bias)}")
    check_device(weight, x, name, "weight")
    check_device(bias, x, name, "bias")
    activation_code(name, activation)
    if activation == "swiglu" and weight.dims[0] % 2:
        raise ValueError(f"{name}: weight: expected an even number of rows for swiglu, got shape "
                         f"{shape_of(weight)}")
    return 0


cdef int check_result(str name, str argument, object operand, Array x, Array weight,
                      object activation) except -1:
    """Check an operand that has the result's shape."""
    cdef Array array
    cdef long long features = weight.dims[0] // 2 if activation == "swiglu" else weight.dims[0]
    cdef int d
    cdef bint fits
    if not isinstance(operand, Array):
        check_array(operand, f"{name}: {argument}")
    array = <Array>operand
    check_device(array, x, name, argument)
    fits = array.ndim_ == x.ndim_ and array.dims[x.ndim_ - 1] == features
    for d in range(x.ndim_ - 1 if fits else 0):
        fits = fits and array.dims[d] == x.dims[d]
    if not fits:
        *outer, _ = shape_of(x)
        raise ValueError(f"{name}: {argument}: expected shape {(*outer, features)}, "
                         f"got {shape_of(array)}")
    return 0


cdef Array record_fused(Array x, Array weight, Array bias, object activation, Array residual,
                        tuple norm):
    """Record the layer as one operation, and copies of operands that the kernel cannot read in
    place. Return None, and record nothing, if no kernel computes it."""
    cdef Layer layer
    cdef Array out, scale, shift
    cdef long long[MAX_NDIM] dims
    cdef StreamState* stream
    cdef int d, op, ordinal = device_of(x)
    memset(&layer, 0, sizeof(layer))
    layer.dtype, layer.itemsize = x.code, itemsizes[x.code]
    layer.length = weight.dims[1]
    if x.count == 0 or x.count > layer.length * FEW_LINEAR_ROWS or weight.steps[1] != 1 \
            or not (is_alike(weight, x.code, ordinal) and is_alike(bias, x.code, ordinal)
                    and is_alike(residual, x.code, ordinal)):
        return None
    layer.rows = x.count // layer.length
    layer.gated = activation == "swiglu"
    layer.activation = activation_code("linear", activation)
    layer.features = weight.dims[0] // 2 if layer.gated else weight.dims[0]
    layer.weight_step = weight.steps[0]
    set_operand(&layer.operands[WEIGHT], weight)
    if not is_fused(&layer):
        return None
    if norm is not None and (norm[0] is None or len(norm) == 3 and (
            norm[1] is None or not takes_layer_norm(ordinal, &layer))):
        x, norm = normalize(x, norm), None
    if norm is not None:
        op = LAYER_NORM if len(norm) == 3 else RMS_NORM
        layer.eps = check_eps(op, norm[len(norm) - 1])
        scale = dense_parameter(op, "weight", norm[0], x)
        set_operand(&layer.operands[NORM], scale)
        if op == LAYER_NORM:
            shift = dense_parameter(op, "bias", norm[1], x)
            set_operand(&layer.operands[NORM_BIAS], shift)
    x = aligned_rows(x, &layer)
    set_operand(&layer.operands[X], x)
    if bias is not None:
        bias = as_contiguous(bias)
        set_operand(&layer.operands[BIAS], bias)
    if residual is not None:
        residual = as_contiguous(residual)
        set_operand(&layer.operands[RESIDUAL], residual)
    for d in range(x.ndim_ - 1):
        dims[d] = x.dims[d]
    dims[x.ndim_ - 1] = layer.features
    stream = current_state(ordinal)
    out = new_array_on(stream, x.code, x.ndim_, dims)
    set_operand(&layer.operands[OUT], out)
    record_linear(encoder_of(stream), &layer)
    return out


cdef inline bint is_alike(Array operand, int code, int ordinal) except -1:
    """Return whether an operand has the type and the device, or is None."""
    return operand is None or operand.code == code and device_of(operand) == ordinal


cdef Array aligned_rows(Array x, Layer* layer):
    """Return x, or a copy of it, whose rows are aligned to vectors. Set their distance."""
    cdef Array rows = spaced_rows(x, &layer.x_step)
    cdef unsigned long long strides = layer.x_step if layer.rows > 1 else 0
    if (strides * layer.itemsize | rows.address) % VECTOR_BYTES == 0:
        return rows
    layer.x_step = layer.length
    return duplicate(x)


cdef Array normalize(Array x, tuple norm):
    return _rms_norm(x, *norm) if len(norm) == 2 else _layer_norm(x, *norm)


cdef Array compose(Array x, Array weight, Array bias, object activation, Array residual,
                   tuple norm):
    """Compute each step by a separate operation."""
    y = product(x if norm is None else normalize(x, norm), weight, bias)
    if activation == "swiglu":
        y = swiglu(*halves(y))
    elif activation is not None:
        y = FUNCTIONS[activation](y)
    return y if residual is None else residual + y


cdef Array product(Array x, Array weight, Array bias):
    y = matmul(x, weight.mT)
    return y if bias is None else y + bias


cdef tuple halves(Array y):
    """Return the gate and the array that it multiplies."""
    half = y.dims[y.ndim_ - 1] // 2
    return y[..., :half], y[..., half:]


cdef int result_code(Array x, Array weight, Array bias) except -1:
    cdef int code = promote(x.code, weight.code)
    return code if bias is None else promote(code, bias.code)
