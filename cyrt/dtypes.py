"""The element types: their names, sizes, and what they are in C++ and NumPy.

Nothing is imported at first: the build reads this before anything is installed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Attributes
    ----------
    name : str
        NumPy's and the array API standard's.
    itemsize : int
        Bytes.
    kind : str
        ``"b"`` boolean, ``"i"`` signed, ``"u"`` unsigned integer, ``"f"`` real, ``"c"`` complex.
    cpp : str
        The type in memory, of kernels_cu/include/types.cuh.
    compute : str
        The C++ type that arithmetic is done in.
    code : int
        Its place in `DTYPES`.
    """

    name: str
    itemsize: int
    kind: str
    cpp: str
    compute: str
    code: int

    @property
    def numpy(self) -> np.dtype:
        """NumPy's dtype; bfloat16 is that of ml_dtypes."""
        return _numpy(self.name)

    @property
    def real(self) -> str:
        """The name of the type of a real part."""
        return f"float{4 * self.itemsize}" if self.kind == "c" else self.name

    def __str__(self) -> str:
        return self.name


@functools.cache
def _numpy(name: str) -> np.dtype:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has no bfloat16 of its own: pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def _all() -> tuple[DType, ...]:
    rows = [("bool", 1, "b", "boolean", "bool")]
    for bits in (8, 16, 32, 64):
        rows.append((f"int{bits}", bits // 8, "i", f"int{bits}", f"int{max(32, bits)}"))
    for bits in (8, 16, 32, 64):
        rows.append((f"uint{bits}", bits // 8, "u", f"uint{bits}", f"uint{max(32, bits)}"))
    rows += [
        ("float16", 2, "f", "float16", "float"),
        ("bfloat16", 2, "f", "bfloat16", "float"),
        ("float32", 4, "f", "float", "float"),
        ("float64", 8, "f", "double", "double"),
        ("complex64", 8, "c", "complex64", "complex64"),
        ("complex128", 16, "c", "complex128", "complex128"),
    ]
    return tuple(DType(*row, code) for code, row in enumerate(rows))


DTYPES = _all()
_BY_NAME = {dtype.name: dtype for dtype in DTYPES}


def dtype(name: str) -> DType:
    """The element type of that name.

    Raises
    ------
    TypeError
        There is none; the message lists them.
    """
    found = _BY_NAME.get(str(name))
    if found is None:
        raise TypeError(f"{name!r} is no element type; there are {', '.join(_BY_NAME)}")
    return found
