"""Inspection: limits of element types, the standard's namespace and its capabilities."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from cyrt.dtypes import DEFAULTS, DTYPES, DType
from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array, max_ndim
from cyrt.ops.promotion import isdtype
from cyrt.runtime.device import Device

# The element types of the Python array API standard.
__array_api_version__ = "2025.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)
_BEYOND_STANDARD = ("float16", "bfloat16")


@dataclass(frozen=True)
class FInfo:
    """Limits of a floating-point type.

    Attributes
    ----------
    bits : int
        The size in bits of an element, or of the real part of a complex one.
    eps : float
        The distance from 1 to the next larger number.
    max, min : float
        The largest and the smallest number.
    smallest_normal : float
        The smallest positive number of full precision.
    dtype : DType
        The real type.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IInfo:
    """Limits of an integer type.

    Attributes
    ----------
    bits : int
        The size in bits of an element.
    max, min : int
        The largest and the smallest number.
    dtype : DType
        The type.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FInfo:
    """Return the limits of a real or complex floating-point type.

    Parameters
    ----------
    type : DType or Array

    Raises
    ------
    TypeError
        The type is not a floating-point type.
    """
    found = _type_of(type)
    if found.kind not in "fc":
        raise TypeError(
            f"finfo: expected a floating-point type, got {found}; iinfo() is for integers"
        )
    return _finfo(_dtype(found.real))


@functools.cache
def _finfo(dtype: DType) -> FInfo:
    if dtype.name == "bfloat16":
        import ml_dtypes

        limits: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # untyped
    else:
        limits = np.finfo(dtype.numpy)
    return FInfo(
        8 * dtype.itemsize,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        dtype,
    )


def iinfo(type: Any, /) -> IInfo:
    """Return the limits of an integer type.

    Parameters
    ----------
    type : DType or Array

    Raises
    ------
    TypeError
        The type is not an integer type.
    """
    found = _type_of(type)
    if found.kind not in "iu":
        raise TypeError(f"iinfo: expected an integer type, got {found}; finfo() is for floats")
    limits = np.iinfo(found.numpy)
    return IInfo(8 * found.itemsize, int(limits.max), int(limits.min), found)


def _type_of(x: Any) -> DType:
    return x.dtype if isinstance(x, Array) else _dtype(x)


class NamespaceInfo:
    """The capabilities of the namespace, as the standard's inspection functions report them."""

    def capabilities(self) -> dict[str, Any]:
        """Return which optional parts of the standard are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": max_ndim}

    def default_device(self) -> Device:
        """Return the current device of this thread; see :class:`cyrt.Device`."""
        return Device.current()

    def devices(self) -> list[Device]:
        """Return a list of all devices. Versions of the standard before 2025.12 require a list, and
        SciPy adds another list to it."""
        return [Device(i) for i in range(Device.count())]

    def default_dtypes(self, *, device: Device | int | None = None) -> dict[str, DType]:
        """Return the default element types; they are the same on every device."""
        return {
            "real floating": DEFAULTS["f"],
            "complex floating": DEFAULTS["c"],
            "integral": DEFAULTS["i"],
            "indexing": DEFAULTS["i"],
        }

    def dtypes(
        self, *, device: Device | int | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the standard's element types by their names: all of them, or those of a kind (see
        :func:`cyrt.isdtype`)."""
        return {
            each.name: each
            for each in DTYPES
            if each.name not in _BEYOND_STANDARD and (kind is None or isdtype(each, kind))
        }

    def __repr__(self) -> str:
        return f"<the Python array API standard {__array_api_version__} in cyrt>"


def __array_namespace_info__() -> NamespaceInfo:
    """Return the namespace's capabilities, devices and element types."""
    return NamespaceInfo()


def namespace(api_version: str | None = None) -> ModuleType:
    """Return the module with the standard's functions, :mod:`cyrt`; a version of the standard that
    it does not have raises a ValueError."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__: expected a version of {', '.join(_VERSIONS)}, got "
            f"{api_version!r}"
        )
    return sys.modules["cyrt"]
