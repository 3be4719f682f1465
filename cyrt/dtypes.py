"""The element types: their names, sizes, and the corresponding types in C++ and NumPy.

The module imports nothing when it is loaded, because the build reads it before anything is
installed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type; equal to NumPy's dtype of the same name, and to that name.

    Attributes
    ----------
    name : str
        The name in NumPy and in the array API standard.
    itemsize : int
        The size in bytes.
    kind : str
        ``"b"`` boolean, ``"i"`` signed, ``"u"`` unsigned integer, ``"f"`` real, ``"c"`` complex.
    cpp : str
        The C++ type in memory, from kernels_cu/include/types.cuh.
    compute : str
        The C++ type in which kernels compute with elements.
    code : int
        Its index in `DTYPES`.
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
    def dtype(self) -> np.dtype:
        """The same as `numpy`, under the name that ``numpy.dtype()`` looks up."""
        return self.numpy

    @property
    def type(self) -> type:
        """NumPy's scalar type."""
        return self.numpy.type

    @property
    def real(self) -> str:
        """The name of the type of an element's real part."""
        return f"float{4 * self.itemsize}" if self.kind == "c" else self.name

    def __call__(self, value: Any = 0) -> Any:
        """Cast an Array to the type; convert another value to a NumPy scalar."""
        if hasattr(value, "__array_namespace__"):
            return value.astype(self)
        if self.name == "bfloat16" and isinstance(value, (str, bytes)):
            value = float(value)  # ml_dtypes 0.6 ends the process on some texts
        return self.type(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return self is dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return dtype, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"cyrt.{self.name}"


@functools.cache
def _numpy(name: str) -> np.dtype:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    found: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return found


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
# The types of Python's numbers, if no other operand decides.
DEFAULTS = {
    "b": _BY_NAME["bool"],
    "i": _BY_NAME["int64"],
    "f": _BY_NAME["float32"],
    "c": _BY_NAME["complex64"],
}
# Python's names of types that are float64 and complex128 to NumPy.
_AMBIGUOUS = {"float": ("float32", "float64"), "complex": ("complex64", "complex128")}
_PYTHON = {bool: DEFAULTS["b"], int: DEFAULTS["i"], float: DEFAULTS["f"], complex: DEFAULTS["c"]}


def dtype(name: Any) -> DType:
    """Return an element type by its name.

    Parameters
    ----------
    name : DType, str, numpy.dtype or type
        A name, NumPy's dtype or scalar type, or ``bool``, ``int``, ``float``, ``complex`` for the
        defaults: bool, int64, float32, complex64. The texts ``"float"`` and ``"complex"`` are
        refused, because NumPy takes them for float64 and complex128.

    Returns
    -------
    DType

    Raises
    ------
    TypeError
        There is no such type; the message lists the names.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.dtype("int32"), cyrt.dtype(float)
    (cyrt.int32, cyrt.float32)
    """
    if isinstance(name, DType):
        return name
    found = None
    if isinstance(name, str):
        if name in _AMBIGUOUS:
            short, long = _AMBIGUOUS[name]
            raise TypeError(
                f"{name!r} is ambiguous: Python's {name} is the default type, {short}, and the "
                f"text is {long} to NumPy; write {short!r} or {long!r}"
            )
        found = _BY_NAME.get(name)
    if found is None and isinstance(name, type):
        found = _PYTHON.get(name)
    if found is None and name is not None:
        found = _BY_NAME.get(_numpy_name(name) or "")
    if found is None:
        reason = f"the types are {', '.join(_BY_NAME)}"
        if isinstance(name, bool):
            reason = "a flag goes by name, such as keepdims=True"
        elif isinstance(name, int):
            reason = "a shape is one argument, such as (3, 4)"
        elif isinstance(name, str) and name.partition(":")[0] in ("cpu", "cuda", "gpu"):
            reason = "a device goes by name, such as device='cuda:0'"
        # The elements of an array on a device are not read: that would wait for it.
        shape = getattr(name, "shape", ())
        text = f"an {type(name).__name__} of shape {shape}" if shape else repr(name)
        raise TypeError(f"{text} is not an element type; {reason}")
    return found


def _numpy_name(name: Any) -> str | None:
    """Return NumPy's name of a type in this machine's byte order; None if NumPy has none."""
    import numpy as np

    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # what NumPy raises for any text or tuple
        return None
    return found.name if found.isnative else None
