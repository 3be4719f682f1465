"""Making matrices and grids: identities, triangles, coordinates."""

from __future__ import annotations

from math import isfinite, log10
from operator import index
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.creation import arange, asarray, linspace, zeros
from cyrt.ops.elementwise import where
from cyrt.ops.shapes import broadcast_to, reshape


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *,
        device: Any = None) -> Array:
    """A matrix of ones on one diagonal and zeros elsewhere.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows where left out.
    k : int
        Which diagonal: 0 the main one, above it positive, below negative.
    dtype : DType, optional
        float32 where left out.
    device : Device or int, optional
        The current device where left out.
    """
    rows, k = index(N), index(k)
    columns = rows if M is None else index(M)
    result = zeros((rows, columns), dtype=dtype, device=device)
    length = min(rows + min(k, 0), columns - max(k, 0))
    if length > 0:
        first = k if k >= 0 else -k * columns
        reshape(result, (-1,))[first:first + length * (columns + 1):columns + 1].fill(1)
    return result


def tril(x: Array, /, k: int = 0) -> Array:
    """The lower triangle of matrices: elements above a diagonal are zero.

    Parameters
    ----------
    x : Array
        At least two dimensions, of which the last two are the matrices'.
    k : int
        The last diagonal that is kept, see :func:`cyrt.eye`.
    """
    return where(_on_or_above(x, "tril", index(k) + 1), False, x)


def triu(x: Array, /, k: int = 0) -> Array:
    """The upper triangle of matrices: elements below a diagonal are zero.

    Parameters
    ----------
    x : Array
        At least two dimensions, of which the last two are the matrices'.
    k : int
        The first diagonal that is kept, see :func:`cyrt.eye`.
    """
    return where(_on_or_above(x, "triu", index(k)), x, False)


def _on_or_above(x: Array, name: str, k: int) -> Array:
    """Where a matrix's elements are on diagonal k or above it."""
    if check_array(x, "x").ndim < 2:
        raise ValueError(f"{name}: expected at least two dimensions, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    k = max(-rows, min(k, columns))
    return arange(columns, device=x.device) >= arange(k, rows + k, device=x.device)[:, None]


def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False) -> tuple[Array, ...]:
    """The coordinates of a grid's points, one array an axis.

    Parameters
    ----------
    *arrays : Array or sequence of numbers
        Of one dimension each: the coordinates along an axis.
    indexing : str
        ``"ij"``: the result's axes are in the order of the arrays; ``"xy"``: the first two
        are exchanged.
    sparse : bool
        Along the other axes the results have size 1: they broadcast to the grid.

    Returns
    -------
    tuple of Array
        Views, that cannot be written: their elements share memory.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: expected 'xy' or 'ij', got {indexing!r}")
    arrays = tuple(asarray(each) if isinstance(each, (list, tuple, range)) else
                   check_array(each, "meshgrid") for each in arrays)
    for each in arrays:
        if each.ndim > 1:
            raise ValueError(
                f"meshgrid: expected arrays of one dimension, got shape {each.shape}")
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = 1, 0
    shape = [0] * len(arrays)
    for each, place in zip(arrays, places, strict=True):
        shape[place] = each.size
    lines = (reshape(each, [-1 if d == place else 1 for d in range(len(arrays))])
             for each, place in zip(arrays, places, strict=True))
    return tuple(lines) if sparse else tuple(broadcast_to(each, shape) for each in lines)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *,
        device: Any = None) -> Array:
    """A matrix of ones on a diagonal and below it, zeros above.

    Parameters
    ----------
    N, M : int
        Rows and columns; as many columns as rows where left out.
    k : int
        The last diagonal of ones, see :func:`cyrt.eye`.
    dtype : DType, optional
        float32 where left out.
    device : Device or int, optional
    """
    rows, columns = index(N), index(N if M is None else M)
    k = max(-rows, min(index(k), columns))
    below = (arange(-k, columns - k, device=device)
             <= reshape(arange(rows, device=device), (-1, 1)))
    return astype(below, "float32" if dtype is None else dtype)


def tril_indices(n: int, k: int = 0, m: int | None = None, *,
                 device: Any = None) -> tuple[Array, Array]:
    """The indices of a matrix's lower triangle: rows and columns, int64.

    Parameters
    ----------
    n, m : int
        The matrix's rows and columns; as many columns as rows where left out.
    k : int
        The last diagonal of the triangle, see :func:`cyrt.eye`.
    device : Device or int, optional
    """
    rows, columns = np.tril_indices(n, k, m)
    return asarray(rows, device=device), asarray(columns, device=device)


def triu_indices(n: int, k: int = 0, m: int | None = None, *,
                 device: Any = None) -> tuple[Array, Array]:
    """The indices of a matrix's upper triangle, from diagonal k on; see
    :func:`cyrt.tril_indices`."""
    rows, columns = np.triu_indices(n, k, m)
    return asarray(rows, device=device), asarray(columns, device=device)


def tril_indices_from(arr: Array, /, k: int = 0) -> tuple[Array, Array]:
    """:func:`cyrt.tril_indices` of a matrix."""
    rows, columns = _matrix(arr, "tril_indices_from")
    return tril_indices(rows, k, columns, device=arr.device)


def triu_indices_from(arr: Array, /, k: int = 0) -> tuple[Array, Array]:
    """:func:`cyrt.triu_indices` of a matrix."""
    rows, columns = _matrix(arr, "triu_indices_from")
    return triu_indices(rows, k, columns, device=arr.device)


def _matrix(arr: Array, name: str) -> tuple[int, ...]:
    if check_array(arr, f"{name}: arr").ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, got shape {arr.shape}")
    return arr.shape


def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of n elements along each of ndim dimensions."""
    return (arange(index(n), device=device),) * index(ndim)


def diag_indices_from(arr: Array, /) -> tuple[Array, ...]:
    """:func:`cyrt.diag_indices` of an array whose dimensions are equal, two at least."""
    sizes = check_array(arr, "diag_indices_from: arr").shape
    if len(sizes) < 2 or len(set(sizes)) != 1:
        raise ValueError("diag_indices_from: arr: expected two or more dimensions of one size, "
                         f"got shape {sizes}")
    return diag_indices(sizes[0], len(sizes), device=arr.device)


def vander(x: Array, /, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of a vector, from the greatest to 0.

    Parameters
    ----------
    x : Array
        Of one dimension.
    N : int, optional
        How many columns; as many as elements where left out.
    increasing : bool
        From 0 to the greatest.

    Returns
    -------
    Array
        Of x's type where it is a float, else int64; uint64 of that.
    """
    if check_array(x, "vander: x").ndim != 1:
        raise ValueError(f"vander: x: expected one dimension, got shape {x.shape}")
    count = x.size if N is None else index(N)
    if count < 0:
        raise ValueError(f"vander: N: expected 0 or more, got {count}")
    dtype = x.dtype if x.dtype.kind in "fc" or x.dtype == "uint64" else "int64"
    powers = arange(count, device=x.device)
    powers = astype(powers if increasing else powers[::-1], dtype)
    return elementary.pow(astype(x, dtype, copy=False)[:, None], powers)


def indices(dimensions: Any, /, dtype: Any = int, sparse: bool = False, *,
            device: Any = None) -> Any:
    """The indices of an array's elements along each of its dimensions.

    Parameters
    ----------
    dimensions : int or tuple of int
        The array's shape.
    dtype : DType
    sparse : bool
        A tuple of arrays that broadcast to that shape.
    device : Device or int, optional

    Returns
    -------
    Array
        Of shape ``(len(dimensions), *dimensions)``.
    """
    shape = dimensions if isinstance(dimensions, (tuple, list)) else (dimensions,)
    lines = [arange(each, dtype=dtype, device=device) for each in shape]
    if sparse:
        return tuple(reshape(each, [-1 if d == place else 1 for d in range(len(shape))])
                     for place, each in enumerate(lines))
    result = zeros((len(shape), *shape), dtype=dtype, device=device)
    for place, each in enumerate(lines):
        result[place] = reshape(each, [-1 if d == place else 1 for d in range(len(shape))])
    return result


def logspace(start: float, stop: float, /, num: int = 50, endpoint: bool = True,
             base: float = 10.0, dtype: Any = None, *, device: Any = None) -> Array:
    """Powers with evenly spaced exponents, computed in float64; see :func:`cyrt.linspace`.

    Parameters
    ----------
    start, stop : number
        The exponents of the first and the last.
    num : int
        How many.
    endpoint : bool
        Whether the power of stop is the last of them; else it would be the next.
    base : number
        More than 0.
    dtype : DType, optional
        float32 where left out.
    device : Device or int, optional
    """
    exponents = linspace(start, stop, num, dtype="float64", device=device, endpoint=endpoint)
    return astype(elementary.pow(base, exponents), "float32" if dtype is None else dtype)


def geomspace(start: float, stop: float, /, num: int = 50, endpoint: bool = True,
              dtype: Any = None, *, device: Any = None) -> Array:
    """Numbers each of which is the one before times a constant, both ends exact.

    Parameters
    ----------
    start, stop : number
        Real, of one sign, not 0.
    num : int
        How many.
    endpoint : bool
        Whether stop is the last of them; else it would be the next.
    dtype : DType, optional
        float32 where left out.
    device : Device or int, optional
    """
    if not (isfinite(start) and isfinite(stop) and start * stop > 0):
        raise ValueError("geomspace: expected two finite numbers of one sign, not 0, got "
                         f"{start} and {stop}")
    sign = 1 if start > 0 else -1
    result = logspace(log10(abs(start)), log10(abs(stop)), num, endpoint, dtype="float64",
                      device=device) * sign
    if result.size:
        result[0] = start
        if endpoint and result.size > 1:
            result[-1] = stop
    return astype(result, "float32" if dtype is None else dtype)
