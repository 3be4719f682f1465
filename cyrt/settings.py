"""All ``CYRT_`` environment variables: their types, defaults and meanings.

A variable is read once, when it is first needed; a change of the environment after that has no
effect.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import platformdirs

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("expected 0 or 1")


def _nvtx(text: str) -> bool:
    value = _switch(text)
    if value and importlib.util.find_spec("nvtx") is None:
        raise ValueError("it needs the package nvtx, which is not installed: pip install nvtx")
    return value


def _size(text: str) -> int:
    body = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = body[-1:] if body[-1:].isalpha() else ""
    number = body.removesuffix(unit)
    if unit not in _UNITS or not number.isdigit():
        raise ValueError("expected a number of bytes, such as 1073741824, 512M or 2G")
    return int(number) * _UNITS[unit]


def _count(text: str) -> int:
    with contextlib.suppress(ValueError):
        value = int(text)
        if 1 <= value < 1 << 31:
            return value
    raise ValueError("expected a whole number from 1 to 2**31 - 1")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        value = float(text)
        if value >= 0:
            return value
    raise ValueError("expected a number of seconds of 0 or more")


def _choice(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        lowered = text.strip().lower()
        if lowered not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return lowered

    return parse


@dataclass(frozen=True)
class Setting:
    """One variable: the function that reads its text, its default, and its meaning."""

    parse: Callable[[str], Any]
    default: Any
    text: str


SETTINGS: dict[str, Setting] = {
    "CYRT_DEVICE": Setting(
        _choice("auto", "cuda", "emulated"),
        "auto",
        "cuda: the NVIDIA driver; emulated: the device that ships in the package; "
        "auto: the driver if it reports a device, otherwise the emulated device, with a warning",
    ),
    "CYRT_CHECK": Setting(
        _switch,
        False,
        "checking mode of the emulated device (reads of bytes that were never written are errors); "
        "implies CYRT_POOL=0",
    ),
    "CYRT_POOL": Setting(
        _switch,
        True,
        "0: every Buffer is a driver allocation of exactly its size, for memory checkers",
    ),
    "CYRT_MEMORY_LIMIT": Setting(
        _size, None, "maximum number of bytes that the pool takes from each device"
    ),
    "CYRT_EMULATED_DEVICES": Setting(_count, 1, "number of emulated devices"),
    "CYRT_EMULATED_MEMORY": Setting(_size, 8 << 30, "bytes of memory of an emulated device"),
    "CYRT_GRAPHS": Setting(
        _switch, True, "0: every operation is launched on its stream immediately, without graphs"
    ),
    "CYRT_LAUNCH_BLOCKING": Setting(
        _switch, False, "1: operations run one at a time, and an error names the operation"
    ),
    "CYRT_MAX_OPS_PER_GRAPH": Setting(_count, 128, "maximum number of operations in a batch"),
    "CYRT_MAX_MB_PER_GRAPH": Setting(
        _count, 4096, "maximum number of MB that a batch uses, each block counted once"
    ),
    "CYRT_GRAPH_CACHE_SIZE": Setting(_count, 400, "maximum number of topologies that are kept"),
    "CYRT_GRAPH_CACHE_BYTES": Setting(
        _size, 256 << 20, "maximum number of bytes of host and device memory in kept graphs"
    ),
    "CYRT_REPLAY": Setting(
        _choice("1", "0", "verify"),
        "1",
        "0: every operation is recorded; verify: replayed batches are also recorded, and compared",
    ),
    "CYRT_FUSE": Setting(
        _switch,
        None,
        "1: operations of a batch that is launched often are compiled into fewer kernels; "
        "0: never; default: 1 on a GPU, 0 on the emulated device",
    ),
    "CYRT_FUSE_AFTER": Setting(_count, 8, "launches of a batch after which it is compiled"),
    "CYRT_TEMPLATE_CACHE_SIZE": Setting(
        _count,
        1000,
        "maximum number of calls of other libraries whose kernels are kept; "
        "those that plans or recordings use are kept beyond it",
    ),
    "CYRT_TF32": Setting(
        _switch,
        False,
        "1: float32 products and convolutions may round their operands to TF32, for speed",
    ),
    "CYRT_CONV_AUTOTUNE": Setting(
        _switch,
        False,
        "1: the first convolution of each kind measures cuDNN's plans; the fastest is remembered",
    ),
    "CYRT_NVTX": Setting(_nvtx, False, "1: an NVTX range around each commit, by the package nvtx"),
    "CYRT_CUPTI": Setting(
        _switch, True, "0: profiles have batches only, and no single operations, timed by CUPTI"
    ),
    "CYRT_PDL": Setting(_switch, True, "0: no programmatic edges between kernels"),
    "CYRT_EARLY_LOADS": Setting(
        _switch, True, "0: no kernel loads weights before the kernels that it depends on are done"
    ),
    "CYRT_CACHE": Setting(
        _switch, True, "0: compiled kernels are neither read from disk nor written to it"
    ),
    "CYRT_CACHE_DIR": Setting(str, None, "folder for compiled kernels; default: the user's cache"),
    "CYRT_CACHE_SIZE": Setting(
        _size, 1 << 30, "maximum bytes of compiled kernels on disk; least recently used go first"
    ),
    "CYRT_JIT_DUMP": Setting(
        str,
        None,
        "folder for the source, PTX, cubin and log of each compilation; no kernel is read "
        "from the cache then",
    ),
    "CYRT_LINEINFO": Setting(
        _switch, False, "1: kernels that are compiled at run time contain source lines"
    ),
    "CYRT_EXIT_TIMEOUT": Setting(
        _seconds, 5.0, "maximum number of seconds that the interpreter waits at exit"
    ),
}


@cache
def get(name: str) -> Any:
    """The value of a setting.

    Raises
    ------
    ValueError
        The variable has a value that is not allowed; the message names both.
    """
    setting = SETTINGS[name]
    text = os.environ.get(name)
    if text is None or text == "":
        return setting.default
    try:
        return setting.parse(text)
    except ValueError as error:
        raise ValueError(f"{name}={text!r}: {error}") from None


def changed() -> dict[str, str]:
    """Return the values of the variables that are not at their defaults, as text."""
    values = ((name, get(name)) for name in SETTINGS)
    return {
        name: os.environ.get(name, str(value))
        for name, value in values
        if value != SETTINGS[name].default
    }


def warn_of_unknown_names() -> None:
    """Warn of variables whose names begin with CYRT_ and that do not exist."""
    for name in os.environ:
        if name.startswith("CYRT_") and not name.startswith("CYRT_TEST_") and name not in SETTINGS:
            words = {each.removeprefix("CYRT_"): each for each in SETTINGS}
            similar = difflib.get_close_matches(name.removeprefix("CYRT_"), words, 1)
            warnings.warn(
                f"the environment variable {name} has no effect"
                + (f"; {words[similar[0]]} exists" if similar else ""),
                RuntimeWarning,
                stacklevel=3,
            )


def cache_dir() -> str:
    """The folder for compiled kernels: ``CYRT_CACHE_DIR`` or the user's cache folder."""
    folder: str | None = get("CYRT_CACHE_DIR")
    return platformdirs.user_cache_dir("cyrt", appauthor=False) if folder is None else folder
