"""The catalogue: which built-in operation is served by which kernel, for which element types.

One source for the build (tools/build_kernels.py), for dispatch, for the tests' enumeration and for
the documentation. A row's expression is the text that its kernel is compiled from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from cyrt.dtypes import dtype
from cyrt.kernels.families import (
    arange,
    compact,
    elementwise,
    gather,
    matmul,
    random,
    reduce,
    scan,
    search,
    sort,
    transpose,
)
from cyrt.kernels.row import BY_SIZE, MOVES, Row

_FILES = (elementwise, transpose, arange, reduce, matmul, scan, compact, sort, search, gather,
          random)
# What describes a family.
FAMILIES = {family: each for each in _FILES for family in each.FAMILIES}

ROWS = tuple(row for each in _FILES for row in each.rows())
OPS = tuple(dict.fromkeys(row.op for row in ROWS))
_BY_KEY = {(row.op, row.dtype): row for row in ROWS}


def row(op: str, name: str) -> Row:
    """The row of an operation and an element type.

    Raises
    ------
    ValueError
        There is no such operation.
    TypeError
        It does not take that type; the message lists those it takes.
    """
    each = dtype(name)
    found = _BY_KEY.get((op, BY_SIZE[each.itemsize] if op in MOVES else each.name))
    if found is not None:
        return found
    if op not in OPS:
        raise ValueError(f"{op!r} is no built-in operation; there are {', '.join(OPS)}")
    types = ", ".join(row.dtype for row in ROWS if row.op == op)
    raise TypeError(f"{op} has no kernel for {each}; it has for {types}")


@functools.cache
def modules() -> dict[str, tuple[Row, ...]]:
    """Every module's rows, by its name."""
    found: dict[str, list[Row]] = {}
    for each in ROWS:
        found.setdefault(each.module, []).append(each)
    return {name: tuple(rows) for name, rows in found.items()}


def param_bytes(each: Row) -> list[int]:
    """Bytes of the one parameter, a struct, of each of a row's kernels."""
    return FAMILIES[each.family].param_bytes(each)


def source(rows: Iterable[Row]) -> str:
    """CUDA C++ of the rows' kernels; it includes the templates of kernels_cu."""
    rows = tuple(rows)
    includes = dict.fromkeys(f'#include "{FAMILIES[each.family].FAMILIES[each.family]}"'
                             for each in rows)
    instances = (FAMILIES[each.family].instance(each) for each in rows)
    return "\n".join([*includes, "namespace cyrt {", *instances, "}", ""])
