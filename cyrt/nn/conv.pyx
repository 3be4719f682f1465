"""Convolutions of arrays whose channels lie last, and their gradients."""

from cyrt.builtin.entry cimport op_code
from cyrt.ndarray cimport Array
from cyrt.nn.conv_call cimport Absent, Function, call, read_shape
from cyrt.nn.rows cimport bool_of
from cyrt.ops.arguments import check_array

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")


cdef inline Array array_of(str name, str argument, object x):
    return <Array>x if isinstance(x, Array) else check_array(x, f"{name}: {argument}")


cdef inline Array convolve(str name, const Function* function, object x, object weight,
                    object stride, object padding, object dilation, object input_dilation,
                    object groups, object bias, object activation):
    return call(name, function, array_of(name, "x", x), array_of(name, "weight", weight),
                None if bias is None else array_of(name, "bias", bias), NULL, stride, padding,
                dilation, input_dilation, groups, activation)


# -- convolutions ----------------------------------------------------------------------------------


def conv_general(x, weight, stride=1, padding=0, dilation=1, input_dilation=1, groups=1,
                 flip=False, bias=None, activation=None):
    """Convolve an input of 1 to 3 spatial dimensions with filters of a weight.

    Each element of the result is the sum of a window of the input times a filter: a correlation,
    or with `flip` a convolution. Padding, and the places between the elements of a dilated input,
    are zeros. A kernel may multiply them, and, for a strided gradient or a dilated input, zeros
    beside the filters: where the other factor is infinite, the result may be NaN. float16, bfloat16
    and float32 are summed in float32, float64 in float64. Equal inputs give equal bits.

    Parameters
    ----------
    x : Array
        Shape (N, *spatial, C), of a real floating-point type. It is copied if its last axis is not
        contiguous.
    weight : Array
        Shape (O, *kernel, C / groups). It is copied if its filters, weight[o], are not contiguous.
    stride : int or tuple of int
        The distance of windows, for all spatial dimensions or one for each.
    padding : int, tuple of int or tuple of pairs
        The zeros on either side, for all spatial dimensions or one for each; or one pair for each,
        before and behind. Negative padding takes elements away.
    dilation : int or tuple of int
        The distance of the elements of a window.
    input_dilation : int or tuple of int
        The distance of the input's elements; zeros are between them.
    groups : int
        Group i of the input's channels is convolved with group i of the filters.
    flip : bool
        Whether filters are reversed along all spatial dimensions.
    bias : Array, optional
        Shape (O,): added to the sums.
    activation : str, optional
        "relu", "gelu", "gelu_tanh" or "silu": applied at the end.

    Returns
    -------
    Array
        Shape (N, *outputs, O), of the type that the operands promote to.

    Raises
    ------
    TypeError
        An operand is no Array of a real floating-point type, or a number is no int.
    ValueError
        The shapes do not fit, a number is out of its range, the kernel is larger than the padded
        input by two places or more (by one: the result is empty), or there is no such activation.

    Notes
    -----
    The layouts are those of MLX's ``mlx.core.conv_general``.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [2.0], [3.0], [4.0]]])
    >>> w = cyrt.asarray([[[1.0], [10.0]]])
    >>> cyrt.nn.conv_general(x, w, padding=((0, 1),))[0, :, 0]
    Array([21., 32., 43.,  4.], dtype=float32)
    """
    cdef Function function = Function(CONV, 0, False, bool_of("conv_general", "flip", flip))
    return convolve("conv_general", &function, x, weight, stride, padding,
                    dilation, input_dilation, groups, bias, activation)


def conv1d(x, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of one spatial dimension with filters; see :func:`conv_general`.

    Parameters
    ----------
    x : Array
        Shape (N, L, C).
    weight : Array
        Shape (O, K, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`.

    Returns
    -------
    Array
        Shape (N, outputs, O).
    """
    cdef Function function = Function(CONV, 3, False, False)
    return convolve("conv1d", &function, x, weight, stride, padding, dilation, 1, groups,
                    bias, activation)


def conv2d(x, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of two spatial dimensions with filters; see :func:`conv_general`.

    Parameters
    ----------
    x : Array
        Shape (N, H, W, C).
    weight : Array
        Shape (O, KH, KW, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    cdef Function function = Function(CONV, 4, False, False)
    return convolve("conv2d", &function, x, weight, stride, padding, dilation, 1, groups,
                    bias, activation)


def conv3d(x, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of three spatial dimensions with filters; see :func:`conv_general`.

    Parameters
    ----------
    x : Array
        Shape (N, D, H, W, C).
    weight : Array
        Shape (O, KD, KH, KW, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    cdef Function function = Function(CONV, 5, False, False)
    return convolve("conv3d", &function, x, weight, stride, padding, dilation, 1, groups,
                    bias, activation)


def conv_transpose1d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of one spatial dimension, transposed: each element of the input adds its
    multiple of the filters to the result, at distances of `stride`.

    The result's size is ``(L - 1) * stride - 2 * padding + dilation * (K - 1) + 1 +
    output_padding``. It is what :func:`conv_input_vjp` computes for one group, if the weight's
    first and last dimensions are exchanged.

    Parameters
    ----------
    x : Array
        Shape (N, L, C).
    weight : Array
        Shape (O, K, C / groups).
    stride : int or tuple of int
        The distance in the result between two elements of the input.
    padding : int, tuple of int or tuple of pairs
        How much of the result is taken away on either side.
    dilation : int or tuple of int
        The distance of the elements of a filter.
    output_padding : int or tuple of int
        By how much the result is longer at its end.
    groups, bias, activation
        As for :func:`conv_general`.

    Returns
    -------
    Array
        Shape (N, outputs, O).

    Notes
    -----
    The layouts are those of MLX's ``mlx.core.conv_transpose1d``.
    """
    cdef Function function = Function(CONV, 3, True, True)
    return convolve("conv_transpose1d", &function, x, weight, stride, padding, dilation,
                    output_padding, groups, bias, activation)


def conv_transpose2d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of two spatial dimensions, transposed; see :func:`conv_transpose1d`.

    Parameters
    ----------
    x : Array
        Shape (N, H, W, C).
    weight : Array
        Shape (O, KH, KW, C / groups).
    stride, padding, dilation, output_padding, groups, bias, activation
        As for :func:`conv_transpose1d`.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    cdef Function function = Function(CONV, 4, True, True)
    return convolve("conv_transpose2d", &function, x, weight, stride, padding, dilation,
                    output_padding, groups, bias, activation)


def conv_transpose3d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of three spatial dimensions, transposed; see :func:`conv_transpose1d`.

    Parameters
    ----------
    x : Array
        Shape (N, D, H, W, C).
    weight : Array
        Shape (O, KD, KH, KW, C / groups).
    stride, padding, dilation, output_padding, groups, bias, activation
        As for :func:`conv_transpose1d`.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    cdef Function function = Function(CONV, 5, True, True)
    return convolve("conv_transpose3d", &function, x, weight, stride, padding, dilation,
                    output_padding, groups, bias, activation)


# -- gradients -------------------------------------------------------------------------------------


def conv_input_vjp(g, input_shape, weight, stride=1, padding=0, dilation=1, input_dilation=1,
                   groups=1, flip=False):
    """Compute the gradient of :func:`conv_general`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result without bias and activation, of its shape.
    input_shape : tuple of int
    weight : Array
    stride, padding, dilation, input_dilation, groups, flip
        As for :func:`conv_general`.

    Returns
    -------
    Array
        An array of the input's shape, and of the type that the operands promote to.

    Raises
    ------
    TypeError, ValueError
        As by :func:`conv_general`; or g has another shape than the result.
    """
    cdef str name = "conv_input_vjp"
    cdef Function function = Function(INPUT_VJP, 0, False, bool_of(name, "flip", flip))
    cdef Absent absent
    read_shape(name, "input_shape", input_shape, &absent)
    return call(name, &function, array_of(name, "g", g), array_of(name, "weight", weight), None,
                &absent, stride, padding, dilation, input_dilation, groups, None)


def conv_weight_vjp(g, x, weight_shape, stride=1, padding=0, dilation=1, input_dilation=1,
                    groups=1, flip=False):
    """Compute the gradient of :func:`conv_general`'s weight from that of its result.

    Sums over the outputs are added in one order: equal inputs give equal bits.

    Parameters
    ----------
    g : Array
        The gradient of the result without bias and activation, of its shape.
    x : Array
    weight_shape : tuple of int
    stride, padding, dilation, input_dilation, groups, flip
        As for :func:`conv_general`.

    Returns
    -------
    Array
        An array of the weight's shape, and of the type that the operands promote to.

    Raises
    ------
    TypeError, ValueError
        As by :func:`conv_general`; or g has another shape than the result.
    """
    cdef str name = "conv_weight_vjp"
    cdef Function function = Function(WEIGHT_VJP, 0, False, bool_of(name, "flip", flip))
    cdef Absent absent
    read_shape(name, "weight_shape", weight_shape, &absent)
    return call(name, &function, array_of(name, "x", x), array_of(name, "g", g), None,
                &absent, stride, padding, dilation, input_dilation, groups, None)
