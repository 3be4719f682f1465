"""cyrt: GPU work from Python, launched as fast as the driver allows.

Importing makes no driver call; the driver is opened at first use (see ``CYRT_DEVICE``).
"""

from __future__ import annotations

import atexit as _atexit

from cyrt import settings as _settings
from cyrt.driver import table as _table
from cyrt.driver.errors import CompileError, CudaError, OutOfMemoryError
from cyrt.dtypes import DTYPES as _DTYPES
from cyrt.dtypes import DType
from cyrt.graph import completion as _completion
from cyrt.graph.encoder import CommandEncoder, batch, concurrent, current_encoder
from cyrt.graph.recorder import commit_current as commit
from cyrt.kernels import Kernel, Module
from cyrt.ndarray import Array
from cyrt.ops import methods as _methods  # noqa: F401
from cyrt.ops.copy import astype, copy, to_device
from cyrt.ops.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from cyrt.ops.elementwise import clip, where
from cyrt.ops.promotion import can_cast, isdtype, result_type
from cyrt.runtime import stream as _stream
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory import Buffer, ManagedBuffer, PinnedBuffer, pointer
from cyrt.runtime.pool import memory_stats, trim_memory
from cyrt.runtime.stream import Stream, stream, synchronize

__version__ = "0.1.0"

# float32, int64, bool ...
globals().update({each.name: each for each in _DTYPES})

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
    "arange",
    "asarray",
    "astype",
    "batch",
    "can_cast",
    "clip",
    "commit",
    "concurrent",
    "copy",
    "current_encoder",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "isdtype",
    "memory_stats",
    "ones",
    "ones_like",
    "pointer",
    "result_type",
    "stream",
    "synchronize",
    "to_device",
    "trim_memory",
    "where",
    "zeros",
    "zeros_like",
]


@_atexit.register
def _leave() -> None:
    """Let work in flight end, within a limit, and refuse what comes later."""
    _stream.drain(_settings.get("CYRT_EXIT_TIMEOUT"))
    _completion.drain(_settings.get("CYRT_EXIT_TIMEOUT"))
    _table.close()
