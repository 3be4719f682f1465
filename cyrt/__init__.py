"""cyrt: GPU work from Python, launched as fast as the driver allows.

Importing makes no driver call; the driver is opened at first use (see ``CYRT_DEVICE``).
"""

from __future__ import annotations

import atexit as _atexit

from cyrt import settings as _settings
from cyrt.driver import table as _table
from cyrt.driver.errors import CompileError, CudaError, OutOfMemoryError
from cyrt.graph import completion as _completion
from cyrt.graph.encoder import CommandEncoder, batch, concurrent, current_encoder
from cyrt.graph.recorder import commit_current as commit
from cyrt.kernels import Kernel, Module
from cyrt.runtime import stream as _stream
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory import Buffer, ManagedBuffer, PinnedBuffer, pointer
from cyrt.runtime.pool import memory_stats, trim_memory
from cyrt.runtime.stream import Stream, stream, synchronize

__version__ = "0.1.0"

__all__ = [
    "Buffer",
    "CommandEncoder",
    "CompileError",
    "CudaError",
    "Device",
    "Event",
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
    "memory_stats",
    "pointer",
    "stream",
    "synchronize",
    "trim_memory",
]


@_atexit.register
def _leave() -> None:
    """Let work in flight end, within a limit, and refuse what comes later."""
    _stream.drain(_settings.get("CYRT_EXIT_TIMEOUT"))
    _completion.drain(_settings.get("CYRT_EXIT_TIMEOUT"))
    _table.close()
