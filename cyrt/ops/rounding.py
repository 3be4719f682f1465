"""Rounding to decimal places."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arguments import check_array, int_of
from cyrt.ops.copy import astype


def round(x: Array | complex, /, decimals: int = 0, out: Array | None = None) -> Any:
    """Round to a number of decimal places, halves to the even number.

    Parameters
    ----------
    x : Array or number
        An array of a numeric type. The result for a number is a NumPy number.
    decimals : int
        The number of digits after the point; with a negative number, the result is a multiple of a
        power of ten.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind; may be x.

    Returns
    -------
    Array
        An array of x's shape and type.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.round(cyrt.asarray([0.5, 1.5, 2.25]))
    Array([0., 2., 2.], dtype=float32)
    >>> cyrt.round(cyrt.asarray([3.14159]), 2)
    Array([3.14], dtype=float32)
    """
    places = int_of(decimals, "round: decimals")
    if places == 0 or (isinstance(x, Array) and x.dtype.kind in "iu" and places > 0):
        return elementary.round(x, out=out)
    if isinstance(x, (int, float, complex, np.generic)) and out is None:
        return np.round(x, places)
    x = check_array(x, "round: x")
    wide = x if x.dtype.kind in "fc" else astype(x, "float64")
    power = 10.0 ** abs(places)
    if places > 0:
        result = elementary.round(wide * power) / power
    else:
        result = elementary.round(wide / power) * power
    result = astype(result, x.dtype, copy=False)
    return result if out is None else elementary.positive(result, out=out)
