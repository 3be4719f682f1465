"""NumPy's everyday functions of arrays that the array API standard does not have.

They are written in terms of :mod:`cyrt.ops` and :mod:`cyrt.random`, launch no kernels of their own,
and take NumPy's arguments by position and by name. One file a family; each names what it exports in
``__all__``, and all of that is public as ``cyrt.<name>``.
"""

from typing import TYPE_CHECKING

from cyrt.numpy import (
    aliases,
    arithmetic,
    assignment,
    bit_packing,
    calculus,
    comparison,
    diagonals,
    einstein_sum,
    files,
    functional,
    grids,
    histograms,
    indexing,
    interop,
    manipulation,
    nan_reductions,
    padding,
    products,
    safetensors,
    sets,
    sharing,
    statistics,
    windows,
)
from cyrt.numpy.aliases import *
from cyrt.numpy.arithmetic import *
from cyrt.numpy.assignment import *
from cyrt.numpy.bit_packing import *
from cyrt.numpy.calculus import *
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

# Type checkers read lists of literals only; without one, what `import *` brings is public to them.
if not TYPE_CHECKING:
    __all__ = [
        *aliases.__all__,
        *arithmetic.__all__,
        *assignment.__all__,
        *bit_packing.__all__,
        *calculus.__all__,
        *comparison.__all__,
        *diagonals.__all__,
        *einstein_sum.__all__,
        *files.__all__,
        *functional.__all__,
        *grids.__all__,
        *histograms.__all__,
        *indexing.__all__,
        *interop.__all__,
        *manipulation.__all__,
        *nan_reductions.__all__,
        *padding.__all__,
        *products.__all__,
        *safetensors.__all__,
        *sets.__all__,
        *sharing.__all__,
        *statistics.__all__,
        *windows.__all__,
    ]
