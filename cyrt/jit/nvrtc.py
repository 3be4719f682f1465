"""The NVRTC library, which is loaded at its first use, and a function that compiles a source."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from types import ModuleType
from typing import Any, NamedTuple

from cyrt.driver import table
from cyrt.driver.errors import CompileError, CudaError
from cyrt.jit import headers

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
    """Load the NVRTC that the driver's version and the installed headers decide.

    The bindings ask `cuda.pathfinder`, which returns the newest library that is loaded already, and
    otherwise a wheel's. So one that another package needs changes nothing if it is older.
    """
    installed = installed_libraries()
    with_headers = [major for major in installed if headers.are_installed(major)]
    chosen = choose_major(installed, driver_major(), with_headers)
    if chosen and not any(_is_loaded(each) for each in installed if each >= chosen):
        ctypes.CDLL(installed[chosen])


def choose_major(installed: Iterable[int], driver: int, with_headers: Collection[int]) -> int:
    """Return the newest of the installed major versions that has headers of its own, among those
    whose code the driver loads.

    Parameters
    ----------
    installed : iterable of int
        The major versions of the installed libraries.
    driver : int
        The driver's major version; 0 if any is suitable.
    with_headers : collection of int
        The major versions whose headers are installed. If no library is of one of them, the newest
        library is chosen.

    Returns
    -------
    int
        0: there is none.
    """
    suitable = [each for each in installed if not driver or each <= driver]
    return max([each for each in suitable if each in with_headers] or suitable, default=0)


def installed_libraries() -> dict[int, str]:
    """Return the NVRTC libraries of wheels and of toolkits by major version; wheels come first."""
    folders = [os.path.join(escape(site), "nvidia", "*", "lib") for site in sys.path]
    roots = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    folders += [os.path.join(escape(root), "lib64") for root in roots if root]
    if "CONDA_PREFIX" in os.environ:
        folders.append(os.path.join(escape(os.environ["CONDA_PREFIX"]), "lib"))
    found: dict[int, str] = {}
    for folder in folders:
        for path in sorted(glob(os.path.join(folder, "libnvrtc.so.*"))):
            version = re.fullmatch(r"libnvrtc\.so\.(\d+)", os.path.basename(path))
            if version:
                found.setdefault(int(version[1]), path)
    return found


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
