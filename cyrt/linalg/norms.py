"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

from math import inf
from numbers import Real
from typing import Any

from cyrt.error_text import show
from cyrt.linalg.factorizations import hermitian_of, inverse_of, singular_values_of
from cyrt.ndarray import Array
from cyrt.ops.arguments import axes_of, check_array, check_bool, check_real
from cyrt.ops.copy import astype
from cyrt.ops.functions import abs as magnitude
from cyrt.ops.functions import sqrt
from cyrt.ops.inspection import finfo
from cyrt.ops.promotion import isdtype
from cyrt.ops.reduce import count_nonzero
from cyrt.ops.reduce import max as greatest
from cyrt.ops.reduce import min as least
from cyrt.ops.reduce import sum as total
from cyrt.ops.shapes import moveaxis, reshape
from cyrt.ops.ternary import where
from cyrt.tape import differentiable


def _floating(x: Any, name: str) -> Array:
    """Return an operand of a real or complex type; integers become float32."""
    array = check_array(x, name)
    if isdtype(array.dtype, ("real floating", "complex floating")):
        return array
    return astype(array, "float32")


def _squares(x: Array) -> Array:
    """The squared magnitudes of elements, real."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


@differentiable
def norm_of_powers(x: Array, axes: tuple[int, ...], keepdims: bool, order: Any) -> Array:
    """The norm of an order that is finite and not 0."""
    if order == 2:
        return sqrt(total(_squares(x), axis=axes, keepdims=keepdims))
    found: Array = total(magnitude(x) ** order, axis=axes, keepdims=keepdims) ** (1 / order)
    return found


def _vector(x: Array, axes: tuple[int, ...], keepdims: bool, order: Any) -> Array:
    if order not in (inf, -inf, 1, 0):
        # Powers of 16-bit floats are computed and added in float32.
        if x.dtype.itemsize == 2:
            wide = astype(x, "float32")
            return astype(norm_of_powers(wide, axes, keepdims, order), x.dtype)
        found: Array = norm_of_powers(x, axes, keepdims, order)
        return found
    sizes = magnitude(x)
    if order == inf:
        return greatest_or_zero(sizes, axes, keepdims)
    if order == -inf:
        return least(sizes, axis=axes, keepdims=keepdims)
    if order == 1:
        return total(sizes, axis=axes, keepdims=keepdims)
    return total(astype(sizes != 0, sizes.dtype), axis=axes, keepdims=keepdims)


def _number(name: str, value: Any, expected: str = "a number") -> int | float:
    """Return a real number, also one of NumPy's, as Python's."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}: expected {expected}, got {show(value)}")
    return value if isinstance(value, int) else float(value)


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Array:
    """Compute norms of vectors.

    Parameters
    ----------
    x : Array
        An array of a numeric type; integers are converted to float32.
    axis : int or tuple of int, optional
        The axes of the vectors' elements. Default: all.
    keepdims : bool
        Whether to keep these axes, with size 1.
    ord : int or float
        The order p of ``sum(abs(x) ** p) ** (1 / p)``. The norms of the orders inf and -inf are the
        greatest and the least magnitude; that of the order 0 is the number of elements that are not
        zero.

    Returns
    -------
    Array
        The norms, real, in the precision of x's type.

    Raises
    ------
    TypeError
        x is not an Array, or ord is not a number.
    numpy.exceptions.AxisError
        x has no such axis.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.vector_norm(cyrt.asarray([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    array = _floating(x, "vector_norm: x")
    keep = check_bool(keepdims, "vector_norm: keepdims")
    axes = axes_of(axis, array.ndim, "vector_norm: axis")
    return _vector(array, axes, keep, _number("vector_norm: ord", ord))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Array:
    """Compute norms of matrices.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N); integers are converted to float32.
    keepdims : bool
        Whether to keep the last two axes, with size 1.
    ord : str, int or float, optional
        The norm: the root of the sum of squares for "fro" or None, the sum of the singular values
        for "nuc", the greatest and the least singular value for 2 and -2, the greatest and the
        least sum of the magnitudes in a column for 1 and -1, and in a row for inf and -inf.

    Returns
    -------
    Array
        The norms, real, of shape (...).

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or there is no such norm.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite, and the norm is one of singular values.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.matrix_norm(cyrt.asarray([[1.0, -2.0], [2.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    array = _floating(x, "matrix_norm: x")
    if array.ndim < 2:
        raise ValueError(
            f"matrix_norm: x: expected matrices, of two dimensions or more, got shape {array.shape}"
        )
    return _matrix("matrix_norm", array, check_bool(keepdims, "matrix_norm: keepdims"), ord)


def _matrix(
    name: str, array: Array, keep: bool, ord: float | str | None, argument: str = "ord"
) -> Array:
    if ord in ("fro", None):
        return _vector(array, (array.ndim - 2, array.ndim - 1), keep, 2)
    if ord in ("nuc", 2, -2):
        values = singular_values_of(name, array)
        found = (
            total(values, axis=-1)
            if ord == "nuc"
            else greatest_or_zero(values, (-1,), False)
            if ord == 2
            else least(values, axis=-1)
        )
        return reshape(found, (*found.shape, 1, 1)) if keep else found
    if ord in (1, -1, inf, -inf):
        # Columns are summed for 1; then the reduction is along the other axis.
        summed = -2 if ord in (1, -1) else -1
        sums = total(magnitude(array), axis=summed, keepdims=True)
        if ord > 0:
            return greatest_or_zero(sums, (-2, -1), keep)
        return least(sums, axis=(-2, -1), keepdims=keep)
    raise ValueError(
        f"{name}: {argument}: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {show(ord)}"
    )


def norm(
    x: Array,
    ord: float | str | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute norms of vectors or matrices, as NumPy's ``numpy.linalg.norm``.

    Parameters
    ----------
    x : Array
        An array of a numeric type; integers are converted to float32. Without `axis`, it has one or
        two dimensions, unless `ord` is None.
    ord : int, float or str, optional
        The order, as for :func:`vector_norm` or :func:`matrix_norm`. None is the root of the sum of
        squares.
    axis : int or tuple of int, optional
        The axis of vectors, or the two axes of matrices.
    keepdims : bool
        Whether to keep these axes, with size 1.

    Returns
    -------
    Array
        The norms, real, in the precision of x's type.

    Raises
    ------
    TypeError, ValueError
        x is not an Array, or there is no such norm for so many axes.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.norm(cyrt.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    Array([ 5., 10.], dtype=float32)
    """
    array = _floating(x, "norm: x")
    keep = check_bool(keepdims, "norm: keepdims")
    axes = axes_of(axis, array.ndim, "norm: axis")
    if ord is None:
        return _vector(array, axes, keep, 2)
    if len(axes) == 1:
        return _vector(array, axes, keep, _number("norm: ord", ord))
    if len(axes) != 2:
        raise ValueError(f"norm: ord {show(ord)}: expected one or two axes, got {len(axes)}")
    found = _matrix("norm", moveaxis(array, axes, (-2, -1)), False, ord)
    if not keep:
        return found
    shape = [1 if d in axes else size for d, size in enumerate(array.shape)]
    return reshape(found, shape)


def cond(x: Array, p: float | str | None = None) -> Array:
    """Compute condition numbers of matrices.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N); square, unless p is None, 2 or -2.
    p : int, float or str, optional
        The order of :func:`matrix_norm`; the result is the norm of x times that of its inverse.
        None and 2 give the ratio of the greatest to the least singular value, and -2 gives the
        inverse ratio.

    Returns
    -------
    Array
        The condition numbers, real, of shape (...); infinite for a singular matrix.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or there is no such norm.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite, and p is None, 2 or -2.

    Notes
    -----
    The arguments are those of NumPy's ``numpy.linalg.cond``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.cond(cyrt.asarray([[1.0, 0.0], [0.0, 0.5]]))
    Array(2., dtype=float32)
    """
    array = _floating(x, "cond: x")
    if p in (None, 2, -2):
        values = singular_values_of("cond", array)
        if values.shape[-1] == 0:
            raise ValueError(
                f"cond: x: a matrix of shape {array.shape[-2:]} has no condition number"
            )
        first, last = values[..., 0], values[..., -1]
        above, below = (last, first) if p == -2 else (first, last)
        # Both are 0 for a matrix of zeros.
        return where(below == 0, inf, above / below)
    inverse, info = inverse_of("cond", array, False)
    regular = info == 0
    inverse = where(regular[..., None, None], inverse, 0.0)
    found = _matrix("cond", array, False, p, "p") * _matrix("cond", inverse, False, p, "p")
    return where(regular, found, inf)


def matrix_rank(
    x: Array, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None
) -> Array:
    """Compute the ranks of matrices: how many singular values are greater than a tolerance.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., M, N); integers are converted to float32.
    tol : float or Array, optional
        The tolerance itself, which replaces `rtol`.
    hermitian : bool
        Whether the matrices are Hermitian, so that eigenvalues replace singular values.
    rtol : float or Array, optional
        The tolerance relative to the greatest singular value, of a shape that broadcasts to (...).
        Default: ``max(M, N) * finfo(x.dtype).eps``.

    Returns
    -------
    Array
        int64, of shape (...).

    Raises
    ------
    TypeError, ValueError
        x is not an Array of matrices, or both tolerances are given.
    cyrt.linalg.LinAlgError
        When a value is waited for: a matrix was not finite.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.matrix_rank(cyrt.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64)
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: expected tol or rtol, got both")
    array = _floating(x, "matrix_rank: x")
    if check_bool(hermitian, "matrix_rank: hermitian"):
        values = magnitude(hermitian_of("matrix_rank", array, False))
    else:
        values = singular_values_of("matrix_rank", array)
    if tol is None:
        tol = relative_tolerance("matrix_rank: rtol", array, rtol)
        tol = tol * greatest_or_zero(values, (-1,), True)
    else:
        tol = _tolerance("matrix_rank: tol", tol)
    return count_nonzero(values > tol, axis=-1)


def greatest_or_zero(values: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The greatest of numbers that are not negative; 0 if there are none."""
    empty = any(values.shape[axis] == 0 for axis in axes)
    return greatest(values, axis=axes, keepdims=keepdims, initial=0 if empty else None)


def _tolerance(name: str, value: Any) -> Any:
    """A tolerance for singular values, as a number, or an array with an axis for them."""
    if isinstance(value, Array):
        return check_real(value, name)[..., None]
    return _number(name, value, "a number or an Array")


def relative_tolerance(name: str, x: Array, rtol: Any) -> Any:
    """A tolerance relative to the greatest singular value."""
    if rtol is None:
        return max(x.shape[-2:]) * float(finfo(x.dtype).eps)
    return _tolerance(name, rtol)
