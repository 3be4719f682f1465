from typing import Any, Literal, NamedTuple, overload

from cyrt.ndarray import Array

class EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

class EighResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

class QRResult(NamedTuple):
    Q: Array
    R: Array

class SlogdetResult(NamedTuple):
    sign: Array
    logabsdet: Array

class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array

class LUResult(NamedTuple):
    lu: Array
    pivots: Array

@overload
def cholesky(x: Array, /, *, upper: bool = False, check: Literal[True] = True) -> Array: ...
@overload
def cholesky(x: Array, /, *, upper: bool = False, check: Literal[False]) -> tuple[Array, Array]: ...
@overload
def lu_factor(x: Array, /, *, check: Literal[True] = True) -> LUResult: ...
@overload
def lu_factor(x: Array, /, *, check: Literal[False]) -> tuple[LUResult, Array]: ...
def det(x: Array, /) -> Array: ...
def slogdet(x: Array, /) -> SlogdetResult: ...
@overload
def inv(x: Array, /, *, check: Literal[True] = True) -> Array: ...
@overload
def inv(x: Array, /, *, check: Literal[False]) -> tuple[Array, Array]: ...
@overload
def solve(x1: Array, x2: Array, /, *, check: Literal[True] = True) -> Array: ...
@overload
def solve(x1: Array, x2: Array, /, *, check: Literal[False]) -> tuple[Array, Array]: ...
@overload
def solve_triangular(
    x1: Array,
    x2: Array,
    /,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
    check: Literal[True] = True,
) -> Array: ...
@overload
def solve_triangular(
    x1: Array,
    x2: Array,
    /,
    *,
    lower: bool = False,
    trans: int | str = 0,
    unit_diagonal: bool = False,
    check: Literal[False],
) -> tuple[Array, Array]: ...
@overload
def lu_solve(
    lu_and_pivots: tuple[Array, Array], b: Array, /, trans: int = 0, *, check: Literal[True] = True
) -> Array: ...
@overload
def lu_solve(
    lu_and_pivots: tuple[Array, Array], b: Array, /, trans: int = 0, *, check: Literal[False]
) -> tuple[Array, Array]: ...
@overload
def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Array, /, *, mode: Literal["r"]) -> Array: ...
@overload
def svd(
    x: Array,
    /,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    check: Literal[True] = True,
) -> SVDResult: ...
@overload
def svd(
    x: Array,
    /,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    check: Literal[True] = True,
) -> Array: ...
@overload
def svd(
    x: Array,
    /,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    check: Literal[False],
) -> tuple[SVDResult, Array]: ...
@overload
def svd(
    x: Array, /, *, full_matrices: bool = True, compute_uv: Literal[False], check: Literal[False]
) -> tuple[Array, Array]: ...
@overload
def svdvals(x: Array, /, *, check: Literal[True] = True) -> Array: ...
@overload
def svdvals(x: Array, /, *, check: Literal[False]) -> tuple[Array, Array]: ...
@overload
def eigh(x: Array, /, UPLO: str = "L", *, check: Literal[True] = True) -> EighResult: ...
@overload
def eigh(x: Array, /, UPLO: str = "L", *, check: Literal[False]) -> tuple[EighResult, Array]: ...
@overload
def eigvalsh(x: Array, /, UPLO: str = "L", *, check: Literal[True] = True) -> Array: ...
@overload
def eigvalsh(x: Array, /, UPLO: str = "L", *, check: Literal[False]) -> tuple[Array, Array]: ...
@overload
def eig(x: Array, /, *, check: Literal[True] = True) -> EigResult: ...
@overload
def eig(x: Array, /, *, check: Literal[False]) -> tuple[EigResult, Array]: ...
@overload
def eigvals(x: Array, /, *, check: Literal[True] = True) -> Array: ...
@overload
def eigvals(x: Array, /, *, check: Literal[False]) -> tuple[Array, Array]: ...

# Parts of larger matrices, for blocked.py.
def cholesky_of(name: str, a: Array, check: bool) -> tuple[Array, Array | None]: ...
def lu_of(a: Array) -> tuple[Array, Array]: ...
def exchange_rows(
    b: Array, pivots: Array, backwards: bool, check: bool
) -> tuple[Array, Array | None]: ...
def factor_panel(a: Array) -> tuple[Array, Array, Array]: ...
def triangular_of(
    name: str, a: Array, b: Array, lower: bool, trans: int | str, unit: bool, check: bool
) -> tuple[Array, Array | None]: ...
def first_zero(lu: Array) -> Array: ...
def finite_copy(x: Array, triangle: str = "") -> tuple[Array, Array]: ...
def mark_failed(
    name: str,
    text: str,
    status: Array,
    results: tuple[Array, ...],
    check: bool,
    infinite: Array | None = None,
) -> Array | None: ...
def lower_factor(name: str, a: Array, status: Array, check: bool) -> tuple[Array, Array | None]: ...
def check_lu(factors: Array, pivots: Array, status: Array, infinite: Array) -> None: ...

# Texts of errors.
SINGULAR: str
NO_CONVERGENCE: str

def singular(
    name: str, x: Array, full: bool, vectors: bool, check: bool, factored: bool = False
) -> Any: ...
def in_own_type(name: str, array: Array) -> Array: ...
def joined_batch(name: str, a: Array, b: Array) -> tuple[int, ...]: ...
def square_matrices(name: str, x: Array) -> Array: ...
@overload
def inverse_of(name: str, x: Array, check: Literal[True] = True) -> Array: ...
@overload
def inverse_of(name: str, x: Array, check: Literal[False]) -> tuple[Array, Array]: ...
def solution_of(name: str, a: Array, b: Array) -> Array: ...
def svd_of(name: str, x: Array) -> SVDResult: ...
def singular_values_of(name: str, x: Array) -> Array: ...
@overload
def hermitian_of(name: str, x: Array, vectors: Literal[True]) -> EighResult: ...
@overload
def hermitian_of(name: str, x: Array, vectors: Literal[False]) -> Array: ...
def eigenvalues_of(name: str, x: Array) -> Array: ...
