"""Creation of matrices and grids: identities, triangles, coordinates."""

from __future__ import annotations

from typing import Any

from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.ops.arange import arange
from cyrt.ops.arguments import check_array, check_flags, int_of
from cyrt.ops.broadcasting import broadcast_to
from cyrt.ops.creation import asarray, zeros
from cyrt.ops.shapes import reshape
from cyrt.ops.ternary import where


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """Create a matrix of ones on one diagonal and zeros elsewhere.

    Parameters
    ----------
    N, M : int
        The numbers of rows and columns. Default: as many columns as rows.
    k : int
        The diagonal: 0 is the main one, positive numbers are above it, negative ones below.
    dtype : DType, optional
        Default: float32.
    device : Device or int, optional
        Default: the current device.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows, k = int_of(N, "eye: N"), int_of(k, "eye: k")
    columns = rows if M is None else int_of(M, "eye: M")
    result = zeros((rows, columns), dtype=dtype, device=device)
    length = min(rows + min(k, 0), columns - max(k, 0))
    if length > 0:
        first = k if k >= 0 else -k * columns
        reshape(result, (-1,))[first : first + length * (columns + 1) : columns + 1].fill(1)
    return result


def tril(x: Array, /, k: int = 0) -> Array:
    """Copy the lower triangle of matrices; elements above a diagonal are zero.

    Parameters
    ----------
    x : Array
        An array of at least two dimensions; the last two are the matrices.
    k : int
        The last diagonal that is kept; see :func:`cyrt.eye`.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.tril(cyrt.ones((3, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    return where(_on_or_above(x, "tril", int_of(k, "tril: k") + 1), False, x)


def triu(x: Array, /, k: int = 0) -> Array:
    """Copy the upper triangle of matrices; elements below a diagonal are zero.

    Parameters
    ----------
    x : Array
        An array of at least two dimensions; the last two are the matrices.
    k : int
        The first diagonal that is kept; see :func:`cyrt.eye`.
    """
    return where(_on_or_above(x, "triu", int_of(k, "triu: k")), x, False)


def _on_or_above(x: Array, name: str, k: int) -> Array:
    """A bool mask of the elements on diagonal k or above it."""
    if check_array(x, "x").ndim < 2:
        raise ValueError(f"{name}: expected at least two dimensions, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    k = max(-rows, min(k, columns))
    return arange(columns, device=x.device) >= arange(k, rows + k, device=x.device)[:, None]


def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False) -> tuple[Array, ...]:
    """Create the coordinates of a grid's points, one array per axis.

    Parameters
    ----------
    *arrays : Array or sequence of numbers
        One-dimensional coordinates along each axis.
    indexing : str
        ``"ij"`` keeps the order of the arrays for the result's axes; ``"xy"`` exchanges the first
        two.
    sparse : bool
        Whether the results have size 1 along the other axes, so that they broadcast to the grid.

    Returns
    -------
    tuple of Array
        Read-only views: their elements share memory.
    """
    check_flags("meshgrid", sparse=sparse)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: expected 'xy' or 'ij', got {show(indexing)}")
    arrays = tuple(
        asarray(each) if isinstance(each, (list, tuple, range)) else check_array(each, "meshgrid")
        for each in arrays
    )
    for each in arrays:
        if each.ndim > 1:
            raise ValueError(f"meshgrid: expected arrays of one dimension, got shape {each.shape}")
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        axes[:2] = 1, 0
    shape = [0] * len(arrays)
    for each, axis in zip(arrays, axes, strict=True):
        shape[axis] = each.size
    lines = (
        reshape(each, [-1 if d == axis else 1 for d in range(len(arrays))])
        for each, axis in zip(arrays, axes, strict=True)
    )
    return tuple(lines) if sparse else tuple(broadcast_to(each, shape) for each in lines)
