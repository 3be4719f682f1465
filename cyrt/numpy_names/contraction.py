"""Products of arrays by subscripts, and NumPy's further ones."""

from __future__ import annotations

from math import prod
from typing import Any

from cyrt.ndarray import Array
from cyrt.ops import reduce
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype
from cyrt.ops.manipulation import stack
from cyrt.ops.matmul import matmul, vecdot
from cyrt.ops.promotion import result_type
from cyrt.ops.shapes import moveaxis, permute_dims, ravel, reshape, squeeze
from cyrt.ops.views import diagonal

Labels = list[Any]          # a letter; an int for a dimension of "...", counted from its end


def einsum(subscripts: str, /, *operands: Array, optimize: Any = False) -> Array:
    """The sum of products that subscripts name.

    Parameters
    ----------
    subscripts : str
        A letter for each dimension of each operand, separated by commas; ``"..."`` for any number
        of them. After ``"->"`` those of the result; left out: ``"..."``, then the letters that are
        there once. What the result lacks is summed.
    *operands : Array
        Of numeric types. Dimensions of one letter have one size, or 1.
    optimize : bool or str
        Taken for NumPy's sake: operands are multiplied from left to right in any case.

    Returns
    -------
    Array
        Of the type that the operands promote to; a view of a single operand where nothing is
        summed.

    Raises
    ------
    ValueError
        Subscripts that cannot be read, or do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts: expected a str, got {type(subscripts).__name__}")
    arrays = [check_array(each, "einsum: operands") for each in operands]
    terms, wanted = _parse(subscripts, arrays)
    dtype = result_type(*arrays)
    if dtype.kind == "b":
        raise TypeError("einsum: expected numeric types, got bool")
    arrays = [astype(each, dtype, copy=False) for each in arrays]
    for place, labels in enumerate(terms):
        arrays[place], terms[place] = _diagonals(arrays[place], labels, subscripts)
    sizes: dict[Any, int] = {}
    for x, labels in zip(arrays, terms, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ValueError(f"einsum: {subscripts!r}: dimensions of {label!r} have the sizes "
                                 f"{known} and {size}")
    for place, (x, labels) in enumerate(zip(arrays, terms, strict=True)):
        spread = [d for d, label in enumerate(labels) if x.shape[d] != sizes[label]]
        arrays[place] = squeeze(x, tuple(spread))
        terms[place] = [label for d, label in enumerate(labels) if d not in spread]
    x, labels = arrays[0], terms[0]
    for place in range(1, len(arrays)):
        needed = set(wanted).union(*terms[place + 1:])
        x, labels = _product(x, labels, arrays[place], terms[place], needed)
    x, labels = _summed(x, labels, set(wanted))
    return permute_dims(x, [labels.index(label) for label in wanted])


def _parse(subscripts: str, arrays: list[Array]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's dimensions, and of the result's."""
    text = subscripts.replace(" ", "")
    given, arrow, result = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(arrays):
        raise ValueError(f"einsum: {subscripts!r} is for {len(parts)} operands, got {len(arrays)}")
    terms = []
    for part, x in zip(parts, arrays, strict=True):
        before, ellipsis, behind = part.partition("...")
        extra = x.ndim - len(before) - len(behind)
        if extra < 0 or (extra and not ellipsis):
            raise ValueError(f"einsum: {subscripts!r}: {part!r} does not fit an operand of shape "
                             f"{x.shape}")
        terms.append([*before, *range(extra - 1, -1, -1), *behind])
    letters = [label for labels in terms for label in labels if isinstance(label, str)]
    spread = max(((label + 1) for labels in terms for label in labels
                  if not isinstance(label, str)), default=0)
    if arrow:
        before, ellipsis, behind = result.partition("...")
        wanted = [*before, *(range(spread - 1, -1, -1) if ellipsis else ()), *behind]
        if spread and not ellipsis:
            raise ValueError(f"einsum: {subscripts!r}: the result lacks the '...' of the operands")
    else:
        wanted = [*range(spread - 1, -1, -1),
                  *sorted(each for each in set(letters) if letters.count(each) == 1)]
    named = [label for label in wanted if isinstance(label, str)]
    if not all(each.isascii() and each.isalpha() for each in letters + named):
        raise ValueError(f"einsum: {subscripts!r}: subscripts are letters, ',', '...' and '->'")
    if len(set(named)) != len(named) or not set(named) <= set(letters):
        raise ValueError(f"einsum: {subscripts!r}: expected letters of the operands, each once, "
                         "for the result")
    return terms, wanted


def _diagonals(x: Array, labels: Labels, subscripts: str) -> tuple[Array, Labels]:
    """A view in which each label is there once."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(f"einsum: {subscripts!r}: dimensions of {label!r} have the sizes "
                                 f"{x.shape[first]} and {x.shape[second]}")
            x = diagonal(x, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return x, labels


def _summed(x: Array, labels: Labels, needed: set[Any]) -> tuple[Array, Labels]:
    """Without the dimensions that nothing needs any more."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return (reduce.sum(x, axis=axes, dtype=x.dtype),
            [label for label in labels if label in needed])


def _product(a: Array, in_a: Labels, b: Array, in_b: Labels,
             needed: set[Any]) -> tuple[Array, Labels]:
    """The product of two operands, summed over what only they have: batches of matrices."""
    a, in_a = _summed(a, in_a, needed.union(in_b))
    b, in_b = _summed(b, in_b, needed.union(in_a))
    batch = [label for label in in_a if label in in_b and label in needed]
    summed = [label for label in in_a if label in in_b and label not in needed]
    rows = [label for label in in_a if label not in in_b]
    columns = [label for label in in_b if label not in in_a]
    a = permute_dims(a, [in_a.index(label) for label in batch + rows + summed])
    b = permute_dims(b, [in_b.index(label) for label in batch + summed + columns])
    first, second = len(batch), len(batch) + len(rows)
    shape = a.shape[:second] + b.shape[first + len(summed):]
    if not summed:
        a = reshape(a, (*a.shape, *(1,) * len(columns)))
        b = reshape(b, (*b.shape[:first], *(1,) * len(rows), *b.shape[first:]))
        return a * b, batch + rows + columns
    length = prod(a.shape[second:])
    a = reshape(a, (*a.shape[:first], prod(a.shape[first:second]), length))
    b = reshape(b, (*b.shape[:first], length, prod(b.shape[first + len(summed):])))
    return reshape(matmul(a, b), shape), batch + rows + columns


def vdot(a: Array, b: Array, /) -> Array:
    """The sum of ``conj(a) * b`` over all elements, in C order; see :func:`cyrt.vecdot`."""
    if check_array(a, "vdot: a").size != check_array(b, "vdot: b").size:
        raise ValueError(f"vdot: shapes {a.shape} and {b.shape} are not of as many elements")
    return vecdot(ravel(a), ravel(b))


def kron(a: Array, b: Array, /) -> Array:
    """The Kronecker product: an array of copies of b, each times an element of a.

    Parameters
    ----------
    a, b : Array
        The one of fewer dimensions gets new ones first.

    Returns
    -------
    Array
        Its sizes are the products of theirs.
    """
    ndim = max(check_array(a, "kron: a").ndim, check_array(b, "kron: b").ndim)
    a = reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    b = reshape(b, (1,) * (ndim - b.ndim) + b.shape)
    product = (reshape(a, [each for size in a.shape for each in (size, 1)])
               * reshape(b, [each for size in b.shape for each in (1, size)]))
    return reshape(product, [m * n for m, n in zip(a.shape, b.shape, strict=True)])


def cross(a: Array, b: Array, /, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross products of vectors of three elements.

    Parameters
    ----------
    a, b : Array
        Their other dimensions broadcast.
    axisa, axisb, axisc : int
        Along which the vectors are, in a, b and the result.
    axis : int, optional
        The same axis for all three.

    Raises
    ------
    ValueError
        Vectors of another size.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a = moveaxis(check_array(a, "cross: a"), axis_of(axisa, a.ndim, "axisa"), -1)
    b = moveaxis(check_array(b, "cross: b"), axis_of(axisb, b.ndim, "axisb"), -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"cross: expected vectors of 3 elements, got {a.shape[-1]} and "
                         f"{b.shape[-1]}")
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis=axis_of(axisc, parts[0].ndim + 1, "axisc"))
