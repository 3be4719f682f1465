"""NumPy's names that are no functions of arrays, for programs that were written for NumPy.

What such programs call on arrays is in :mod:`cyrt` itself, and ``import cyrt as np`` runs much of
them. What they have around their arrays is here: kinds and further names of types, error states,
print options, text, and objects with subscripts. NumPy's own objects are among them: they affect
NumPy, and arithmetic on a device never warns.
"""

from cyrt.numpy.index_tricks import *
from cyrt.numpy.numpy_objects import *
from cyrt.numpy.type_names import *
from cyrt.ops.printing import array2string, array_repr, array_str

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
