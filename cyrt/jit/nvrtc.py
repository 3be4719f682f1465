"""The NVRTC library: loaded at its first use; one function per compilation."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from glob import escape, glob
from types import ModuleType
from typing import Any, NamedTuple

from cyrt.driver import table
from cyrt.driver.errors import CompileError, CudaError

_INSTALL = (
    "NVRTC compiles CUDA C++ at run time: pip install 'cyrt[cu13]' "
    "(or 'cyrt[cu12]' for a driver of CUDA 12)"
)


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """A block in which no finalizer runs, unless the program calls the collector itself."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@functools.cache
def _nvrtc() -> ModuleType:
    try:
        # A finalizer that compiles a kernel would find the package imported in part.
        with _collector_off():
            from cuda.bindings import nvrtc

        _load_for_driver()
        # The first call opens the library.
        nvrtc.nvrtcVersion()
    except Exception as error:
        raise CompileError(
            "nvrtcVersion", -1, "NVRTC_NOT_FOUND", f"NVRTC cannot be loaded ({error})", _INSTALL
        ) from error
    found: ModuleType = nvrtc
    return found


def driver_major() -> int:
    """Return the driver's major version of CUDA; 0 for the emulated device and without a driver."""
    try:
        _, emulated, version = table.driver_info()
    except CudaError:
        return 0
    return 0 if emulated else version // 1000


def _load_for_driver() -> None:
    """Load the newest NVRTC whose code the driver loads, if a newer one is installed as well.

    The bindings ask `cuda.pathfinder`, which returns the library that is loaded already, and
    otherwise the newest wheel's.
    """
    wheels: dict[int, str] = {}
    for site in sys.path:
        for path in glob(os.path.join(escape(site), "nvidia", "*", "lib", "libnvrtc.so.*")):
            found = re.fullmatch(r"libnvrtc\.so\.(\d+)", os.path.basename(path))
            if found:
                wheels.setdefault(int(found[1]), path)
    major = driver_major()
    older = [each for each in wheels if each <= major]
    if not older or max(wheels) <= major or any(map(_is_loaded, wheels)):
        return
    ctypes.CDLL(wheels[max(older)])


def _is_loaded(major: int) -> bool:
    try:
        ctypes.CDLL(f"libnvrtc.so.{major}", mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def nvrtc_version() -> tuple[int, int]:
    """Return NVRTC's version, e.g. ``(13, 0)``; a `CompileError` if there is no NVRTC."""
    status, major, minor = _nvrtc().nvrtcVersion()
    _check("nvrtcVersion", status)
    return major, minor


def library_path() -> str | None:
    """Return the path of the NVRTC library, or None if there is none."""
    try:
        from cuda import pathfinder

        return str(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError):
        return None


def supported_archs() -> list[int]:
    """Return the architectures that this NVRTC compiles for, ascending: 90 is ``sm_90``."""
    status, archs = _nvrtc().nvrtcGetSupportedArchs()
    _check("nvrtcGetSupportedArchs", status)
    return sorted(archs)


class Result(NamedTuple):
    """The result of one compilation.

    Attributes
    ----------
    status : int
    name : str
        The status's name.
    log : str
    lowered : dict of str to str
        The symbol of each name expression; this and the later fields are empty after an error.
    ptx : str
    cubin : bytes
        Empty for a virtual architecture.
    """

    status: int
    name: str
    log: str
    lowered: dict[str, str]
    ptx: str
    cubin: bytes


def run(
    source: str,
    filename: str,
    options: Sequence[str],
    headers: Mapping[str, str],
    expressions: Sequence[str],
    *,
    cubin: bool,
) -> Result:
    """Compile once; raise `CompileError` only if NVRTC itself fails."""
    nvrtc = _nvrtc()
    status, program = nvrtc.nvrtcCreateProgram(
        source.encode(),
        filename.encode(),
        len(headers),
        [text.encode() for text in headers.values()],
        [name.encode() for name in headers],
    )
    _check("nvrtcCreateProgram", status)
    try:
        for name in expressions:
            _check("nvrtcAddNameExpression", *nvrtc.nvrtcAddNameExpression(program, name.encode()))
        # This call releases the GIL.
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _bytes(nvrtc, "ProgramLog", program).rstrip(b"\0\n ").decode(errors="replace")
        if status:
            return Result(int(status), status.name, log, {}, "", b"")
        lowered = {}
        for name in expressions:
            found, symbol = nvrtc.nvrtcGetLoweredName(program, name.encode())
            _check("nvrtcGetLoweredName", found)
            lowered[name] = symbol.decode()
        ptx = _bytes(nvrtc, "PTX", program).rstrip(b"\0").decode()
        code = _bytes(nvrtc, "CUBIN", program) if cubin else b""
        return Result(0, status.name, log, lowered, ptx, code)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check(call: str, status: Any) -> None:
    if status:
        raise CompileError(call, int(status), status.name)


def _bytes(nvrtc: ModuleType, what: str, program: Any) -> bytes:
    status, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _check(f"nvrtcGet{what}Size", status)
    data = bytearray(size)
    _check(f"nvrtcGet{what}", *getattr(nvrtc, f"nvrtcGet{what}")(program, data))
    return bytes(data)
