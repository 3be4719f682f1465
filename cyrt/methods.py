"""Binding of methods to the functions that they call, after both are loaded.

The methods of arrays are declared in ``operators.pyx`` and ``ndarray.pyx``, on lower floors (see
docs/architecture.md) than these functions. This module binds the functions to the methods. It also
adds NumPy's methods of ufuncs, such as ``add.reduce``, to functions of two operands. If a method
has the same arguments as the function, the function itself is the method. Attributes that
classes of other libraries have, and those of cyrt do not, tell what to write.
"""

# ruff: noqa: F401  # bind() takes the names of functions from this module

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cyrt.ndarray import Array
from cyrt.numpy import ufunc_methods
from cyrt.numpy.aliases import argpartition, partition
from cyrt.numpy.assignment import put
from cyrt.numpy.attributes import Flags, Flat
from cyrt.numpy.diagonals import trace
from cyrt.numpy.indexing import choose, compress
from cyrt.numpy.interop import call_function, call_ufunc
from cyrt.operators import Operators, attach, bind
from cyrt.ops import functions, reduce
from cyrt.ops.copy import assign, astype, copy, to_device
from cyrt.ops.creation import asarray, weak_array, zeros_like
from cyrt.ops.elementwise import Elementwise
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


def attach_hints(kind: type, hints: Mapping[str, str]) -> None:
    """Make attributes that tell what to write instead, and that ``dir`` does not list."""

    def __dir__(self: Any, /) -> list[str]:
        return [each for each in object.__dir__(self) if each not in hints]

    attach(kind, *(Missing(name, instead) for name, instead in hints.items()), __dir__)


bind(globals())
attach(
    Operators,
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
)
attach_hints(
    Operators,
    {
        name: f"cyrt.{name}"
        for name, each in vars(functions).items()
        if isinstance(each, Elementwise) and not hasattr(Array, name)
    }
    | ARRAY,
)
ufunc_methods.attach()
