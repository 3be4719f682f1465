"""What the bindings of all libraries share."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any


class Unsupported(Exception):
    """The library does not provide an operation, or not without a part of it that is not
    installed; other kernels have to run."""


def dotted(version: int) -> str:
    """A version as text: 91900 is 9.19.0."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}"


class Handle:
    """A handle of a library, for one thread and one context of a device."""

    def __init__(self, value: Any, destroy: Callable[[Any], object]) -> None:
        self.value = value
        self._destroy = destroy
        self._process = os.getpid()

    # At exit the module is empty.
    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing() and self._process == os.getpid():
            self._destroy(self.value)


class Handles(threading.local):
    """The handles of a thread, by library, device and epoch."""

    def __init__(self) -> None:
        self.by_device: dict[tuple[Any, int, int], Handle] = {}
