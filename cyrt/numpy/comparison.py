"""Comparison of whole arrays, and comparison with tolerances."""

from __future__ import annotations

from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy.coercion import accept_numbers, promote_pair
from cyrt.ops import functions as elementary
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array, check_flags
from cyrt.ops.copy import astype, check_device, check_devices
from cyrt.ops.creation import full

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


@accept_numbers(2)
def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``, or both are the same infinity.

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
        Type bool, of the broadcast shape of both operands.
    """
    check_flags("isclose", equal_nan=equal_nan)
    check_devices("isclose", a=a, b=b, rtol=rtol, atol=atol)
    a, b = promote_pair(a, b, "isclose")
    if a.dtype.kind not in "fc":
        a, b = astype(a, "float64"), astype(b, "float64")
    near: Array = elementary.abs(a - b) <= atol + rtol * elementary.abs(b)
    near = (near & elementary.isfinite(b)) | (a == b)
    if equal_nan:
        near = near | (elementary.isnan(a) & elementary.isnan(b))
    return near


@accept_numbers(2)
def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close; see :func:`cyrt.isclose`.

    Returns
    -------
    Array
        Type bool, 0-dimensional; ``bool()`` and ``if`` wait for its value.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.allclose(cyrt.asarray([1.0, 2.0]), cyrt.asarray([1.0, 2.0000001]))
    Array(True, dtype=bool)
    """
    check_devices("allclose", a=a, b=b, rtol=rtol, atol=atol)
    return reduce.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Array, a2: Array, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements.

    Parameters
    ----------
    a1, a2 : Array
    equal_nan : bool
        Whether a NaN equals a NaN.

    Returns
    -------
    Array
        Type bool, 0-dimensional; ``bool()`` and ``if`` wait for its value.
    """
    check_flags("array_equal", equal_nan=equal_nan)
    check_array(a1, "array_equal: a1")
    check_device(check_array(a2, "array_equal: a2"), a1, "array_equal", "a2")
    if a1.shape != a2.shape:
        return full((), False, device=a1.device)
    same = a1 == a2
    if equal_nan:
        same = same | (elementary.isnan(a1) & elementary.isnan(a2))
    return reduce.all(same)


def array_equiv(a1: Array, a2: Array) -> Array:
    """Whether two arrays are equal after broadcasting; see :func:`cyrt.array_equal`.

    Parameters
    ----------
    a1, a2 : Array

    Returns
    -------
    Array
        Type bool, 0-dimensional; False if the shapes do not broadcast.
    """
    check_array(a1, "array_equiv: a1")
    check_device(check_array(a2, "array_equiv: a2"), a1, "array_equiv: a2")
    try:
        return reduce.all(a1 == a2)
    except ValueError:  # they do not broadcast
        return full((), False, device=a1.device)
