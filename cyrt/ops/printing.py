"""Arrays as text, in NumPy's format."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.ops.arguments import check_array
from cyrt.ops.manipulation import concat
from cyrt.runtime.order import NoContents
from cyrt.tape import detach


def text_of(x: Array) -> str:
    """Format the values; only the corners of a large array are copied to the host."""
    return _text(x, " ", "", "") if x.ndim else str(_host_values(x)[()])


def repr_of(x: Array) -> str:
    """Format as source code: the values, the type, and the shape if the values do not show it.

    An array without memory, which a debugger may show, has no values.
    """
    try:
        _ = x.device
    except (RuntimeError, ValueError):  # it was freed, or belongs to a context that was reset
        return f"<cyrt.Array of freed memory, shape={x.shape}, dtype={x.dtype}>"
    text = _text(x, ", ", "Array(", ")")
    shows_shape = (x.size and text != "..." and x.size <= _option("threshold")) or x.shape == (0,)
    rest = f"dtype={x.dtype})" if shows_shape else f"shape={x.shape}, dtype={x.dtype})"
    last = len(text) + len("Array(") if "\n" not in text else len(text) - text.rindex("\n") - 1
    gap = " " if last + len(", ") + len(rest) <= _option("linewidth") else "\n" + " " * 6
    return f"Array({text},{gap}{rest}"


def _repr_html_(self: Array, /) -> str:
    """Format for a notebook: shape, type and device, and the values of up to two dimensions as a
    table; only the corners of a large array are copied to the host."""
    title = f"Array {self.shape}, {self.dtype}, device {self.device.index}"
    if self.ndim in (1, 2) and self.size:
        body = _table(self if self.ndim == 2 else self[None])
    else:
        body = f"<pre>{html.escape(text_of(self))}</pre>"
    return f"<div><small>{html.escape(title)}</small>{body}</div>"


def _table(x: Array) -> str:
    """Format a matrix as a table with its row and column numbers."""
    try:
        values = _host_values(x)
    except NoContents:
        return "<pre>...</pre>"
    edge = _option("edgeitems") if x.size > _option("threshold") else max(x.shape)
    rows, columns = (_shown(size, edge) for size in x.shape)
    # Rows or columns after the gap are also the last ones of the values.
    down, along = (
        [i - len(shown) if i > edge else i for i in range(len(shown))] for shown in (rows, columns)
    )
    head = "".join(f"<th>{'…' if column is None else column}</th>" for column in columns)
    lines = [f"<tr><th></th>{head}</tr>"]
    for i, row in zip(down, rows, strict=True):
        cells = "".join(
            f"<td>{'…' if row is None or column is None else html.escape(str(values[i, j]))}</td>"
            for j, column in zip(along, columns, strict=True)
        )
        lines.append(f"<tr><th>{'…' if row is None else row}</th>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _shown(size: int, edge: int) -> list[int | None]:
    """The numbers of rows or columns that are shown; None stands for the gap."""
    if size <= 2 * edge + 1:
        return list(range(size))
    return [*range(edge), None, *range(size - edge, size)]


def format_of(x: Array, spec: str) -> str:
    """Format the one value of an array without dimensions as a number, other arrays as text."""
    if x.ndim == 0:
        return format(x.item(), spec)
    text = str(x)
    try:
        found = format(text, spec)
    except ValueError:  # the format is one of numbers
        found = ""
    if text not in found:  # the format's precision cuts the text off
        raise TypeError(f"format {spec!r}: expected an array of no dimensions, got shape {x.shape}")
    return found


def array_str(
    a: Array,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Format the values as :func:`str` does, except for the options; see
    :func:`numpy.set_printoptions`."""
    with _options(max_line_width, precision, suppress_small):
        return text_of(check_array(a, "array_str: a"))


def array_repr(
    arr: Array,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Format an array as :func:`repr` does, except for the options; see
    :func:`cyrt.numpy.array_str`."""
    with _options(max_line_width, precision, suppress_small):
        return repr_of(check_array(arr, "array_repr: arr"))


def _options(linewidth: int | None, precision: int | None, suppress: bool | None) -> Any:
    requested: dict[str, Any] = {
        "linewidth": linewidth,
        "precision": precision,
        "suppress": suppress,
    }
    return np.printoptions(**{name: each for name, each in requested.items() if each is not None})


def array2string(a: Array, *args: Any, **options: Any) -> str:
    """Format all values, see :func:`numpy.array2string`; all of them are copied to the host."""
    host = detach(check_array(a, "array2string: a")).numpy()
    return np.array2string(host, *args, **options)


def _option(name: str) -> Any:
    options: dict[str, Any] = {**np.get_printoptions()}
    return options[name]


def _text(x: Array, separator: str, prefix: str, suffix: str) -> str:
    threshold = _option("threshold") if x.size <= _option("threshold") else 0
    try:
        values = _host_values(x)
    except NoContents:  # a function is explained: its errors may show its arrays
        return "..."
    return np.array2string(
        values, separator=separator, prefix=prefix, suffix=suffix, threshold=threshold
    )


def _host_values(x: Array) -> np.ndarray:
    """Copy the values to the host; for a large array, one more along each axis than is shown."""
    x = detach(x)  # values are also shown while they are differentiated
    if x.size > _option("threshold"):
        x = _corners(x, _option("edgeitems"), 0)
    host = x.numpy()
    # NumPy aligns its own floats, but not those of other libraries' types.
    return host.astype(np.float32) if x.dtype.name == "bfloat16" else host


def _corners(x: Array, edge: int, axis: int) -> Array:
    if axis == x.ndim:
        return x
    if x.shape[axis] <= 2 * edge + 1:
        return _corners(x, edge, axis + 1)
    before = (slice(None),) * axis
    return concat(
        [
            _corners(x[(*before, part)], edge, axis + 1)
            for part in (slice(edge + 1), slice(x.shape[axis] - edge, None))
        ],
        axis=axis,
    )
