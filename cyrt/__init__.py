"""cyrt: GPU work from Python, launched as fast as the driver allows.

Importing makes no driver call; the driver is opened at first use (see ``CYRT_DEVICE``).
"""

from __future__ import annotations

import atexit as _atexit
from math import e, inf, nan, pi

from cyrt import methods as _methods  # noqa: F401
from cyrt import random
from cyrt.driver.errors import CompileError, CudaError, OutOfMemoryError
from cyrt.dtypes import DTYPES as _DTYPES
from cyrt.dtypes import DType, dtype
from cyrt.graph.encoder import CommandEncoder, batch, concurrent, current_encoder
from cyrt.graph.recorder import commit_current as commit
from cyrt.kernels import Kernel, Module
from cyrt.leaving import leave as _leave
from cyrt.ndarray import Array
from cyrt.numpy_names import *  # noqa: F403
from cyrt.numpy_names import __all__ as _numpy_names
from cyrt.numpy_names import ufuncs as _ufuncs  # noqa: F401
from cyrt.ops import *  # noqa: F403
from cyrt.ops import __all__ as _functions
from cyrt.ops import __array_api_version__, __array_namespace_info__  # noqa: F401
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory import Buffer, ManagedBuffer, PinnedBuffer, pointer
from cyrt.runtime.pool import memory_stats, trim_memory
from cyrt.runtime.stream import Stream, stream, synchronize

__version__ = "0.1.0"

bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64 = _DTYPES[:9]
float16, bfloat16, float32, float64, complex64, complex128 = _DTYPES[9:]
# NumPy's other names.
bool_, byte, short, intc, int_, intp = bool, int8, int16, int32, int64, int64
ubyte, ushort, uintc, uint, uintp = uint8, uint16, uint32, uint64, uint64
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128
newaxis, euler_gamma = None, 0.5772156649015329
ndarray = Array     # in place of the submodule: what isinstance() is asked with NumPy's name

__all__ = [
    "Array",
    "Buffer",
    "CommandEncoder",
    "CompileError",
    "CudaError",
    "DType",
    "Device",
    "Event",
    "Kernel",
    "ManagedBuffer",
    "Module",
    "OutOfMemoryError",
    "PinnedBuffer",
    "Stream",
    "batch",
    "bool_",
    "byte",
    "cdouble",
    "commit",
    "concurrent",
    "csingle",
    "current_encoder",
    "double",
    "dtype",
    "e",
    "euler_gamma",
    "half",
    "inf",
    "int_",
    "intc",
    "intp",
    "memory_stats",
    "nan",
    "ndarray",
    "newaxis",
    "pi",
    "pointer",
    "random",
    "short",
    "single",
    "stream",
    "synchronize",
    "trim_memory",
    "ubyte",
    "uint",
    "uintc",
    "uintp",
    "ushort",
    *(each.name for each in _DTYPES),
    *_functions,
    *_numpy_names,
]


_atexit.register(_leave)
