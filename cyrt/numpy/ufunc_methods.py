"""The methods of binary functions: ``reduce``, ``reduceat``, ``accumulate``, ``outer``, ``at``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cyrt.builtin.rows.elementwise import BINARY
from cyrt.dtypes import dtype as dtype_of
from cyrt.ndarray import Array
from cyrt.numpy.aliases import ascontiguousarray
from cyrt.numpy.coercion import as_array_like, check_cast
from cyrt.ops import functions as elementary
from cyrt.ops import reduce as reductions
from cyrt.ops.arguments import axis_of, check_array
from cyrt.ops.copy import astype, copy
from cyrt.ops.creation import asarray
from cyrt.ops.gather import take
from cyrt.ops.manipulation import concat, stack
from cyrt.ops.scan import cumprod, cumsum
from cyrt.ops.scatter import add_at, combine_at
from cyrt.ops.shapes import moveaxis, reshape
from cyrt.ops.ternary import where


def _reduce(
    function: Callable[..., Array],
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Reduce over axes, by default the first one; a sequence of arrays is stacked first."""
    if isinstance(array, (list, tuple)):
        array = stack(array)
    if dtype is not None:
        array = astype(check_array(array, "reduce"), dtype, copy=False)
    # any and all have no such argument.
    more = {} if initial is None else {"initial": initial}
    return function(
        array, axis=axis if array.ndim else None, out=out, keepdims=keepdims, where=where, **more
    )


def _accumulate(function: Callable[..., Array], array: Array, axis: int = 0) -> Array:
    """Accumulate along an axis by combining elements at distances of 1, 2, 4 ..."""
    along = axis_of(axis, check_array(array, "accumulate").ndim)
    line, step = moveaxis(copy(array), along, 0), 1
    while step < line.shape[0]:
        line = concat([line[:step], function(line[step:], line[:-step])])
        step *= 2
    return ascontiguousarray(moveaxis(line, 0, along))


def _reduceat(
    name: str,
    function: Callable[..., Array],
    array: Array,
    indices: Any,
    axis: int = 0,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    """Reduce parts of an axis: ``array[indices[i]:indices[i + 1]]``, the last one to the end.

    If the next index is not greater, the part is the one element ``array[indices[i]]``. The results
    of runs of 1, 2, 4 ... elements are combined from those of half as many elements, and each part
    is combined from such runs. An Array of indices is read on the host.
    """
    name = f"{name}.reduceat"
    along = axis_of(axis, check_array(array, f"{name}: array").ndim)
    size = array.shape[along]
    at = indices.numpy() if isinstance(indices, Array) else np.asarray(indices)
    if at.ndim != 1 or (at.dtype.kind not in "iu" and at.size):
        raise TypeError(
            f"{name}: indices: expected one dimension of integers, got {at.dtype} of shape "
            f"{at.shape}"
        )
    at = at.astype(np.int64)
    for each in at[(at < 0) | (at >= size)]:
        raise IndexError(
            f"{name}: indices: {each} is out of bounds for axis {along} of {size} elements"
        )
    if dtype is not None:
        kind = dtype
    elif name.startswith("logical"):
        kind = "bool"
    elif array.dtype.kind in "biu" and name.startswith(("add", "multiply")):
        kind = "uint64" if array.dtype.kind == "u" else "int64"
    else:
        kind = array.dtype
    result_type = dtype_of(kind)
    # Sums of 16-bit floats are rounded once, at the end.
    wide = "float32" if result_type in ("float16", "bfloat16") else result_type
    parts = astype(moveaxis(array, along, 0), wide, copy=False)
    lengths = np.maximum(np.append(at[1:], size) - at, 1)
    begin, result, combined, step = at.copy(), parts[:0], np.zeros(len(at), bool), 1
    if len(at):
        result = take(parts, asarray(at, device=array.device), axis=0)
    column = (-1,) + (1,) * (array.ndim - 1)
    while (lengths >= step).any():
        wanted = lengths & step != 0
        if wanted.any():
            # Others are not used, but must be within the axis.
            begins = asarray(np.where(wanted, begin, 0), device=array.device)
            part = take(parts, begins, axis=0)
            later = asarray((wanted & combined).reshape(column), device=array.device)
            first = asarray((wanted & ~combined).reshape(column), device=array.device)
            result = where(later, function(result, part), where(first, part, result))
            combined |= wanted
            begin[wanted] += step
        if (lengths >= 2 * step).any():
            parts = function(parts[:-step], parts[step:])
        step *= 2
    result = ascontiguousarray(moveaxis(astype(result, result_type, copy=False), 0, along))
    if out is None:
        return result
    if not isinstance(out, Array) or out.shape != result.shape:
        raise ValueError(
            f"{name}: out: expected an Array of shape {result.shape}, got "
            f"{out.shape if isinstance(out, Array) else type(out).__name__}"
        )
    check_cast(result, out, f"{name}: out")
    out[...] = result
    return out


def _accumulate_by_scan(
    function: Callable[..., Array],
    array: Array,
    axis: int = 0,
    dtype: Any = None,
    out: Array | None = None,
) -> Array:
    return function(array, axis, dtype, out)


def _outer(function: Callable[..., Array], a: Array, b: Array) -> Array:
    """Combine each element of a with each of b; a's dimensions are the first."""
    check_array(a, "outer"), check_array(b, "outer")
    return function(reshape(a, (*a.shape, *(1,) * b.ndim)), b)


def _at(name: str, function: Callable[..., Array], a: Array, indices: Any, b: Any) -> None:
    """Combine values with elements at indices, in place, as often as an index occurs.

    The values for one index are combined first, in the order of the indices: float32 is summed in
    float64, 16-bit types in float32.
    """
    check_array(a, f"{name}.at: a")
    check_cast(b, a, f"{name}.at: b")
    values = astype(as_array_like(a, b, f"{name}.at: b", a.dtype), a.dtype, copy=False)
    if name == "subtract":
        if a.dtype.kind == "b":
            raise TypeError("subtract.at: a: expected numbers, got bool")
        name, function, values = "add", elementary.add, elementary.negative(values)
    if name == "add":
        add_at(a, indices, values)
    elif not combine_at(name, a, indices, values):
        a[indices] = function(a[indices], values)


def attach() -> None:
    """Add the methods to the functions, as attributes."""
    function: Any  # an Elementwise, whose stub declares no attributes
    for name in BINARY:
        function = getattr(elementary, name)
        function.outer = partial(_outer, function)
    for function, reduction in (
        (elementary.add, reductions.sum),
        (elementary.multiply, reductions.prod),
        (elementary.maximum, reductions.max),
        (elementary.minimum, reductions.min),
        (elementary.logical_and, reductions.all),
        (elementary.logical_or, reductions.any),
    ):
        function.reduce = partial(_reduce, reduction)
        function.reduceat = partial(_reduceat, function.__name__, function)
    for function, scan in ((elementary.add, cumsum), (elementary.multiply, cumprod)):
        function.accumulate = partial(_accumulate_by_scan, scan)
    for function in (elementary.maximum, elementary.minimum):
        function.accumulate = partial(_accumulate, function)
    for name in ("add", "subtract", "maximum", "minimum"):
        function = getattr(elementary, name)
        function.at = partial(_at, name, function)
