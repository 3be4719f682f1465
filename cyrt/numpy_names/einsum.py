"""Products of arrays by subscripts: planned once for each text and shapes, then carried out."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from cyrt.ndarray import Array
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array
from cyrt.ops.copy import astype
from cyrt.ops.functions import multiply
from cyrt.ops.matmul import matmul
from cyrt.ops.promotion import result_type
from cyrt.ops.shapes import permute_dims, reshape, squeeze
from cyrt.ops.views import diagonal

Label = str | int           # a letter; an int for a dimension of "...", counted from its end
Shape = tuple[int, ...]
Steps = list[tuple[Callable[..., Array], tuple[Any, ...]]]


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
    plan = _planned(subscripts, tuple([each.shape for each in arrays]))
    dtype = result_type(*arrays)
    if dtype.kind == "b":
        raise TypeError("einsum: expected numeric types, got bool")
    arrays = [_carried(astype(each, dtype, copy=False), steps)
              for each, steps in zip(arrays, plan.before, strict=True)]
    x = arrays[0]
    for (steps, others, product), other in zip(plan.products, arrays[1:], strict=True):
        x = product(_carried(x, steps), _carried(other, others))
    return _carried(x, plan.after)


def _carried(x: Array, steps: Steps) -> Array:
    for function, arguments in steps:
        x = function(x, *arguments)
    return x


def _summed(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce.sum(x, axes, x.dtype)


class _Plan(NamedTuple):
    before: list[Steps]         # of each operand
    products: list[tuple[Steps, Steps, Callable[[Array, Array], Array]]]
    after: Steps                # of the last product


class _Operand:
    """An operand's dimensions on the way, and the steps that lead there."""

    def __init__(self, labels: list[Label], shape: Shape) -> None:
        self.labels, self.shape = labels, shape
        self.steps: Steps = []

    def taken(self) -> Steps:
        """The steps so far, which are another's from now on."""
        steps, self.steps = self.steps, []
        return steps

    def keep_diagonals(self, subscripts: str) -> None:
        """Each label is there once."""
        labels, shape = list(self.labels), list(self.shape)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                if shape[first] != shape[second]:
                    raise ValueError(f"einsum: {subscripts!r}: dimensions of {label!r} have the "
                                     f"sizes {shape[first]} and {shape[second]}")
                self.steps.append((diagonal, (0, first, second)))
                shape.append(shape[first])
                labels.append(label)
                for each in (labels, shape):
                    del each[second], each[first]
        self.labels, self.shape = labels, tuple(shape)

    def drop(self, function: Callable[..., Array], axes: tuple[int, ...]) -> None:
        if axes:
            self.steps.append((function, (axes,)))
        self.labels = [each for d, each in enumerate(self.labels) if d not in axes]
        self.shape = tuple([each for d, each in enumerate(self.shape) if d not in axes])

    def squeeze(self, sizes: dict[Label, int]) -> None:
        """Without the dimensions that are spread over another operand's."""
        self.drop(squeeze, tuple(d for d, label in enumerate(self.labels)
                                 if self.shape[d] != sizes[label]))

    def sum_but(self, needed: set[Label]) -> None:
        """Without the dimensions that nothing needs any more."""
        self.drop(_summed, tuple(d for d, label in enumerate(self.labels) if label not in needed))

    def order(self, labels: list[Label]) -> None:
        places = [self.labels.index(each) for each in labels]
        if places != sorted(places):
            self.steps.append((permute_dims, (places,)))
        self.labels, self.shape = labels, tuple([self.shape[each] for each in places])

    def reshape(self, shape: Shape) -> None:
        if shape != self.shape:
            self.steps.append((reshape, (shape,)))
        self.shape = shape


@lru_cache(maxsize=512)
def _planned(subscripts: str, shapes: tuple[Shape, ...]) -> _Plan:
    terms, wanted = _parsed(subscripts, shapes)
    operands = [_Operand(labels, shape) for labels, shape in zip(terms, shapes, strict=True)]
    sizes: dict[Label, int] = {}
    for each in operands:
        each.keep_diagonals(subscripts)
        for label, size in zip(each.labels, each.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ValueError(f"einsum: {subscripts!r}: dimensions of {label!r} have the sizes "
                                 f"{known} and {size}")
    for each in operands:
        each.squeeze(sizes)
    before = [each.taken() for each in operands]
    products = []
    x = operands[0]
    for place, other in enumerate(operands[1:], 2):
        needed = set(wanted).union(*(each.labels for each in operands[place:]))
        product = _matched(x, other, needed)
        products.append((x.taken(), other.taken(), product))
        x.labels, x.shape = other.labels, other.shape
        x.reshape(tuple(sizes[each] for each in x.labels))
    x.sum_but(set(wanted))
    x.order(wanted)
    return _Plan(before, products, x.steps)


def _matched(a: _Operand, b: _Operand, needed: set[Label]) -> Callable[[Array, Array], Array]:
    """Two operands made such that one function multiplies them, and sums what only they have:
    batches of matrices. b gets the product's dimensions."""
    a.sum_but(needed.union(b.labels))
    b.sum_but(needed.union(a.labels))
    batch = [each for each in a.labels if each in b.labels and each in needed]
    inner = [each for each in a.labels if each in b.labels and each not in needed]
    rows = [each for each in a.labels if each not in b.labels]
    columns = [each for each in b.labels if each not in a.labels]
    a.order(batch + rows + inner)
    b.order(batch + inner + columns)
    first = len(batch)
    outer, height = a.shape[:first], a.shape[first:first + len(rows)]
    width = b.shape[first + len(inner):]
    if inner:
        length = prod(a.shape[first + len(rows):])
        a.reshape((*outer, prod(height), length))
        b.reshape((*outer, length, prod(width)))
        b.shape = (*outer, prod(height), prod(width))
    else:
        a.reshape((*outer, *height, *(1,) * len(width)))
        b.reshape((*outer, *(1,) * len(height), *width))
        b.shape = (*outer, *height, *width)
    b.labels = batch + rows + columns
    return matmul if inner else multiply


def _parsed(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[list[list[Label]], list[Label]]:
    """The labels of each operand's dimensions, and of the result's."""
    text = subscripts.replace(" ", "")
    given, arrow, result = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} is for {len(parts)} operands, got {len(shapes)}")
    terms: list[list[Label]] = []
    for part, shape in zip(parts, shapes, strict=True):
        before, ellipsis, behind = part.partition("...")
        extra = len(shape) - len(before) - len(behind)
        if extra < 0 or (extra and not ellipsis):
            raise ValueError(f"einsum: {subscripts!r}: {part!r} does not fit an operand of shape "
                             f"{shape}")
        terms.append([*before, *range(extra - 1, -1, -1), *behind])
    letters = [label for labels in terms for label in labels if isinstance(label, str)]
    spread = max(((label + 1) for labels in terms for label in labels
                  if not isinstance(label, str)), default=0)
    wanted: list[Label]
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
