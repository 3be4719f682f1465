"""The catalogue: the kernel of each built-in operation for each element type.

The build (tools/build_kernels.py), the choice of kernels, the tests and the documentation use this
one source. A row's expression is the text from which its kernel is compiled.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from pathlib import Path

from cyrt.builtin.row import BY_SIZE, MOVES, Row
from cyrt.dtypes import dtype

# The modules of the families' rows by the family's name: every file in `rows`.
FAMILIES = {
    file.stem: importlib.import_module(f"cyrt.builtin.rows.{file.stem}")
    for file in sorted(Path(__file__).with_name("rows").glob("[a-z]*.py"))
}
_TEMPLATES = {template: name for name, each in FAMILIES.items() for template in each.TEMPLATES}

ROWS: tuple[Row, ...] = tuple(row for each in FAMILIES.values() for row in each.rows())
OPS = tuple(dict.fromkeys(row.op for row in ROWS))
_BY_KEY = {(row.op, row.dtype): row for row in ROWS}
_FAMILY_OF = {row.op: _TEMPLATES[row.template] for row in ROWS}


def row(op: str, name: str) -> Row:
    """Return the row of an operation and an element type.

    Raises
    ------
    ValueError
        There is no such operation.
    TypeError
        The operation does not accept that type; the message lists the types that it accepts.
    """
    each = dtype(name)
    found = _BY_KEY.get((op, BY_SIZE[each.itemsize] if op in MOVES else each.name))
    if found is not None:
        return found
    family_of(op)
    types = ", ".join(row.dtype for row in ROWS if row.op == op)
    raise TypeError(f"{op} has no kernel for {each}; it has kernels for {types}")


@functools.cache
def kernels() -> dict[str, Row]:
    """Return the row of each built-in kernel, by its symbol."""
    return {kernel: each for each in ROWS for kernel in each.kernels}


@functools.cache
def modules() -> dict[str, tuple[Row, ...]]:
    """Return the rows of every module of code, by its name."""
    found: dict[str, list[Row]] = {}
    for each in ROWS:
        found.setdefault(each.module, []).append(each)
    return {name: tuple(rows) for name, rows in found.items()}


def family(each: Row) -> str:
    """Return the name of the family of a row."""
    return _TEMPLATES[each.template]


def family_of(op: str) -> str:
    """Return the name of the family of an operation; ValueError if there is no such operation."""
    if op not in _FAMILY_OF:
        raise unknown_operation(op)
    return _FAMILY_OF[op]


def unknown_operation(op: str) -> ValueError:
    """Return the error for a name that is not an operation; it names similar operations."""
    import difflib

    similar = [repr(each) for each in difflib.get_close_matches(op, OPS, 3)]
    hint = f"did you mean {' or '.join(similar)}? " if similar else ""
    return ValueError(
        f"{op!r} is not a built-in operation; {hint}cyrt.builtin.catalogue.OPS has all of them"
    )


def source(rows: Iterable[Row]) -> str:
    """Return CUDA C++ of the rows' kernels; it includes the templates of kernels_cu."""
    rows = tuple(rows)
    includes = dict.fromkeys(f'#include "{_TEMPLATES[each.template]}.cu"' for each in rows)
    instances = (FAMILIES[family(each)].instance(each) for each in rows)
    return "\n".join([*includes, "namespace cyrt {", *instances, "}", ""])
