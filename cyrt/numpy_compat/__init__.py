"""NumPy compatibility: functions and objects of NumPy's that the array API standard does not have.

They are written in terms of :mod:`cyrt.ops` and :mod:`cyrt.random`, launch no kernels of their own,
and take NumPy's arguments by position and by name. One file a family; each names what it exports in
``__all__``, and all of that is public as ``cyrt.<name>``. NumPy's names of random functions are in
:mod:`cyrt.numpy_compat.random`, and public as ``cyrt.random.<name>``.
"""

from typing import TYPE_CHECKING

from cyrt.numpy_compat import (
    aliases,
    arithmetic,
    assignment,
    calculus,
    comparison,
    constants,
    diagonals,
    einstein_sum,
    files,
    functional,
    grids,
    histograms,
    index_tricks,
    indexing,
    interop,
    manipulation,
    nan_reductions,
    numpy_objects,
    padding,
    products,
    safetensors,
    sets,
    sharing,
    statistics,
    windows,
)
from cyrt.numpy_compat.aliases import *
from cyrt.numpy_compat.arithmetic import *
from cyrt.numpy_compat.assignment import *
from cyrt.numpy_compat.calculus import *
from cyrt.numpy_compat.comparison import *
from cyrt.numpy_compat.constants import *
from cyrt.numpy_compat.diagonals import *
from cyrt.numpy_compat.einstein_sum import *
from cyrt.numpy_compat.files import *
from cyrt.numpy_compat.functional import *
from cyrt.numpy_compat.grids import *
from cyrt.numpy_compat.histograms import *
from cyrt.numpy_compat.index_tricks import *
from cyrt.numpy_compat.indexing import *
from cyrt.numpy_compat.interop import *
from cyrt.numpy_compat.manipulation import *
from cyrt.numpy_compat.nan_reductions import *
from cyrt.numpy_compat.numpy_objects import *
from cyrt.numpy_compat.padding import *
from cyrt.numpy_compat.products import *
from cyrt.numpy_compat.safetensors import *
from cyrt.numpy_compat.sets import *
from cyrt.numpy_compat.sharing import *
from cyrt.numpy_compat.statistics import *
from cyrt.numpy_compat.windows import *

# Type checkers read lists of literals only; without one, what `import *` brings is public to them.
if not TYPE_CHECKING:
    __all__ = [
        *aliases.__all__,
        *arithmetic.__all__,
        *assignment.__all__,
        *calculus.__all__,
        *comparison.__all__,
        *constants.__all__,
        *diagonals.__all__,
        *einstein_sum.__all__,
        *files.__all__,
        *functional.__all__,
        *grids.__all__,
        *histograms.__all__,
        *index_tricks.__all__,
        *indexing.__all__,
        *interop.__all__,
        *manipulation.__all__,
        *nan_reductions.__all__,
        *numpy_objects.__all__,
        *padding.__all__,
        *products.__all__,
        *safetensors.__all__,
        *sets.__all__,
        *sharing.__all__,
        *statistics.__all__,
        *windows.__all__,
    ]
