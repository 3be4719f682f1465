"""The code of a row: prebuilt for the device, prebuilt PTX, or compiled at first use.

The first of these that exists is used: the cubin for the device's architecture; the cubin for the
highest lower minor version of the same major version; PTX (for newer GPUs and the emulated device);
the compiler. Code that the driver refuses is skipped. Prebuilt code is loaded one module (a family
and an element type) at a time, compiled code one row at a time.
"""

from __future__ import annotations

import lzma
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from cyrt import jit
from cyrt.builtin import catalogue
from cyrt.builtin.row import Row
from cyrt.driver.errors import CompileError
from cyrt.logger import logger
from cyrt.runtime.device import Device
from cyrt.runtime.module import LoadedFunction, LoadedModule, load_uninterrupted, loading
from cyrt.version import __version__

_PACKAGE = Path(__file__).resolve().parent.parent


def prebuilt_folder() -> Path:
    """Return the folder of the prebuilt kernels: in the package, if it was built from source, or in
    ``cyrt-kernels``, which released wheels require."""
    own = _PACKAGE / "builtin" / "prebuilt"
    if own.is_dir() or find_spec("cyrt_kernels") is None:
        return own
    cyrt_kernels = import_module("cyrt_kernels")
    if cyrt_kernels.__version__ != __version__:
        warnings.warn(
            f"cyrt-kernels {cyrt_kernels.__version__} is not used: this is cyrt {__version__}. "
            f"pip install cyrt-kernels=={__version__}",
            RuntimeWarning,
            stacklevel=2,
        )
        return own
    return Path(str(cyrt_kernels.__file__)).parent / "prebuilt"


PREBUILT = prebuilt_folder()
TEMPLATES = _PACKAGE / "kernels_cu"
PTX_ARCH = 90

_Loaded = tuple[LoadedModule, str]  # the code and its origin
# Loaded code by device, context and name of the module or kernel.
_modules: dict[tuple[int, int, str], _Loaded] = {}


def _images(name: str, device: Device) -> Iterator[tuple[Path, str]]:
    """Yield the prebuilt files that may run on a device, best first, and their origin."""
    major, minor = device.compute_capability
    if not device.emulated:
        for lower in range(minor, -1, -1):
            yield (
                PREBUILT / f"sm_{major}{lower}" / f"{name}.cubin",
                f"prebuilt cubin sm_{major}{lower}",
            )
    if 10 * major + minor >= PTX_ARCH:
        yield PREBUILT / f"compute_{PTX_ARCH}" / f"{name}.ptx", f"prebuilt PTX compute_{PTX_ARCH}"


def best_origin(device: Device) -> str:
    """Return where a device's built-in kernels come from, if the driver refuses nothing."""
    for path, origin in _images("any", device):
        if path.parent.is_dir():
            ptx = path.suffix == ".ptx" and not device.emulated
            return origin + (", which the driver compiles at first use" if ptx else "")
    return "none is prebuilt for it: NVRTC compiles each at first use"


def read(path: Path) -> bytes:
    """Read a file; the package of kernels has it compressed."""
    if path.exists():
        return path.read_bytes()
    return lzma.decompress(path.with_name(f"{path.name}.xz").read_bytes())


def _prebuilt(path: Path, origin: str, device: Device) -> _Loaded:
    return LoadedModule(read(path), device), origin


def compile_rows(rows: Sequence[Row], device: Device) -> _Loaded:
    """Compile rows for a device in one module; return the code and its origin."""
    arch = jit.compiler.architecture(device.compute_capability, device.emulated)
    image = jit.compiler.compile(
        catalogue.source(rows),
        arch=arch,
        options=(f"-I{TEMPLATES}", f"-I{TEMPLATES / 'include'}"),
        filename=f"{rows[0].kernels[0]}.cu",
    )
    return LoadedModule(image.code, device), f"JIT {arch}"


def _load_once(key: tuple[int, int, str], load: Callable[[], _Loaded]) -> _Loaded:
    """Return the code of that name, loaded by one thread; if it fails, the next thread tries."""
    if key not in _modules:
        with loading:
            if key not in _modules:
                # A signal handler that ran during the load may have loaded it first.
                load_uninterrupted(key, lambda: _modules.setdefault(key, load()))
    return _modules[key]


def load(row: Row, ordinal: int, epoch: int) -> tuple[list[LoadedFunction], str]:
    """Return the kernels of a row on a device, one per variant, and their origin.

    Parameters
    ----------
    row : catalogue.Row
    ordinal : int
        The device.
    epoch : int
        The epoch of the device's context: code loaded before a reset is gone.

    Raises
    ------
    CompileError
        No prebuilt code runs on the device and there is no compiler; the notes list the attempts.
    """
    device = Device(ordinal)
    refused = []
    for key in [key for key in list(_modules) if key[0] == ordinal and key[1] != epoch]:
        _modules.pop(key, None)  # from a context that was reset
    for path, origin in _images(row.module, device):
        key = ordinal, epoch, row.module
        try:
            module, origin = _load_once(key, partial(_prebuilt, path, origin, device))
            return [module.function(name) for name in row.kernels], origin
        except FileNotFoundError:
            continue
        except KeyError:  # the module holds only the prebuilt rows
            break
        except CompileError as error:
            refused.append(f"{origin}: {str(error).splitlines()[0]}")
            logger.warning("the driver refuses %s, %s", row.module, refused[-1])
    key = ordinal, epoch, row.kernels[0]
    if key not in _modules:
        logger.info("%s is not prebuilt for %s: NVRTC compiles it", row.kernels[0], device)
    try:
        module, origin = _load_once(key, partial(compile_rows, [row], device))
    except CompileError as error:
        for line in refused:
            error.add_note(line)
        raise
    return [module.function(name) for name in row.kernels], origin
