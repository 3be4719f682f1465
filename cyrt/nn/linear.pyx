"""Linear layers."""

from libc.string cimport memset

from cyrt.builtin.entry cimport op_code
from cyrt.builtin.linear cimport (
    BIAS, FEW_LINEAR_ROWS, NORM, NORM_BIAS, OUT, RESIDUAL, WEIGHT, X, Layer, activation_code,
    is_fused, record_linear, takes_layer_norm,
)
from cyrt.builtin.skinny cimport VECTOR_BYTES
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, itemsizes, new_array_on, set_operand, shape_of,
)
from cyrt.nn.activations import gelu, gelu_tanh, relu, silu, swiglu
from cyrt.nn.norm cimport check_eps, dense_parameter
from cyrt.nn.norm import layer_norm, rms_norm
from cyrt.nn.rows cimport spaced_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import copy as duplicate
from cyrt.ops.copy cimport check_device
from cyrt.ops.matmul import matmul
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

# The function of each activation that a product of many rows needs.
cdef dict FUNCTIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
cdef int LAYER_NORM = op_code("layer_norm")
cdef int RMS_NORM = op_code("rms_norm")
cdef bint[64] is_floating           # whether the element type of a code is

for _each in DTYPES:
    is_floating[<int>_each.code] = _each.kind == "f"


def linear(x, w, b=None, activation=None, residual=None, norm=None):
    """Multiply by a matrix of weights, with what precedes and follows in a linear layer.

    The result is ``residual + activation(normalised @ w.mT + b)``, where x is normalised if there
    is a norm. The layer is one operation, which rounds the result alone, if all of this holds;
    otherwise each step is an operation of its own:

    - there are at most 16 rows, of float16, bfloat16 or float32;
    - all operands have one type;
    - w's rows are contiguous and aligned to 16 bytes.

    The norm of two rows or more is rounded, too. It is an operation of its own if it lacks a weight
    or a bias, and a layer_norm also for two rows or more and in a large layer.

    Parameters
    ----------
    x : Array
        Inputs of a floating-point type and shape (..., in).
    w : Array
        Weights of shape (out, in).
    b : Array, optional
        A bias of shape (out,).
    activation : str, optional
        "relu", "gelu", "gelu_tanh", "silu" or "swiglu". For "swiglu" the first half of w's rows
        makes the gate, and the result has out / 2 features.
    residual : Array, optional
        Added at the end; of the result's shape.
    norm : tuple, optional
        The weight and the epsilon of an :func:`rms_norm` of x; or the weight, the bias and the
        epsilon of a :func:`layer_norm`. None: there is no such weight or bias.

    Returns
    -------
    Array
        An array of shape (..., out), and of the type that the operands promote to.

    Raises
    ------
    ValueError
        The shapes do not fit, or there is no such activation.
    TypeError
        An operand is no Array, x or w has no floating-point type, or the types do not promote.

    Examples
    --------
    >>> import cyrt
    >>> x, w = cyrt.asarray([[1.0, -2.0]]), cyrt.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> cyrt.nn.linear(x, w, activation="relu")
    Array([[1., 0.]], dtype=float32)
    """
    cdef Array result
    check_operands(x, w, b, activation, residual, norm)
    result = record_fused(x, w, b, activation, residual, norm)
    return compose(x, w, b, activation, residual, norm) if result is None else result


cdef int check_operands(object x_, object w_, object b_, object activation, object residual_,
                        object norm) except -1:
    cdef Array x, w, b, residual
    cdef long long features
    cdef int d
    cdef bint fits
    if not isinstance(x_, Array):
        check_array(x_, "linear: x")
    if not isinstance(w_, Array):
        check_array(w_, "linear: w")
    if b_ is not None and not isinstance(b_, Array):
        check_array(b_, "linear: b")
    if residual_ is not None and not isinstance(residual_, Array):
        check_array(residual_, "linear: residual")
    x, w, b, residual = <Array>x_, <Array>w_, <Array>b_, <Array>residual_
    if not is_floating[x.code] or not is_floating[w.code]:
        raise TypeError("linear: expected x and w of floating-point types, got "
                        f"{DTYPES[x.code]} and {DTYPES[w.code]}")
    if x.ndim_ == 0 or w.ndim_ != 2 or x.dims[x.ndim_ - 1] != w.dims[1]:
        raise ValueError("linear: expected x of shape (..., in) and w of shape (out, in), got "
                         f"{shape_of(x)} and {shape_of(w)}")
    if b is not None and (b.ndim_ != 1 or b.dims[0] != w.dims[0]):
        raise ValueError(f"linear: b: expected shape {shape_of(w)[:1]}, got {shape_of(b)}")
    check_device(w, x, "linear", "w")
    check_device(b, x, "linear", "b")
    check_device(residual, x, "linear", "residual")
    activation_code(activation)
    features = w.dims[0]
    if activation == "swiglu":
        if features % 2:
            raise ValueError("linear: swiglu takes an even number of rows of w, got "
                             f"{shape_of(w)}")
        features //= 2
    if norm is not None and not (isinstance(norm, tuple) and 2 <= len(norm) <= 3):
        raise TypeError("linear: norm: expected a tuple of weight and eps, or of weight, bias and "
                        f"eps, got {norm!r}")
    if residual is not None:
        fits = residual.ndim_ == x.ndim_ and residual.dims[x.ndim_ - 1] == features
        for d in range(x.ndim_ - 1 if fits else 0):
            fits = fits and residual.dims[d] == x.dims[d]
        if not fits:
            *outer, _ = shape_of(x)
            raise ValueError(f"linear: residual: expected shape {(*outer, features)}, "
                             f"got {shape_of(residual)}")
    return 0


cdef Array record_fused(Array x, Array w, Array b, object activation, Array residual,
                        object norm):
    """Record the layer as one operation, and copies of operands that the kernel cannot read in
    place. Return None, and record nothing, if no kernel computes it."""
    cdef Layer layer
    cdef Array out, scale, shift
    cdef long long[MAX_NDIM] dims
    cdef StreamState* stream
    cdef int d, op, ordinal = device_of(x)
    memset(&layer, 0, sizeof(layer))
    layer.dtype, layer.itemsize = x.code, itemsizes[x.code]
    layer.length = w.dims[1]
    if x.count == 0 or x.count > layer.length * FEW_LINEAR_ROWS or w.steps[1] != 1 \
            or not (is_alike(w, x.code, ordinal) and is_alike(b, x.code, ordinal)
                    and is_alike(residual, x.code, ordinal)):
        return None
    layer.rows = x.count // layer.length
    layer.gated = activation == "swiglu"
    layer.activation = activation_code(activation)
    layer.features = w.dims[0] // 2 if layer.gated else w.dims[0]
    layer.weight_step = w.steps[0]
    set_operand(&layer.operands[WEIGHT], w)
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
    if b is not None:
        b = as_contiguous(b)
        set_operand(&layer.operands[BIAS], b)
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
    cdef unsigned long long places = layer.x_step if layer.rows > 1 else 0
    if (places * layer.itemsize | rows.address) % VECTOR_BYTES == 0:
        return rows
    layer.x_step = layer.length
    return duplicate(x)


cdef Array normalize(Array x, tuple norm):
    return rms_norm(x, *norm) if len(norm) == 2 else layer_norm(x, *norm)


cdef Array compose(Array x, Array w, Array b, object activation, Array residual, object norm):
    """Compute each step by an operation of its own."""
    if norm is not None:
        x = normalize(x, norm)
    y = matmul(x, w.mT)
    if b is not None:
        y = y + b
    if activation == "swiglu":
        half = w.dims[0] // 2
        y = swiglu(y[..., :half], y[..., half:])
    elif activation is not None:
        y = FUNCTIONS[activation](y)
    return y if residual is None else residual + y
