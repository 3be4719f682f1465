# cython: cdivision=True
"""Optimizers: the steps of nests of parameters, one launch for all tensors of a type."""

import math

from cpython.object cimport PyObject
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.optimizer cimport (
    OPTIMIZER_EXPONENTIAL, OPTIMIZER_LINEAR, OPTIMIZER_NESTEROV, Others, Tensor, record_optimizer,
    tile_of,
)
from cyrt.builtin.optimizer cimport Optimizer as Numbers
from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.dtypes import DTYPES
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport (
    Array, as_contiguous, device_of, has_shape, itemsizes, new_array, shape_of,
)
from cyrt.nn.checks import number_of, positive_number
from cyrt.ops.arguments import check_bool
from cyrt.ops.copy cimport check_device, check_writable
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import zeros
from cyrt.ops.promotion cimport kinds
from cyrt.ops.functions import sqrt
from cyrt.ops.reduce import sum as sum_of
from cyrt.optim.schedules import Schedule
from cyrt.optim.state import State
from cyrt.runtime.stream cimport current_state
from cyrt.trees cimport Structure, append_like, with_sorted_keys
from cyrt.trees import flatten

cdef enum:
    NUM_TYPES = 4               # the number of element types that parameters may have

cdef int FLOAT32 = dtype_code("float32"), FLOAT64 = dtype_code("float64")
cdef int INT32 = dtype_code("int32"), SQUARE_SUM = op_code("square_sum")
cdef int[NUM_TYPES] types
cdef tuple names = ("float16", "bfloat16", "float32", "float64")
types[:] = [dtype_code(name) for name in names]
cdef dict curves = {"cosine": 0, "linear": OPTIMIZER_LINEAR, "exponential": OPTIMIZER_EXPONENTIAL}


# The bytes that a tensor or an array of the state has.
cdef struct MemoryRange:
    CUdeviceptr begin, end
    Py_ssize_t index            # the leaf's index; the state's arrays follow the leaves


cdef int compare_ranges(const void* a, const void* b) noexcept nogil:
    cdef CUdeviceptr left = (<const MemoryRange*>a).begin, right = (<const MemoryRange*>b).begin
    return (left > right) - (left < right)


cdef bint is_apart(const MemoryRange* ranges, Py_ssize_t count, Array g, Py_ssize_t own) noexcept:
    """Return whether a gradient shares no memory with what is written, unless it is its own
    parameter."""
    cdef CUdeviceptr end = g.address + g.count * itemsizes[g.code]
    cdef Py_ssize_t low = 0, high = count, middle
    while low < high:           # the first range that ends behind the gradient's begin
        middle = (low + high) // 2
        if ranges[middle].end <= g.address:
            low = middle + 1
        else:
            high = middle
    return low == count or ranges[low].begin >= end \
        or (ranges[low].index == own and ranges[low].begin == g.address)


cdef class Optimizer:
    """Optimizer()\n--\n
    An optimizer: a pair of functions, as optax has them.

    :func:`sgd`, :func:`adam`, :func:`adamw` and :func:`lion` make optimizers. An optimizer contains
    no state, and serves any number of models.

    Examples
    --------
    >>> import cyrt
    >>> params = {"w": cyrt.ones(3), "b": cyrt.zeros(())}
    >>> optimizer = cyrt.optim.sgd(0.5)
    >>> state = optimizer.init(params)
    >>> grads = {"w": cyrt.ones(3), "b": cyrt.ones(())}
    >>> params, state = optimizer.update(grads, state, params)
    >>> params["w"], params["b"]
    (Array([0.5, 0.5, 0.5], dtype=float32), Array(-0.5, dtype=float32))
    """

    cdef str name, text
    cdef int op, moments
    cdef Numbers numbers
    cdef Array given_rate       # the array lr; None: the numbers have the schedule
    cdef Structure structure    # the structure of the last parameters

    def __init__(self):
        raise TypeError("cyrt.optim.sgd, adam, adamw and lion make an Optimizer")

    def __repr__(self):
        return self.text

    def init(self, params):
        """Return the state before the first step of an optimizer on these parameters.

        Parameters
        ----------
        params : nest of Array
            Contiguous arrays of float16, bfloat16, float32 or float64, or a dict, list, tuple,
            named tuple or dataclass of such nests, on one device.

        Returns
        -------
        dict of State
            A State for each element type, by the name of that type.

        Raises
        ------
        TypeError, ValueError
            The parameters are not such a nest; or its arrays have other types, are not contiguous,
            or are on several devices.

        Examples
        --------
        >>> import cyrt
        >>> state = cyrt.optim.adam(0.1).init([cyrt.ones((2, 3)), cyrt.zeros(5)])
        >>> state["float32"].step, state["float32"].m.shape
        (Array([0, 0], dtype=int32), (2048,))
        """
        cdef list leaves = []
        cdef Structure structure = self.take_leaves(params, leaves)
        cdef Array p
        cdef long long tiles
        cdef Py_ssize_t i
        cdef int code, ordinal, each
        cdef dict state = {}
        for i in range(len(leaves)):
            self.check_param(leaves, structure, i)
        for each in range(NUM_TYPES):
            code, tiles = types[each], 0
            for i in range(len(leaves)):
                p = <Array>leaves[i]
                if p.code == code:
                    tiles += num_tiles(p)
            if tiles:
                ordinal, size = device_of(<Array>leaves[0]), tiles * tile_of(code)
                wide = DTYPES[wide_type(code)]
                state[names[each]] = State(
                    zeros(tiles, DTYPES[INT32], device=ordinal),
                    zeros(size, wide, device=ordinal) if self.moments > 0 else None,
                    zeros(size, wide, device=ordinal) if self.moments > 1 else None)
        return state

    def update(self, grads, state, params):
        """Update parameters and state by one step, in place.

        The old parameters and the old state are overwritten: copy before the call what you still
        need. One launch updates up to 160 tensors of an element type.

        Parameters
        ----------
        grads : nest of Array
            The gradients: a nest of the parameters' structure, shapes and types.
        state : dict of State
            The state that :meth:`init` or the previous step returned.
        params : nest of Array
            The parameters, which share no memory with each other.

        Returns
        -------
        tuple
            `params` and `state`, the same objects.

        Raises
        ------
        TypeError, ValueError
            The nests differ in structure; a gradient differs from its parameter in type, shape or
            device; parameters share memory; or the state is that of other parameters. Nothing has
            been overwritten then.

        Notes
        -----
        Steps are computed in float32, or for parameters of float64 in float64, and are then rounded
        to the parameters' type.

        Examples
        --------
        >>> import cyrt
        >>> optimizer, w = cyrt.optim.sgd(0.5), cyrt.ones(2)
        >>> w, state = optimizer.update(cyrt.ones(2), optimizer.init(w), w)
        >>> w
        Array([0.5, 0.5], dtype=float32)
        """
        cdef list leaves = [], gradients
        cdef Structure structure
        cdef Py_ssize_t count
        cdef Tensor* tensors
        cdef MemoryRange* ranges
        if is_state(params) and not is_state(state):
            raise TypeError(f"{self.name}: update: params is an optimizer's state; the order of "
                            "the arguments is update(grads, state, params)")
        structure = self.take_leaves(params, leaves)
        gradients = structure.flatten(grads, Array, "grads")
        count = len(leaves)
        tensors = <Tensor*>malloc((count + 1) * sizeof(Tensor))
        ranges = <MemoryRange*>malloc((count + 3 * NUM_TYPES) * sizeof(MemoryRange))
        try:
            if tensors == NULL or ranges == NULL:
                raise MemoryError()
            self.step(leaves, gradients, structure, state, tensors, ranges)
        finally:
            free(tensors)
            free(ranges)
        return params, state

    cdef Structure take_leaves(self, params, list leaves):
        """Append the leaves of parameters; return their structure. Equal dicts have one order of
        leaves, which is that of the moments, whichever order their entries have."""
        cdef Structure structure = self.structure
        if structure is None or not append_like(structure, params, Array, leaves, False):
            structure = with_sorted_keys(flatten(params, Array, "params")[1])
            leaves[:] = structure.flatten(params, Array, "params")
            self.structure = structure
        return structure

    cdef int check_param(self, list leaves, Structure structure, Py_ssize_t i) except -1:
        cdef Array p = <Array>leaves[i]
        cdef int ordinal = device_of(p), first = device_of(<Array>leaves[0])
        if kinds[p.code] == c"f" and p.dense and ordinal == first:
            return check_writable(p)
        where = f"{self.name}: {structure.paths('params')[i]}"
        if kinds[p.code] != c"f":
            advice = "; keep the real and the imaginary part as two parameters" \
                if kinds[p.code] == c"c" else ""
            raise TypeError(f"{where}: expected a real floating-point type, got {p.dtype}{advice}")
        if not p.dense:
            raise ValueError(f"{where}: expected a contiguous array, which copy() makes; got one "
                             f"of strides {p.strides}")
        raise ValueError(f"{where}: expected an array on device {first}, that of the first one, "
                         f"got one on device {ordinal}")

    cdef int check_gradient(self, Array p, Array g, Structure structure, Py_ssize_t i) except -1:
        if g.code == p.code and has_shape(g, p.ndim_, p.dims) and device_of(g) == device_of(p):
            return 0
        where = f"{self.name}: {structure.paths('grads')[i]}"
        if g.code != p.code:
            raise TypeError(f"{where}: expected {p.dtype}, the type of its parameter, got "
                            f"{g.dtype}")
        if shape_of(g) != shape_of(p):
            raise ValueError(f"{where}: expected shape {shape_of(p)}, that of its parameter, got "
                             f"{shape_of(g)}")
        raise ValueError(f"{where}: expected an array on device {device_of(p)}, that of its "
                         f"parameter, got one on device {device_of(g)}")

    cdef Array array_of_state(self, each, str field, int code, long long size, int ordinal,
                              str name):
        cdef Array x
        if isinstance(each, Array):
            x = <Array>each
            if x.code == code and x.ndim_ == 1 and x.count == size and x.dense \
                    and x.address % 16 == 0 and device_of(x) == ordinal:
                check_writable(x)
                return x
        text = (f"{self.name}: state[{name!r}].{field}: expected a contiguous array of {size} "
                f"elements of {DTYPES[code]}, which init makes")
        if not isinstance(each, Array):
            raise TypeError(f"{text}; got {type(each).__name__}")
        x = <Array>each
        raise ValueError(f"{text}, at a multiple of 16 bytes, on device {ordinal}; got {x.dtype} "
                         f"of shape {shape_of(x)} on device {device_of(x)}")

    cdef list arrays_of_state(self, state, const long long* tiles, int ordinal):
        """Return for each type of parameters the arrays of its state: step, m and v."""
        cdef list found = []
        cdef int each, num_types = 0
        cdef long long size
        for each in range(NUM_TYPES):
            num_types += tiles[each] > 0
        if type(state) is not dict or len(<dict>state) != num_types:
            self.refuse_state(state, tiles)
        for each in range(NUM_TYPES):
            if not tiles[each]:
                found.append(None)
                continue
            name = names[each]
            own = (<dict>state).get(name)
            if not isinstance(own, State):
                self.refuse_state(state, tiles)
            if self.moments < 1 and own.m is not None or self.moments < 2 and own.v is not None:
                field = "v" if self.moments else "m"
                raise ValueError(f"{self.name}: state[{name!r}].{field}: expected None, got an "
                                 "array: the state is that of another kind of optimizer")
            size = tiles[each] * tile_of(types[each])
            wide = wide_type(types[each])
            found.append((
                self.array_of_state(own.step, "step", INT32, tiles[each], ordinal, name),
                self.array_of_state(own.m, "m", wide, size, ordinal, name)
                if self.moments > 0 else None,
                self.array_of_state(own.v, "v", wide, size, ordinal, name)
                if self.moments > 1 else None))
        return found

    cdef int refuse_state(self, state, const long long* tiles) except -1:
        wanted = ", ".join([names[each] for each in range(NUM_TYPES) if tiles[each]])
        if type(state) is dict:
            got = ", ".join([f"{name!r}: {type(each).__name__}" for name, each in state.items()])
            got = f"{{{got}}}"
        else:
            got = type(state).__name__
        raise TypeError(f"{self.name}: state: expected a dict with a State for each of the types "
                        f"of the parameters, {wanted}, which init makes; got {got}")

    cdef int check_ranges(self, MemoryRange* ranges, Py_ssize_t count,
                          Structure structure) except -1:
        """Sort the memory that is written, and check that no two ranges of it overlap."""
        cdef Py_ssize_t i
        qsort(ranges, count, sizeof(MemoryRange), compare_ranges)
        for i in range(1, count):
            if ranges[i].begin < ranges[i - 1].end:
                paths = structure.paths("params") + [
                    f"state[{names[j // 3]!r}].{State._fields[j % 3]}"
                    for j in range(3 * NUM_TYPES)]
                first, second = sorted((ranges[i - 1].index, ranges[i].index))
                raise ValueError(f"{self.name}: {paths[first]} and {paths[second]} share memory")
        return 0

    cdef int step(self, list leaves, list gradients, Structure structure, state, Tensor* tensors,
                  MemoryRange* ranges) except -1:
        cdef Py_ssize_t i, next = 0, num_ranges = 0, num_leaves = len(leaves)
        cdef Py_ssize_t[NUM_TYPES + 1] first
        cdef long long[NUM_TYPES] tiles
        cdef long long all_tiles = 0
        cdef int each, j, ordinal = 0
        cdef Recorder encoder
        cdef Numbers numbers
        cdef Others others
        cdef Array p, g, total = None
        cdef list arrays
        # All is checked before anything is recorded.
        for i in range(num_leaves):
            self.check_param(leaves, structure, i)
            p, g = <Array>leaves[i], <Array>gradients[i]
            self.check_gradient(p, g, structure, i)
            if p.count:
                append_range(ranges, &num_ranges, p, i)
        for each in range(NUM_TYPES):
            first[each], tiles[each] = next, 0
            for i in range(num_leaves):
                p = <Array>leaves[i]
                if p.code == types[each] and p.count:
                    tensors[next].array, tensors[next].gradient = <PyObject*>p, NULL
                    tensors[next].count, tensors[next].tile = p.count, tiles[each]
                    tensors[next].index = i
                    tiles[each] += num_tiles(p)
                    next += 1
            all_tiles += tiles[each]
        first[NUM_TYPES] = next
        if num_leaves:
            ordinal = device_of(<Array>leaves[0])
        arrays = self.arrays_of_state(state, tiles, ordinal)
        for each in range(NUM_TYPES):
            for j in range(3 if tiles[each] else 0):
                if arrays[each][j] is not None:
                    append_range(ranges, &num_ranges, arrays[each][j], num_leaves + 3 * each + j)
        if next == 0:
            return 0
        encoder = encoder_of(current_state(ordinal))
        if encoder.listed is None:      # else memory means nothing
            self.check_ranges(ranges, num_ranges, structure)
        for i in range(next):
            g = <Array>gradients[tensors[i].index]
            if not g.dense:
                g = as_contiguous(g)
            elif encoder.listed is None and not is_apart(ranges, num_ranges, g, tensors[i].index):
                g = copy(g)
            gradients[tensors[i].index] = g
            tensors[i].gradient = <PyObject*>g
        others.num_read = 0
        memcpy(&numbers, &self.numbers, sizeof(numbers))
        if numbers.max_norm:
            total = sum_squares(ordinal, tensors, first, all_tiles)
            numbers.squares = total.address
            others.read[others.num_read] = <PyObject*>total
            others.num_read += 1
        if self.given_rate is not None:
            others.read[others.num_read] = <PyObject*>self.given_rate
            others.num_read += 1
        for each in range(NUM_TYPES):
            if not tiles[each]:
                continue
            others.num_written = 0
            for j in range(1 + self.moments):
                p = <Array>arrays[each][j]
                others.written[j] = <PyObject*>p
                (&numbers.step)[j] = p.address
                others.num_written += 1
            record_optimizer(encoder_of(current_state(ordinal)), self.op, types[each], &numbers,
                             tensors + first[each], first[each + 1] - first[each], &others)
        return 0


cdef bint is_state(value) except -1:
    if type(value) is dict:
        for each in (<dict>value).values():
            return isinstance(each, State)
    return False


cdef inline void append_range(MemoryRange* ranges, Py_ssize_t* count, Array x,
                              Py_ssize_t index) noexcept:
    ranges[count[0]].begin = x.address
    ranges[count[0]].end = x.address + x.count * itemsizes[x.code]
    ranges[count[0]].index = index
    count[0] += 1


cdef Array sum_squares(int ordinal, const Tensor* tensors, const Py_ssize_t* first,
                       long long tiles):
    """Return the sum of the squares of all elements of gradients, a float64 array of one element;
    `first` is the index of the first tensor of each type."""
    cdef Numbers numbers
    cdef Others others
    cdef int each
    cdef Array squares = new_array(ordinal, FLOAT64, 1, &tiles)
    memset(&numbers, 0, sizeof(numbers))
    others.num_read, others.num_written = 0, 1
    others.written[0] = <PyObject*>squares
    numbers.squares = squares.address
    for each in range(NUM_TYPES):
        if first[each] == first[each + 1]:
            continue
        record_optimizer(encoder_of(current_state(ordinal)), SQUARE_SUM, types[each], &numbers,
                         tensors + first[each], first[each + 1] - first[each], &others)
    return <Array?>sum_of(squares)


cdef inline int wide_type(int code) noexcept:
    """Return the type in which tensors of a type are stepped."""
    return FLOAT64 if code == FLOAT64 else FLOAT32


cdef inline long long num_tiles(Array p) noexcept:
    cdef long long tile = tile_of(p.code)
    return (p.count + tile - 1) // tile


cdef Optimizer new_optimizer(str name, str op, int moments, lr, dict settings):
    """Return an optimizer with a learning rate; `settings` has the other numbers that its text
    shows."""
    cdef Optimizer made = Optimizer.__new__(Optimizer)
    cdef Numbers* numbers = &made.numbers
    cdef Array rate
    memset(numbers, 0, sizeof(Numbers))
    made.name, made.op, made.moments = name, op_code(op), moments
    texts = [repr(lr), *[f"{key}={each!r}" for key, each in settings.items()]]
    made.text = f"{name}({', '.join(texts)})"
    if isinstance(lr, Schedule):
        numbers.rate, numbers.start, numbers.end = lr.rate, lr.start, lr.end
        numbers.warmup, numbers.decay = lr.warmup_steps, lr.decay_steps
        numbers.log2_factor = math.log2(lr.factor)
        numbers.flags = curves[lr.curve]
    elif isinstance(lr, Array):
        rate = lr
        if rate.code != FLOAT32 or rate.ndim_ != 0:
            raise ValueError(f"{name}: lr: expected an array of float32 without dimensions, got "
                             f"one of {rate.dtype} of shape {shape_of(rate)}")
        made.given_rate, numbers.given_rate = rate, rate.address
    else:
        try:
            numbers.rate = number_of(lr, name, "lr", 0)
        except TypeError as error:
            raise TypeError(f"{error}; the parameters are an argument of init") from None
    return made


cdef double decay_rate(value, str name, str argument) except? -1:
    """Return a number from 0 to 1, 1 excluded."""
    cdef double number = number_of(value, name, argument, 0, 1)
    if number == 1:
        raise ValueError(f"{name}: {argument}: expected a number below 1, got {value}")
    return number


cdef int set_decay_rates(Optimizer optimizer, b1, b2) except -1:
    cdef Numbers* numbers = &optimizer.numbers
    numbers.b1 = decay_rate(b1, optimizer.name, "b1")
    numbers.b2 = decay_rate(b2, optimizer.name, "b2")
    numbers.c1, numbers.c2 = 1 - numbers.b1, 1 - numbers.b2
    # exp_minus_1 of minus infinity is -1.
    numbers.log_b1 = math.log(numbers.b1) if numbers.b1 else -math.inf
    numbers.log_b2 = math.log(numbers.b2) if numbers.b2 else -math.inf
    return 0


def sgd(lr, momentum=0.0, nesterov=False, weight_decay=0.0):
    """Return the optimizer of stochastic gradient descent.

    Parameters
    ----------
    lr : float, Schedule or Array
        The learning rate: a number of 0 or more, a schedule, or an array of float32 without
        dimensions, which is read at each step.
    momentum : float
        The factor of the velocity, from 0 to 1, 1 excluded; with 0 there is no velocity.
    nesterov : bool
        Whether a step looks ahead along the velocity, as Nesterov's method does.
    weight_decay : float
        The multiple of the parameters that is added to the gradients.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        An argument is not such a number; or `nesterov` is true without a momentum.

    Notes
    -----
    This is PyTorch's ``torch.optim.SGD`` without dampening, and ``optax.sgd``. A step computes
    ``g += weight_decay * p``, ``m = momentum * m + g`` and ``p -= lr * m``; with `nesterov`,
    ``p -= lr * (g + momentum * m)`` instead (Sutskever et al., ICML 2013).

    Examples
    --------
    >>> import cyrt
    >>> optimizer = cyrt.optim.sgd(0.5, momentum=0.5)
    >>> w = cyrt.ones(2)
    >>> state = optimizer.init(w)
    >>> for _ in range(2):
    ...     w, state = optimizer.update(cyrt.ones(2), state, w)
    >>> w
    Array([-0.25, -0.25], dtype=float32)
    """
    cdef double factor = decay_rate(momentum, "sgd", "momentum")
    cdef bint ahead = check_bool(nesterov, "sgd: nesterov")
    cdef Optimizer made
    if ahead and not factor:
        raise ValueError("sgd: nesterov: expected a momentum above 0 with it, got momentum=0")
    made = new_optimizer("sgd", "momentum_step" if factor else "sgd_step", factor != 0, lr,
                         {"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay})
    made.numbers.b1 = factor
    made.numbers.flags |= OPTIMIZER_NESTEROV if ahead else 0
    made.numbers.weight_decay = number_of(weight_decay, "sgd", "weight_decay", 0)
    return made


cdef Optimizer new_adam(str name, lr, b1, b2, eps, weight_decay):
    cdef dict settings = {"b1": b1, "b2": b2, "eps": eps}
    cdef Optimizer made
    if weight_decay is not None:
        settings["weight_decay"] = weight_decay
    made = new_optimizer(name, "adam_step", 2, lr, settings)
    set_decay_rates(made, b1, b2)
    made.numbers.eps = number_of(eps, name, "eps", 0)
    made.numbers.weight_decay = number_of(weight_decay or 0, name, "weight_decay", 0)
    return made


def adam(lr, b1=0.9, b2=0.999, eps=1e-8):
    """Return the optimizer Adam.

    Parameters
    ----------
    lr : float, Schedule or Array
        The learning rate: a number, a schedule, or an array of float32 without dimensions, which is
        read at each step.
    b1, b2 : float
        The decay rates of the means of gradients and of their squares, from 0 to 1, 1 excluded.
    eps : float
        The number that is added to the root of the mean of the squares.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        An argument is not such a number.

    Notes
    -----
    Kingma and Ba, `Adam <https://arxiv.org/abs/1412.6980>`_ (ICLR 2015): at step t,
    ``m = b1 * m + (1 - b1) * g``, ``v = b2 * v + (1 - b2) * g * g``,
    ``p -= lr * (m / (1 - b1**t)) / (sqrt(v / (1 - b2**t)) + eps)``. This is ``torch.optim.Adam``
    and ``optax.adam``. The moments of 16-bit parameters are float32, unlike those of both.

    Examples
    --------
    >>> import cyrt
    >>> optimizer = cyrt.optim.adam(0.1)
    >>> w = cyrt.ones(2)
    >>> w, state = optimizer.update(cyrt.asarray([3.0, -5.0]), optimizer.init(w), w)
    >>> w
    Array([0.9, 1.1], dtype=float32)
    """
    return new_adam("adam", lr, b1, b2, eps, None)


def adamw(lr, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.01):
    """Return the optimizer AdamW: Adam with a weight decay that is separate from the gradients.

    Parameters
    ----------
    lr, b1, b2, eps
        As for :func:`adam`.
    weight_decay : float
        Each step subtracts ``lr * weight_decay * p`` from a parameter p.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        An argument is not such a number.

    Notes
    -----
    Loshchilov and Hutter, `Decoupled weight decay regularization
    <https://arxiv.org/abs/1711.05101>`_ (ICLR 2019). This is ``torch.optim.AdamW``, and
    ``optax.adamw``, whose default decay is 1e-4.

    Examples
    --------
    >>> import cyrt
    >>> optimizer = cyrt.optim.adamw(0.1, weight_decay=0.5)
    >>> w = cyrt.ones(2)
    >>> w, state = optimizer.update(cyrt.asarray([3.0, -5.0]), optimizer.init(w), w)
    >>> w.round(3)
    Array([0.85, 1.05], dtype=float32)
    """
    if weight_decay is None:
        raise TypeError("adamw: weight_decay: expected a number, got NoneType")
    return new_adam("adamw", lr, b1, b2, eps, weight_decay)


def lion(lr, b1=0.9, b2=0.99, weight_decay=0.0):
    """Return the optimizer Lion, whose steps have the same size in all elements.

    Parameters
    ----------
    lr : float, Schedule or Array
        The learning rate, see :func:`adam`; usually 3 to 10 times less than Adam's.
    b1, b2 : float
        The decay rates of the mixture whose sign is the step, and of the mean of the gradients.
    weight_decay : float
        Each step subtracts ``lr * weight_decay * p`` from a parameter p.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        An argument is not such a number.

    Notes
    -----
    Chen et al., `Symbolic discovery of optimization algorithms <https://arxiv.org/abs/2302.06675>`_
    (2023): ``p -= lr * (sign(b1 * m + (1 - b1) * g) + weight_decay * p)``, then
    ``m = b2 * m + (1 - b2) * g``. This is ``optax.lion``, whose default decay is 1e-3.

    Examples
    --------
    >>> import cyrt
    >>> optimizer = cyrt.optim.lion(0.25)
    >>> w = cyrt.ones(2)
    >>> w, state = optimizer.update(cyrt.asarray([3.0, -5.0]), optimizer.init(w), w)
    >>> w
    Array([0.75, 1.25], dtype=float32)
    """
    cdef Optimizer made = new_optimizer("lion", "lion_step", 1, lr, {
        "b1": b1, "b2": b2, "weight_decay": weight_decay})
    set_decay_rates(made, b1, b2)
    made.numbers.weight_decay = number_of(weight_decay, "lion", "weight_decay", 0)
    return made


def clip_by_global_norm(max_norm, optimizer):
    """Return an optimizer that scales gradients down before its steps.

    If the norm of all gradients together is greater than `max_norm`, they are multiplied by
    ``max_norm / norm``. The norm stays on the device, and the step's kernel does the scaling.

    Parameters
    ----------
    max_norm : float
        The greatest norm, above 0.
    optimizer : Optimizer
        The optimizer whose steps use the scaled gradients.

    Returns
    -------
    Optimizer

    Raises
    ------
    TypeError, ValueError
        `max_norm` is not such a number, or `optimizer` is not an Optimizer, or scales gradients
        already.

    Notes
    -----
    Pascanu et al., ICML 2013. ``clip_by_global_norm(c, adam(lr))`` is
    ``optax.chain(optax.clip_by_global_norm(c), optax.adam(lr))``, and
    ``torch.nn.utils.clip_grad_norm_`` before a step. If the norm is NaN, all gradients become NaN.

    Examples
    --------
    >>> import cyrt
    >>> optimizer = cyrt.optim.clip_by_global_norm(1.0, cyrt.optim.sgd(1.0))
    >>> w = [cyrt.zeros(1), cyrt.zeros(1)]
    >>> state = optimizer.init(w)
    >>> w, state = optimizer.update([cyrt.full(1, 3.0), cyrt.full(1, 4.0)], state, w)
    >>> w
    [Array([-0.6], dtype=float32), Array([-0.8], dtype=float32)]
    """
    cdef double most = positive_number(max_norm, "clip_by_global_norm", "max_norm")
    cdef Optimizer inner, made
    if not isinstance(optimizer, Optimizer):
        raise TypeError("clip_by_global_norm: optimizer: expected an Optimizer, got "
                        f"{type(optimizer).__name__}")
    inner = optimizer
    if inner.numbers.max_norm:
        raise ValueError(f"clip_by_global_norm: optimizer: expected one that does not clip, got "
                         f"{inner}")
    made = Optimizer.__new__(Optimizer)
    made.name, made.text = inner.name, f"clip_by_global_norm({max_norm!r}, {inner})"
    made.op, made.moments, made.numbers = inner.op, inner.moments, inner.numbers
    made.given_rate = inner.given_rate
    made.numbers.max_norm = most
    return made


def global_norm(grads):
    """Return the norm of all elements of a nest of arrays, the root of the sum of their squares.

    Parameters
    ----------
    grads : nest of Array
        Arrays of float16, bfloat16, float32 or float64, or a dict, list, tuple, named tuple or
        dataclass of such nests, on one device.

    Returns
    -------
    Array
        A 0-dimensional array of float32, or of float64 if there is an array of float64.

    Raises
    ------
    TypeError, ValueError
        There is no array; or an array has another type, or is on another device than the first.

    Notes
    -----
    This is ``optax.global_norm``. Squares of 16-bit floats and of float32 are added in float32
    within tiles of 1,024 elements, and the tiles in float64.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.optim.global_norm({"w": cyrt.full(1, 3.0), "b": cyrt.full(1, 4.0)})
    Array(5., dtype=float32)
    """
    cdef list leaves
    cdef Structure structure
    cdef Py_ssize_t[NUM_TYPES + 1] first
    cdef Py_ssize_t i, next = 0
    cdef long long tiles = 0
    cdef int each, ordinal, wide = FLOAT32
    cdef Tensor* tensors
    cdef Array g, total
    leaves, structure = flatten(grads, Array, "grads")
    if not leaves:
        raise ValueError("global_norm: grads: expected a nest with arrays, got one without")
    ordinal = device_of(<Array>leaves[0])
    for i in range(len(leaves)):
        g = <Array>leaves[i]
        if kinds[g.code] != c"f":
            raise TypeError(f"global_norm: {structure.paths('grads')[i]}: expected a real "
                            f"floating-point type, got {g.dtype}")
        check_device(g, <Array>leaves[0], "global_norm", structure.paths("grads")[i])
        if g.code == FLOAT64:
            wide = FLOAT64
    leaves = [as_contiguous(<Array>each_leaf) for each_leaf in leaves]
    tensors = <Tensor*>malloc((len(leaves) + 1) * sizeof(Tensor))
    try:
        if tensors == NULL:
            raise MemoryError()
        for each in range(NUM_TYPES):
            first[each] = next
            for i in range(len(leaves)):
                g = <Array>leaves[i]
                if g.code == types[each] and g.count:
                    tensors[next].array, tensors[next].gradient = <PyObject*>g, <PyObject*>g
                    tensors[next].count = g.count
                    tiles += num_tiles(g)
                    next += 1
        first[NUM_TYPES] = next
        total = sum_squares(ordinal, tensors, first, tiles)
    finally:
        free(tensors)
    return sqrt(total) if wide == FLOAT64 else astype(sqrt(total), DTYPES[FLOAT32])
