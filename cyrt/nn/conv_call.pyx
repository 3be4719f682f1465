# C-level functions only: see conv_call.pxd.
"""Calls of convolutions: checked once, and recorded."""

from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.sequence cimport PySequence_Fast_GET_ITEM, PySequence_Fast_GET_SIZE
from cpython.tuple cimport PyTuple_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memcmp, memcpy, memmove, memset

from cyrt.builtin.conv cimport Choice, activation_code, new_choice, record_conv
from cyrt.builtin.convolution cimport BIAS, OTHER, OUT, SOURCE, Convolution
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.space cimport tuple_of_sizes
from cyrt.builtin.window cimport (
    FARTHEST, WINDOW_AXES, read_int, read_numbers, read_padding, set_sliding,
)
from cyrt.dtypes import DTYPES
from cyrt.graph.key_hash cimport MOST_HASHED, hash_words
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.template cimport ALIGNMENT
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array_on, set_operand, shape_of
from cyrt.nn.rows cimport spaced_rows
from cyrt.ops.copy cimport cast, check_device
from cyrt.ops.promotion cimport kinds, promote
from cyrt.runtime.memory cimport live_block
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport current_state

cdef enum:
    # Words of a question: 28 for the arguments, 11 an operand, 5 for a shape.
    MOST_WORDS = MOST_HASHED
    SETS = 256              # Sets of answers, a power of two.
    WAYS = 4                # Answers of a set; a deep network's training step makes some 200 calls.
    IS_INT = 1              # the last bits of a word tell what it is; those of an address are 0
    IS_SEQUENCE = 2

cdef object ZERO = 0, ONE = 1   # most arguments are one of them

# Everything that selects what a call records, but for its operands' addresses.
cdef struct Question:
    int count
    bint complete           # all arguments are in the words
    unsigned long long hash
    unsigned long long[MOST_WORDS] words


# The result of checking a call; it is kept, since a program repeats its convolutions.
cdef class Answer:
    cdef Question question
    cdef object activation          # its address is in the question
    cdef Choice choice
    cdef int ordinal
    cdef int code, ndim             # The result's type and dimensions.
    cdef long long[MOST_DIMS] dims


cdef PyObject* answers[SETS][WAYS]  # owned references; in each set the newest is the first
cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")


# -- arguments -------------------------------------------------------------------------------------


cdef int joint_type(str name, str first, Array a, str second, Array b) except -1:
    """Return the type that two operands are computed in."""
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
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got {shape!r}") from None
    for each in sizes:
        if not read_int(each, &size):
            raise TypeError(f"{name}: {argument}: expected a tuple of int, got {shape!r}")
        fits = fits and ndim < MOST_DIMS and 0 <= size < <long long>1 << 58
        if fits:
            absent.dims[ndim] = size
            ndim += 1
    if not fits or ndim < 3:
        raise ValueError(f"{name}: {argument}: expected 3 to 5 sizes of 0 or more, got {shape!r}")
    absent.ndim = ndim
    return 0


cdef int check_ranks(str name, int wanted, int ndim, const long long* source, int weight_ndim,
                     const long long* weight) except -1:
    """Raise a ValueError unless both have as many dimensions as wanted; 0: 3 to 5."""
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
                         object groups) except -1:
    """Raise the error for channels that do not fit; name what looks as if they came first."""
    cdef list first = []
    spatial = spatial_names(ndim, "")
    # Those of the input by the weight, if its own come last, or first.
    channels, leading = weight[ndim - 1] * groups, weight[1] * groups
    if source[1] == channels or (source[1] == leading and source[ndim - 1] != leading):
        first.append("x")
    if leading in (source[1], source[ndim - 1]) and channels != source[1]:
        first.append("weight")
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
                    bint flip) except -1:
    cdef long long count
    cdef bint fits
    check_ranks(name, wanted, ndim, source, weight_ndim, weight)
    if not read_int(groups, &count):
        raise TypeError(f"{name}: groups: expected an int, got {groups!r}")
    # No array has as many channels as 2**58.
    fits = 0 < count < <long long>1 << 58 and weight[0] % count == 0 \
        and source[ndim - 1] % count == 0
    if not fits or weight[ndim - 1] != source[ndim - 1] // count:
        refuse_channels(name, ndim, source, weight, groups)
    memset(conv, 0, sizeof(Convolution))
    set_sliding(&conv.sliding, name, ndim - 2, source + 1, weight + 1, stride, padding,
                dilation, input_dilation, flip)
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
        outputs = tuple_of_sizes(conv.sliding.ndim, conv.sliding.outputs)
        raise ValueError(f"{name}: g: expected the result's shape, "
                         f"{(conv.batch, *outputs, conv.groups * conv.results)}, got {shape_of(g)}")
    return 0


cdef list transposed_padding(str name, int ndim, Array source, Array weight, object stride,
                             object padding, object dilation, object output_padding):
    """Return the padding of a convolution of the input dilated by the stride: so that a kernel that
    meets one element has an output, less the padding."""
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
                             f"input are not provided for, got a kernel of size {kernel} in "
                             f"spatial dimension {d}, dilation {step[d]}, padding {low[d]} and "
                             f"{high[d]}, output_padding {more[d]}")
        if outputs < 0:
            raise ValueError(f"{name}: the result's size would be {outputs} in spatial dimension "
                             f"{d}, of an input of size {size}, a kernel of size {kernel}, stride "
                             f"{apart[d]}, dilation {step[d]}, padding {low[d]} and {high[d]}, "
                             f"output_padding {more[d]}")
        if size == 0:               # the dilated input has no places, not 1 - stride
            behind += 1 - apart[d]
        pairs.append((before, behind))
    return pairs


cdef int set_result(Answer answer, str name, int op, Array source, Array other, Array bias,
                    const Absent* absent, const Convolution* conv) except -1:
    """Check the operands that follow from the others; set the result's type and shape."""
    cdef int d
    if op != CONV:
        check_gradient(conv, name, source if op == INPUT_VJP else other)
        answer.ndim = absent.ndim
        memcpy(answer.dims, absent.dims, sizeof(answer.dims))
        return 0
    if bias is not None:
        if bias.ndim_ != 1 or bias.dims[0] != other.dims[0]:
            raise ValueError(f"{name}: bias: expected shape ({other.dims[0]},), for a weight of "
                             f"shape {shape_of(other)}, got {shape_of(bias)}")
        answer.code = promote(answer.code, joint_type(name, "x", source, "bias", bias))
    answer.ndim = source.ndim_
    answer.dims[0], answer.dims[answer.ndim - 1] = conv.batch, other.dims[0]
    for d in range(conv.sliding.ndim):
        answer.dims[d + 1] = conv.sliding.outputs[d]
    return 0


cdef Answer read_call(str name, const Function* function, Array source, Array other, Array bias,
                      const Absent* absent, tuple arguments, Convolution* conv):
    """Check a call; return its answer without a choice, and set all of the convolution but the
    operands' steps."""
    cdef Answer answer = Answer.__new__(Answer)
    stride, padding, dilation, input_dilation, groups, activation = arguments
    answer.ordinal = device_of(source)
    if function.op == CONV:
        answer.code = joint_type(name, "x", source, "weight", other)
    elif function.op == INPUT_VJP:
        answer.code = joint_type(name, "weight", other, "g", source)
    else:
        answer.code = joint_type(name, "x", source, "g", other)
    if function.transposed:
        padding = transposed_padding(name, function.wanted - 2, source, other, stride, padding,
                                     dilation, input_dilation)
        stride, input_dilation = 1, stride
    if function.op == CONV:
        read_sizes(conv, name, function.wanted, source.ndim_, source.dims, other.ndim_, other.dims,
                   stride, padding, dilation, input_dilation, groups, function.flip)
    elif function.op == INPUT_VJP:
        read_sizes(conv, name, 0, absent.ndim, absent.dims, other.ndim_, other.dims, stride,
                   padding, dilation, input_dilation, groups, function.flip)
    else:
        read_sizes(conv, name, 0, source.ndim_, source.dims, absent.ndim, absent.dims, stride,
                   padding, dilation, input_dilation, groups, function.flip)
    conv.activation = activation_code(name, activation)
    set_result(answer, name, function.op, source, other, bias, absent, conv)
    return answer


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
    """Return the bias in the type, and set its step; None stays."""
    if bias is None:
        return None
    if bias.code != code:
        bias = cast(bias, code)
    conv.bias_step = bias.steps[0]
    return bias


# -- calls -----------------------------------------------------------------------------------------


cdef inline void add_word(Question* question, unsigned long long word) noexcept:
    question.words[question.count] = word
    question.count += 1


cdef inline int add_argument(Question* question, object value, int depth) except -1:
    if value is ONE:
        add_word(question, 1 << 3 | IS_INT)
        return 0
    if value is ZERO:
        add_word(question, IS_INT)
        return 0
    return add_value(question, value, depth)


cdef int add_value(Question* question, object value, int depth) except -1:
    """Add an int, or a sequence of at most WINDOW_AXES ints or pairs, by its value, since programs
    build such tuples anew for each call. The question is not complete if it is something else."""
    cdef Py_ssize_t size, i
    cdef long long number
    cdef int overflow = 0
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow == 0 and -(<long long>1 << 60) < number < <long long>1 << 60:
            add_word(question, <unsigned long long>number << 3 | IS_INT)
            return 0
    elif depth and (PyTuple_CheckExact(value) or PyList_CheckExact(value)):
        size = PySequence_Fast_GET_SIZE(value)
        if size <= WINDOW_AXES:
            add_word(question, <unsigned long long>size << 3 | IS_SEQUENCE)
            for i in range(size):
                add_argument(question, <object>PySequence_Fast_GET_ITEM(value, i), depth - 1)
            return 0
    question.complete = False
    return 0


cdef inline int add_operand(Question* question, Array x) except -1:
    """Add an operand: its device, dimensions, type, whether it is dense, and address modulo
    ALIGNMENT in one word, then its sizes, and the steps if it is not dense."""
    cdef int d, ndim = min(x.ndim_, <int>MOST_DIMS)     # more dimensions are refused
    add_word(question, <unsigned long long>live_block(x).ordinal << 32 | x.ndim_ << 16
             | x.code << 8 | x.dense << 7 | x.address % ALIGNMENT)
    for d in range(ndim):
        add_word(question, <unsigned long long>x.dims[d])
    if not x.dense:
        for d in range(ndim):
            add_word(question, <unsigned long long>x.steps[d])
    return 0


cdef inline bint answers_question(PyObject* answer, const Question* question) noexcept:
    cdef const Question* known
    if answer == NULL:
        return False
    known = &(<Answer>answer).question
    return known.hash == question.hash and known.count == question.count and memcmp(
        known.words, question.words, question.count * sizeof(question.words[0])) == 0


cdef int keep(Answer answer, PyObject** ways) except -1:
    """Keep an answer in place of the oldest one of its set."""
    cdef PyObject* oldest = ways[WAYS - 1]
    memmove(&ways[1], &ways[0], (WAYS - 1) * sizeof(PyObject*))
    Py_INCREF(answer)
    ways[0] = <PyObject*>answer
    Py_XDECREF(oldest)
    return 0


cdef Array call(str name, const Function* function, Array source, Array other, Array bias,
                const Absent* absent, object stride, object padding, object dilation,
                object input_dilation, object groups, object activation):
    cdef Question question
    cdef PyObject** ways
    cdef int i
    question.count = 0
    question.complete = activation is None or PyUnicode_CheckExact(activation)
    add_word(&question, function.op | function.wanted << 8 | function.transposed << 12
             | function.flip << 13 | (bias is not None) << 14)
    add_argument(&question, stride, 1)
    add_argument(&question, padding, 2)
    add_argument(&question, dilation, 1)
    add_argument(&question, input_dilation, 1)
    add_argument(&question, groups, 0)
    add_word(&question, <size_t><PyObject*>activation)
    if question.complete:
        add_operand(&question, source)
        add_operand(&question, other)
        if bias is not None:
            add_operand(&question, bias)
        for i in range(absent.ndim if absent != NULL else 0):
            add_word(&question, <unsigned long long>absent.dims[i])
        question.hash = hash_words(question.words, question.count)
        ways = answers[question.hash & (SETS - 1)]
        for i in range(WAYS):
            if answers_question(ways[i], &question):
                return record(<Answer>ways[i], source, other, bias)
    return call_anew(name, function, &question, source, other, bias, absent,
                     (stride, padding, dilation, input_dilation, groups, activation))


cdef Array call_anew(str name, const Function* function, const Question* question,
                     Array source, Array other, Array bias, const Absent* absent,
                     tuple arguments):
    """Check and record a call; keep the answer if no operand was copied and the question is
    complete."""
    cdef Convolution conv
    cdef Answer answer = read_call(name, function, source, other, bias, absent, arguments, &conv)
    cdef Array x = as_source(source, answer.code, &conv)
    cdef Array y = as_weight(other, answer.code, &conv) if function.op != WEIGHT_VJP \
        else as_gradient(other, answer.code, &conv)
    cdef Array b = as_bias(bias, answer.code, &conv)
    answer.choice = new_choice(function.op, answer.code, &conv)
    if question.complete and x is source and y is other and b is bias:
        answer.question, answer.activation = question[0], arguments[5]
        keep(answer, answers[question.hash & (SETS - 1)])
    return record(answer, x, y, b)


cdef inline void set_if_any(Operand* operand, Array x) noexcept:
    """Set an operand; memory of no elements is not used."""
    if x is not None and x.count:
        set_operand(operand, x)


cdef Array record(Answer answer, Array source, Array other, Array bias):
    cdef Operand[4] operands
    cdef StreamState* stream = current_state(answer.ordinal)
    cdef Array out = new_array_on(stream, answer.code, answer.ndim, answer.dims)
    memset(operands, 0, sizeof(operands))
    set_if_any(&operands[OUT], out)
    set_if_any(&operands[SOURCE], source)
    set_if_any(&operands[OTHER], other)
    set_if_any(&operands[BIAS], bias)
    record_conv(encoder_of(stream), answer.choice, operands)
    return out
