"""Linear algebra: the array API standard's extension ``linalg``, and NumPy's and SciPy's functions.

The functions take matrices in the last two dimensions; the other dimensions are a batch. None of
them waits to learn whether a matrix has a result: one that has none, such as a singular one, gets
NaN, and whatever waits next for a value raises :class:`LinAlgError`.
"""

from cyrt.driver.errors import LinAlgError
from cyrt.linalg.factorizations import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lu_factor,
    lu_solve,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from cyrt.linalg.least_squares import lstsq, pinv, polyfit, roots
from cyrt.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from cyrt.linalg.products import (
    cross,
    diagonal,
    expm,
    matrix_power,
    multi_dot,
    outer,
    tensorinv,
    tensorsolve,
    trace,
)
from cyrt.ops.matmul import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "polyfit",
    "qr",
    "roots",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return list(__all__)
