"""The functions of the array API standard, and others that have a kernel, one file per family."""

import cyrt.ops.seam as _seam  # noqa: F401
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
from cyrt.ops.functions import NAMES as _elementwise
from cyrt.ops.gather import take, take_along_axis
from cyrt.ops.grids import eye, meshgrid, tril, triu
from cyrt.ops.inspection import __array_api_version__, __array_namespace_info__, finfo, iinfo
from cyrt.ops.manipulation import concat, concatenate, hstack, repeat, roll, stack, tile, vstack
from cyrt.ops.matmul import addmm, dot, inner, matmul, matrix_transpose, outer, tensordot, vecdot
from cyrt.ops.promotion import can_cast, isdtype, result_type
from cyrt.ops.reduce import *
from cyrt.ops.reduce import __all__ as _reductions
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

__all__ = [
    *_elementwise,
    *_reductions,
    "__array_api_version__",
    "__array_namespace_info__",
    "addmm",
    "arange",
    "argsort",
    "asarray",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "clip",
    "concat",
    "concatenate",
    "copy",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diagonal",
    "diff",
    "dot",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "finfo",
    "flatnonzero",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "hstack",
    "iinfo",
    "inner",
    "isdtype",
    "isin",
    "linspace",
    "matmul",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "nonzero",
    "ones",
    "ones_like",
    "outer",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sort",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "to_device",
    "top_k",
    "tril",
    "triu",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "vecdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
