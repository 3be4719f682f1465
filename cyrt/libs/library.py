"""What the bindings of all libraries share."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from ctypes import c_int
from typing import Any, ClassVar, TypeVar

from cyrt.driver.errors import CudaError, OutOfMemoryError

# cudaDataType of library_types.h.
DATA_TYPES = {
    "float16": 2,
    "bfloat16": 14,
    "float32": 0,
    "float64": 1,
    "complex64": 4,
    "complex128": 5,
    "int8": 3,
    "int32": 10,
}


# Held while a call is captured, and while a library waits for the whole context: while another
# thread captures a stream, that fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and makes the
# capture invalid. It is reentrant, since a signal handler may call a library in the middle of a
# call.
capturing = threading.RLock()


class Unsupported(Exception):
    """The library does not provide an operation, or not without a part of it that is not
    installed; other kernels have to run."""


def dotted(version: int) -> str:
    """A version as text: 91900 is 9.19.0."""
    return f"{version // 10000}.{version % 10000 // 100}.{version % 100}"


def dotted_short(version: int) -> str:
    """A version of cuFFT as text: 12500 is 12.5.0."""
    return f"{version // 1000}.{version % 1000 // 100}.{version % 100}"


class CLibrary(ABC):
    """A library of C functions that return a status, opened by ctypes.

    Attributes
    ----------
    path : str
    version : int
        `dotted` is it as text.
    functions : dict
        The functions of `signatures` by name.
    """

    title: ClassVar[str]  # the name in messages
    file: ClassVar[str]  # the name for cuda.pathfinder
    minimum: ClassVar[int]  # the oldest version that is used
    signatures: ClassVar[Mapping[str, tuple[Any, ...]]]
    no_memory: ClassVar[int]  # the status of a failed allocation
    refusals: ClassVar[tuple[int, ...]]  # the statuses of operations that are not provided

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened = ctypes.CDLL(path)
        self.version = self.read_version()
        self.dotted = self.dot(self.version)
        self.functions: dict[str, Callable[..., int]] = {}
        for name, types in self.signatures.items():
            function = getattr(self.opened, name)
            function.restype, function.argtypes = c_int, types
            self.functions[name] = function

    @abstractmethod
    def read_version(self) -> int:
        """Return the opened library's version."""

    @staticmethod
    def dot(version: int) -> str:
        return dotted_short(version)

    @abstractmethod
    def describe(self, status: int) -> tuple[str, str]:
        """The name and the meaning of a status."""

    def call(self, name: str, *arguments: Any, detail: object = "") -> None:
        """Call a function, and raise an error if its status is one. The detail is the call's
        subject."""
        status = self.functions[name](*arguments)
        if status:
            self.refuse(name, status, detail)

    def refuse(self, name: str, status: int, detail: object) -> None:
        """Raise the error of a status."""
        symbol, text = self.describe(status)
        if status in self.refusals:
            raise Unsupported(f"{name}: {symbol}: {detail}")
        kind = OutOfMemoryError if status == self.no_memory else CudaError
        raise kind(name, status, symbol, text, str(detail))


L = TypeVar("L", bound=CLibrary)


def open_path(kind: type[L], path: str) -> tuple[L | None, str]:
    """Open the library at a path; return it, or None and why it cannot be used."""
    try:
        opened = kind(path)
    except (OSError, AttributeError) as error:
        return None, f"{kind.title} cannot be opened: {error}"
    if opened.version < kind.minimum:
        least = kind.dot(kind.minimum).removesuffix(".0")
        return None, f"{kind.title} {opened.dotted} is too old; {least} or newer is needed"
    return opened, ""


def find_installed(kind: type[L]) -> tuple[L | None, str]:
    """Find and open the installed library; return it, or None and why there is none."""
    from cuda import pathfinder  # it is not loaded before it is needed

    try:
        path = pathfinder.load_nvidia_dynamic_lib(kind.file).abs_path
    except (pathfinder.DynamicLibNotFoundError, RuntimeError) as error:
        return None, f"{kind.title} is not found: {str(error).splitlines()[0]}"
    return open_path(kind, path) if path else (None, f"{kind.title} has no path")


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
