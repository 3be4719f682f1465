# C-level class only: see checked_operands.pxd.
"""Operands of elementwise operations over Buffers, checked against shape and strides."""

import numpy as np

from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from cyrt.builtin import catalogue
from cyrt.builtin.rows import elementwise
from cyrt.dtypes import dtype as _dtype
from cyrt.runtime.memory cimport Memory


cdef class CheckedOperands:
    """The checked operands of one elementwise operation."""

    def __init__(self, str op not None, str dtype not None, shape, strides):
        cdef int i, j
        shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        self.row = catalogue.row(op, dtype)
        if self.row.template not in elementwise.TEMPLATES and self.row.template != "arange":
            raise ValueError(f"{op}: not element by element; expected an operation of the "
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
