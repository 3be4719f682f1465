"""A row's code: prebuilt for the device, prebuilt PTX, or compiled on the spot.

In this order: the cubin for the device's architecture, the one for the highest lower minor of the
same major, PTX (newer GPUs, the emulated device), the compiler. What the driver refuses is passed
over. Prebuilt code is loaded a module (a family and an element type) at a time, compiled code a row
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from cyrt import jit
from cyrt.driver.errors import CompileError
from cyrt.kernels import catalogue
from cyrt.runtime.device import Device
from cyrt.runtime.module import LoadedFunction, LoadedModule, loading

_PACKAGE = Path(__file__).resolve().parent.parent
PREBUILT = _PACKAGE / "kernels" / "prebuilt"
TEMPLATES = _PACKAGE / "kernels_cu"
PTX_ARCH = 90

_Loaded = tuple[LoadedModule, str]      # the code and where it comes from
# By device, context and name of the module or kernel.
_modules: dict[tuple[int, int, str], _Loaded] = {}


def _images(name: str, device: Device) -> Iterator[tuple[Path, str]]:
    """The prebuilt files that may run on a device, best first, and what they are."""
    major, minor = device.compute_capability
    if not device.emulated:
        for lower in range(minor, -1, -1):
            yield (PREBUILT / f"sm_{major}{lower}" / f"{name}.cubin",
                   f"prebuilt cubin sm_{major}{lower}")
    if 10 * major + minor >= PTX_ARCH:
        yield PREBUILT / f"compute_{PTX_ARCH}" / f"{name}.ptx", f"prebuilt PTX compute_{PTX_ARCH}"


def _prebuilt(path: Path, origin: str, device: Device) -> _Loaded:
    return LoadedModule(path.read_bytes(), device), origin


def compiled(rows: Sequence[catalogue.Row], device: Device) -> _Loaded:
    """Rows compiled for a device, in one module, and where they come from."""
    arch = jit.compiler.architecture(device.compute_capability, device.emulated)
    image = jit.compiler.compile(
        catalogue.source(rows), arch=arch,
        options=(f"-I{TEMPLATES}", f"-I{TEMPLATES / 'include'}"),
        filename=f"{rows[0].kernels[0]}.cu")
    return LoadedModule(image.code, device), f"JIT {arch}"


def _once(key: tuple[int, int, str], load: Callable[[], _Loaded]) -> _Loaded:
    """The code of that name, loaded by one thread; where that one fails, the next one tries."""
    if key not in _modules:
        with loading:
            if key not in _modules:
                # A signal handler that ran in the load may have been first.
                _modules.setdefault(key, load())
    return _modules[key]


def load(row: catalogue.Row, ordinal: int, epoch: int) -> tuple[list[LoadedFunction], str]:
    """The kernels of a row on a device, one a variant, and where they come from.

    Parameters
    ----------
    row : catalogue.Row
    ordinal : int
        The device.
    epoch : int
        Of the device's context: code loaded before a reset is gone.

    Raises
    ------
    CompileError
        No prebuilt code runs on the device and there is no compiler; the notes tell what was
        tried.
    """
    device = Device(ordinal)
    refused = []
    for key in [key for key in list(_modules) if key[0] == ordinal and key[1] != epoch]:
        _modules.pop(key, None)     # of a context that was reset
    for path, origin in _images(row.module, device):
        key = ordinal, epoch, row.module
        try:
            module, origin = _once(key, partial(_prebuilt, path, origin, device))
            return [module.function(name) for name in row.kernels], origin
        except FileNotFoundError:
            continue
        except KeyError:            # the module holds only the prebuilt rows
            break
        except CompileError as error:
            refused.append(f"{origin}: {str(error).splitlines()[0]}")
    key = ordinal, epoch, row.kernels[0]
    try:
        module, origin = _once(key, partial(compiled, [row], device))
    except CompileError as error:
        for line in refused:
            error.add_note(line)
        raise
    return [module.function(name) for name in row.kernels], origin
