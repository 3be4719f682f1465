"""Elementwise operations of the catalogue over Buffers, by name, for tests and benchmarks."""

from cyrt.builtin.arange cimport record_arange
from cyrt.builtin.checked_operands cimport CheckedOperands
from cyrt.builtin.elementwise cimport record_elementwise
from cyrt.builtin.entry cimport dtype_code, op_code
from cyrt.builtin.row import MOVES
from cyrt.builtin.rows.arange import WIDE
from cyrt.dtypes import dtype as _dtype
from cyrt.graph.commit cimport Recorder
from cyrt.graph.recorder cimport encoder_of
from cyrt.runtime.device cimport current_ordinal
from cyrt.runtime.memory cimport Memory
from cyrt.runtime.stream cimport current_state


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
    cdef CheckedOperands operands = CheckedOperands(op, dtype, shape, strides)
    cdef int i
    row = operands.row
    types = (WIDE[_dtype(dtype).kind],) * 2 if op == "arange" else row.inputs
    if op in MOVES:
        types = [each if each == "bool" else dtype for each in types]
    if len(inputs) != len(types):
        raise TypeError(f"{op}: expected {len(types)} inputs, got {len(inputs)}")
    operands.put(0, output, dtype if op in MOVES else row.output)
    for i, value in enumerate(inputs):
        if op == "arange" and isinstance(value, (Memory, tuple)):
            raise TypeError("arange: expected numbers for start and step, got a Buffer")
        operands.put(i + 1, value, types[i])
    if op == "arange" and strides is not None:
        raise ValueError("arange: its output is contiguous, it takes no strides")
    record(encoder_of(current_state(current_ordinal())), op, dtype, operands)


cdef int record(Recorder encoder, str op, str dtype, CheckedOperands operands) except -1:
    cdef long long n = 1
    cdef int i
    if op != "arange":
        return record_elementwise(encoder, op_code(op), dtype_code(dtype), operands.operands,
                                  operands.ndim, operands.shape)
    for i in range(operands.ndim):
        n *= operands.shape[i]
    return record_arange(encoder, dtype_code(dtype), operands.operands, n)
