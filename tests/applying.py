"""A built-in operation on Buffers, element by element, by its name in the catalogue."""

from __future__ import annotations

import math
from types import SimpleNamespace

from explaining import function_of

import cyrt
from cyrt.builtin import catalogue
from cyrt.builtin.row import MOVES
from cyrt.dtypes import dtype as type_of


def apply(op, inputs, output, dtype, shape, strides=None):
    """Record it by the public function.

    An operand is a Buffer, a Buffer and the index of its first element, or a number. `strides` are
    those of the output and each input, in elements; None for contiguous ones.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    row = catalogue.row(op, dtype)
    types = [row.output, *row.inputs]
    if op in MOVES:
        types = [each if each == "bool" else dtype for each in types]
    if op == "arange":
        types += (None, None)
    strides = strides or (None,) * len(types)
    if 0 in shape:
        return
    out, *operands = map(array_of, (output, *inputs), types, [shape] * len(types), strides)
    if op == "arange":
        start, step = operands
        out[...] = cyrt.arange(start, start + shape[0] * step, step, dtype=dtype)
    elif op == "copy" or op.startswith("to_"):
        out[...] = operands[0]
    elif op == "where":
        out[...] = cyrt.where(*operands)
    else:
        function_of(op, len(operands))(*operands, out=out)


def array_of(operand, name, shape, strides):
    """View a Buffer as an Array; numbers stay."""
    buffer, first = operand if isinstance(operand, tuple) else (operand, 0)
    if not isinstance(buffer, cyrt.Buffer):
        return buffer
    each = type_of(name)
    if strides is None:
        begin, end = first * each.itemsize, (first + math.prod(shape)) * each.itemsize
        return cyrt.asarray(buffer[begin:end], each, shape=shape)
    kind = {"V": "u"}.get(each.numpy.kind, each.numpy.kind)  # NumPy has no letter for bfloat16
    described = {
        "version": 3,
        "data": (buffer.ptr + first * each.itemsize, False),
        "shape": shape,
        "strides": tuple(step * each.itemsize for step in strides),
        "typestr": f"{'|' if each.itemsize == 1 else '<'}{kind}{each.itemsize}",
    }
    return cyrt.asarray(SimpleNamespace(__cuda_array_interface__=described), copy=False).view(each)
