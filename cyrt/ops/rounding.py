"""The nearest number of so many decimals."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype


def round(x: Array | complex, /, decimals: int = 0, out: Array | None = None) -> Any:
    """The nearest numbers of so many decimals, halves to the even one.

    Parameters
    ----------
    x : Array or number
        Of a numeric type. Of a number the result is NumPy's number.
    decimals : int
        Digits that are kept behind the point; negative, so many before it become 0.
    out : Array, optional
        Takes the result, which may be cast within its kind; may be x.

    Returns
    -------
    Array
        Of x's shape and type.
    """
    places = index(decimals)
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
