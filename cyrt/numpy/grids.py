"""Indices of triangles and diagonals, grids of indices, and geometric sequences."""

from __future__ import annotations

from math import isfinite, log10
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops import functions as elementary
from cyrt.ops.arange import arange, linspace
from cyrt.ops.arguments import check_array, check_flags, check_vector, count_of, int_of
from cyrt.ops.copy import astype
from cyrt.ops.creation import asarray, zeros
from cyrt.ops.shapes import reshape
from cyrt.tape import refuse_as_number

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "geomspace",
    "indices",
    "logspace",
    "tri",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "vander",
]


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """A matrix with ones on a diagonal and below it, and zeros above it.

    Parameters
    ----------
    N, M : int
        Numbers of rows and columns; by default a square matrix.
    k : int
        The last diagonal of ones; see :func:`cyrt.eye`.
    dtype : DType, optional
        By default float32.
    device : Device or int, optional
    """
    rows, columns = int_of(N, "tri: N"), int_of(N if M is None else M, "tri: M")
    k = max(-rows, min(int_of(k, "tri: k"), columns))
    below = arange(-k, columns - k, device=device) <= reshape(arange(rows, device=device), (-1, 1))
    return astype(below, "float32" if dtype is None else dtype)


def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Any = None
) -> tuple[Array, Array]:
    """The indices of a matrix's lower triangle: rows and columns, int64.

    Parameters
    ----------
    n, m : int
        The matrix's numbers of rows and columns; by default it is square.
    k : int
        The last diagonal of the triangle; see :func:`cyrt.eye`.
    device : Device or int, optional
    """
    rows, columns = np.tril_indices(n, k, m)
    return asarray(rows, device=device), asarray(columns, device=device)


def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Any = None
) -> tuple[Array, Array]:
    """The indices of a matrix's upper triangle from diagonal k; see :func:`cyrt.tril_indices`.

    Parameters
    ----------
    n, m : int
        The matrix's numbers of rows and columns; by default it is square.
    k : int
        The first diagonal of the triangle; see :func:`cyrt.eye`.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    tuple of Array
        The rows and the columns, int64.
    """
    rows, columns = np.triu_indices(n, k, m)
    return asarray(rows, device=device), asarray(columns, device=device)


def tril_indices_from(arr: Array, k: int = 0) -> tuple[Array, Array]:
    """:func:`cyrt.tril_indices` of a matrix.

    Parameters
    ----------
    arr : Array
        A matrix.
    k : int
        As for :func:`cyrt.tril_indices`.

    Returns
    -------
    tuple of Array
        The rows and the columns, int64, on the matrix's device.
    """
    rows, columns = _matrix(arr, "tril_indices_from")
    return tril_indices(rows, k, columns, device=arr.device)


def triu_indices_from(arr: Array, k: int = 0) -> tuple[Array, Array]:
    """:func:`cyrt.triu_indices` of a matrix.

    Parameters
    ----------
    arr : Array
        A matrix.
    k : int
        As for :func:`cyrt.triu_indices`.

    Returns
    -------
    tuple of Array
        The rows and the columns, int64, on the matrix's device.
    """
    rows, columns = _matrix(arr, "triu_indices_from")
    return triu_indices(rows, k, columns, device=arr.device)


def _matrix(arr: Array, name: str) -> tuple[int, ...]:
    if check_array(arr, f"{name}: arr").ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, got shape {arr.shape}")
    return arr.shape


def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with ndim dimensions of size n.

    Parameters
    ----------
    n : int
        The size of every dimension.
    ndim : int
        The number of dimensions.
    device : Device or int, optional
        Default: the current device.

    Returns
    -------
    tuple of Array
        For each dimension the indices 0, 1, ..., n - 1, int64.
    """
    return (arange(int_of(n, "diag_indices: n"), device=device),) * int_of(
        ndim, "diag_indices: ndim"
    )


def diag_indices_from(arr: Array) -> tuple[Array, ...]:
    """:func:`cyrt.diag_indices` of an array with at least two dimensions, all of the same size.

    Parameters
    ----------
    arr : Array
        The array.

    Returns
    -------
    tuple of Array
        For each dimension the indices, int64, on the array's device.
    """
    sizes = check_array(arr, "diag_indices_from: arr").shape
    if len(sizes) < 2 or len(set(sizes)) != 1:
        raise ValueError(
            "diag_indices_from: arr: expected two or more dimensions of one size, "
            f"got shape {sizes}"
        )
    return diag_indices(sizes[0], len(sizes), device=arr.device)


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of a vector, by default in descending order.

    Parameters
    ----------
    x : Array
        One-dimensional.
    N : int, optional
        The number of columns; by default the number of elements.
    increasing : bool
        Whether the powers ascend from 0.

    Returns
    -------
    Array
        x's type if that is floating-point or uint64, otherwise int64.
    """
    check_flags("vander", increasing=increasing)
    check_vector(x, "vander: x")
    count = x.size if N is None else count_of(N, "vander: N")
    dtype = x.dtype if x.dtype.kind in "fc" or x.dtype == "uint64" else "int64"
    powers = arange(count, device=x.device)
    powers = astype(powers if increasing else powers[::-1], dtype)
    return elementary.pow(astype(x, dtype, copy=False)[:, None], powers)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False, *, device: Any = None) -> Any:
    """The indices of an array's elements along each of its dimensions.

    Parameters
    ----------
    dimensions : int or tuple of int
        The array's shape.
    dtype : DType
        The element type; ``int`` is int64.
    sparse : bool
        Whether the result is a tuple of arrays that broadcast to that shape.
    device : Device or int, optional

    Returns
    -------
    Array
        Shape ``(len(dimensions), *dimensions)``.
    """
    check_flags("indices", sparse=sparse)
    shape = dimensions if isinstance(dimensions, (tuple, list)) else (dimensions,)
    lines = [arange(each, dtype=dtype, device=device) for each in shape]
    if sparse:
        return tuple(
            reshape(each, [-1 if d == axis else 1 for d in range(len(shape))])
            for axis, each in enumerate(lines)
        )
    result = zeros((len(shape), *shape), dtype=dtype, device=device)
    for axis, each in enumerate(lines):
        result[axis] = reshape(each, [-1 if d == axis else 1 for d in range(len(shape))])
    return result


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Powers with evenly spaced exponents, computed in float64.

    Parameters
    ----------
    start, stop : number
        The exponents of the first and the last power.
    num : int
        The number of powers.
    endpoint : bool
        Whether the power of `stop` is included; see :func:`cyrt.linspace`.
    base : number
        The base of the powers, greater than 0.
    dtype : DType, optional
        By default float32.
    device : Device or int, optional
    """
    check_flags("logspace", endpoint=endpoint)
    exponents = linspace(start, stop, num, dtype="float64", device=device, endpoint=endpoint)
    return astype(elementary.pow(base, exponents), "float32" if dtype is None else dtype)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """A geometric sequence between two numbers, which it contains exactly.

    Parameters
    ----------
    start, stop : number
        Real numbers of the same sign, not 0.
    num : int
        The number of elements.
    endpoint : bool
        Whether `stop` is included; see :func:`cyrt.linspace`.
    dtype : DType, optional
        By default float32.
    device : Device or int, optional
    """
    check_flags("geomspace", endpoint=endpoint)
    for what, number in (("start", start), ("stop", stop)):
        refuse_as_number(number, f"geomspace: {what}")
    if not (isfinite(start) and isfinite(stop) and start * stop > 0):
        raise ValueError(
            f"geomspace: expected two finite numbers of one sign, not 0, got {start} and {stop}"
        )
    sign = 1 if start > 0 else -1
    result = (
        logspace(log10(abs(start)), log10(abs(stop)), num, endpoint, dtype="float64", device=device)
        * sign
    )
    if result.size:
        result[0] = start
        if endpoint and result.size > 1:
            result[-1] = stop
    return astype(result, "float32" if dtype is None else dtype)
