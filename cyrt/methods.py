"""Binding of methods to the functions that they call, after both are loaded.

The methods of arrays are declared in ``operators.pyx`` and ``ndarray.pyx``, on lower floors (see
docs/architecture.md) than these functions. This module binds the functions to the methods. It also
adds NumPy's methods of ufuncs, such as ``add.reduce``, to functions of two operands. If a method
has the same arguments as the function, the function itself is the method.
"""

# ruff: noqa: F401  # bind() takes the names of functions from this module

from __future__ import annotations

from cyrt.ndarray import Array
from cyrt.numpy import ufunc_methods
from cyrt.numpy.aliases import argpartition, partition
from cyrt.numpy.assignment import put
from cyrt.numpy.attributes import Flags, Flat
from cyrt.numpy.diagonals import trace
from cyrt.numpy.indexing import choose, compress
from cyrt.numpy.interop import call_function, call_ufunc
from cyrt.operators import attach, bind
from cyrt.ops import reduce
from cyrt.ops.copy import assign, astype, copy, to_device
from cyrt.ops.creation import asarray, weak_array, zeros_like
from cyrt.ops.functions import conj, imag, real, sqrt
from cyrt.ops.gather import get_by_arrays, put_at, set_by_arrays, take
from cyrt.ops.inspection import namespace
from cyrt.ops.manipulation import repeat, stack
from cyrt.ops.matmul import dot, matrix_transpose
from cyrt.ops.printing import _repr_html_, format_of, repr_of, text_of
from cyrt.ops.rounding import round
from cyrt.ops.scan import cumprod, cumsum
from cyrt.ops.search import nonzero, searchsorted
from cyrt.ops.shapes import ravel, squeeze, swapaxes
from cyrt.ops.sort import argsort, sort
from cyrt.ops.ternary import clip
from cyrt.ops.views import diagonal, view_as
from cyrt.other_names import ARRAY, Missing
from cyrt.tape import record_put, recorded


def _dir(self: Array, /) -> list[str]:
    return [each for each in object.__dir__(self) if each not in ARRAY]


_dir.__name__ = "__dir__"
bind(globals())
attach(
    _repr_html_,
    reduce.all,
    reduce.any,
    reduce.argmax,
    reduce.argmin,
    argsort,
    astype,
    copy,
    diagonal,
    reduce.max,
    reduce.mean,
    reduce.min,
    nonzero,
    reduce.prod,
    ravel,
    repeat,
    squeeze,
    reduce.std,
    reduce.sum,
    swapaxes,
    take,
    to_device,
    reduce.var,
    *map(Missing, ARRAY),
    _dir,
)
ufunc_methods.attach()
