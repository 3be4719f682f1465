"""NumPy's names that are not functions of arrays, for programs that were written for NumPy.

NumPy's functions of arrays are in :mod:`cyrt` itself, so ``import cyrt as np`` is enough for much
of such programs. This module has their other names: kinds of types and other names of types, error
states, print options, text, and objects with subscripts. Some are NumPy's own objects, such as the
error states: they affect NumPy's arithmetic; arithmetic on a device gives no warnings.
"""

import typing as _typing

from numpy import (
    False_,
    True_,
    complexfloating,
    errstate,
    euler_gamma,
    floating,
    generic,
    get_printoptions,
    geterr,
    index_exp,
    inexact,
    integer,
    isscalar,
    iterable,
    ndenumerate,
    ndindex,
    number,
    printoptions,
    s_,
    set_printoptions,
    seterr,
    signedinteger,
    unsignedinteger,
)

from cyrt.numpy.index_tricks import *
from cyrt.numpy.type_names import *
from cyrt.ops.printing import array2string, array_repr, array_str
from cyrt.other_names import refusing as _refusing

__all__ = [
    "False_",
    "True_",
    "array2string",
    "array_repr",
    "array_str",
    "bool_",
    "byte",
    "c_",
    "cdouble",
    "complexfloating",
    "csingle",
    "double",
    "errstate",
    "euler_gamma",
    "floating",
    "generic",
    "get_printoptions",
    "geterr",
    "half",
    "index_exp",
    "inexact",
    "int_",
    "intc",
    "integer",
    "intp",
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "mgrid",
    "ndenumerate",
    "ndindex",
    "number",
    "ogrid",
    "printoptions",
    "promote_types",
    "r_",
    "s_",
    "set_printoptions",
    "seterr",
    "short",
    "signedinteger",
    "single",
    "ubyte",
    "uint",
    "uintc",
    "uintp",
    "unsignedinteger",
    "ushort",
]


def __dir__() -> list[str]:
    return list(__all__)


if not _typing.TYPE_CHECKING:  # a type checker would take any name for one of the module
    __getattr__ = _refusing(__name__)
