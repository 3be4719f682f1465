"""cyrt: GPU work from Python, launched as fast as the driver allows.

Importing makes no driver call; the driver is opened at first use (see ``CYRT_DEVICE``).
"""

from __future__ import annotations

import atexit as _atexit
import typing as _typing
from importlib import import_module as _import_module
from math import e, inf, nan, pi
from sys import modules as _modules

from cyrt import gil as _gil  # noqa: F401

try:
    from cyrt import methods as _methods
except ModuleNotFoundError as _error:
    from pathlib import Path as _Path

    _folder = _Path(__file__).parent
    # Only the sources have this file, and they have no compiled modules.
    if (_error.name or "").startswith("cyrt.") and (_folder / "meson.build").exists():
        raise ImportError(
            f"cyrt was imported from its sources in {_folder}, which have no compiled modules "
            f"({_error}). To import the installed package, start Python in another folder or with "
            "the option -P; to install it, run `pip install .` in the sources."
        ) from None
    raise
from cyrt import fft, linalg, nn, optim, random
from cyrt.autodiff.custom import checkpoint, custom_vjp
from cyrt.autodiff.transforms import grad, stop_gradient, value_and_grad, vjp
from cyrt.configuration import show_config
from cyrt.driver.errors import CompileError, CudaError, OutOfMemoryError
from cyrt.dtypes import DTYPES as _DTYPES
from cyrt.dtypes import DType, dtype
from cyrt.explaining import Example, Explanation, explain
from cyrt.graph.recorder import commit_current as _commit_current
from cyrt.kernels import Kernel, Module
from cyrt.kernels.encoder import CommandEncoder, batch, concurrent, current_encoder
from cyrt.leaving import leave as _leave
from cyrt.ndarray import Array
from cyrt.numpy.aliases import *
from cyrt.numpy.arithmetic import *
from cyrt.numpy.assignment import *
from cyrt.numpy.bit_packing import *
from cyrt.numpy.calculus import *
from cyrt.numpy.checkpoints import *
from cyrt.numpy.comparison import *
from cyrt.numpy.diagonals import *
from cyrt.numpy.einstein_sum import *
from cyrt.numpy.files import *
from cyrt.numpy.functional import *
from cyrt.numpy.grids import *
from cyrt.numpy.histograms import *
from cyrt.numpy.indexing import *
from cyrt.numpy.interop import *
from cyrt.numpy.manipulation import *
from cyrt.numpy.nan_reductions import *
from cyrt.numpy.padding import *
from cyrt.numpy.products import *
from cyrt.numpy.safetensors import *
from cyrt.numpy.sets import *
from cyrt.numpy.sharing import *
from cyrt.numpy.statistics import *
from cyrt.numpy.windows import *
from cyrt.ops.arange import arange, linspace
from cyrt.ops.broadcasting import broadcast_arrays, broadcast_shapes, broadcast_to
from cyrt.ops.copy import astype, copy, to_device
from cyrt.ops.creation import (
    asarray,
    empty,
    empty_like,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from cyrt.ops.functions import *
from cyrt.ops.gather import take, take_along_axis
from cyrt.ops.grids import eye, meshgrid, tril, triu
from cyrt.ops.inspection import __array_api_version__, __array_namespace_info__, finfo, iinfo
from cyrt.ops.manipulation import concat, concatenate, hstack, repeat, roll, stack, tile, vstack
from cyrt.ops.matmul import addmm, dot, inner, matmul, matrix_transpose, outer, tensordot, vecdot
from cyrt.ops.promotion import can_cast, isdtype, result_type
from cyrt.ops.reduce import *
from cyrt.ops.rounding import round  # type: ignore[assignment]  # it has decimals
from cyrt.ops.scan import cumprod, cumsum, cumulative_prod, cumulative_sum, diff
from cyrt.ops.search import flatnonzero, nonzero, searchsorted
from cyrt.ops.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from cyrt.ops.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    split,
    squeeze,
    swapaxes,
    unstack,
)
from cyrt.ops.sort import argsort, sort, top_k
from cyrt.ops.ternary import clip, where
from cyrt.ops.views import diagonal
from cyrt.other_names import CLASSES as _CLASSES
from cyrt.other_names import refuse as _refuse
from cyrt.profiling import profile
from cyrt.public_modules import NAMES as _MODULES
from cyrt.runtime.device import Device, is_available
from cyrt.runtime.event import Event
from cyrt.runtime.host_memory import ManagedBuffer, PinnedBuffer
from cyrt.runtime.memory import Buffer, pointer
from cyrt.runtime.reserve import memory_stats, trim_memory
from cyrt.runtime.stream import Stream, stream
from cyrt.runtime.waiting import synchronize
from cyrt.settings import warn_of_unknown_names as _warn_of_unknown_names
from cyrt.trees import tree_map
from cyrt.version import __version__  # noqa: F401

_warn_of_unknown_names()

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64 = _DTYPES[:9]
float16, bfloat16, float32, float64, complex64, complex128 = _DTYPES[9:]
commit = _commit_current
ndarray = Array  # NumPy's name of the class; it replaces the submodule of that name
newaxis = None

for _kind in (Device, Event, Kernel, Stream, optim.Optimizer):
    _methods.attach_hints(_kind, _CLASSES[_kind.__name__])
# `cyrt.jit` is an error, which tells users of JAX's and Numba's decorator what to write.
globals().pop("jit")

__all__ = [
    "Array",
    "Buffer",
    "CommandEncoder",
    "CompileError",
    "CudaError",
    "DType",
    "Device",
    "Event",
    "Example",
    "Explanation",
    "Kernel",
    "ManagedBuffer",
    "Module",
    "OutOfMemoryError",
    "PinnedBuffer",
    "Stream",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "apply_along_axis",
    "apply_over_axes",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array_equal",
    "array_equiv",
    "array_split",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "asin",
    "asinh",
    "asnumpy",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bartlett",
    "batch",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "block",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "ceil",
    "checkpoint",
    "choose",
    "clip",
    "column_stack",
    "commit",
    "complex64",
    "complex128",
    "compress",
    "concat",
    "concatenate",
    "concurrent",
    "conj",
    "conjugate",
    "convolve",
    "copy",
    "copysign",
    "copyto",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "current_encoder",
    "custom_vjp",
    "deg2rad",
    "degrees",
    "delete",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "ediff1d",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expand_dims",
    "explain",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "fft",
    "fill_diagonal",
    "finfo",
    "fix",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "from_dlpack",
    "frombuffer",
    "fromfunction",
    "full",
    "full_like",
    "gcd",
    "geomspace",
    "get_array_module",
    "grad",
    "gradient",
    "greater",
    "greater_equal",
    "hamming",
    "hanning",
    "heaviside",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "identity",
    "iinfo",
    "imag",
    "indices",
    "inf",
    "inner",
    "insert",
    "int8",
    "int16",
    "int32",
    "int64",
    "interp",
    "intersect1d",
    "invert",
    "is_available",
    "isclose",
    "iscomplex",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "ix_",
    "kaiser",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "load_checkpoint",
    "load_safetensors",
    "loadtxt",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "may_share_memory",
    "mean",
    "median",
    "memory_stats",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "modf",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "nn",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "packbits",
    "pad",
    "partition",
    "percentile",
    "permute_dims",
    "pi",
    "piecewise",
    "place",
    "pointer",
    "polyval",
    "positive",
    "pow",
    "power",
    "prod",
    "profile",
    "ptp",
    "put",
    "put_along_axis",
    "putmask",
    "quantile",
    "rad2deg",
    "radians",
    "random",
    "ravel",
    "ravel_multi_index",
    "real",
    "real_if_close",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "resize",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "rot90",
    "round",
    "rsqrt",
    "save",
    "save_checkpoint",
    "save_safetensors",
    "savetxt",
    "savez",
    "savez_compressed",
    "searchsorted",
    "select",
    "setdiff1d",
    "setxor1d",
    "shape",
    "shares_memory",
    "show_config",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "size",
    "sliding_window_view",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stop_gradient",
    "stream",
    "subtract",
    "sum",
    "swapaxes",
    "synchronize",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "to_device",
    "top_k",
    "trace",
    "transpose",
    "trapezoid",
    "tree_map",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "trim_memory",
    "trim_zeros",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpackbits",
    "unravel_index",
    "unstack",
    "unwrap",
    "value_and_grad",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vjp",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return [*{*__all__, "__version__", *_MODULES}]


if not _typing.TYPE_CHECKING:  # a type checker would take any name for one of the module

    def __getattr__(name):
        if name in _MODULES:  # those that are imported when they are first used
            return _import_module(f"cyrt.{name}")
        return _refuse(
            _modules["cyrt"], name, (fft, linalg, nn, optim, random, _modules["cyrt.numpy"])
        )


_atexit.register(_leave)
