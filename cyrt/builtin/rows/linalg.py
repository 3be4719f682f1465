"""Factorizations of matrices, systems of equations, eigenvalues and singular values."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TYPES = ("float32", "float64", "complex64", "complex128")
# The types in the wheel; the others are compiled at first use.
PREBUILT = frozenset({"float32", "float64"})
ONE_BLOCK = ("",)
SMALL = ("", "_small")
LARGE = ("", "_large")
SMALL_AND_LARGE = ("", "_large", "_small")
ROUNDS = ("", "_begin", "_round", "_end")
# The result and the kernels of each operation, whose name is that of its device function.
OPS = {
    "cholesky": ("l, where l conj(l).T = a", SMALL),
    "lu": ("l and u, where l u = p a", LARGE),
    "exchange": ("a with rows exchanged", LARGE),
    "solve": ("a**-1 b", SMALL),
    "determinant": ("det a", ONE_BLOCK),
    "triangular": ("a**-1 b, a triangular", ONE_BLOCK),
    "qr": ("q and r, where q r = a", SMALL_AND_LARGE),
    "jacobi": ("singular values or eigenvalues of a", ROUNDS),
    "eig": ("eigenvalues of a", LARGE),
    "finite_copy": ("a with 0 instead of numbers that are not finite", ONE_BLOCK),
    "mark_failed": ("NaN for matrices whose status is not 0", ONE_BLOCK),
    "lower_factor": ("l, where l is stored by columns; NaN if the status is not 0", ONE_BLOCK),
    "check_lu": ("pivots and a status that are valid", ONE_BLOCK),
}
# Operations of complex or of real numbers only.
ONLY = {"eig": "complex", "mark_failed": "real"}
TEMPLATES = tuple(OPS)


def rows() -> Iterator[Row]:
    for op, (expression, variants) in OPS.items():
        for name in TYPES:
            if op not in ONLY or name.startswith("complex") == (ONLY[op] == "complex"):
                yield Row(op, op, (name,), name, expression, name in PREBUILT, variants)


def instance(row: Row) -> str:
    name, type_name = row.kernels[0], dtype(row.output).cpp
    if row.op == "jacobi":
        return f"CYRT_JACOBI({name}, {type_name})"
    macros = ["CYRT_LINALG" if "_large" in row.variants else "CYRT_LINALG_SHARED"]
    if "_small" in row.variants:
        macros.append("CYRT_LINALG_SMALL")
    return "\n".join(f"{macro}({name}, {row.op}, {type_name})" for macro in macros)
