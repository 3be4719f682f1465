"""Binding of methods, after all floors are loaded.

The methods of arrays are declared in ``operators.pyx`` and ``ndarray.pyx``, below the functions
that they call; here the functions are bound to them, and to the functions of two operands NumPy's
methods such as ``add.reduce``.
"""

from __future__ import annotations

from cyrt import numpy_compat, ops
from cyrt.numpy_compat import ufunc_methods
from cyrt.numpy_compat.attributes import Flags, Flat
from cyrt.numpy_compat.interop import call_numpy
from cyrt.operators import bind
from cyrt.ops.copy import assign
from cyrt.ops.creation import weak_array
from cyrt.ops.gather import get_by_arrays, set_by_arrays
from cyrt.ops.inspection import namespace
from cyrt.ops.printing import format_of, repr_of, text_of
from cyrt.ops.views import view_as

bind(
    Flags=Flags,
    Flat=Flat,
    all=ops.all,
    any=ops.any,
    argmax=ops.argmax,
    argmin=ops.argmin,
    argpartition=numpy_compat.argpartition,
    argsort=ops.argsort,
    asarray=ops.asarray,
    assign=assign,
    astype=ops.astype,
    call_numpy=call_numpy,
    choose=numpy_compat.choose,
    clip=ops.clip,
    compress=numpy_compat.compress,
    conj=ops.conj,
    copy=ops.copy,
    cumprod=ops.cumprod,
    cumsum=ops.cumsum,
    diagonal=ops.diagonal,
    dot=ops.dot,
    format_of=format_of,
    get_by_arrays=get_by_arrays,
    matmul=ops.matmul,
    matrix_transpose=ops.matrix_transpose,
    max=ops.max,
    mean=ops.mean,
    min=ops.min,
    namespace=namespace,
    nonzero=ops.nonzero,
    partition=numpy_compat.partition,
    permute_dims=ops.permute_dims,
    prod=ops.prod,
    put=numpy_compat.put,
    ravel=ops.ravel,
    repeat=ops.repeat,
    repr_of=repr_of,
    reshape=ops.reshape,
    round=ops.round,
    searchsorted=ops.searchsorted,
    weak_array=weak_array,
    set_by_arrays=set_by_arrays,
    sort=ops.sort,
    sqrt=ops.sqrt,
    squeeze=ops.squeeze,
    std=ops.std,
    sum=ops.sum,
    swapaxes=ops.swapaxes,
    take=ops.take,
    text_of=text_of,
    to_device=ops.to_device,
    trace=numpy_compat.trace,
    var=ops.var,
    view_as=view_as,
    zeros_like=ops.zeros_like,
)
ufunc_methods.attach()
