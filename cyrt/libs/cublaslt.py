"""cuBLASLt by ctypes: products of matrices. Only the first call of each kind uses this module.

Values and types are those of cublasLt.h and cublas_api.h, which tests/libs compares where the
headers are installed.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from cyrt.libs.library import (
    DATA_TYPES,
    CLibrary,
    Handle,
    Handles,
    Unsupported,
    dotted,
    find_installed,
    open_path,
)

INVALID_VALUE, NOT_SUPPORTED = 7, 15
OP_N, OP_T = 0, 1
LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET = 5, 6
DESC_TRANSA, DESC_TRANSB = 3, 4
PREF_MAX_WORKSPACE_BYTES, PREF_REDUCTION_SCHEME_MASK = 1, 3
PREF_MIN_ALIGNMENT_BYTES = (5, 6, 7, 8)  # one for each matrix: A, B, C, D
# Parts of a sum are added in the type of the computation, in one order.
REDUCTION_SCHEME_COMPUTE_TYPE = 2

COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_64F, COMPUTE_32I = 68, 77, 70, 72


class Algo(ctypes.Structure):
    """``cublasLtMatmulAlgo_t``: opaque."""

    _fields_ = [("data", c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = [
        ("algo", Algo),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (c_void_p,),
    "cublasLtDestroy": (c_void_p,),
    "cublasLtMatrixLayoutCreate": (c_void_p, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulDescCreate": (c_void_p, c_int, c_int),
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulPreferenceCreate": (c_void_p,),
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulAlgoGetHeuristic": (*(c_void_p,) * 7, c_int, c_void_p, c_void_p),
    "cublasLtMatmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}


class CublasLt(CLibrary):
    """An opened cuBLASLt. Versions are such as 130100 for 13.1.0."""

    title, file = "cuBLASLt", "cublasLt"
    minimum = 120000  # the first one with the types of CUDA 12
    signatures = _SIGNATURES
    no_memory = 3
    refusals = (INVALID_VALUE, NOT_SUPPORTED)

    def read_version(self) -> int:
        self.opened.cublasLtGetVersion.restype = c_size_t
        for name in ("cublasLtGetStatusName", "cublasLtGetStatusString"):
            function = getattr(self.opened, name)
            function.restype, function.argtypes = c_char_p, (c_int,)
        return int(self.opened.cublasLtGetVersion())

    @staticmethod
    def dot(version: int) -> str:
        return dotted(version)

    def describe(self, status: int) -> tuple[str, str]:
        """The name and the meaning of a status."""
        functions = self.opened.cublasLtGetStatusName, self.opened.cublasLtGetStatusString
        name, text = ((each(status) or b"an unknown status").decode() for each in functions)
        return name, text


open_library = functools.partial(open_path, CublasLt)
find = functools.cache(functools.partial(find_installed, CublasLt))


_handles = Handles()


def _handle(library: CublasLt, ordinal: int, epoch: int) -> c_void_p:
    """This thread's handle; the device's context is current."""
    key = library.path, ordinal, epoch
    if key not in _handles.by_device:
        value = c_void_p()
        library.call("cublasLtCreate", byref(value), detail="a handle")
        _handles.by_device[key] = Handle(value, library.functions["cublasLtDestroy"])
    made: c_void_p = _handles.by_device[key].value
    return made


@dataclass(frozen=True)
class Matrix:
    """An operand in the library's terms: stored column by column.

    Attributes
    ----------
    dtype : str
    rows, columns : int
        The shape of the matrix in memory.
    step : int
        Elements from one column to the next.
    transposed : bool
        Whether the factor is the transpose of the matrix in memory.
    batch_step : int
        Elements from one matrix of a batch to the next.
    alignment : int
        Bytes of which each address of the operand is a multiple.
    """

    dtype: str
    rows: int
    columns: int
    step: int
    transposed: bool
    batch_step: int
    alignment: int


_SCALES: dict[str, Callable[[complex], Any]] = {
    "float32": lambda value: c_float(value.real),
    "float64": lambda value: ctypes.c_double(value.real),
    "int32": lambda value: c_int32(int(value.real)),
    "complex64": lambda value: (c_float * 2)(value.real, value.imag),
    "complex128": lambda value: (ctypes.c_double * 2)(value.real, value.imag),
}


def _types(dtype: str, tf32: bool) -> tuple[int, str]:
    """The type in which elements are multiplied and added, and the type of alpha and beta."""
    if dtype in ("float64", "complex128"):
        return COMPUTE_64F, dtype
    if dtype == "int8":
        return COMPUTE_32I, "int32"
    if dtype == "complex64":
        return COMPUTE_32F, dtype
    return COMPUTE_32F_FAST_TF32 if tf32 and dtype == "float32" else COMPUTE_32F, "float32"


class Product:
    """``d = alpha * a @ b + beta * c`` on matrices of given layouts.

    The constructor asks the library for its algorithm; a call puts the product on a stream.

    Parameters
    ----------
    library : CublasLt
    ordinal, epoch : int
        The device and the epoch of its context, which is current.
    a, b, c, d : Matrix
        Without a beta, d is passed as c.
    batch : int
    alpha, beta : complex
    tf32 : bool
        Whether float32 may be rounded to TF32.
    most_workspace : int
        The most bytes of temporary memory.

    Attributes
    ----------
    workspace : int
        Bytes of temporary memory of a call.

    Raises
    ------
    Unsupported
        The library does not provide the product.
    CudaError
        The library failed otherwise; the message has the shapes and types.
    """

    def __init__(
        self,
        library: CublasLt,
        ordinal: int,
        epoch: int,
        matrices: Sequence[Matrix],
        batch: int,
        alpha: complex,
        beta: complex,
        *,
        tf32: bool,
        most_workspace: int,
    ) -> None:
        self._library, self._device = library, (ordinal, epoch)
        self._objects: list[tuple[str, c_void_p]] = []
        self.beta = beta
        self.text = _describe(matrices, batch)
        compute, scale = _types(matrices[0].dtype, tf32)
        self._alpha, self._beta = _SCALES[scale](alpha), _SCALES[scale](beta)
        self._desc = self._create("MatmulDesc", compute, DATA_TYPES[scale])
        for attribute, matrix in zip((DESC_TRANSA, DESC_TRANSB), matrices, strict=False):
            self._set("MatmulDesc", self._desc, attribute, c_int32(matrix.transposed))
        self._layouts = [self._layout(matrix, batch) for matrix in matrices]
        self._choose(matrices, most_workspace)

    def _call(self, name: str, *arguments: Any) -> None:
        self._library.call(f"cublasLt{name}", *arguments, detail=self.text)

    def _create(self, kind: str, *arguments: Any) -> c_void_p:
        made = c_void_p()
        self._call(f"{kind}Create", byref(made), *arguments)
        self._objects.append((kind, made))
        return made

    def _set(self, kind: str, target: c_void_p, attribute: int, value: Any) -> None:
        self._call(f"{kind}SetAttribute", target, attribute, byref(value), ctypes.sizeof(value))

    def _layout(self, matrix: Matrix, batch: int) -> c_void_p:
        layout = self._create(
            "MatrixLayout", DATA_TYPES[matrix.dtype], matrix.rows, matrix.columns, matrix.step
        )
        if batch > 1:
            self._set("MatrixLayout", layout, LAYOUT_BATCH_COUNT, c_int32(batch))
            step = c_int64(matrix.batch_step)
            self._set("MatrixLayout", layout, LAYOUT_STRIDED_BATCH_OFFSET, step)
        return layout

    def _choose(self, matrices: Sequence[Matrix], most_workspace: int) -> None:
        """Ask for the algorithm that is the fastest by the library's heuristics."""
        preference = self._create("MatmulPreference")
        wanted = [
            (PREF_MAX_WORKSPACE_BYTES, c_uint64(most_workspace)),
            (PREF_REDUCTION_SCHEME_MASK, ctypes.c_uint32(REDUCTION_SCHEME_COMPUTE_TYPE)),
        ]
        for attribute, matrix in zip(PREF_MIN_ALIGNMENT_BYTES, matrices, strict=True):
            wanted.append((attribute, ctypes.c_uint32(matrix.alignment)))
        for attribute, value in wanted:
            self._set("MatmulPreference", preference, attribute, value)
        result, count = HeuristicResult(), c_int()
        self._call(
            "MatmulAlgoGetHeuristic",
            _handle(self._library, *self._device),
            self._desc,
            *self._layouts,
            preference,
            1,
            byref(result),
            byref(count),
        )
        if count.value == 0 or result.state in (NOT_SUPPORTED, INVALID_VALUE):
            raise Unsupported(f"cublasLtMatmulAlgoGetHeuristic: no algorithm: {self.text}")
        self._algo, self.workspace = result.algo, int(result.workspace)

    def prepare(self) -> None:
        """Make what a call on this thread needs, and what cannot be made during a capture."""
        _handle(self._library, *self._device)

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """Put the product on a stream.

        The addresses are those of d, b, a, of c if there is a beta, and of the workspace if there
        is one.
        """
        d, b, a, *rest = addresses
        c = rest.pop(0) if self.beta else d
        workspace = rest.pop(0) if self.workspace else None
        self._call(
            "Matmul",
            _handle(self._library, *self._device),
            self._desc,
            byref(self._alpha),
            a,
            self._layouts[0],
            b,
            self._layouts[1],
            byref(self._beta),
            c,
            self._layouts[2],
            d,
            self._layouts[3],
            byref(self._algo),
            workspace,
            self.workspace,
            stream,
        )

    # At exit the module is empty.
    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing():
            for kind, made in reversed(self._objects):
                self._library.functions[f"cublasLt{kind}Destroy"](made)


def _describe(matrices: Sequence[Matrix], batch: int) -> str:
    """The shapes and types of a product, column by column, for errors."""
    texts = []
    for name, matrix in zip("ABCD", matrices, strict=True):
        turned = ", transposed" if matrix.transposed else ""
        texts.append(
            f"{name} {matrix.dtype} ({matrix.rows}, {matrix.columns}){turned}, step {matrix.step}"
        )
    return "; ".join(texts) + (f"; a batch of {batch}" if batch > 1 else "")
