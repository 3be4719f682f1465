"""NumPy's names that are no functions of arrays, for programs that were written for NumPy.

What such programs call on arrays is in :mod:`cyrt` itself, and ``import cyrt as np`` runs much of
them. What they have around their arrays is here: kinds and further names of types, error states,
print options, text, and objects with subscripts. NumPy's own objects are among them: they affect
NumPy, and arithmetic on a device never warns.
"""

from typing import TYPE_CHECKING

from cyrt.numpy import index_tricks, numpy_objects, type_names
from cyrt.numpy.index_tricks import *
from cyrt.numpy.numpy_objects import *
from cyrt.numpy.type_names import *
from cyrt.ops.printing import array2string as array2string
from cyrt.ops.printing import array_repr as array_repr
from cyrt.ops.printing import array_str as array_str

# Type checkers read lists of literals only; without one, what `import *` brings is public to them.
if not TYPE_CHECKING:
    __all__ = [
        "array2string",
        "array_repr",
        "array_str",
        *index_tricks.__all__,
        *numpy_objects.__all__,
        *type_names.__all__,
    ]
