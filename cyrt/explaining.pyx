"""The list of the kernels that a function would launch; nothing is launched.

The function runs on a stream whose recorder lists operations. Arrays of that stream have
addresses, but no memory: see ``StreamState.explained``.
"""

import operator
from dataclasses import dataclass

from cyrt.dtypes import dtype as _dtype
from cyrt.builtin import catalogue
from cyrt.builtin.space cimport MAX_NDIM
from cyrt.driver.table cimport MAX_DEVICES
from cyrt.error_text import show
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.graph.recording cimport CHILD, KERNEL, TEMPLATE
from cyrt.ndarray cimport Array, device_of, new_array_on, view_of
from cyrt.runtime.device cimport (
    EXPLAINED, NOT_EXPLAINED, Explained, contexts, context_of, current_ordinal, explained,
    set_explained,
)
from cyrt.runtime.module cimport Runnable
from cyrt.runtime.order import NoContents
from cyrt.runtime.state cimport StreamState
from cyrt.runtime.stream cimport Stream

cdef enum:
    ALIGNMENT = 512             # bytes: the addresses of new memory are multiples of it
    MAX_NESTING = 100           # lists, tuples and dictionaries in each other

# The streams of each device on which functions are explained, and none is at present.
cdef list streams = [[] for _ in range(MAX_DEVICES)]


@dataclass(frozen=True)
class Example:
    """An array that has no memory, as an argument of :func:`cyrt.explain`.

    Attributes
    ----------
    shape : int or tuple of int
        The sizes of the dimensions.
    dtype : DType or str
        The element type; float32 by default.
    strides : tuple of int or None
        The strides in elements; by default the array is contiguous.
    """

    shape: object
    dtype: object = "float32"
    strides: object = None


@dataclass(frozen=True)
class Explanation:
    """The kernels that a function launches.

    Attributes
    ----------
    kernel : str
        The symbol of the first kernel; empty if the function reads a result before it launches one.
    grid : int
        The number of the first kernel's blocks.
    block : tuple of int
        The number of threads in its blocks, x and y.
    launches : int
        The number of launches.
    origin : str
        The origin of the first kernel's code: a prebuilt cubin, prebuilt PTX or the compiler (JIT),
        and the architecture for which it was compiled; a library and its version; or the program.
    expression : str
        The result of a built-in kernel in terms of its inputs a, b and c, in C++ or in words;
        otherwise empty.
    kernels : tuple of tuple
        The symbol, grid and block of every launch, in order.
    complete : bool
        False if the function reads a result on the host, as ``nonzero`` does. There is no result
        to read, so the function ends with an error, and later launches are not listed, unless the
        function catches the error.
    """

    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str
    kernels: tuple[tuple[str, int, tuple[int, int]], ...]
    complete: bool


def explain(function, /, *args, **keywords):
    """Return the kernels, grids, blocks and code that a function launches on the current device.

    The function is called, but nothing is launched or allocated on the device, and it does not
    wait.

    Parameters
    ----------
    function : callable
        A function of arrays that uses the current stream, such as ``cyrt.add`` or your own
        function. Its result is dropped.
    *args, **keywords
        Its arguments. Each :class:`cyrt.Example` and each Array, also in lists, tuples and dicts,
        becomes an array without memory that has this shape, element type, strides and alignment. An
        Array that occurs twice becomes one array; each occurrence of an Example becomes an array of
        its own.

    Returns
    -------
    Explanation or None
        None if no kernel is launched: there are no elements, or elements are only copied.

    Raises
    ------
    TypeError, ValueError
        An Example has an invalid shape, type or strides, or an Array is on another device; or the
        errors of the function.
    RuntimeError
        The function makes another Stream or Device current, on which operations would be launched.

    Examples
    --------
    >>> import cyrt
    >>> x = cyrt.Example((1000, 1000))
    >>> cyrt.explain(cyrt.add, x, x).kernel
    'cyrt_add_float32_aligned'
    """
    cdef Recorder recorder
    cdef Stream stream
    cdef int ordinal = current_ordinal()
    cdef Explained outer = explained()
    if not callable(function):
        raise TypeError(f"explain: expected a function and its arguments, got {show(function)}")
    stream = take_stream(ordinal)
    recorder = <Recorder>stream.state.encoder
    recorder.listed = operations = []
    try:
        args, keywords = replaced((args, keywords), stream.state, {})
        with stream:
            set_explained(EXPLAINED)
            try:
                function(*args, **keywords)
            except NoContents:
                pass
            return explanation(operations, explained() == EXPLAINED)
    finally:
        set_explained(outer)
        recorder.listed = []
        streams[ordinal].append(stream)


def is_explained():
    """Return whether this thread explains a function."""
    return explained() != NOT_EXPLAINED


cdef Stream take_stream(int ordinal):
    """Return a stream of the device on which no function is explained; a new one if there is none.
    """
    cdef Stream stream
    cdef Recorder recorder
    context_of(ordinal)
    while streams[ordinal]:
        stream = streams[ordinal].pop()
        if stream.state.epoch == contexts[ordinal].epoch:
            return stream
    stream = Stream(ordinal)
    recorder = encoder_of(stream.state)
    recorder.listed, recorder.direct = [], False
    stream.state.explained = True
    return stream


cdef object replaced(object value, StreamState* state, dict arrays, int depth=0):
    """Return an argument in which Examples and Arrays are replaced by arrays without memory. An
    Array that occurs several times is replaced by one array; `arrays` has the replacements by the
    ids of Arrays. `depth` is the number of lists, tuples and dictionaries around the value.
    """
    if isinstance(value, Example):
        return example_of(value, state)
    if isinstance(value, Array):
        if id(value) not in arrays:
            arrays[id(value)] = alike(<Array>value, state)
        return arrays[id(value)]
    if type(value) not in (list, tuple, dict):
        return value
    if depth == MAX_NESTING:    # it may contain itself
        raise RecursionError(f"explain: expected arguments of at most {<int>MAX_NESTING} nested "
                             f"lists, tuples and dictionaries, got a {type(value).__name__} "
                             "inside of them")
    if type(value) is dict:
        return {key: replaced(each, state, arrays, depth + 1) for key, each in value.items()}
    return type(value)([replaced(each, state, arrays, depth + 1) for each in value])


cdef Array alike(Array x, StreamState* state):
    cdef long long offset = x.address % ALIGNMENT // max(1, x.itemsize)
    if device_of(x) != state.ordinal:
        raise ValueError(f"explain: expected arrays of the current device {state.ordinal}, got one "
                         f"of device {device_of(x)}")
    return array_of(state, x.code, x.ndim_, x.dims, NULL if x.dense else x.steps, offset)


cdef Array example_of(object example, StreamState* state):
    cdef long long[MAX_NDIM] dims, steps
    cdef tuple shape = sizes_of("shape", example.shape), strides
    cdef int d, ndim = len(shape)
    for d in range(ndim):
        if shape[d] < 0:
            raise ValueError(f"Example: shape: expected sizes of 0 or more, got {shape}")
        dims[d] = shape[d]
    if example.strides is not None:
        strides = sizes_of("strides", example.strides)
        if len(strides) != ndim:
            raise ValueError(f"Example: strides: expected {ndim} numbers, as the shape {shape} "
                             f"has, got {strides}")
        if sum([size * abs(step) for size, step in zip(shape, strides)]) >= 1 << 58:
            raise ValueError(f"Example: strides: {strides} is more than an array of shape {shape} "
                             "can have")
        for d in range(ndim):
            steps[d] = strides[d]
    return array_of(state, <int>_dtype(example.dtype).code, ndim, dims,
                    NULL if example.strides is None else steps, 0)


cdef tuple sizes_of(str name, object value):
    cdef tuple sizes
    try:
        sizes = (operator.index(value),) if hasattr(value, "__index__") else tuple(
            [operator.index(each) for each in value])
    except TypeError:
        raise TypeError(f"Example: {name}: expected an int or a sequence of int, got "
                        f"{value!r}") from None
    if len(sizes) > MAX_NDIM:
        raise ValueError(f"Example: {name}: expected at most {<int>MAX_NDIM} dimensions, got "
                         f"{len(sizes)}")
    if any([not -1 << 58 < each < 1 << 58 for each in sizes]):
        raise ValueError(f"Example: {name}: {sizes} is more than an array can have")
    return sizes


cdef Array array_of(StreamState* state, int code, int ndim, const long long* dims,
                    const long long* steps, long long offset):
    """Return an array without memory; `offset` is that of its first byte's address from an aligned
    one, in elements. `steps`: NULL for a contiguous one."""
    cdef Array memory = new_array_on(state, code, ndim, dims)
    cdef long long low = 0, high = 0
    cdef int d
    if steps == NULL and offset == 0:
        return memory
    if steps == NULL:
        steps = memory.steps
    for d in range(ndim if memory.count else 0):
        if steps[d] < 0:
            low += (dims[d] - 1) * steps[d]
        else:
            high += (dims[d] - 1) * steps[d]
    high += offset - low + 1
    return view_of(new_array_on(state, code, 1, &high), code, ndim, dims, steps, offset - low)


cdef object explanation(list operations, bint complete):
    cdef list kernels = []
    cdef str origin = "", expression = ""
    for kind, owner, grid, block, _, _ in operations:
        if kind == KERNEL or kind == TEMPLATE:
            launch = owner.name, grid[0] * grid[1] * grid[2], block[:2]
        elif kind == CHILD:
            launch = "graph", 1, (1, 1)
        else:
            continue
        if not kernels:
            origin = (<Runnable>owner).origin or "the program"
            row = catalogue.kernels().get(owner.name) if kind == KERNEL else None
            if row is not None and (<Runnable>owner).origin:
                expression = row.expression
        kernels.append(launch)
    if not kernels and complete:
        return None
    kernel, grid, block = kernels[0] if kernels else ("", 0, (0, 0))
    return Explanation(kernel, grid, block, len(kernels), origin, expression, tuple(kernels),
                       bool(complete))
