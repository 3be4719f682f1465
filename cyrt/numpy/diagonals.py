"""Diagonals of matrices."""

from __future__ import annotations

from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy.attributes import Flat
from cyrt.numpy.coercion import as_array_like
from cyrt.numpy.manipulation import resize
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array, check_flags, int_of
from cyrt.ops.copy import assign
from cyrt.ops.creation import zeros
from cyrt.ops.grids import eye
from cyrt.ops.shapes import ravel
from cyrt.ops.views import diagonal, read_only
from cyrt.tape import differentiable

__all__ = ["diag", "diagflat", "fill_diagonal", "identity", "trace"]


def identity(n: int, dtype: Any = None, *, device: Any = None) -> Array:
    """The square matrix with ones on its main diagonal; see :func:`cyrt.eye`.

    Parameters
    ----------
    n : int
        The number of rows and of columns.
    dtype : DType, optional
        The element type. Default: float32.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    Array
        Shape (n, n).
    """
    return eye(n, dtype=dtype, device=device)


@differentiable
def diag(v: Array, k: int = 0) -> Array:
    """The matrix with a vector on a diagonal, or a read-only view of a matrix's diagonal.

    Parameters
    ----------
    v : Array
        One-dimensional or two-dimensional.
    k : int
        The diagonal, as for :func:`cyrt.diagonal`, whose view can be written.

    Returns
    -------
    Array
        A matrix, or a vector, of v's type.

    Raises
    ------
    ValueError
        v has another number of dimensions.
    """
    if check_array(v, "diag: v").ndim == 2:
        return read_only(diagonal(v, k))
    if v.ndim != 1:
        raise ValueError(f"diag: expected one or two dimensions, got shape {v.shape}")
    n = v.size + abs(int_of(k, "diag: k"))
    result = zeros((n, n), dtype=v.dtype, device=v.device)
    assign(diagonal(result, k), v)
    return result


def diagflat(v: Array, k: int = 0) -> Array:
    """The matrix with all elements, in C order, on a diagonal; see :func:`cyrt.diag`.

    Parameters
    ----------
    v : Array
        An array of any shape.
    k : int
        The diagonal, as for :func:`cyrt.diag`.

    Returns
    -------
    Array
        A matrix of v's type.
    """
    return diag(ravel(v), k)


def trace(
    a: Array,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    """The sums along diagonals.

    Parameters
    ----------
    a : Array
        A matrix, or a stack of matrices.
    offset, axis1, axis2 : int
        See :func:`cyrt.diagonal`.
    dtype, out : optional
        See :func:`cyrt.sum`.
    """
    check_array(a, "trace: a")
    return reduce.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Write into the main diagonal, in place.

    Parameters
    ----------
    a : Array
        Two dimensions, or more dimensions of the same size.
    val : Array, number or sequence
        Its elements, in C order, are repeated as needed.
    wrap : bool
        Whether the diagonal of a tall matrix starts again below its end, after one skipped row.

    Raises
    ------
    ValueError
        There are fewer than two dimensions, or more than two of different sizes.
    """
    check_flags("fill_diagonal", wrap=wrap)
    if check_array(a, "fill_diagonal: a").ndim < 2:
        raise ValueError(f"fill_diagonal: expected at least two dimensions, got shape {a.shape}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"fill_diagonal: expected dimensions of one size, got shape {a.shape}")
    values = as_array_like(a, val, "fill_diagonal: val", a.dtype)
    if values.size == 0 or a.size == 0:
        return
    if a.ndim == 2:
        step, end = a.shape[1] + 1, a.size if wrap else a.shape[1] ** 2
    else:
        step, end = sum(a.shape[0] ** d for d in range(a.ndim)), a.size
    chosen = slice(0, min(end, a.size), step)
    Flat(a)[chosen] = resize(values, len(range(a.size)[chosen]))
