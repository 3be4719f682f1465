"""NumPy's other names of element types, and its functions of types."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.dtypes import DType, dtype
from cyrt.ndarray import Array
from cyrt.ops.promotion import result_type

__all__ = [
    "bool_",
    "byte",
    "cdouble",
    "csingle",
    "double",
    "half",
    "int_",
    "intc",
    "intp",
    "iscomplexobj",
    "isrealobj",
    "issubdtype",
    "promote_types",
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


def promote_types(type1: Any, type2: Any, /) -> DType:
    """The type to which two types promote; see :func:`cyrt.result_type`.

    Parameters
    ----------
    type1, type2 : DType, or another argument of :func:`cyrt.dtype`

    Returns
    -------
    DType
    """
    return result_type(dtype(type1), dtype(type2))


def issubdtype(arg1: Any, arg2: Any, /) -> bool:
    """Whether a type is of a kind, as by :func:`numpy.issubdtype`; bfloat16 is ``floating``.

    Parameters
    ----------
    arg1, arg2 : DType, or a type of NumPy's
    """
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else None
    if arg1 == "bfloat16" and kind is not None and issubclass(np.floating, kind):
        return True
    return bool(np.issubdtype(arg1, arg2))


def iscomplexobj(x: Any) -> bool:
    """Whether the type is complex, whatever the values are.

    Parameters
    ----------
    x : Array or other object

    Returns
    -------
    bool
    """
    return x.dtype.kind == "c" if isinstance(x, Array) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the type is not complex.

    Parameters
    ----------
    x : Array or other object

    Returns
    -------
    bool
    """
    return not iscomplexobj(x)
