"""Built-in operations over Buffers, by name, for tests and benchmarks."""

from dataclasses import dataclass

import numpy as np

from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from cyrt.dtypes import dtype as _dtype
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.builtin import catalogue
from cyrt.builtin.arange cimport record_arange
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.rows import elementwise
from cyrt.builtin.rows.arange import WIDE
from cyrt.builtin.row import MOVES
from cyrt.builtin.space cimport MAX_NDIM, MAX_OPERANDS
from cyrt.builtin.entry cimport dtype_code, op_code, origin_of
from cyrt.builtin.launch cimport Explainer, explainer_of
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.reduce cimport record_reduction
from cyrt.builtin.reduce_choice cimport Finish
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.stream cimport current_state


@dataclass(frozen=True)
class Explanation:
    """The launch of an operation.

    Attributes
    ----------
    kernel : str
        The kernel's symbol.
    grid : int
        The number of blocks; grids are one-dimensional.
    block : tuple of int
        The number of threads, x and y.
    launches : int
        The number of launches of the operation.
    origin : str
        The origin of the code: a prebuilt cubin, prebuilt PTX or the compiler (JIT), and the
        architecture that it was compiled for.
    expression : str
        The computed expression of the inputs a, b and c, in C++.
    """

    kernel: str
    grid: int
    block: tuple[int, int]
    launches: int
    origin: str
    expression: str


cdef class Arguments:
    """The checked operands of one operation."""
    cdef Operand[MAX_OPERANDS] operands
    cdef long long[MAX_NDIM] shape
    cdef long long[MAX_OPERANDS][MAX_NDIM] strides
    cdef int ndim
    cdef object row

    def __init__(self, str op not None, str dtype not None, shape, strides):
        cdef int i, j
        shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        self.row = catalogue.row(op, dtype)
        if self.row.template not in elementwise.TEMPLATES and self.row.template != "arange":
            raise ValueError(f"{op}: not element by element; here are the operations of the "
                             f"families {', '.join(elementwise.TEMPLATES)} and arange")
        count = len(self.row.inputs) + 1
        if len(shape) > MAX_NDIM:
            raise ValueError(f"shape: expected at most {MAX_NDIM} dimensions, got {len(shape)}")
        self.ndim = len(shape)
        size = 1
        for i, each in enumerate(shape):
            if each < 0:
                raise ValueError(f"shape: expected sizes of 0 or more, got {shape}")
            self.shape[i] = each
            size *= each
        if size >= 1 << 62:
            raise ValueError(f"shape: {shape} has more elements than memory can hold")
        memset(self.operands, 0, sizeof(self.operands))
        strides = (None,) * count if strides is None else tuple(strides)
        if len(strides) != count:
            raise ValueError(f"strides: expected one for the output and each input, {count} in "
                             f"all, got {len(strides)}")
        for i, each in enumerate(strides):
            if each is None:
                continue
            if len(each) != self.ndim:
                raise ValueError(f"strides: expected {self.ndim} numbers, as the shape {shape} "
                                 f"has, got {each}")
            for j, stride in enumerate(each):
                if i == 0 and stride == 0 and shape[j] > 1:
                    raise ValueError(f"strides: elements of the output coincide, {each} for "
                                     f"{shape}")
                self.strides[i][j] = stride
            self.operands[i].strides = self.strides[i]

    cdef int put(self, int i, object value, str dtype) except -1:
        """Set operand i: a Buffer, a Buffer and its first element, or a number."""
        cdef Memory buffer
        cdef Operand* operand = &self.operands[i]
        cdef bytes text
        cdef int d
        each = _dtype(dtype)
        first = 0
        if isinstance(value, tuple):
            value, first = value
        if not isinstance(value, Memory):
            if i == 0:
                raise TypeError(f"output: expected a Buffer, got {type(value).__name__}")
            text = np.asarray(value).astype(each.numpy).tobytes()
            if len(text) != each.itemsize:
                raise TypeError(f"input {i}: expected a Buffer or one number, got {value!r}")
            memcpy(operand.value, <const char*>text, len(text))
            return 0
        buffer = <Memory>value
        low = high = first
        contiguous = 1
        for d in range(self.ndim - 1, -1, -1):
            stride = contiguous if operand.strides == NULL else self.strides[i][d]
            contiguous *= self.shape[d]
            reach = stride * (self.shape[d] - 1)
            low, high = min(low, low + reach), max(high, high + reach)
        if contiguous and not (0 <= low and (high + 1) * each.itemsize <= buffer.nbytes):
            raise ValueError(
                f"{f'input {i}' if i else 'output'}: elements {low:,} to {high:,} of {each}, the "
                f"Buffer has {buffer.nbytes:,} bytes")
        if (buffer.address + first * each.itemsize) % each.itemsize:
            raise ValueError(f"{f'input {i}' if i else 'output'}: its address is no multiple of "
                             f"{each.itemsize} bytes, the size of {each}")
        operand.buffer = <PyObject*>buffer
        operand.address = buffer.address + <long long>(first * each.itemsize)
        return 0


def apply(op, inputs, output, dtype, shape, strides=None):
    """Record a built-in operation on the current stream.

    Parameters
    ----------
    op : str
        An operation of the catalogue: ``"add"``, ``"to_float32"`` (a cast), ``"copy"``,
        ``"arange"`` (whose inputs are start and step).
    inputs : sequence
        Buffers; ``(Buffer, index of the first element)``; or numbers, each for every element.
    output : Buffer or tuple
        A Buffer, or ``(Buffer, index of the first element)``.
    dtype : str
        Element type of the last input, or of the output if all inputs are numbers (arange).
    shape : int or sequence of int
        The common shape of all operands.
    strides : sequence, optional
        Strides of the output and each input, in elements: a sequence of int each, or None for
        contiguous.

    Raises
    ------
    ValueError, TypeError
        There is no such operation, it does not take the type, or operands and shape do not fit; the
        message names both.
    """
    cdef Arguments arguments = Arguments(op, dtype, shape, strides)
    cdef int i
    row = arguments.row
    types = (WIDE[_dtype(dtype).kind],) * 2 if op == "arange" else row.inputs
    if op in MOVES:
        types = [each if each == "bool" else dtype for each in types]
    if len(inputs) != len(types):
        raise TypeError(f"{op}: expected {len(types)} inputs, got {len(inputs)}")
    arguments.put(0, output, dtype if op in MOVES else row.output)
    for i, value in enumerate(inputs):
        if op == "arange" and isinstance(value, (Memory, tuple)):
            raise TypeError("arange: expected numbers for start and step, got a Buffer")
        arguments.put(i + 1, value, types[i])
    if op == "arange" and strides is not None:
        raise ValueError("arange: its output is contiguous, it takes no strides")
    record(encoder_of(current_state(current_ordinal())), op, dtype, arguments)


cdef int record(Recorder encoder, str op, str dtype, Arguments arguments) except -1:
    cdef long long n = 1
    cdef int i
    if op != "arange":
        return record_elementwise(encoder, op_code(op), dtype_code(dtype), arguments.operands,
                                  arguments.ndim, arguments.shape)
    for i in range(arguments.ndim):
        n *= arguments.shape[i]
    return record_arange(encoder, dtype_code(dtype), arguments.operands, n)


def explain(op, dtype, shape, strides=None):
    """Return the kernel, block, grid and code of an operation on the current device.

    Parameters
    ----------
    op : str
        An operation of the catalogue: ``"add"``, ``"to_float32"`` (a cast), ``"copy"``,
        ``"arange"``.
    dtype : str
        Element type of the last input.
    shape : int or sequence of int
        The common shape of all operands, which are assumed to be aligned.
    strides : sequence, optional
        Strides of the output and each input, in elements: a sequence of int each, or None for
        contiguous.

    Returns
    -------
    Explanation or None
        None if there are no elements, and so no launch.

    Raises
    ------
    ValueError, TypeError
        As for the operation.
    """
    cdef Arguments arguments = Arguments(op, dtype, shape, strides)
    cdef Explainer explainer
    cdef int ordinal = current_ordinal()
    cdef int i
    for i in range(MAX_OPERANDS):
        arguments.operands[i].buffer = <PyObject*>None      # something, at address 0
    explainer = explainer_of(ordinal)
    record(explainer, op, dtype, arguments)
    if not explainer.launches:
        return None
    kernel, grid, block = explainer.launches[0]
    return Explanation(kernel, grid, block, len(explainer.launches),
                       origin_of(ordinal, op_code(op), dtype_code(dtype)),
                       arguments.row.expression)


def explain_reduction(op, dtype, shape, axes, strides=None):
    """Which launches a reduction takes on the current device.

    Parameters
    ----------
    op : str
        A reduction of the catalogue: ``"sum"``.
    dtype : str
        Element type of the input.
    shape : sequence of int
    axes : sequence of int
    strides : sequence of int, optional
        In elements; None for contiguous.

    Returns
    -------
    list of tuple
        Kernel, grid and block of each.
    """
    cdef Operand[2] operands
    cdef long long[MAX_NDIM] sizes, steps
    cdef Finish finish = Finish(1.0, False)
    cdef Explainer explainer = explainer_of(current_ordinal())
    cdef unsigned long long mask = 0
    cdef int d
    memset(operands, 0, sizeof(operands))
    operands[0].buffer = operands[1].buffer = <PyObject*>None       # something, at address 0
    for d in range(len(shape)):
        sizes[d] = shape[d]
        if strides is not None:
            steps[d] = strides[d]
    for d in axes:
        mask |= 1ull << d
    if strides is not None:
        operands[1].strides = steps
    record_reduction(explainer, op_code(op), dtype_code(dtype), operands, len(shape), sizes, mask,
                     &finish)
    return explainer.launches
