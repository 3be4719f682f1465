"""NumPy's other names of element types, and its constants beyond the standard's."""

from __future__ import annotations

from cyrt.dtypes import dtype

__all__ = [
    "bool_",
    "byte",
    "cdouble",
    "csingle",
    "double",
    "euler_gamma",
    "half",
    "int_",
    "intc",
    "intp",
    "newaxis",
    "short",
    "single",
    "ubyte",
    "uint",
    "uintc",
    "uintp",
    "ushort",
]

bool_ = dtype("bool")
byte, short, intc, int_, intp = map(dtype, ("int8", "int16", "int32", "int64", "int64"))
ubyte, ushort, uintc, uint, uintp = map(dtype, ("uint8", "uint16", "uint32", "uint64", "uint64"))
half, single, double = map(dtype, ("float16", "float32", "float64"))
csingle, cdouble = map(dtype, ("complex64", "complex128"))
euler_gamma = 0.5772156649015329
newaxis = None
