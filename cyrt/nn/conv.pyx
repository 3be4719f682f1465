"""Convolutions of arrays with channels last, and their gradients.

A program repeats its convolutions, so the results of a call's checks and choices are stored as a
plan: the result's type and shape, and the launches.
"""

from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.sequence cimport PySequence_Fast_GET_ITEM, PySequence_Fast_GET_SIZE
from cpython.tuple cimport PyTuple_CheckExact
from libc.string cimport memcpy, memset

from cyrt.builtin.conv cimport LIBRARY, ConvPlan, activation_code, choose, record_conv
from cyrt.builtin.convolution cimport BIAS, OTHER, OUT, SOURCE, Convolution
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport tuple_of_sizes
from cyrt.builtin.window cimport (
    FARTHEST, WINDOW_AXES, read_int, read_numbers, read_padding, set_sliding,
)
from cyrt.dtypes import DTYPES
from cyrt.error_text import show
from cyrt.graph.exact_key cimport (
    MOST_WORDS, Key, add_word, add_words, begin_key, find_plan, store_plan,
)
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.template cimport ALIGNMENT, Template
from cyrt.ndarray cimport Array, as_contiguous, new_array_on, set_operand, shape_of
from cyrt.nn import activations
from cyrt.nn.rows cimport bool_of, spaced_rows
from cyrt.ops.arguments import check_array
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.promotion cimport kinds, promote
from cyrt.runtime.memory cimport live_block
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state
from cyrt.runtime.taping cimport is_followed, recording
from cyrt.tape cimport record_call

cdef enum:
    MOST_DIMS = WINDOW_AXES + 2
    IS_INT = 1              # the last bits of a word tell what it is
    IS_SEQUENCE = 2

cdef object ZERO = 0, ONE = 1   # most arguments are one of them

# The operation that a public function computes, and the form of its arguments.
cdef struct ConvFunction:
    int op                  # the operation's code
    int wanted              # the operands' dimensions; 0: 3 to 5
    bint transposed, flip

# The shape of the operand whose gradient is computed: the caller passes no such operand.
cdef struct Absent:
    int ndim
    long long[MOST_DIMS] dims

# The plan of a call. Its key has the function, the values of the arguments, and all properties of
# each operand, where the address is replaced by its alignment.
cdef struct ConvCall:
    ConvPlan conv
    int code, ndim              # the result's type and dimensions
    long long[MOST_DIMS] dims

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")


# -- arguments -------------------------------------------------------------------------------------


cdef int joint_type(str name, str first, Array a, str second, Array b) except -1:
    """Return the type in which two operands are computed."""
    if kinds[a.code] != c"f" or kinds[b.code] != c"f":
        raise TypeError(f"{name}: expected real floating-point types, got {first} of "
                        f"{DTYPES[a.code]} and {second} of {DTYPES[b.code]}")
    check_device(b, a, name, second)
    return a.code if a.code == b.code else promote(a.code, b.code)


cdef int read_shape(str name, str argument, object shape, Absent* absent) except -1:
    """Read the shape of the operand whose gradient is computed."""
    cdef object sizes = shape
    cdef long long size
    cdef int ndim = 0
    cdef bint fits = True
    if not isinstance(shape, (tuple, list)):
        try:
            sizes = tuple(shape)
        except TypeError:
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got "
                            f"{show(shape)}") from None
    for each in sizes:
        if not read_int(each, &size):
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got {show(shape)}")
        fits = fits and ndim < MOST_DIMS and 0 <= size < <long long>1 << 58
        if fits:
            absent.dims[ndim] = size
            ndim += 1
    if not fits or ndim < 3:
        raise ValueError(f"{name}: {argument}: expected 3 to 5 sizes of 0 or more, got "
                         f"{show(shape)}")
    absent.ndim = ndim
    return 0


cdef int check_ranks(str name, int wanted, int ndim, const long long* source, int weight_ndim,
                     const long long* weight) except -1:
    """Raise a ValueError unless both have that number of dimensions; 0 stands for 3 to 5."""
    if not 3 <= ndim <= MOST_DIMS or weight_ndim != ndim or wanted not in (0, ndim):
        raise ValueError(f"{name}: expected an input (N, *spatial, C) and a weight (O, *kernel, "
                         f"C / groups) of {wanted or 'as many'} dimensions"
                         f"{'' if wanted else ', 3 to 5'}, got "
                         f"{tuple_of_sizes(ndim, source)} and "
                         f"{tuple_of_sizes(weight_ndim, weight)}")
    return 0


cdef str spatial_names(int ndim, str before):
    """Return the names of the spatial dimensions, such as "H, W"."""
    return ", ".join([before + each for each in "DHW"[5 - ndim:]])


cdef int refuse_channels(str name, int ndim, const long long* source, const long long* weight,
                         object groups, bint transposed) except -1:
    """Raise the error for channels that do not fit; name the argument that seems to have them
    first, or in PyTorch's order for transposed convolutions: (C, O / groups, *kernel)."""
    cdef list first = []
    spatial = spatial_names(ndim, "")
    # Those of the input by the weight, if its own come last, or first. One channel that is last is
    # more likely than images of width 1.
    channels, leading = weight[ndim - 1] * groups, weight[1] * groups
    if (source[1] == channels and source[ndim - 1] != 1) \
            or (source[1] == leading and source[ndim - 1] != leading):
        first.append("x")
    if leading in (source[1], source[ndim - 1]) and channels != source[1]:
        first.append("weight")
    if transposed and groups == 1 and weight[0] in (source[1], source[ndim - 1]):
        hint = "; weight seems to have the channels of x first, as PyTorch's: cyrt.moveaxis(" \
            "weight, 0, -1) moves them"
    else:
        hint = f"; the channels of {' and of '.join(first)} seem to come first: cyrt.moveaxis(" \
            f"{first[0]}, 1, -1) moves them" if first else ""
    raise ValueError(
        f"{name}: channels come last: expected x of shape (N, {spatial}, C) and weight of shape "
        f"(O, {spatial_names(ndim, 'K')}, C / groups), where groups divides C and O, got "
        f"{tuple_of_sizes(ndim, source)} and {tuple_of_sizes(ndim, weight)} with groups={groups}"
        f"{hint}")


cdef int read_sizes(Convolution* conv, str name, int wanted, int ndim, const long long* source,
                    int weight_ndim, const long long* weight, object stride, object padding,
                    object dilation, object input_dilation, object groups,
                    bint flip, bint transposed) except -1:
    cdef long long count
    cdef bint fits
    check_ranks(name, wanted, ndim, source, weight_ndim, weight)
    if not read_int(groups, &count):
        raise TypeError(f"{name}: groups: expected an int, got {show(groups)}")
    # No array has as many channels as 2**58.
    fits = 0 < count < <long long>1 << 58 and weight[0] % count == 0 \
        and source[ndim - 1] % count == 0
    if not fits or weight[ndim - 1] != source[ndim - 1] // count:
        refuse_channels(name, ndim, source, weight, groups, transposed)
    memset(conv, 0, sizeof(Convolution))
    set_sliding(&conv.sliding, name, ndim - 2, source + 1, weight + 1, stride, padding,
                dilation, input_dilation, flip)
    conv.batch, conv.groups = source[0], count
    conv.channels, conv.results = weight[ndim - 1], weight[0] // count
    return 0


cdef list transposed_padding(str name, int ndim, Array source, Array weight, object stride,
                             object padding, object dilation, object output_padding):
    """Return the padding of a convolution of the input dilated by the stride: every position at
    which the kernel covers an element has an output, except for the padding."""
    cdef long long[WINDOW_AXES] low, high, more, step, apart
    cdef long long size, kernel, reach, before, behind, outputs
    cdef list pairs = []
    cdef int d
    check_ranks(name, ndim + 2, source.ndim_, source.dims, weight.ndim_, weight.dims)
    read_numbers(name, "dilation", dilation, ndim, 1, step)
    read_numbers(name, "stride", stride, ndim, 1, apart)
    read_numbers(name, "output_padding", output_padding, ndim, 0, more)
    read_padding(name, padding, ndim, low, high)
    for d in range(ndim):
        size, kernel = min(source.dims[d + 1], FARTHEST), min(weight.dims[d + 1], FARTHEST)
        reach = (kernel - 1) * step[d]
        before, behind = reach - low[d], reach - high[d] + more[d]
        outputs = (size - 1) * apart[d] + 1 + before + behind - reach
        if not -FARTHEST < before < FARTHEST or not -FARTHEST < behind < FARTHEST:
            raise ValueError(f"{name}: more than {<long long>FARTHEST - 1:,} places beside the "
                             f"input are not supported, got a kernel of size {kernel} in "
                             f"spatial dimension {d}, dilation {step[d]}, padding {low[d]} and "
                             f"{high[d]}, output_padding {more[d]}")
        if outputs < 0:
            raise ValueError(f"{name}: the result's size would be {outputs} in spatial dimension "
                             f"{d}, of an input of size {size}, a kernel of size {kernel}, stride "
                             f"{apart[d]}, dilation {step[d]}, padding {low[d]} and {high[d]}, "
                             f"output_padding {more[d]}")
        if size == 0:               # the dilated input has no elements, not 1 - stride
            behind += 1 - apart[d]
        pairs.append((before, behind))
    return pairs


cdef int set_result(ConvCall* call, str name, int op, Array source, Array other, Array bias,
                    const Absent* absent) except -1:
    """Check the operands that follow from the others; set the result's type and shape."""
    cdef const Convolution* conv = &call.conv.conv
    cdef tuple found, expected
    cdef int d
    if op != CONV:
        found = shape_of(source if op == INPUT_VJP else other)
        expected = (conv.batch, *tuple_of_sizes(conv.sliding.ndim, conv.sliding.outputs),
                    conv.groups * conv.results)
        if found != expected:
            hint, last = "", len(expected) - 1
            if found == expected[:1] + expected[last:] + expected[1:last]:
                hint = "; its channels seem to come first: cyrt.moveaxis(g, 1, -1) moves them"
            raise ValueError(f"{name}: g: expected shape {expected}, that of the result, got "
                             f"{found}{hint}")
        call.ndim = absent.ndim
        memcpy(call.dims, absent.dims, sizeof(call.dims))
        return 0
    if bias is not None:
        if bias.ndim_ != 1 or bias.dims[0] != other.dims[0]:
            raise ValueError(f"{name}: bias: expected shape ({other.dims[0]},), for a weight of "
                             f"shape {shape_of(other)}, got {shape_of(bias)}")
        call.code = promote(call.code, joint_type(name, "x", source, "bias", bias))
    call.ndim = source.ndim_
    call.dims[0], call.dims[call.ndim - 1] = conv.batch, other.dims[0]
    for d in range(conv.sliding.ndim):
        call.dims[d + 1] = conv.sliding.outputs[d]
    return 0


cdef int read_call(ConvCall* call, str name, const ConvFunction* function, Array source,
                   Array other, Array bias, const Absent* absent, object stride, object padding,
                   object dilation, object input_dilation, object groups, int activation) except -1:
    """Check a call; set everything except its launches and the steps of its operands."""
    cdef Convolution* conv = &call.conv.conv
    cdef int ndim = source.ndim_, weight_ndim = other.ndim_
    cdef const long long* dims = source.dims
    cdef const long long* weight_dims = other.dims
    if function.op == CONV:
        call.code = joint_type(name, "x", source, "weight", other)
    elif function.op == INPUT_VJP:
        call.code = joint_type(name, "weight", other, "g", source)
    else:
        call.code = joint_type(name, "x", source, "g", other)
    if function.transposed:
        padding = transposed_padding(name, function.wanted - 2, source, other, stride, padding,
                                     dilation, input_dilation)
        stride, input_dilation = 1, stride
    if function.op == INPUT_VJP:
        ndim = absent.ndim
        dims = &absent.dims[0]
    elif function.op == WEIGHT_VJP:
        weight_ndim = absent.ndim
        weight_dims = &absent.dims[0]
    read_sizes(conv, name, function.wanted, ndim, dims, weight_ndim, weight_dims, stride, padding,
               dilation, input_dilation, groups, function.flip, function.transposed)
    conv.activation = activation
    set_result(call, name, function.op, source, other, bias, absent)
    call.conv.op, call.conv.dtype = function.op, call.code
    return 0


cdef int checked_call(ConvCall* call, str name, const ConvFunction* function, Array source,
                      Array other, Array bias, const Absent* absent, object stride, object padding,
                      object dilation, object input_dilation, object groups,
                      int activation) except -1:
    """Read a call; its error tells whether it would be right with the two operands exchanged."""
    cdef object problem
    try:
        return read_call(call, name, function, source, other, bias, absent, stride, padding,
                         dilation, input_dilation, groups, activation)
    except ValueError as error:
        problem = error
    if function.op == CONV:
        names = "x and weight"
    elif function.op == INPUT_VJP:
        names = "g and weight"
    else:
        names = "g and x"
    if fits_exchanged(name, function, source, other, bias, absent, stride, padding, dilation,
                      input_dilation, groups, activation):
        raise ValueError(f"{problem}; {names} seem to be exchanged: the order is {names}")
    raise problem


cdef bint fits_exchanged(str name, const ConvFunction* function, Array source, Array other,
                         Array bias, const Absent* absent, object stride, object padding,
                         object dilation, object input_dilation, object groups,
                         int activation) except -1:
    cdef ConvCall call
    try:
        read_call(&call, name, function, other, source, bias, absent, stride, padding, dilation,
                  input_dilation, groups, activation)
    except (TypeError, ValueError):
        return False
    return True


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


cdef Array as_gradient(Array g, int code, Convolution* conv):
    """Return the result's gradient in the type, copied unless its rows are evenly spaced; set their
    distance."""
    return spaced_rows(g if g.code == code else cast(g, code), &conv.other_step)


cdef Array as_bias(Array bias, int code, Convolution* conv):
    """Return the bias in the type, and set its step; return None unchanged."""
    if bias is None:
        return None
    if bias.code != code:
        bias = cast(bias, code)
    conv.bias_step = bias.steps[0]
    return bias


# -- calls -----------------------------------------------------------------------------------------


cdef inline int add_argument(Key* key, object value, int depth) except -1:
    if value is ONE:
        add_word(key, 1 << 3 | IS_INT)
        return 0
    if value is ZERO:
        add_word(key, IS_INT)
        return 0
    return add_value(key, value, depth)


cdef int add_value(Key* key, object value, int depth) except -1:
    """Add an int, or a sequence of at most WINDOW_AXES ints or pairs, by its value, because
    programs make such tuples again for each call. With any other argument, the call has no plan."""
    cdef Py_ssize_t size, i
    cdef long long number
    cdef int overflow = 0
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0 and -(<long long>1 << 60) < number < <long long>1 << 60:
            add_word(key, <unsigned long long>number << 3 | IS_INT)
            return 0
    elif depth and (PyTuple_CheckExact(value) or PyList_CheckExact(value)):
        size = PySequence_Fast_GET_SIZE(value)
        if size <= WINDOW_AXES:
            add_word(key, <unsigned long long>size << 3 | IS_SEQUENCE)
            for i in range(size):
                add_argument(key, <object>PySequence_Fast_GET_ITEM(value, i), depth - 1)
            return 0
    key.count = MOST_WORDS + 1
    return 0


cdef inline int add_operand(Key* key, Array x) except -1:
    """Add an operand: its device, dimensions, type, whether it is dense, and address modulo
    ALIGNMENT in one word, then its sizes, and the steps if it is not dense."""
    add_word(key, <unsigned long long>live_block(x).ordinal << 32 | x.ndim_ << 16
             | x.code << 8 | x.dense << 7 | x.address % ALIGNMENT)
    add_words(key, x.dims, x.ndim_)
    if not x.dense:
        add_words(key, x.steps, x.ndim_)
    return 0


cdef Array array_of(str name, str argument, object x):
    return <Array>x if isinstance(x, Array) else check_array(x, f"{name}: {argument}")


cdef Array call(str name, const ConvFunction* function, Array source, Array other, Array bias,
                const Absent* absent, object stride, object padding, object dilation,
                object input_dilation, object groups, object activation):
    """Check and record a call; `name` is for errors. The operands are those of record_conv. Without
    a bias it is None, and `absent` is NULL if no operand is absent. The output padding of a
    transposed convolution is passed as `input_dilation`."""
    cdef Key key
    cdef ConvCall own
    cdef const ConvCall* stored
    cdef Array x, y, b
    cdef int code = activation_code(name, activation)
    if isinstance(stride, Array) and (<Array>stride).ndim_:
        refuse_array(name, stride)
    begin_key(&key, &CONV, <unsigned long long>function.op << 16 | code << 8 | function.wanted << 4
              | function.transposed << 2 | function.flip << 1 | (bias is not None))
    add_argument(&key, stride, 1)
    add_argument(&key, padding, 2)
    add_argument(&key, dilation, 1)
    add_argument(&key, input_dilation, 1)
    add_argument(&key, groups, 0)
    add_operand(&key, source)
    add_operand(&key, other)
    if bias is not None:
        add_operand(&key, bias)
    if absent != NULL:
        add_words(&key, absent.dims, absent.ndim)
    stored = <const ConvCall*>find_plan(&key)
    if stored != NULL:
        own = stored[0]
        return record(&own, <Template>own.conv.template if own.conv.way == LIBRARY else None, NULL,
                      source, other, bias)
    checked_call(&own, name, function, source, other, bias, absent, stride, padding, dilation,
              input_dilation, groups, code)
    x = as_source(source, own.code, &own.conv.conv)
    y = as_weight(other, own.code, &own.conv.conv) if function.op != WEIGHT_VJP \
        else as_gradient(other, own.code, &own.conv.conv)
    b = as_bias(bias, own.code, &own.conv.conv)
    if x is not source or y is not other or b is not bias:
        key.count = MOST_WORDS + 1      # a plan has no copies
    return record(&own, None, &key, x, y, b)


cdef inline void set_if_any(Operand* operand, Array x) noexcept:
    """Set an operand; the memory of an operand without elements is not used."""
    if x is not None and x.count:
        set_operand(operand, x)


cdef Array record(ConvCall* call, Template template, const Key* key, Array source, Array other,
                  Array bias):
    """Record a call. Its launches are chosen and stored first unless the key is NULL."""
    cdef Operand[4] operands
    cdef StreamState* stream = current_state(live_block(source).ordinal)
    cdef Array out = new_array_on(stream, call.code, call.ndim, call.dims)
    memset(operands, 0, sizeof(operands))
    set_if_any(&operands[OUT], out)
    set_if_any(&operands[SOURCE], source)
    set_if_any(&operands[OTHER], other)
    set_if_any(&operands[BIAS], bias)
    if key != NULL:
        template = choose(&call.conv, stream.ordinal, operands)
        if template is None or template.used:   # else it was learned without scratch memory
            store_plan(key, call, sizeof(ConvCall), template)
    record_conv(encoder_of(stream), &call.conv, template, operands)
    return out


cdef inline Array convolve(str name, const ConvFunction* function, object x, object weight,
                    object stride, object padding, object dilation, object input_dilation,
                    object groups, object bias, object activation):
    return call(name, function, array_of(name, "x", x), array_of(name, "weight", weight),
                None if bias is None else array_of(name, "bias", bias), NULL, stride, padding,
                dilation, input_dilation, groups, activation)


cdef inline bint follows(object x, object weight, object bias) except -1:
    return is_followed(x) or is_followed(weight) or is_followed(bias)


cdef int refuse_array(str name, object stride) except -1:
    """Refuse a bias that was passed by position, as PyTorch's functions take it."""
    raise TypeError(f"{name}: stride: expected an int or one for each spatial dimension, got "
                    f"{show(stride)}; the bias goes by name, bias=")


cdef object record_activated(object function, tuple arguments):
    """Record a convolution. The gradient of relu needs only the result. Other activations need
    what is before them: they are operations of their own."""
    cdef Py_ssize_t last = len(arguments) - 1
    cdef object activation = arguments[last]
    if isinstance(arguments[2], Array) and (<Array>arguments[2]).ndim_:
        refuse_array(function.__name__, arguments[2])
    if activation is None or activation == "relu" or not isinstance(activation, str):
        return record_call(function, arguments)
    activation_code("convolution", activation)          # raises for another name
    return getattr(activations, activation)(record_call(function, (*arguments[:last], None)))


# -- convolutions ----------------------------------------------------------------------------------


def conv_general(x, weight, stride=1, padding=0, dilation=1, input_dilation=1, groups=1,
                 flip=False, bias=None, activation=None):
    """Convolve an input of 1 to 3 spatial dimensions with filters of a weight.

    Each element of the result is the sum of a window of the input times a filter: a correlation,
    or with `flip` a convolution. The padding, and the gaps between the elements of a dilated
    input, are zeros. A kernel may multiply these zeros by elements, and, for a dilated input or a
    gradient with strides, it may multiply elements by zeros in place of missing filter elements. If
    such an element is infinite, the result may be NaN. float16, bfloat16 and float32 are summed in
    float32, float64 in float64. Equal inputs give equal bits.

    Parameters
    ----------
    x : Array
        Shape (N, *spatial, C), of a real floating-point type. It is copied if its last axis is not
        contiguous.
    weight : Array
        Shape (O, *kernel, C / groups). It is copied if its filters, weight[o], are not contiguous.
    stride : int or tuple of int
        The distance between windows, for all spatial dimensions or one for each.
    padding : int, tuple of int or tuple of pairs
        The number of zeros on either side, for all spatial dimensions or one for each; or one pair
        for each: before and after the elements. Negative padding removes elements.
    dilation : int or tuple of int
        The distance between the elements of a window.
    input_dilation : int or tuple of int
        The distance between the elements of the input; zeros are inserted between them.
    groups : int
        Group i of the input's channels is convolved with group i of the filters.
    flip : bool
        Whether filters are reversed along all spatial dimensions.
    bias : Array, optional
        Shape (O,): added to the sums.
    activation : str, optional
        "relu", "gelu", "gelu_tanh" or "silu": the function that is applied to the sums at the end.

    Returns
    -------
    Array
        Shape (N, *outputs, O), of the type to which the operands promote.

    Raises
    ------
    TypeError
        An operand is not an Array of a real floating-point type, or a number is not an int.
    ValueError
        The shapes do not fit, a number is out of its range, the kernel is at least two elements
        larger than the padded input (if it is one element larger, the result is empty), or the
        activation does not exist.

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
    if recording and follows(x, weight, bias):
        return record_activated(conv_general, (
            x, weight, stride, padding, dilation, input_dilation, groups, flip, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 0, False, bool_of("conv_general", "flip", flip))
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

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [2.0], [4.0], [8.0]]])  # one series of one channel
    >>> difference = cyrt.asarray([[[-1.0], [1.0]]])
    >>> cyrt.nn.conv1d(x, difference)[0, :, 0]
    Array([1., 2., 4.], dtype=float32)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv1d, (
            x, weight, stride, padding, dilation, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 3, False, False)
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

    Examples
    --------
    >>> import cyrt
    >>> images = cyrt.ones((1, 5, 5, 3))  # channels are last
    >>> weight = cyrt.ones((8, 3, 3, 3))  # eight filters of 3 x 3
    >>> y = cyrt.nn.conv2d(images, weight, stride=2, padding=1, activation="relu")
    >>> y.shape
    (1, 3, 3, 8)
    >>> y[0, :, :, 0]
    Array([[12., 18., 12.],
           [18., 27., 18.],
           [12., 18., 12.]], dtype=float32)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv2d, (
            x, weight, stride, padding, dilation, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 4, False, False)
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

    Examples
    --------
    >>> import cyrt
    >>> x, weight = cyrt.ones((1, 4, 4, 4, 2)), cyrt.ones((3, 2, 2, 2, 2))
    >>> cyrt.nn.conv3d(x, weight, stride=2).shape
    (1, 2, 2, 2, 3)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv3d, (
            x, weight, stride, padding, dilation, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 5, False, False)
    return convolve("conv3d", &function, x, weight, stride, padding, dilation, 1, groups,
                    bias, activation)


def conv_transpose1d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Compute a transposed convolution of one spatial dimension: each element of the input adds its
    multiple of the filters to the result, at distances of `stride`.

    The result's size is ``(L - 1) * stride - 2 * padding + dilation * (K - 1) + 1 +
    output_padding``. For one group, :func:`conv_input_vjp` computes the same result if the weight's
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
        The number of elements that are removed from the result on either side.
    dilation : int or tuple of int
        The distance between the elements of a filter.
    output_padding : int or tuple of int
        The number of elements that are added at the end of the result.
    groups, bias, activation
        As for :func:`conv_general`.

    Returns
    -------
    Array
        Shape (N, outputs, O).

    Notes
    -----
    The layouts are those of MLX's ``mlx.core.conv_transpose1d``.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.asarray([[[1.0], [2.0]]])
    >>> weight = cyrt.asarray([[[1.0], [10.0], [100.0]]])
    >>> cyrt.nn.conv_transpose1d(x, weight)[0, :, 0]
    Array([  1.,  12., 120., 200.], dtype=float32)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv_transpose1d, (
            x, weight, stride, padding, dilation, output_padding, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 3, True, True)
    return convolve("conv_transpose1d", &function, x, weight, stride, padding, dilation,
                    output_padding, groups, bias, activation)


def conv_transpose2d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Compute a transposed convolution of two spatial dimensions; see :func:`conv_transpose1d`.

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

    Examples
    --------
    >>> import cyrt
    >>> x, weight = cyrt.ones((1, 2, 2, 1)), cyrt.ones((1, 2, 2, 1))
    >>> cyrt.nn.conv_transpose2d(x, weight, stride=2).shape
    (1, 4, 4, 1)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv_transpose2d, (
            x, weight, stride, padding, dilation, output_padding, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 4, True, True)
    return convolve("conv_transpose2d", &function, x, weight, stride, padding, dilation,
                    output_padding, groups, bias, activation)


def conv_transpose3d(x, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1,
                     bias=None, activation=None):
    """Compute a transposed convolution of three spatial dimensions; see :func:`conv_transpose1d`.

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

    Examples
    --------
    >>> import cyrt
    >>> x, weight = cyrt.ones((1, 2, 2, 2, 4)), cyrt.ones((6, 3, 3, 3, 4))
    >>> cyrt.nn.conv_transpose3d(x, weight).shape
    (1, 4, 4, 4, 6)
    """
    if recording and follows(x, weight, bias):
        return record_activated(conv_transpose3d, (
            x, weight, stride, padding, dilation, output_padding, groups, bias, activation))
    cdef ConvFunction function = ConvFunction(CONV, 5, True, True)
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
        The shape of the input.
    weight, stride, padding, dilation, input_dilation, groups, flip
        As for :func:`conv_general`.

    Returns
    -------
    Array
        An array of the input's shape, and of the type to which the operands promote.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`conv_general`; or g has another shape than the result.

    Examples
    --------
    >>> import cyrt
    >>> x, weight = cyrt.ones((1, 4, 1)), cyrt.asarray([[[1.0], [10.0]]])
    >>> g = cyrt.ones_like(cyrt.nn.conv1d(x, weight))
    >>> cyrt.nn.conv_input_vjp(g, x.shape, weight)[0, :, 0]
    Array([ 1., 11., 11., 10.], dtype=float32)
    """
    cdef str name = "conv_input_vjp"
    cdef ConvFunction function = ConvFunction(INPUT_VJP, 0, False, bool_of(name, "flip", flip))
    cdef Absent absent
    read_shape(name, "input_shape", input_shape, &absent)
    return call(name, &function, array_of(name, "g", g), array_of(name, "weight", weight), None,
                &absent, stride, padding, dilation, input_dilation, groups, None)


def conv_weight_vjp(g, x, weight_shape, stride=1, padding=0, dilation=1, input_dilation=1,
                    groups=1, flip=False):
    """Compute the gradient of :func:`conv_general`'s weight from that of its result.

    Sums over the outputs are always added in the same order, so equal inputs give equal bits.

    Parameters
    ----------
    g : Array
        The gradient of the result without bias and activation, of its shape.
    x : Array
        The input.
    weight_shape : tuple of int
        The shape of the weight.
    stride, padding, dilation, input_dilation, groups, flip
        As for :func:`conv_general`.

    Returns
    -------
    Array
        An array of the weight's shape, and of the type to which the operands promote.

    Raises
    ------
    TypeError, ValueError
        The errors of :func:`conv_general`; or g has another shape than the result.

    Examples
    --------
    >>> import cyrt
    >>> x, weight = cyrt.asarray([[[1.0], [2.0], [4.0]]]), cyrt.ones((1, 2, 1))
    >>> g = cyrt.ones_like(cyrt.nn.conv1d(x, weight))
    >>> cyrt.nn.conv_weight_vjp(g, x, weight.shape)[0, :, 0]
    Array([3., 6.], dtype=float32)
    """
    cdef str name = "conv_weight_vjp"
    cdef ConvFunction function = ConvFunction(WEIGHT_VJP, 0, False, bool_of(name, "flip", flip))
    cdef Absent absent
    read_shape(name, "weight_shape", weight_shape, &absent)
    return call(name, &function, array_of(name, "x", x), array_of(name, "g", g), None,
                &absent, stride, padding, dilation, input_dilation, groups, None)
