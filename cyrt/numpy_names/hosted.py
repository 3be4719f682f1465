"""Beside NumPy: kinds of types, and arrays of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array


def issubdtype(arg1: Any, arg2: Any, /) -> bool:
    """Whether a type is of a kind, as :func:`numpy.issubdtype`: bfloat16 is ``floating``, too.

    Parameters
    ----------
    arg1, arg2 : DType, or what NumPy takes for a type
    """
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else None
    if arg1 == "bfloat16" and kind is not None and issubclass(np.floating, kind):
        return True
    return bool(np.issubdtype(arg1, arg2))


def asnumpy(a: Any, /) -> np.ndarray:
    """CuPy's name of :meth:`Array.numpy`; what is no Array becomes an array of NumPy's."""
    return a.numpy() if isinstance(a, Array) else np.asarray(a)
