"""Whether arrays are equal, or nearly so."""

from __future__ import annotations

from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy_names.coercion import of_numbers, pair
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import full


@of_numbers(2)
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08,
            equal_nan: bool = False) -> Array:
    """Whether abs(a - b) <= atol + rtol * abs(b), or both are the same infinity.

    Parameters
    ----------
    a, b : Array, number or sequence of numbers, at least one Array
        Integers are compared in float64.
    rtol, atol : float or Array
    equal_nan : bool
        Whether a NaN is close to a NaN.

    Returns
    -------
    Array
        bool, of the shape that both broadcast to.
    """
    a, b = pair(a, b, "isclose")
    if a.dtype.kind not in "fc":
        a, b = astype(a, "float64"), astype(b, "float64")
    near = elementary.abs(a - b) <= atol + rtol * elementary.abs(b)
    near = (near & elementary.isfinite(b)) | (a == b)
    if equal_nan:
        near = near | (elementary.isnan(a) & elementary.isnan(b))
    return near


@of_numbers(2)
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether all elements are close, see :func:`cyrt.isclose`.

    Returns
    -------
    Array
        bool, 0-dimensional: ``bool()`` of it, and ``if``, wait for the value.
    """
    return reduce.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Parameters
    ----------
    a1, a2 : Array
    equal_nan : bool
        Whether a NaN equals a NaN.

    Returns
    -------
    Array
        bool, 0-dimensional: ``bool()`` of it, and ``if``, wait for the value.
    """
    check_array(a1, "array_equal: a1")
    check_array(a2, "array_equal: a2")
    if a1.shape != a2.shape:
        return full((), False, device=a1.device)
    same = a1 == a2
    if equal_nan:
        same = same | (elementary.isnan(a1) & elementary.isnan(a2))
    return reduce.all(same)


def array_equiv(a1: Array, a2: Array) -> Array:
    """Whether two arrays broadcast to one shape and are equal there; see
    :func:`cyrt.array_equal`."""
    check_array(a1, "array_equiv: a1")
    check_array(a2, "array_equiv: a2")
    try:
        return reduce.all(a1 == a2)
    except ValueError:                  # they do not broadcast
        return full((), False, device=a1.device)
