"""Interoperability with NumPy: kinds of types, conversion to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array

__all__ = ["asnumpy", "issubdtype"]


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


def asnumpy(a: Any, /) -> np.ndarray:
    """Copy an Array to a NumPy array, or convert another object to one; CuPy's name."""
    return a.numpy() if isinstance(a, Array) else np.asarray(a)
