"""Products that the array API standard does not have."""

from __future__ import annotations

from cyrt.ndarray import Array
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import check_device
from cyrt.ops.manipulation import stack
from cyrt.ops.matmul import vecdot
from cyrt.ops.shapes import moveaxis, ravel, reshape

__all__ = ["cross", "kron", "vdot"]


def vdot(a: Array, b: Array, /) -> Array:
    """The sum of ``conj(a) * b`` over all elements, in C order; see :func:`cyrt.vecdot`.

    Parameters
    ----------
    a, b : Array
        Arrays of numeric types with the same number of elements.

    Returns
    -------
    Array
        A 0-dimensional array of the promoted type.
    """
    if check_array(a, "vdot: a").size != check_array(b, "vdot: b").size:
        raise ValueError(f"vdot: shapes {a.shape} and {b.shape} have different numbers of elements")
    check_device(b, a, "vdot", "b")
    return vecdot(ravel(a), ravel(b))


def kron(a: Array, b: Array) -> Array:
    """The Kronecker product: an array of copies of b, each times an element of a.

    Parameters
    ----------
    a, b : Array
        The array with fewer dimensions is extended by leading ones of size 1.

    Returns
    -------
    Array
        Its sizes are the products of the operands' sizes.
    """
    ndim = max(check_array(a, "kron: a").ndim, check_array(b, "kron: b").ndim)
    check_device(b, a, "kron", "b")
    a = reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    b = reshape(b, (1,) * (ndim - b.ndim) + b.shape)
    product = reshape(a, [each for size in a.shape for each in (size, 1)]) * reshape(
        b, [each for size in b.shape for each in (1, size)]
    )
    return reshape(product, [m * n for m, n in zip(a.shape, b.shape, strict=True)])


def cross(
    a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors of three elements.

    Parameters
    ----------
    a, b : Array
        The vectors. The dimensions other than theirs broadcast.
    axisa, axisb, axisc : int
        The vectors' axes in a, b and the result.
    axis : int, optional
        The same axis for all three.

    Raises
    ------
    ValueError
        The vectors are not of size 3.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a = moveaxis(check_array(a, "cross: a"), axis_of(axisa, a.ndim, "axisa"), -1)
    b = moveaxis(check_array(b, "cross: b"), axis_of(axisb, b.ndim, "axisb"), -1)
    check_device(b, a, "cross", "b")
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(
            f"cross: expected vectors of 3 elements, got {a.shape[-1]} and {b.shape[-1]}"
        )
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis=axis_of(axisc, parts[0].ndim + 1, "axisc"))
