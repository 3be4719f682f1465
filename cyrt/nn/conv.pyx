"""Convolutions of arrays whose channels lie last, and their gradients."""

from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact
from libc.string cimport memcmp, memset

from cyrt.builtin.conv cimport (
    BIAS, OTHER, OUT, SOURCE, Convolution, activation_code, record_conv,
)
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.window cimport (
    WINDOW_AXES, read_int, read_numbers, read_padding, set_sliding,
)
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array_on, set_operand, shape_of
from cyrt.nn.rows cimport spaced_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport cast
from cyrt.ops.promotion cimport kinds, promote
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef enum:
    MOST_DIMS = WINDOW_AXES + 2
    SIZES = 2 * (WINDOW_AXES + 2)
    ARGUMENTS = 5
    READS = 64              # a power of two

# Arguments that were read, and what followed from them: a program repeats its convolutions. The
# arguments are ints, and tuples of such, so that an object is always the same number.
cdef struct Read:
    PyObject* arguments[ARGUMENTS]      # owned references
    long long[SIZES] dims               # of input and weight, 0 where there are none
    long long ndim, flip
    Convolution conv

cdef Read[READS] reads
cdef object ONE = 1

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")


# -- arguments -------------------------------------------------------------------------------------


cdef inline Array array_of(str name, str argument, object x):
    return <Array>x if isinstance(x, Array) else check_array(x, f"{name}: {argument}")


cdef int joint_type(str name, str first, Array a, str second, Array b) except -1:
    """Return the type that two operands are computed in."""
    if kinds[a.code] != c"f" or kinds[b.code] != c"f":
        raise TypeError(f"{name}: expected real floating-point types, got {first} of "
                        f"{DTYPES[a.code]} and {second} of {DTYPES[b.code]}")
    if device_of(a) != device_of(b):
        raise ValueError(f"{name}: {first} is on device {device_of(a)}, {second} on "
                         f"{device_of(b)}; to_device() moves arrays")
    return a.code if a.code == b.code else promote(a.code, b.code)


cdef int read_shape(str name, str argument, object shape, long long* dims) except -1:
    """Read the shape of an operand that is not there; return the number of dimensions."""
    cdef object sizes = shape
    cdef long long size
    cdef int ndim = 0
    cdef bint fits = True
    if not isinstance(shape, (tuple, list)):
        try:
            sizes = tuple(shape)
        except TypeError:
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got {shape!r}") from None
    for each in sizes:
        if not read_int(each, &size):
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got {shape!r}")
        fits = fits and ndim < MOST_DIMS and 0 <= size < <long long>1 << 58
        if fits:
            dims[ndim] = size
            ndim += 1
    if not fits or ndim < 3:
        raise ValueError(f"{name}: {argument}: expected 3 to 5 sizes of 0 or more, got {shape!r}")
    return ndim


cdef tuple shape_tuple(int ndim, const long long* dims):
    return tuple([dims[d] for d in range(ndim)])


cdef bint is_fixed(object value) except -1:
    """Return whether an argument is always the same: an int, or a tuple of such."""
    if PyTuple_CheckExact(value):
        for each in <tuple>value:
            if not is_fixed(each):
                return False
        return True
    return PyLong_CheckExact(value)


cdef int set_sizes(Convolution* conv, str name, int wanted, int ndim, const long long* source,
                   int weight_ndim, const long long* weight, object stride, object padding,
                   object kernel_dilation, object input_dilation, object groups,
                   bint flip) except -1:
    """Check the shapes of input and weight, and set what follows from them and the arguments."""
    cdef Read now
    cdef Read* read
    cdef unsigned long long h = 0
    cdef int d
    if not 3 <= ndim <= MOST_DIMS or weight_ndim != ndim or wanted not in (0, ndim):
        read_sizes(conv, name, wanted, ndim, source, weight_ndim, weight, stride, padding,
                   kernel_dilation, input_dilation, groups, flip)
    now.arguments = [<PyObject*>stride, <PyObject*>padding, <PyObject*>kernel_dilation,
                     <PyObject*>input_dilation, <PyObject*>groups]
    memset(now.dims, 0, sizeof(now.dims))
    for d in range(ndim):
        now.dims[d], now.dims[MOST_DIMS + d] = source[d], weight[d]
        h = (h ^ <unsigned long long>(source[d] << 20 ^ weight[d])) \
            * <unsigned long long>0x9e3779b97f4a7c15u
    h = (h ^ <size_t>now.arguments[0] ^ <size_t>now.arguments[1] << 20) \
        * <unsigned long long>0x9e3779b97f4a7c15u
    now.ndim, now.flip = ndim, flip
    read = &reads[h >> 32 & (READS - 1)]
    if memcmp(read, &now, sizeof(now) - sizeof(Convolution)) == 0:
        conv[0] = read.conv
        return 0
    read_sizes(conv, name, wanted, ndim, source, weight_ndim, weight, stride, padding,
               kernel_dilation, input_dilation, groups, flip)
    if is_fixed(padding) and is_fixed(stride) and is_fixed(kernel_dilation) \
            and is_fixed(input_dilation) and is_fixed(groups):
        now.conv = conv[0]
        for d in range(ARGUMENTS):
            Py_INCREF(<object>now.arguments[d])
            Py_XDECREF(read.arguments[d])
        read[0] = now
    return 0


cdef int read_sizes(Convolution* conv, str name, int wanted, int ndim, const long long* source,
                    int weight_ndim, const long long* weight, object stride, object padding,
                    object kernel_dilation, object input_dilation, object groups,
                    bint flip) except -1:
    cdef long long count
    cdef bint fits = 3 <= ndim <= MOST_DIMS and weight_ndim == ndim and wanted in (0, ndim)
    if not fits:
        raise ValueError(f"{name}: expected an input (N, *spatial, C) and a weight (O, *kernel, "
                         f"C / groups) of {wanted or 'as many'} dimensions"
                         f"{'' if wanted else ', 3 to 5'}, got "
                         f"{shape_tuple(ndim, source)} and {shape_tuple(weight_ndim, weight)}")
    if not read_int(groups, &count):
        raise TypeError(f"{name}: groups: expected an int, got {groups!r}")
    # No array has as many channels as 2**58.
    fits = 0 < count < <long long>1 << 58 and weight[0] % count == 0 \
        and source[ndim - 1] % count == 0
    if not fits or weight[ndim - 1] != source[ndim - 1] // count:
        raise ValueError(f"{name}: groups: expected a divisor of the weight's first dimension, and "
                         "an input whose last dimension is groups times the weight's last one, got "
                         f"{groups} groups, shapes {shape_tuple(ndim, source)} and "
                         f"{shape_tuple(weight_ndim, weight)}")
    memset(conv, 0, sizeof(Convolution))
    set_sliding(&conv.sliding, name, ndim - 2, source + 1, weight + 1, stride, padding,
                kernel_dilation, input_dilation, flip)
    conv.batch, conv.groups = source[0], count
    conv.channels, conv.results = weight[ndim - 1], weight[0] // count
    return 0


cdef int check_gradient(const Convolution* conv, str name, Array g) except -1:
    cdef int d, last = conv.sliding.ndim + 1
    cdef bint fits = g.ndim_ == last + 1 and g.dims[0] == conv.batch \
        and g.dims[last] == conv.groups * conv.results
    for d in range(1, last if fits else 0):
        fits = fits and g.dims[d] == conv.sliding.outputs[d - 1]
    if not fits:
        outputs = shape_tuple(conv.sliding.ndim, conv.sliding.outputs)
        raise ValueError(f"{name}: g: expected the result's shape, "
                         f"{(conv.batch, *outputs, conv.groups * conv.results)}, got {shape_of(g)}")
    return 0


# -- operands --------------------------------------------------------------------------------------


cdef Array as_source(Array x, int code, Convolution* conv):
    """Return x in the type, copied unless its last axis is contiguous; set its steps."""
    cdef int d, last = x.ndim_ - 1
    if x.code != code:
        x = cast(x, code)
    elif x.dims[last] > 1 and x.steps[last] != 1:
        x = as_contiguous(x)
    conv.batch_step = x.steps[0]
    for d in range(1, last):
        conv.steps[d - 1] = x.steps[d]
    return x


cdef Array as_weight(Array weight, int code, Convolution* conv):
    """Return the weight in the type, copied unless its rows are dense; set their distance."""
    cdef long long step = 1
    cdef int d
    cdef bint dense = True
    if weight.code != code:
        weight = cast(weight, code)
    for d in range(weight.ndim_ - 1, 0, -1):
        dense = dense and (weight.dims[d] == 1 or weight.steps[d] == step)
        step *= weight.dims[d]
    if not dense:
        weight = as_contiguous(weight)
    conv.other_step = weight.steps[0] if weight.dims[0] > 1 else step
    return weight


cdef inline void set_if_any(Operand* operand, Array x) noexcept:
    """Set an operand; memory of no elements is not used."""
    if x is not None and x.count:
        set_operand(operand, x)


cdef Array record(int op, int code, Convolution* conv, int ndim, const long long* dims,
                  Array source, Array other, Array bias):
    """Record the operation; `dims` is the result's shape."""
    cdef Operand[4] operands
    cdef StreamState* stream = current_state(device_of(source))
    cdef Array out = new_array_on(stream, code, ndim, dims)
    memset(operands, 0, sizeof(operands))
    set_if_any(&operands[OUT], out)
    set_if_any(&operands[SOURCE], source)
    set_if_any(&operands[OTHER], other)
    set_if_any(&operands[BIAS], bias)
    record_conv(encoder_of(stream), op, code, operands, conv)
    return out


cdef Array convolve(str name, int wanted, object input_, object weight_, object stride,
                    object padding, object kernel_dilation, object input_dilation, object groups,
                    bint flip, object bias_, object activation):
    cdef Array x = array_of(name, "input", input_)
    cdef Array weight = array_of(name, "weight", weight_), bias = None
    cdef Convolution conv
    cdef long long[MOST_DIMS] dims
    cdef int d, code = joint_type(name, "input", x, "weight", weight)
    set_sizes(&conv, name, wanted, x.ndim_, x.dims, weight.ndim_, weight.dims, stride, padding,
              kernel_dilation, input_dilation, groups, flip)
    conv.activation = activation_code(name, activation)
    dims[0], dims[x.ndim_ - 1] = conv.batch, weight.dims[0]
    for d in range(conv.sliding.ndim):
        dims[d + 1] = conv.sliding.outputs[d]
    if bias_ is not None:
        bias = array_of(name, "bias", bias_)
        if bias.ndim_ != 1 or bias.dims[0] != weight.dims[0]:
            raise ValueError(f"{name}: bias: expected shape ({weight.dims[0]},), for a weight of "
                             f"shape {shape_of(weight)}, got {shape_of(bias)}")
        code = promote(code, joint_type(name, "input", x, "bias", bias))
        if bias.code != code:
            bias = cast(bias, code)
        conv.bias_step = bias.steps[0]
    x, weight = as_source(x, code, &conv), as_weight(weight, code, &conv)
    return record(CONV, code, &conv, x.ndim_, dims, x, weight, bias)


cdef Array convolve_plainly(str name, int wanted, object input_, object weight, object stride,
                            object padding, object dilation, object groups, object bias,
                            object activation):
    cdef long long[WINDOW_AXES] checked
    if dilation is not ONE:
        read_numbers(name, "dilation", dilation, wanted - 2, 1, checked)
    return convolve(name, wanted, input_, weight, stride, padding, dilation, 1, groups, False, bias,
                    activation)


# -- convolutions ----------------------------------------------------------------------------------


def conv_general(input, weight, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1,
                 flip=False, bias=None, activation=None):
    """Convolve an input of 1 to 3 spatial dimensions with filters of a weight.

    Each element of the result is the sum of a window of the input times a filter: a correlation,
    or with `flip` a convolution. Padding, and the places between the elements of a dilated input,
    are zeros, which may be multiplied, and so may zeros beside the filters of a strided gradient:
    near an infinity results may be NaN. float16, bfloat16 and float32 are summed in float32,
    float64 in float64. Equal inputs give equal bits.

    Parameters
    ----------
    input : Array
        Shape (N, *spatial, C), of a real floating-point type. It is copied if its last axis is not
        contiguous.
    weight : Array
        Shape (O, *kernel, C / groups). It is copied if its filters, weight[o], are not contiguous.
    stride : int or tuple of int
        The distance of windows, for all spatial dimensions or one for each.
    padding : int, tuple of int or tuple of pairs
        The zeros on either side, for all spatial dimensions or one for each; or one pair for each,
        before and behind. Negative padding takes elements away.
    kernel_dilation : int or tuple of int
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
        input, or there is no such activation.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [2.0], [3.0], [4.0]]])
    >>> w = cyrt.asarray([[[1.0], [10.0]]])
    >>> cyrt.nn.conv_general(x, w, padding=((0, 1),))[0, :, 0]
    Array([21., 32., 43.,  4.], dtype=float32)
    """
    return convolve("conv_general", 0, input, weight, stride, padding, kernel_dilation,
                    input_dilation, groups, flip, bias, activation)


def conv1d(input, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of one spatial dimension with filters; see :func:`conv_general`.

    Parameters
    ----------
    input : Array
        Shape (N, L, C).
    weight : Array
        Shape (O, K, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`, whose kernel_dilation is the dilation.

    Returns
    -------
    Array
        Shape (N, outputs, O).
    """
    return convolve_plainly("conv1d", 3, input, weight, stride, padding, dilation, groups, bias,
                            activation)


def conv2d(input, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of two spatial dimensions with filters; see :func:`conv_general`.

    Parameters
    ----------
    input : Array
        Shape (N, H, W, C).
    weight : Array
        Shape (O, KH, KW, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`, whose kernel_dilation is the dilation.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    return convolve_plainly("conv2d", 4, input, weight, stride, padding, dilation, groups, bias,
                            activation)


def conv3d(input, weight, stride=1, padding=0, dilation=1, groups=1, bias=None, activation=None):
    """Convolve an input of three spatial dimensions with filters; see :func:`conv_general`.

    Parameters
    ----------
    input : Array
        Shape (N, D, H, W, C).
    weight : Array
        Shape (O, KD, KH, KW, C / groups).
    stride, padding, dilation, groups, bias, activation
        As for :func:`conv_general`, whose kernel_dilation is the dilation.

    Returns
    -------
    Array
        Shape (N, *outputs, O).
    """
    return convolve_plainly("conv3d", 5, input, weight, stride, padding, dilation, groups, bias,
                            activation)


cdef Array transpose(str name, int wanted, object input_, object weight_, object stride,
                     object padding, object dilation, object output_padding, object groups,
                     object bias, object activation):
    """A convolution of the input dilated by the stride, padded so that a kernel that meets one
    element has an output, less the padding."""
    cdef Array weight = array_of(name, "weight", weight_)
    cdef long long[WINDOW_AXES] low, high, more, step, checked
    cdef long long reach
    cdef int d, ndim = wanted - 2
    if weight.ndim_ != wanted:
        raise ValueError(f"{name}: expected a weight (O, *kernel, C / groups) of {wanted} "
                         f"dimensions, got shape {shape_of(weight)}")
    read_numbers(name, "dilation", dilation, ndim, 1, step)
    read_numbers(name, "stride", stride, ndim, 1, checked)
    read_numbers(name, "output_padding", output_padding, ndim, 0, more)
    read_padding(name, padding, ndim, low, high)
    pairs = []
    for d in range(ndim):
        reach = (weight.dims[d + 1] - 1) * step[d]
        pairs.append((reach - low[d], reach - high[d] + more[d]))
    # A list, as what was read of a tuple that is new each time need not be kept.
    return convolve(name, wanted, input_, weight, 1, pairs, dilation, stride, groups, True, bias,
                    activation)


def conv_transpose1d(input, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of one spatial dimension, transposed: each element of the input adds its
    multiple of the filters to the result, at distances of `stride`.

    The result's size is ``(L - 1) * stride - 2 * padding + dilation * (K - 1) + 1 +
    output_padding``. It is what :func:`conv_input_vjp` computes for one group, if the weight's
    first and last dimensions are exchanged.

    Parameters
    ----------
    input : Array
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
    """
    return transpose("conv_transpose1d", 3, input, weight, stride, padding, dilation,
                     output_padding, groups, bias, activation)


def conv_transpose2d(input, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of two spatial dimensions, transposed; see :func:`conv_transpose1d`.

    Parameters
    ----------
    input : Array
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
    return transpose("conv_transpose2d", 4, input, weight, stride, padding, dilation,
                     output_padding, groups, bias, activation)


def conv_transpose3d(input, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Convolve an input of three spatial dimensions, transposed; see :func:`conv_transpose1d`.

    Parameters
    ----------
    input : Array
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
    return transpose("conv_transpose3d", 5, input, weight, stride, padding, dilation,
                     output_padding, groups, bias, activation)


# -- gradients -------------------------------------------------------------------------------------


def conv_input_vjp(g, weight, input_shape, stride=1, padding=0, kernel_dilation=1,
                   input_dilation=1, groups=1, flip=False):
    """Compute the gradient of :func:`conv_general`'s input from that of its result.

    Parameters
    ----------
    g : Array
        The gradient of the result without bias and activation, of its shape.
    weight : Array
    input_shape : tuple of int
    stride, padding, kernel_dilation, input_dilation, groups, flip
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
    cdef Array of_result = array_of(name, "g", g)
    cdef Array factor = array_of(name, "weight", weight)
    cdef Convolution conv
    cdef long long[MOST_DIMS] dims
    cdef int ndim = read_shape(name, "input_shape", input_shape, dims)
    cdef int code = joint_type(name, "g", of_result, "weight", factor)
    set_sizes(&conv, name, 0, ndim, dims, factor.ndim_, factor.dims, stride, padding,
              kernel_dilation, input_dilation, groups, flip)
    check_gradient(&conv, name, of_result)
    of_result, factor = as_source(of_result, code, &conv), as_weight(factor, code, &conv)
    return record(INPUT_VJP, code, &conv, ndim, dims, of_result, factor, None)


def conv_weight_vjp(g, input, weight_shape, stride=1, padding=0, kernel_dilation=1,
                    input_dilation=1, groups=1, flip=False):
    """Compute the gradient of :func:`conv_general`'s weight from that of its result.

    Sums over the outputs are added in one order: equal inputs give equal bits.

    Parameters
    ----------
    g : Array
        The gradient of the result without bias and activation, of its shape.
    input : Array
    weight_shape : tuple of int
    stride, padding, kernel_dilation, input_dilation, groups, flip
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
    cdef Array of_result = array_of(name, "g", g)
    cdef Array x = array_of(name, "input", input)
    cdef Convolution conv
    cdef long long[MOST_DIMS] dims
    cdef int ndim = read_shape(name, "weight_shape", weight_shape, dims)
    cdef int code = joint_type(name, "g", of_result, "input", x)
    set_sizes(&conv, name, 0, x.ndim_, x.dims, ndim, dims, stride, padding, kernel_dilation,
              input_dilation, groups, flip)
    check_gradient(&conv, name, of_result)
    x = as_source(x, code, &conv)
    if of_result.code != code:
        of_result = cast(of_result, code)
    of_result = spaced_rows(of_result, &conv.other_step)
    return record(WEIGHT_VJP, code, &conv, ndim, dims, x, of_result, None)
