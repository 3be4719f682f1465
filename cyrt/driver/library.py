"""Finding and opening the driver's library: the real driver, or the emulated device."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from pathlib import Path

from cyrt import settings
from cyrt.driver.errors import CudaError
from cyrt.driver.frames import outside_stacklevel
from cyrt.logger import logger

# cuGetProcAddress's second version, cuStreamGetId and graph node types require 12.0.
MINIMUM_VERSION = 12000

EMULATOR = Path(__file__).resolve().parent.parent / "emulator" / "libcyrt_emu.so"


def driver_name() -> str:
    """The file name of the driver's library on this system."""
    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def _device_count(library: ctypes.CDLL) -> tuple[int, int]:
    """(result, count): the result of ``cuInit`` if that failed, else of ``cuDeviceGetCount``."""
    result = library.cuInit(0)
    if result:
        return result, 0
    count = ctypes.c_int()
    result = library.cuDeviceGetCount(ctypes.byref(count))
    return result, count.value


def _error_name(library: ctypes.CDLL, result: int) -> str:
    name = ctypes.c_char_p()
    library.cuGetErrorName(result, ctypes.byref(name))
    return (name.value or b"an unknown code").decode()


def version(library: ctypes.CDLL) -> int:
    """The CUDA version that an opened driver supports, 13000 for 13.0."""
    number = ctypes.c_int()
    result = library.cuDriverGetVersion(ctypes.byref(number))
    if result:
        raise CudaError("cuDriverGetVersion", result, _error_name(library, result))
    return number.value


def _open_driver() -> ctypes.CDLL:
    """The NVIDIA driver with at least one device, or a CudaError that names what is missing."""
    name = driver_name()
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise CudaError(
            "dlopen",
            100,
            "CUDA_ERROR_NO_DEVICE",
            f"the NVIDIA driver ({name}) cannot be opened: " + str(error).removeprefix(f"{name}: "),
        ) from None
    found = version(library)
    if found < MINIMUM_VERSION:
        raise CudaError(
            "cuDriverGetVersion",
            803,
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            f"the NVIDIA driver supports CUDA {_dotted(found)}, cyrt needs "
            f"{_dotted(MINIMUM_VERSION)} or newer",
            "Update the NVIDIA driver.",
        )
    result, count = _device_count(library)
    if result or not count:
        raise CudaError(
            "cuInit" if result else "cuDeviceGetCount",
            result or 100,
            _error_name(library, result or 100),
            "the NVIDIA driver reports no device",
        )
    return library


def _open_emulator() -> ctypes.CDLL:
    # The library reads integers from the environment: "2G" and "yes" are translated.
    for name in ("CYRT_CHECK", "CYRT_EMULATED_DEVICES", "CYRT_EMULATED_MEMORY"):
        os.environ[name] = str(int(settings.get(name)))
    try:
        library = ctypes.CDLL(str(EMULATOR))
    except OSError as error:
        raise CudaError(
            "dlopen",
            301,
            "CUDA_ERROR_FILE_NOT_FOUND",
            f"the emulated device ({EMULATOR.name}) cannot be opened: {error}",
            "Install cyrt again.",
        ) from None
    if not library.cyrt_emu_runs_here():
        raise CudaError(
            "dlopen",
            802,
            "CUDA_ERROR_SYSTEM_NOT_READY",
            "the emulated device was compiled for processors with AVX2 and FMA, which this one "
            "lacks",
            "Build cyrt on this machine, or elsewhere with -Csetup-args=-Dprocessors=all.",
        )
    return library


def _dotted(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def open_library() -> tuple[ctypes.CDLL, bool]:
    """Open the library that ``CYRT_DEVICE`` selects.

    Returns
    -------
    library : ctypes.CDLL
    emulated : bool

    Raises
    ------
    CudaError
        ``CYRT_DEVICE=cuda`` and there is no driver, it is too old, or it reports no device.
    """
    choice = settings.get("CYRT_DEVICE")
    if choice == "emulated":
        return _open_emulator(), True
    try:
        return _open_driver(), False
    except CudaError as error:
        if choice == "cuda":
            raise
        library = _open_emulator()
        reason = str(error).splitlines()[0]
        logger.warning("the emulated device is used: %s", reason)
        warnings.warn(
            f"cyrt runs on its emulated device, on the CPU: {reason}. "
            "CYRT_DEVICE=emulated chooses it without this warning.",
            RuntimeWarning,
            stacklevel=outside_stacklevel(),
        )
        return library, True
