"""Products and functions of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial, inf, perm, prod
from math import log2 as log2_of
from typing import Any

from cyrt.linalg.factorizations import inverse_of, solution_of, square_matrices
from cyrt.ndarray import Array
from cyrt.numpy.diagonals import trace as _trace
from cyrt.numpy.products import cross as _cross
from cyrt.ops.arguments import axes_of, check_array, int_of
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.copy import astype, check_devices, copy
from cyrt.ops.functions import abs as magnitude
from cyrt.ops.functions import ceil, log2, maximum, minimum
from cyrt.ops.grids import eye
from cyrt.ops.inspection import finfo
from cyrt.ops.matmul import matmul
from cyrt.ops.matmul import outer as _outer
from cyrt.ops.reduce import max as greatest
from cyrt.ops.reduce import sum as total
from cyrt.ops.shapes import moveaxis, reshape
from cyrt.ops.ternary import where
from cyrt.ops.views import diagonal as _diagonal

# The powers of two by which `expm` divides a matrix at most, and what its approximant takes.
MOST_SQUARINGS = 24
LARGEST_NORM = 4.25
# The coefficients of the approximant of degree 13, the constant first.
PADE = tuple(comb(13, k) / perm(26, k) for k in range(14))


def _matrices(x: Any, name: str) -> Array:
    array = check_array(x, name)
    if array.ndim < 2:
        raise ValueError(
            f"{name}: expected matrices, of two dimensions or more, got shape {array.shape}"
        )
    return array


def _square(x: Any, name: str) -> Array:
    array = _matrices(x, name)
    if array.shape[-1] != array.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, got shape {array.shape}")
    return array


# -- the standard's names, where its arguments differ from NumPy's ---------------------------------


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Compute the cross products of vectors of three elements along an axis; see
    :func:`cyrt.cross`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.cross(cyrt.asarray([1.0, 0.0, 0.0]), cyrt.asarray([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    return _cross(x1, x2, axis=axis)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return a view of the diagonals of matrices, along the last two axes; see
    :func:`cyrt.diagonal`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.diagonal(cyrt.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64)
    """
    return _diagonal(_matrices(x, "diagonal: x"), offset, -2, -1)


def outer(x1: Array, x2: Array, /) -> Array:
    """Compute the outer product of two vectors; see :func:`cyrt.outer`.

    Raises
    ------
    ValueError
        An operand does not have one dimension.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.outer(cyrt.asarray([1, 2]), cyrt.asarray([1, 3]))
    Array([[1, 3],
           [2, 6]], dtype=int64)
    """
    for name, each in (("x1", x1), ("x2", x2)):
        if check_array(each, f"outer: {name}").ndim != 1:
            raise ValueError(f"outer: {name}: expected one dimension, got shape {each.shape}")
    return _outer(x1, x2)


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sum the diagonals of matrices, along the last two axes; see :func:`cyrt.trace`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.trace(cyrt.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64)
    """
    return _trace(_matrices(x, "trace: x"), offset, -2, -1, dtype)


# -- products --------------------------------------------------------------------------------------


def matrix_power(x: Array, n: int, /) -> Array:
    """Raise square matrices to an integer power, by repeated squaring.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N) of a numeric type.
    n : int
        The exponent. For a negative one, the inverses are raised to ``-n``.

    Returns
    -------
    Array
        The powers, of x's shape.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or n is not an int.
    cyrt.linalg.LinAlgError
        When a value is waited for: n is negative and a matrix was singular.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.matrix_power(cyrt.asarray([[1, 1], [1, 0]]), 10)
    Array([[89, 55],
           [55, 34]], dtype=int64)
    """
    x = _square(x, "matrix_power: x")
    exponent = int_of(n, "matrix_power: n")
    if exponent == 0:
        identity = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return copy(broadcast_to(identity, x.shape))
    if exponent < 0:
        x, exponent = inverse_of("matrix_power", x), -exponent
    found: Array | None = None
    power = x
    while exponent:
        if exponent & 1:
            found = power if found is None else matmul(found, power)
        exponent >>= 1
        power = matmul(power, power) if exponent else power
    return copy(x) if found is None or found is x else found


def _best_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to split each chain of matrices i to j, so that the product takes the fewest
    multiplications (Cormen et al., Introduction to Algorithms, 14.2)."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], splits[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return splits


def multi_dot(arrays: Sequence[Array]) -> Array:
    """Multiply two or more matrices in the order that takes the fewest multiplications.

    Parameters
    ----------
    arrays : sequence of Array
        Matrices. The first array may be a vector, which counts as a row, and so may the last one,
        which counts as a column.

    Returns
    -------
    Array
        Their product, without the dimensions that these vectors lack.

    Raises
    ------
    TypeError, ValueError
        There are fewer than two arrays, or their shapes do not fit.

    Notes
    -----
    This is NumPy's ``numpy.linalg.multi_dot``.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.multi_dot([cyrt.ones((2, 3)), cyrt.ones((3, 4)), cyrt.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    arrays = [check_array(each, f"multi_dot: arrays[{i}]") for i, each in enumerate(arrays)]
    if len(arrays) < 2:
        raise ValueError(f"multi_dot: expected at least two arrays, got {len(arrays)}")
    matrices = list(arrays)
    if arrays[0].ndim == 1:
        matrices[0] = arrays[0][None, :]
    if arrays[-1].ndim == 1:
        matrices[-1] = arrays[-1][:, None]
    for i, each in enumerate(matrices):
        if each.ndim != 2:
            raise ValueError(
                f"multi_dot: arrays[{i}]: expected a matrix, got shape {arrays[i].shape}"
            )
    for i in range(1, len(matrices)):
        if matrices[i - 1].shape[1] != matrices[i].shape[0]:
            raise ValueError(
                f"multi_dot: arrays[{i - 1}] of shape {arrays[i - 1].shape} and arrays[{i}] of "
                f"shape {arrays[i].shape} cannot be multiplied"
            )
    splits = _best_order([matrices[0].shape[0], *(each.shape[1] for each in matrices)])

    def product(i: int, j: int) -> Array:
        if i == j:
            return matrices[i]
        return matmul(product(i, splits[i, j]), product(splits[i, j] + 1, j))

    found = product(0, len(matrices) - 1)
    if arrays[0].ndim == 1:
        found = found[0]
    return found[..., 0] if arrays[-1].ndim == 1 else found


# -- tensors ---------------------------------------------------------------------------------------


def tensorsolve(a: Array, b: Array, axes: Sequence[int] | None = None) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b`` for x.

    Parameters
    ----------
    a : Array
        Shape ``b.shape + Q``, where the product of the sizes Q equals b's number of elements.
    b : Array
        The right-hand side.
    axes : sequence of int, optional
        Axes of a that are moved to its end first.

    Returns
    -------
    Array
        The solution x, of shape Q.

    Raises
    ------
    TypeError, ValueError
        The operands are not Arrays, or the shapes do not fit.
    cyrt.linalg.LinAlgError
        When a value is waited for: the system was singular.

    Examples
    --------
    >>> import cyrt
    >>> a = cyrt.reshape(cyrt.eye(4) * 2, (2, 2, 4))
    >>> cyrt.linalg.tensorsolve(a, cyrt.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = check_array(a, "tensorsolve: a"), check_array(b, "tensorsolve: b")
    check_devices("tensorsolve", a=a, b=b)
    if axes is not None:
        moved = axes_of(axes, a.ndim, "tensorsolve: axes")
        a = moveaxis(a, moved, tuple(range(a.ndim - len(moved), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or prod(shape) != b.size:
        raise ValueError(
            f"tensorsolve: expected a of shape b.shape + Q with {b.size} elements in Q, got "
            f"{a.shape} and {b.shape}"
        )
    found = solution_of("tensorsolve", reshape(a, (b.size, b.size)), reshape(b, (b.size,)))
    return reshape(found, shape)


def tensorinv(a: Array, ind: int = 2) -> Array:
    """Compute the inverse of a tensor for the product ``tensordot(a, b, ind)``.

    Parameters
    ----------
    a : Array
        A tensor. The product of its first `ind` sizes equals the product of the others.
    ind : int
        The number of a's first axes, at least 1; ``tensordot(inverse, b, ind)`` sums over them.

    Returns
    -------
    Array
        The inverse, of shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises
    ------
    TypeError, ValueError
        a is not an Array of such a shape, or ind is less than 1.
    cyrt.linalg.LinAlgError
        When a value is waited for: a was singular.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.tensorinv(cyrt.reshape(cyrt.eye(4), (4, 2, 2)), ind=1).shape
    (2, 2, 4)
    """
    a = check_array(a, "tensorinv: a")
    count = int_of(ind, "tensorinv: ind")
    if count < 1 or prod(a.shape[:count]) != prod(a.shape[count:]):
        raise ValueError(
            f"tensorinv: expected ind of at least 1, and sizes {a.shape} whose products before and "
            f"after axis ind are equal, got ind {count}"
        )
    size = prod(a.shape[:count])
    found = inverse_of("tensorinv", reshape(a, (size, size)))
    return reshape(found, a.shape[count:] + a.shape[:count])


# -- functions of matrices -----------------------------------------------------------------------


def expm(x: Array, /) -> Array:
    """Compute the exponentials of matrices.

    Parameters
    ----------
    x : Array
        Matrices of shape (..., N, N); integers are converted to float32.

    Returns
    -------
    Array
        The exponentials, of x's shape; NaN for a matrix that had to be squared more than 24 times,
        as those whose eigenvalues are above 2**26.

    Raises
    ------
    TypeError, ValueError
        x is not an Array of square matrices, or its type is float16 or bfloat16.

    Notes
    -----
    The method is scaling and squaring with the Pade approximant of degree 13, and the powers of a
    matrix, not its norm, decide how often it is squared (Al-Mohy and Higham, SIAM J. Matrix Anal.
    Appl. 31, 2009), on the device: the call does not wait.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.linalg.expm(cyrt.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x = square_matrices("expm", x)
    n = x.shape[-1]
    identity = eye(n, dtype=x.dtype, device=x.device)
    if x.size == 0:
        return x + identity
    squarings = _squarings(x)
    a = x / astype(2.0**squarings, x.dtype)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a2, a4)
    b = PADE
    high = matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = matmul(a, high + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
    even = matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    found = solution_of("expm", even - odd, even + odd)
    for i in range(MOST_SQUARINGS):
        found = where(squarings > i, matmul(found, found), found)
    return found


def _log_norms(x: Array) -> Array:
    """The binary logarithms of matrices' 1-norms; the axes of the matrices have one element."""
    return log2(greatest(total(magnitude(x), axis=-2, keepdims=True), axis=-1, keepdims=True))


def _squarings(x: Array) -> Array:
    """How often each exponential has to be squared, by algorithm 5.1 of Al-Mohy and Higham; NaN for
    more than `MOST_SQUARINGS` times. The powers are those of matrices of norm 1 at most in float64,
    which do not overflow; those that underflow ask for no squaring."""
    norm = _log_norms(x)
    halvings = astype(where(norm > -inf, ceil(norm), 0.0), "float64")
    wide = "complex128" if x.dtype.kind == "c" else "float64"
    b = astype(x, wide) / astype(2.0**halvings, wide)
    b2 = matmul(b, b)
    b4 = matmul(b2, b2)
    b6 = matmul(b2, b4)
    by_6, by_8 = _log_norms(b6) / 6, _log_norms(matmul(b4, b4)) / 8
    by_10 = _log_norms(matmul(b4, b6)) / 10
    size = halvings + minimum(maximum(by_6, by_8), maximum(by_8, by_10))
    squarings = maximum(ceil(size - log2_of(LARGEST_NORM)), 0.0)
    # The first term of the backward error, in units of the rounding error.
    m = magnitude(b)
    m2 = matmul(m, m)
    m8 = matmul(matmul(m2, m2), matmul(m2, m2))
    m27 = matmul(matmul(matmul(m8, m8), m8), matmul(m2, m))
    error = _log_norms(m27) + 26 * (halvings - squarings) - log2_of(finfo(x.dtype).eps / 2)
    error = error - where(norm > -inf, norm - halvings, 0.0) - log2_of(comb(26, 13) * factorial(27))
    squarings = squarings + maximum(ceil(error / 26), 0.0)
    return astype(where(squarings > MOST_SQUARINGS, float("nan"), squarings), norm.dtype)
