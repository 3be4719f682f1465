"""Built-in operations over Buffers, by name: for tests, benchmarks and the curious."""

from dataclasses import dataclass

import numpy as np

from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from cyrt.dtypes import dtype as _dtype
from cyrt.graph.recorder cimport Recorder, encoder_of
from cyrt.kernels import catalogue
from cyrt.kernels.dispatch cimport perform, perform_arange
from cyrt.kernels.families import elementwise
from cyrt.kernels.families.arange import WIDE
from cyrt.kernels.row import MOVES
from cyrt.kernels.space cimport MAX_NDIM, MAX_OPERANDS
from cyrt.kernels.entries cimport Explained, Operand, dtype_code, op_code, origin_of
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.stream cimport current_state


@dataclass(frozen=True)
class Explanation:
    """What serves an operation.

    Attributes
    ----------
    kernel : str
        Its symbol.
    grid : int
        Blocks; they are one-dimensional.
    block : tuple of int
        Threads, x and y.
    launches : int
        How many of these the operation takes.
    origin : str
        Where the code comes from: a prebuilt cubin, prebuilt PTX or the compiler (JIT), and the
        architecture that it was compiled for.
    expression : str
        What is computed of the inputs a, b and c, in C++.
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
        if self.row.family not in elementwise.FAMILIES and self.row.family != "arange":
            raise ValueError(f"{op}: not element by element; here are the operations of the "
                             f"families {', '.join(elementwise.FAMILIES)} and arange")
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
        """Operand i: a Buffer, a Buffer and its first element, or a number."""
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
        Of the catalogue: ``"add"``, ``"to_float32"`` (a cast), ``"copy"``, ``"arange"`` (whose
        inputs are start and step).
    inputs : sequence
        Buffers; ``(Buffer, index of the first element)``; or numbers, one for every element.
    output : Buffer or tuple
        Likewise.
    dtype : str
        Element type of the last input; of the output where there are only numbers (arange).
    shape : int or sequence of int
        Of all operands.
    strides : sequence, optional
        Of the output and each input, in elements: a sequence of int each, or None for contiguous.

    Raises
    ------
    ValueError, TypeError
        No such operation, it does not take the type, or operands and shape do not fit; the message
        names both.
    """
    cdef Arguments arguments = Arguments(op, dtype, shape, strides)
    cdef int i
    cdef Recorder encoder = encoder_of(current_state(current_ordinal()))
    cdef long long n = 1
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
    if op == "arange":
        if strides is not None:
            raise ValueError("arange: its output is contiguous, it takes no strides")
        for i in range(arguments.ndim):
            n *= arguments.shape[i]
        perform_arange(encoder, encoder.state.ordinal, dtype_code(dtype), arguments.operands, n,
                       None)
    else:
        perform(encoder, encoder.state.ordinal, op_code(op), dtype_code(dtype),
                arguments.operands, arguments.ndim, arguments.shape, None)


def explain(op, dtype, shape, strides=None):
    """Which kernel, block, grid and code an operation gets on the current device.

    Parameters
    ----------
    op : str
        Of the catalogue: ``"add"``, ``"to_float32"`` (a cast), ``"copy"``, ``"arange"``.
    dtype : str
        Element type of the last input.
    shape : int or sequence of int
        Of all operands, which are taken to be aligned.
    strides : sequence, optional
        Of the output and each input, in elements: a sequence of int each, or None for contiguous.

    Returns
    -------
    Explanation or None
        None where there are no elements, and so no launch.

    Raises
    ------
    ValueError, TypeError
        As for the operation.
    """
    cdef Arguments arguments = Arguments(op, dtype, shape, strides)
    cdef Explained explained = Explained()
    cdef Operand* operand
    cdef int ordinal = current_ordinal()
    cdef int i
    cdef long long n = 1
    for i in range(MAX_OPERANDS):
        operand = &arguments.operands[i]
        operand.buffer = <PyObject*>None        # something, at address 0
    if op == "arange":
        for i in range(arguments.ndim):
            n *= arguments.shape[i]
        perform_arange(None, ordinal, dtype_code(dtype), arguments.operands, n, explained)
    else:
        perform(None, ordinal, op_code(op), dtype_code(dtype), arguments.operands, arguments.ndim,
                arguments.shape, explained)
    if not explained.launches:
        return None
    kernel, grid, block = explained.launches[0]
    return Explanation(kernel, grid, block, len(explained.launches),
                       origin_of(ordinal, op_code(op), dtype_code(dtype)),
                       arguments.row.expression)
