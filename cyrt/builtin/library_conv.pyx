"""Convolutions by cuDNN."""

from functools import partial

from cyrt import settings
from cyrt.builtin import conv_tuning
from cyrt.builtin cimport library
from cyrt.builtin.convolution cimport BIAS, OUT
from cyrt.builtin.entry cimport op_code
from cyrt.builtin.library cimport CUDNN, bindings_of, learn_call, record_learned
from cyrt.builtin.window cimport Sliding, product, reverse
from cyrt.dtypes import DTYPES
from cyrt.graph.exact_key cimport Key, add_word
from cyrt.graph.template cimport ALIGNMENT, Template, begin_call_key, find_template, refuse
from cyrt.runtime.device cimport context_of

# The maximum size of the workspace in bytes: float32 without TF32 needs as much as the operands.
MOST_WORKSPACE = 1 << 30
# The maximum distance of a tensor's first and last elements: the library counts in 32 bits.
MOST_SPAN = 1 << 31

cdef int CONV = op_code("conv"), INPUT_VJP = op_code("conv_input_vjp")
cdef int WEIGHT_VJP = op_code("conv_weight_vjp")

ACTIVATIONS = (None, "relu", "gelu", "gelu_tanh", "silu")
LEAST = 1 << 20             # multiplications from which on the library is faster
least = LEAST


def decide(int ordinal, served=None, double from_=LEAST):
    """Use the library on a device or not, whatever the device is, from so many multiplications on;
    None: decide at the next convolution. For tests, which have a library for the emulated device,
    and small sizes."""
    global least
    least = from_
    library.decide(CUDNN, ordinal, served)


cdef inline int count_of(const Operand* operands) noexcept:
    """Return the number of operands, of which the bias is the last one."""
    return 4 if operands[BIAS].address else 3


cdef Template template_of(int ordinal, int op, int dtype, const Operand* operands,
                          const Convolution* conv):
    cdef Key key
    cdef Template template
    cdef const Sliding* s = &conv.sliding
    cdef int d, count = count_of(operands)
    for d in range(count):
        if operands[d].address % ALIGNMENT:
            return None
    begin_call_key(&key, CUDNN, ordinal)
    add_word(&key, op << 16 | dtype << 8 | s.ndim << 4 | library.tf32 << 1 | (count == 4))
    add_word(&key, conv.batch)
    add_word(&key, conv.groups)
    add_word(&key, conv.channels)
    add_word(&key, conv.results)
    add_word(&key, conv.batch_step)
    add_word(&key, conv.other_step)
    add_word(&key, conv.activation)
    if count == 4:
        add_word(&key, conv.bias_step)
    for d in range(s.ndim):
        add_word(&key, <unsigned long long>s.sources[d] << 32 | <unsigned long long>s.outputs[d])
        add_word(&key, <unsigned long long>s.taps[d] << 32 | <unsigned long long>s.stride[d])
        add_word(&key, <unsigned long long><unsigned int>s.step[d] << 32
                 | <unsigned int>s.origin[d])
        add_word(&key, s.spacing[d])
        add_word(&key, conv.steps[d])
    template = find_template(&key)
    if template is None:
        template = prepare(ordinal, op, dtype, operands, conv, count, &key)
    return None if template.refused else template


cdef bint record_library_conv(Recorder encoder, Template template,
                              const Operand* operands) except -1:
    return record_learned(encoder, template, operands, count_of(operands), 1)


# -- in the library's terms ------------------------------------------------------------------------


cdef bint fits(const Sliding* s) noexcept:
    """Return whether outputs are the library's results, and sources its image."""
    cdef int d
    for d in range(s.ndim):
        if s.spacing[d] != 1 or (s.step[d] < 0 and s.taps[d] > 1):
            return False
    return True


cdef object tensor(cudnn, long long batch, long long batch_step, long long channels, list sizes,
                   list steps):
    """Return a tensor whose channels are adjacent, or None if the library cannot read it: its
    dimensions must be nested. Dimensions of one element may have any step here."""
    cdef long long extent = channels, size, step
    cdef int d
    cdef list dims = [batch, *sizes], strides = [batch_step, *steps]
    for d in range(<int>len(dims) - 1, -1, -1):
        size, step = dims[d], strides[d]
        if size == 1:
            strides[d] = step = extent
        if step < extent:
            return None
        extent += step * (size - 1)
    if extent >= MOST_SPAN:
        return None
    return cudnn.Tensor((batch, channels, *sizes), (strides[0], 1, *strides[1:]))


cdef list dense(long long step, list sizes):
    """Return the steps of dimensions of these sizes whose elements are `step` apart, and the step
    of the dimension outside of them."""
    cdef list steps = []
    for size in reversed(sizes):
        steps.insert(0, step)
        step *= size
    return [step, *steps]


cdef list sizes_of(int ndim, const long long* sizes, long long absent):
    """Return what there is for each spatial dimension, of which the library wants two."""
    return [absent] * (ndim == 1) + [sizes[d] for d in range(ndim)]


cdef tuple describe(int op, int dtype, const Convolution* conv, bint biased):
    """Return the problem in the library's terms and the operands' order, or None: either the
    outputs are its results, or, seen the other way, its image."""
    cdef Sliding view = conv.sliding
    cdef bint reversed_ = not fits(&view)
    cdef int d, ndim = view.ndim
    cdef long long total = product(view.taps) * conv.channels
    cdef long long row = total if op == WEIGHT_VJP else conv.other_step
    cdef long long inner = conv.groups * conv.channels, outer = conv.groups * conv.results
    cudnn = bindings_of(CUDNN)
    sources = sizes_of(ndim, view.sources, 1)
    outputs = sizes_of(ndim, view.outputs, 1)
    taps = sizes_of(ndim, view.taps, 1)
    source_steps = [conv.batch_step, *sizes_of(ndim, conv.steps, 0)]
    steps = source_steps if op != INPUT_VJP else dense(inner, sources)
    near = tensor(cudnn, conv.batch, steps[0], inner, sources, steps[1:])
    steps = dense(outer, outputs) if op == CONV else source_steps if op == INPUT_VJP \
        else dense(conv.other_step, outputs)
    far = tensor(cudnn, conv.batch, steps[0], outer, outputs, steps[1:])
    steps = dense(conv.channels, taps)[1:]
    filters = cudnn.Tensor((outer, conv.channels, *taps), (row, 1, *steps))
    if reversed_:
        view = reverse(&view)
        # The filters' outputs would be the library's channels. Strides can say that, but cuDNN
        # 9.19 takes them for others and computes something else: only filters of one channel and
        # one output, which are the same either way, are left to it.
        if not fits(&view) or conv.channels != 1 or conv.results != 1:
            return None
    if near is None or far is None:
        return None
    low, high = [], []
    for d in range(ndim):
        below, above = padding(&view, d)
        if below < 0 or above < 0:
            return None
        low.append(below)
        high.append(above)
    image, result = (far, near) if reversed_ else (near, far)
    near_name, far_name = (cudnn.RESULT, cudnn.IMAGE) if reversed_ else (cudnn.IMAGE, cudnn.RESULT)
    if op == WEIGHT_VJP:
        kind, order = cudnn.BACKWARD_FILTER, [cudnn.FILTER, near_name, far_name]
    else:
        kind = cudnn.FORWARD if (op == CONV) != reversed_ else cudnn.BACKWARD_DATA
        order = [far_name, near_name] if op == CONV else [near_name, far_name]
        order.append(cudnn.FILTER)
    if biased:
        order.append(cudnn.BIAS)
    flat = [0] * (ndim == 1)
    return cudnn.Problem(
        kind, DTYPES[dtype].name, image, filters, result,
        tuple(sizes_of(ndim, view.stride, 1)), tuple(flat + low), tuple(flat + high),
        tuple([abs(step) for step in sizes_of(ndim, view.step, 1)]),
        bias=conv.bias_step if biased else None, activation=ACTIVATIONS[conv.activation],
        tf32=bool(library.tf32)), order


cdef tuple padding(const Sliding* s, int d):
    """Return the padding before and after a dimension, equal if the outputs allow it: padding after
    the dimension that no window reaches may be changed."""
    cdef long long window = (s.taps[d] - 1) * abs(s.step[d]) + 1
    cdef long long low = -s.origin[d]
    cdef long long room = s.sources[d] + 2 * low - window
    if room >= 0 and room // s.stride[d] + 1 == s.outputs[d]:
        return low, low
    return low, max(0, (s.outputs[d] - 1) * s.stride[d] + window - low - s.sources[d])


def _build(opened, int ordinal, problem, order):
    """Return the convolution with a plan, in the library `opened`."""
    make = partial(bindings_of(CUDNN).Convolution, opened, ordinal, context_of(ordinal).epoch,
                   problem, order, most_workspace=MOST_WORKSPACE)
    if settings.get("CYRT_CONV_AUTOTUNE"):
        return conv_tuning.choose(make, ordinal, opened.dotted)
    convolution = make()
    convolution.build_first()
    return convolution


cdef Template prepare(int ordinal, int op, int dtype, const Operand* operands,
                      const Convolution* conv, int count, Key* key):
    """Learn the convolution, or learn that the library does not provide it."""
    described = describe(op, dtype, conv, count == 4)
    if described is None:
        return refuse(key, ordinal, "the library has no such windows, or reads no such strides")
    problem, order = described
    make = partial(_build, bindings_of(CUDNN).find()[0], ordinal, problem, order)
    return learn_call(CUDNN, key, ordinal, make, operands, count,
                      conv_tuning.nbytes(problem, order[OUT]))
