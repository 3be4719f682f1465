"""Binding of methods, after all floors are loaded.

The methods of arrays are declared in ``operators.pyx`` and ``ndarray.pyx``, below the functions
that they call; here the functions are bound to them, and to the functions of two operands NumPy's
methods such as ``add.reduce``. A function that takes what its method takes is the method itself.
"""

from __future__ import annotations

from cyrt import ops
from cyrt.numpy import functions, ufunc_methods
from cyrt.numpy.attributes import Flags, Flat
from cyrt.numpy.interop import call_function, call_ufunc
from cyrt.operators import attach, bind
from cyrt.ops.copy import assign
from cyrt.ops.creation import weak_array
from cyrt.ops.gather import get_by_arrays, set_by_arrays
from cyrt.ops.inspection import namespace
from cyrt.ops.printing import _repr_html_, format_of, repr_of, text_of
from cyrt.ops.views import view_as

bind(
    Flags=Flags,
    Flat=Flat,
    argpartition=functions.argpartition,
    asarray=ops.asarray,
    assign=assign,
    call_function=call_function,
    call_ufunc=call_ufunc,
    choose=functions.choose,
    clip=ops.clip,
    compress=functions.compress,
    conj=ops.conj,
    cumprod=ops.cumprod,
    cumsum=ops.cumsum,
    dot=ops.dot,
    format_of=format_of,
    get_by_arrays=get_by_arrays,
    matrix_transpose=ops.matrix_transpose,
    namespace=namespace,
    partition=functions.partition,
    put=functions.put,
    repr_of=repr_of,
    round=ops.round,
    searchsorted=ops.searchsorted,
    weak_array=weak_array,
    set_by_arrays=set_by_arrays,
    sort=ops.sort,
    sqrt=ops.sqrt,
    text_of=text_of,
    trace=functions.trace,
    view_as=view_as,
    zeros_like=ops.zeros_like,
)
attach(
    _repr_html_,
    ops.all,
    ops.any,
    ops.argmax,
    ops.argmin,
    ops.argsort,
    ops.astype,
    ops.copy,
    ops.diagonal,
    ops.max,
    ops.mean,
    ops.min,
    ops.nonzero,
    ops.prod,
    ops.ravel,
    ops.repeat,
    ops.squeeze,
    ops.std,
    ops.sum,
    ops.swapaxes,
    ops.take,
    ops.to_device,
    ops.var,
)
ufunc_methods.attach()
