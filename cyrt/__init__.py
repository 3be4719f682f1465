"""cyrt: GPU work from Python, launched as fast as the driver allows.

Importing makes no driver call; the driver is opened at first use (see ``CYRT_DEVICE``).
"""

from __future__ import annotations

import atexit as _atexit
import typing as _typing
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

try:
    from cyrt import methods as _methods  # noqa: F401
except ModuleNotFoundError as _error:
    from pathlib import Path as _Path

    _folder = _Path(__file__).parent
    # Only the sources have this file, and they have no compiled modules.
    if (_error.name or "").startswith("cyrt.") and (_folder / "meson.build").exists():
        raise ImportError(
            f"cyrt was imported from its sources in {_folder}, which have no compiled modules "
            f"({_error}). To import the installed package, start Python in another folder or with "
            "the option -P; to install it, run `pip install .` in the sources."
        ) from None
    raise
from cyrt import nn as nn
from cyrt import random as random
from cyrt.driver.errors import CompileError as CompileError
from cyrt.driver.errors import CudaError as CudaError
from cyrt.driver.errors import OutOfMemoryError as OutOfMemoryError
from cyrt.dtypes import DTYPES as _DTYPES
from cyrt.dtypes import DType as DType
from cyrt.dtypes import dtype as dtype
from cyrt.explaining import Example as Example
from cyrt.explaining import Explanation as Explanation
from cyrt.explaining import explain as explain
from cyrt.graph.recorder import commit_current as _commit_current
from cyrt.kernels import Kernel as Kernel
from cyrt.kernels import Module as Module
from cyrt.kernels.encoder import CommandEncoder as CommandEncoder
from cyrt.kernels.encoder import batch as batch
from cyrt.kernels.encoder import concurrent as concurrent
from cyrt.kernels.encoder import current_encoder as current_encoder
from cyrt.leaving import leave as _leave
from cyrt.ndarray import Array as Array
from cyrt.numpy.functions import *  # noqa: F403
from cyrt.ops import *  # noqa: F403
from cyrt.ops import __all__ as _functions
from cyrt.ops import __array_api_version__, __array_namespace_info__  # noqa: F401
from cyrt.profiling import profile as profile
from cyrt.runtime.device import Device as Device
from cyrt.runtime.device import is_available as is_available
from cyrt.runtime.event import Event as Event
from cyrt.runtime.host_memory import ManagedBuffer as ManagedBuffer
from cyrt.runtime.host_memory import PinnedBuffer as PinnedBuffer
from cyrt.runtime.memory import Buffer as Buffer
from cyrt.runtime.memory import pointer as pointer
from cyrt.runtime.reserve import memory_stats as memory_stats
from cyrt.runtime.reserve import trim_memory as trim_memory
from cyrt.runtime.stream import Stream as Stream
from cyrt.runtime.stream import stream as stream
from cyrt.runtime.waiting import synchronize as synchronize
from cyrt.settings import warn_of_unknown_names as _warn_of_unknown_names
from cyrt.version import __version__  # noqa: F401

_warn_of_unknown_names()

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64 = _DTYPES[:9]
float16, bfloat16, float32, float64, complex64, complex128 = _DTYPES[9:]
commit = _commit_current
ndarray = Array  # NumPy's name of the class; it replaces the submodule of that name
newaxis = None

if _typing.TYPE_CHECKING:
    # Their names in `cyrt.ops.__all__` are not literals; `round` is that of `cyrt.ops`.
    from cyrt.ops.functions import *  # noqa: F403
    from cyrt.ops.reduce import *  # noqa: F403

# Type checkers read lists of literals only. Without a list, what is imported under its own name
# (``as``) and what `import *` brings is public to them.
if not _typing.TYPE_CHECKING:
    from cyrt.numpy.functions import __all__ as _numpy_names

    __all__ = [
        "Array",
        "Buffer",
        "CommandEncoder",
        "CompileError",
        "CudaError",
        "DType",
        "Device",
        "Event",
        "Example",
        "Explanation",
        "Kernel",
        "ManagedBuffer",
        "Module",
        "OutOfMemoryError",
        "PinnedBuffer",
        "Stream",
        "batch",
        "commit",
        "concurrent",
        "current_encoder",
        "dtype",
        "e",
        "explain",
        "inf",
        "is_available",
        "memory_stats",
        "nan",
        "ndarray",
        "newaxis",
        "nn",
        "pi",
        "pointer",
        "profile",
        "random",
        "stream",
        "synchronize",
        "trim_memory",
        *(each.name for each in _DTYPES),
        *_functions,
        *_numpy_names,
    ]


def __dir__() -> list[str]:
    return [*globals()["__all__"], "__version__", "kernels", "numpy"]


_atexit.register(_leave)
