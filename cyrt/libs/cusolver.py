"""cuSOLVER: factorizations of matrices, eigenvalues and singular values.

The calls are described here; cyrt/linalg/library_calls.pyx makes them.

Values are those of cusolverDn.h and cusolver_common.h. Matrices are stored by columns.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from ctypes import byref, c_int, c_void_p, cast
from dataclasses import dataclass
from typing import Any

from cyrt.libs.library import DATA_TYPES, CLibrary, Unsupported, find_installed, open_path

STATUSES = {
    1: "NOT_INITIALIZED",
    2: "ALLOC_FAILED",
    3: "INVALID_VALUE",
    4: "ARCH_MISMATCH",
    5: "MAPPING_ERROR",
    6: "EXECUTION_FAILED",
    7: "INTERNAL_ERROR",
    8: "MATRIX_TYPE_NOT_SUPPORTED",
    9: "NOT_SUPPORTED",
    31: "INVALID_WORKSPACE",
}
# cublasFillMode_t, cublasOperation_t, cusolverEigMode_t.
LOWER, UPPER = 0, 1
OP_N, OP_T = 0, 1
NO_VECTORS = 0

# The functions that each version has.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cusolverDnCreate": (c_void_p,),
    "cusolverDnCreateParams": (c_void_p,),
    "cusolverDnDestroy": (c_void_p,),
    "cusolverDnSetStream": (c_void_p, c_void_p),
}


class CuSolver(CLibrary):
    """An opened cuSOLVER. Versions are such as 12401 for 12.4.1."""

    title, file = "cuSOLVER", "cusolver"
    minimum = 11402  # CUDA 12.0's
    signatures = _SIGNATURES
    no_memory = 2
    refusals = (3, 4, 8, 9)

    def read_version(self) -> int:
        found = c_int()
        self.opened.cusolverGetVersion(byref(found))
        return found.value

    def describe(self, status: int) -> tuple[str, str]:
        """The name of a status; the library has no text for it."""
        return f"CUSOLVER_STATUS_{STATUSES.get(status, status)}", "see cusolver_common.h"

    def function(self, name: str) -> Any:
        """A function by its name; AttributeError: the library does not have it."""
        return getattr(self.opened, name)

    def address(self, name: str) -> int:
        """The address of a function.

        Raises
        ------
        Unsupported
            This version of the library does not have it.
        """
        try:
            return cast(self.function(name), c_void_p).value or 0
        except AttributeError:
            raise Unsupported(f"cuSOLVER {self.dotted} has no {name}") from None

    @functools.cached_property
    def parameters(self) -> int:
        """The default parameters, which all calls read; they are never freed."""
        made = c_void_p()
        self.call("cusolverDnCreateParams", byref(made), detail="parameters")
        return made.value or 0


open_library = functools.partial(open_path, CuSolver)
find = functools.cache(functools.partial(find_installed, CuSolver))


@dataclass(frozen=True)
class Variable:
    """An argument that is known when a call is made: the index of its value."""

    index: int


# The addresses of at most five operands come first.
OPERANDS = tuple(map(Variable, range(5)))
HANDLE, PARAMETERS = Variable(5), Variable(6)
# The workspaces on the device and on the host, and their sizes: in bytes, or in elements for the
# functions of one type.
WORKSPACE, WORKSPACE_SIZE, HOST_WORKSPACE, HOST_SIZE = map(Variable, range(7, 11))
# The addresses at which a query stores the sizes.
WORKSPACE_SIZE_OUT, HOST_SIZE_OUT = Variable(11), Variable(12)


@dataclass(frozen=True)
class Call:
    """A call of a function of the library.

    Attributes
    ----------
    name : str
    arguments : tuple
        Each is an int or a Variable.
    query : tuple
        The arguments of the function that tells the sizes of the workspaces. Empty: there are none.
    unit : int
        The bytes of a unit of the workspace's size.
    text : str
        The subject, for errors.
    columns : int
        The columns that are factored: the commands that the function puts on the stream are more
        for more of them.
    """

    name: str
    arguments: tuple[Any, ...]
    query: tuple[Any, ...]
    unit: int
    text: str
    columns: int


REAL = {"complex64": "float32", "complex128": "float64"}
# The matrix Q of a QR factorization has a function for each type.
Q_FUNCTIONS = {
    "float32": ("Sorgqr", 4),
    "float64": ("Dorgqr", 8),
    "complex64": ("Cungqr", 8),
    "complex128": ("Zungqr", 16),
}


class Solver:
    """The calls for matrices of one type. The comment of each method names its operands, in order.

    Parameters
    ----------
    dtype : str
    """

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._type = DATA_TYPES[dtype]
        self._real = DATA_TYPES[REAL.get(dtype, dtype)]

    def _matrix(self, index: int, rows: int) -> tuple[Any, ...]:
        """A matrix's type, address, and elements between columns."""
        return self._type, OPERANDS[index], rows

    def _call(
        self, name: str, arguments: Sequence[Any], info: int, text: str, columns: int
    ) -> Call:
        """A function for all types, whose query takes the same arguments, but no pivots."""
        begin = HANDLE, PARAMETERS
        ends = WORKSPACE, WORKSPACE_SIZE, HOST_WORKSPACE, HOST_SIZE, OPERANDS[info]
        asked = [0 if isinstance(each, Variable) else each for each in arguments]
        if name == "Xgetrf":
            del asked[-2]
        query = *begin, *asked, WORKSPACE_SIZE_OUT, HOST_SIZE_OUT
        text = f"{text} of {self._dtype}"
        return Call(f"cusolverDn{name}", (*begin, *arguments, *ends), query, 1, text, columns)

    def cholesky(self, n: int) -> Call:
        """The matrix, whose lower triangle becomes the factor; info."""
        arguments = LOWER, n, *self._matrix(0, n), self._type
        return self._call("Xpotrf", arguments, 1, f"{n} x {n} matrix", n)

    def lu(self, m: int, n: int) -> Call:
        """The matrix, which becomes L and U; the pivots, int64, from 1 on; info."""
        arguments = m, n, *self._matrix(0, m), OPERANDS[1], self._type
        return self._call("Xgetrf", arguments, 2, f"{m} x {n} matrix", min(m, n))

    def lu_solve(self, n: int, k: int, transposed: bool) -> Call:
        """L and U; the pivots; the right-hand sides, which become the solutions of the system with
        the matrix, or with its transpose; info."""
        arguments = (
            OP_T if transposed else OP_N,
            n,
            k,
            *self._matrix(0, n),
            OPERANDS[1],
            *self._matrix(2, n),
        )
        text = f"{n} x {n} matrix and {k} right-hand sides of {self._dtype}"
        words = HANDLE, PARAMETERS, *arguments, OPERANDS[3]
        return Call("cusolverDnXgetrs", words, (), 1, text, n)

    def qr(self, m: int, n: int) -> Call:
        """The matrix, which becomes R and Householder's vectors; their factors; info."""
        arguments = m, n, *self._matrix(0, m), self._type, OPERANDS[1], self._type
        return self._call("Xgeqrf", arguments, 2, f"{m} x {n} matrix", min(m, n))

    def q(self, m: int, n: int, k: int) -> Call:
        """Householder's vectors, k of them, which become n columns of Q; their factors; info."""
        name, unit = Q_FUNCTIONS[self._dtype]
        sizes = HANDLE, m, n, k
        arguments = *sizes, OPERANDS[0], m, OPERANDS[1], WORKSPACE, WORKSPACE_SIZE, OPERANDS[2]
        query = *sizes, 0, m, 0, WORKSPACE_SIZE_OUT
        text = f"{m} x {n} matrix of {self._dtype}"
        return Call(f"cusolverDn{name}", arguments, query, unit, text, n)

    def hermitian(self, n: int, upper: bool, vectors: bool) -> Call:
        """The matrix, which becomes the vectors or is overwritten; the eigenvalues; info."""
        arguments = int(vectors), UPPER if upper else LOWER, n, *self._matrix(0, n)
        arguments = *arguments, self._real, OPERANDS[1], self._type
        return self._call("Xsyevd", arguments, 2, f"{n} x {n} matrix", n)

    def singular(self, m: int, n: int, full: bool, vectors: bool) -> Call:
        """The matrix, m >= n, which is overwritten; the singular values; U and the adjoint of V;
        info."""
        job = ord("N" if not vectors else "A" if full else "S")
        arguments = job, job, m, n, *self._matrix(0, m), self._real, OPERANDS[1]
        arguments = *arguments, *self._matrix(2, m), *self._matrix(3, n), self._type
        return self._call("Xgesvd", arguments, 4, f"{m} x {n} matrix", n)

    def general(self, n: int, vectors: bool) -> Call:
        """The complex matrix, which is overwritten; the eigenvalues; the vectors; info."""
        arguments = NO_VECTORS, int(vectors), n, *self._matrix(0, n), self._type, OPERANDS[1]
        arguments = *arguments, self._type, 0, n, *self._matrix(2, n), self._type
        return self._call("Xgeev", arguments, 3, f"{n} x {n} matrix", n)
