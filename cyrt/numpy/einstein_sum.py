"""Sums of products by subscripts; the steps are planned once for each text, shapes and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray
from cyrt.ops import reduce
from cyrt.ops.arguments import check_array, int_of
from cyrt.ops.copy import astype
from cyrt.ops.functions import multiply, not_equal, positive
from cyrt.ops.matmul import matmul
from cyrt.ops.promotion import result_type
from cyrt.ops.shapes import permute_dims, reshape, squeeze
from cyrt.ops.views import diagonal

__all__ = ["einsum"]

_LETTERS = ascii_uppercase + ascii_lowercase
Label = str | int  # a letter; an int for a dimension of "...", counted from its end
Shape = tuple[int, ...]
Steps = list[tuple[Callable[..., Array], tuple[Any, ...]]]
Pair = tuple[int, int]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = False,
    out: Array | None = None,
    dtype: Any = None,
) -> Array:
    """Sum products of elements over the dimensions that subscripts name.

    Parameters
    ----------
    subscripts : str
        For each operand the letters of its dimensions, separated by commas; ``"..."`` stands for
        any number of dimensions. After ``"->"`` come the letters of the result. Without ``"->"``
        the result has ``"..."`` and then, in alphabetical order, the letters that occur once.
        Products are summed over the letters that the result does not have.
    *operands : Array
        Arrays of numeric types or bool. Dimensions with the same letter have the same size, or size
        1. Instead of the text, each operand may be followed by a list of ints from 0 to 51 and
        ``...``, which stand for letters; the list of the result may be the last argument.
    optimize : bool, str or sequence
        The order of the products: from left to right with False, and the order that
        :func:`numpy.einsum_path` chooses with True. The other values that NumPy's function takes
        are passed to it.
    out : Array, optional
        The array that receives the result, cast to the array's type within its kind.
    dtype : DType, optional
        Type to which the operands are cast first, within their kind.

    Returns
    -------
    Array
        An array of the operands' promoted type; a view of a single operand if nothing is summed.
        For bool, an element is true if any of the products that are summed is true.

    Raises
    ------
    ValueError
        The subscripts are invalid or do not fit the operands, or `optimize` is invalid.

    Examples
    --------
    >>> import cyrt
    >>> a, b = cyrt.asarray([[1, 2], [3, 4]]), cyrt.asarray([10, 1])
    >>> cyrt.einsum("ij,j->i", a, b)
    Array([12, 34], dtype=int64)
    >>> cyrt.einsum("ii", a)
    Array(5, dtype=int64)
    """
    if isinstance(subscripts, Array):
        subscripts, operands = _text_of_lists((subscripts, *operands))
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts: expected a str, got {type(subscripts).__name__}")
    arrays = [check_array(each, "einsum: operands") for each in operands]
    shapes = tuple([each.shape for each in arrays])
    if isinstance(optimize, list):
        optimize = tuple([tuple(each) if isinstance(each, list) else each for each in optimize])
    plan = _plan(subscripts, shapes, optimize)
    joint = result_type(*arrays)
    if dtype is None:
        dtype = joint
    elif "buifc".index((dtype := _dtype(dtype)).kind) < "buifc".index(joint.kind):
        raise TypeError(f"einsum: dtype: operands of {joint} cannot be cast to {dtype}")
    # For bool, products that are true are counted in a type in which a sum of ones is never 0.
    summed = dtype if dtype.kind != "b" else "float32"
    values: list[Any] = [
        _apply(astype(each, summed, copy=False), steps)
        for each, steps in zip(arrays, plan.before, strict=True)
    ]
    for (i, j), steps, other_steps, product in plan.products:
        values.append(product(_apply(values[i], steps), _apply(values[j], other_steps)))
        values[i] = values[j] = None  # their memory is free
    result = _apply(values[-1], plan.after)
    if dtype.kind == "b":
        return not_equal(result, 0, out=out)
    return result if out is None else positive(result, out=out)


def _text_of_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Convert operands, each with its list of ints, to subscripts and operands."""
    operands, lists = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    texts = []
    for each in (*lists, *arguments[len(arguments) // 2 * 2 :]):
        if not isinstance(each, (list, tuple)):
            raise TypeError(
                "einsum: expected a list of ints behind each operand, got "
                f"{type(each).__name__}; subscripts as text come before the operands"
            )
        text = ""
        for label in each:
            if label is not Ellipsis and not 0 <= int_of(label, "einsum: subscripts") < len(
                _LETTERS
            ):
                raise ValueError(f"einsum: subscripts: expected ints from 0 to 51, got {label}")
            text += "..." if label is Ellipsis else _LETTERS[label]
        texts.append(text)
    inputs = ",".join(texts[: len(operands)])
    return (f"{inputs}->{texts[-1]}" if len(texts) > len(operands) else inputs), operands


def _order(subscripts: str, shapes: tuple[Shape, ...], optimize: Any) -> list[Pair]:
    """The pairs of operands to multiply; each product becomes the last operand."""
    numbers, following = list(range(len(shapes))), len(shapes)
    path: Sequence[Sequence[int]] = [numbers]
    if len(shapes) > 2 and optimize:
        path = _numpy_path(subscripts, shapes, optimize)
    pairs = []
    for positions in path:
        chosen = [numbers[each] for each in positions]
        numbers = [each for each in numbers if each not in chosen]
        first, *others = chosen
        for other in others:
            pairs.append((first, other))
            first, following = following, following + 1
        numbers.append(first)
    return pairs


def _numpy_path(subscripts: str, shapes: tuple[Shape, ...], optimize: Any) -> list[Shape]:
    # NumPy divides by the number of products, which a size of 0 makes 0.
    like = [np.broadcast_to(0, [max(1, size) for size in shape]) for shape in shapes]
    try:
        if isinstance(optimize, tuple) and optimize[:1] == ("einsum_path",):
            optimize = list(optimize)
        return np.einsum_path(subscripts, *like, optimize=optimize)[0][1:]
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise ValueError(
            f"einsum: optimize: numpy.einsum_path refuses {optimize!r} for {subscripts!r}: {error}"
        ) from error


def _apply(x: Array, steps: Steps) -> Array:
    for function, arguments in steps:
        x = function(x, *arguments)
    return x


def _sum_axes(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce.sum(x, axes, x.dtype)


class _Plan(NamedTuple):
    before: list[Steps]  # each operand's
    # Which operands, the steps of each, and the function that multiplies them.
    products: list[tuple[Pair, Steps, Steps, Callable[[Array, Array], Array]]]
    after: Steps  # the last product's


class _Operand:
    """An operand's dimensions after some steps, and these steps."""

    def __init__(self, labels: list[Label], shape: Shape) -> None:
        self.labels, self.shape = labels, shape
        self.steps: Steps = []

    def take_steps(self) -> Steps:
        """Return the steps so far, and forget them."""
        steps, self.steps = self.steps, []
        return steps

    def keep_diagonals(self, subscripts: str) -> None:
        """Take the diagonal of dimensions that have the same label."""
        labels, shape = list(self.labels), list(self.shape)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                if shape[first] != shape[second]:
                    raise ValueError(
                        f"einsum: {subscripts!r}: dimensions of {label!r} have the "
                        f"sizes {shape[first]} and {shape[second]}"
                    )
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
        """Remove the dimensions of size 1 that broadcast to another operand's."""
        self.drop(
            squeeze,
            tuple(d for d, label in enumerate(self.labels) if self.shape[d] != sizes[label]),
        )

    def sum_except(self, needed: set[Label]) -> None:
        """Sum over the dimensions that are not needed."""
        self.drop(_sum_axes, tuple(d for d, label in enumerate(self.labels) if label not in needed))

    def order(self, labels: list[Label]) -> None:
        positions = [self.labels.index(each) for each in labels]
        if positions != sorted(positions):
            self.steps.append((permute_dims, (positions,)))
        self.labels, self.shape = labels, tuple([self.shape[each] for each in positions])

    def reshape(self, shape: Shape) -> None:
        if shape != self.shape:
            self.steps.append((reshape, (shape,)))
        self.shape = shape


@lru_cache(maxsize=512)
def _plan(subscripts: str, shapes: tuple[Shape, ...], optimize: Any) -> _Plan:
    terms, wanted = _parse(subscripts, shapes)
    operands = [_Operand(labels, shape) for labels, shape in zip(terms, shapes, strict=True)]
    sizes: dict[Label, int] = {}
    for each in operands:
        each.keep_diagonals(subscripts)
        for label, size in zip(each.labels, each.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ValueError(
                    f"einsum: {subscripts!r}: dimensions of {label!r} have the sizes "
                    f"{known} and {size}"
                )
    for each in operands:
        each.squeeze(sizes)
    before = [each.take_steps() for each in operands]
    products = []
    left = dict(enumerate(operands))
    for i, j in _order(subscripts, shapes, optimize):
        a, b = left.pop(i), left.pop(j)
        needed = set(wanted).union(*(each.labels for each in left.values()))
        if not left and _is_reversed(a, b, wanted):
            i, j, a, b = j, i, b, a
        function, labels, shape = _match(a, b, needed)
        products.append(((i, j), a.take_steps(), b.take_steps(), function))
        product = _Operand(labels, shape)
        product.reshape(tuple(sizes[each] for each in labels))
        left[len(operands) + len(products) - 1] = product
    (x,) = left.values()
    is_new = bool(products) or len(x.labels) > len(wanted)
    x.sum_except(set(wanted))
    is_ordered = x.labels == wanted
    x.order(wanted)
    if is_new and not is_ordered:
        x.steps.append((ascontiguousarray, ()))
    return _Plan(before, products, x.steps)


def _is_reversed(a: _Operand, b: _Operand, wanted: list[Label]) -> bool:
    """Whether the result has b's own dimensions before those of a."""
    own = [each in a.labels for each in wanted if (each in a.labels) != (each in b.labels)]
    return True in own and not own[0]


def _match(
    a: _Operand, b: _Operand, needed: set[Label]
) -> tuple[Callable[[Array, Array], Array], list[Label], Shape]:
    """Arrange two operands as batches of matrices, or such that they broadcast.

    Returns
    -------
    tuple
        The function that multiplies them and sums over dimensions that are not needed; the labels
        of the product's dimensions; and the product's shape.
    """
    a.sum_except(needed.union(b.labels))
    b.sum_except(needed.union(a.labels))
    batch = [each for each in a.labels if each in b.labels and each in needed]
    inner = [each for each in a.labels if each in b.labels and each not in needed]
    rows = [each for each in a.labels if each not in b.labels]
    columns = [each for each in b.labels if each not in a.labels]
    a.order(batch + rows + inner)
    b.order(batch + inner + columns)
    first = len(batch)
    outer, height = a.shape[:first], a.shape[first : first + len(rows)]
    width = b.shape[first + len(inner) :]
    if inner:
        length = prod(a.shape[first + len(rows) :])
        a.reshape((*outer, prod(height), length))
        b.reshape((*outer, length, prod(width)))
        return matmul, batch + rows + columns, (*outer, prod(height), prod(width))
    a.reshape((*outer, *height, *(1,) * len(width)))
    b.reshape((*outer, *(1,) * len(height), *width))
    return multiply, batch + rows + columns, (*outer, *height, *width)


def _parse(subscripts: str, shapes: tuple[Shape, ...]) -> tuple[list[list[Label]], list[Label]]:
    """The labels of each operand's dimensions, and of the result's."""
    text = subscripts.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(shapes):
        raise ValueError(
            f"einsum: {show(subscripts)} is for {len(parts)} operands, got {len(shapes)}"
        )
    terms: list[list[Label]] = []
    for part, shape in zip(parts, shapes, strict=True):
        before, ellipsis, behind = part.partition("...")
        extra = len(shape) - len(before) - len(behind)
        if extra < 0 or (extra and not ellipsis):
            raise ValueError(
                f"einsum: {subscripts!r}: {part!r} does not fit an operand of shape {shape}"
            )
        terms.append([*before, *range(extra - 1, -1, -1), *behind])
    letters = [label for labels in terms for label in labels if isinstance(label, str)]
    spread = max(
        ((label + 1) for labels in terms for label in labels if not isinstance(label, str)),
        default=0,
    )
    wanted: list[Label]
    if arrow:
        before, ellipsis, behind = result.partition("...")
        wanted = [*before, *(range(spread - 1, -1, -1) if ellipsis else ()), *behind]
        if spread and not ellipsis:
            raise ValueError(f"einsum: {subscripts!r}: the result lacks the '...' of the operands")
    else:
        wanted = [
            *range(spread - 1, -1, -1),
            *sorted(each for each in set(letters) if letters.count(each) == 1),
        ]
    named = [label for label in wanted if isinstance(label, str)]
    if not all(each.isascii() and each.isalpha() for each in letters + named):
        raise ValueError(f"einsum: {subscripts!r}: subscripts are letters, ',', '...' and '->'")
    for each in named:
        if named.count(each) > 1 or each not in letters:
            what = "that no operand has" if each not in letters else "twice"
            raise ValueError(
                f"einsum: {subscripts!r}: expected letters of the operands, each once, for the "
                f"result, got {show(each)} {what}"
            )
    return terms, wanted
