"""Every ``CYRT_`` environment variable: its type, default and meaning, in one place.

A variable is read once, at its first use; changing the environment afterwards has no effect.
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
        if value >= 1:
            return value
    raise ValueError("expected a whole number of at least 1")


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
    """One variable: how its text is read, its default, and what it does."""

    parse: Callable[[str], Any]
    default: Any
    text: str


SETTINGS: dict[str, Setting] = {
    "CYRT_DEVICE": Setting(
        _choice("auto", "cuda", "emulated"),
        "auto",
        "cuda: the NVIDIA driver; emulated: the device that ships in the package; "
        "auto: the driver where it reports a device, else the emulated one with a warning",
    ),
    "CYRT_CHECK": Setting(
        _switch,
        False,
        "checking mode of the emulated device (reads of bytes nobody wrote are errors); "
        "implies CYRT_POOL=0",
    ),
    "CYRT_POOL": Setting(
        _switch,
        True,
        "0: every Buffer is a driver allocation of exactly its size, for memory checkers",
    ),
    "CYRT_MEMORY_LIMIT": Setting(
        _size, None, "most bytes of device memory that the pool takes from each device"
    ),
    "CYRT_EMULATED_DEVICES": Setting(_count, 1, "number of emulated devices"),
    "CYRT_EMULATED_MEMORY": Setting(_size, 8 << 30, "bytes of memory of an emulated device"),
    "CYRT_GRAPHS": Setting(
        _switch, True, "0: every operation is launched on its stream at once, with no graph"
    ),
    "CYRT_LAUNCH_BLOCKING": Setting(
        _switch, False, "1: operations run one at a time, and an error names the one"
    ),
    "CYRT_MAX_OPS_PER_GRAPH": Setting(_count, 128, "operations in a batch, at most"),
    "CYRT_MAX_MB_PER_GRAPH": Setting(
        _count, 4096, "MB of memory that a batch touches, each block once, at most"
    ),
    "CYRT_GRAPH_CACHE_SIZE": Setting(_count, 400, "topologies kept, at most"),
    "CYRT_GRAPH_CACHE_BYTES": Setting(
        _size, 256 << 20, "bytes of host and device memory in kept graphs, at most"
    ),
    "CYRT_REPLAY": Setting(
        _choice("1", "0", "verify"),
        "1",
        "0: every operation is recorded; verify: what was replayed is recorded, too, and compared",
    ),
    "CYRT_FUSE": Setting(
        _switch,
        True,
        "0: the operations of a batch that is launched often are not compiled into one",
    ),
    "CYRT_FUSE_AFTER": Setting(_count, 8, "launches of a batch after which it is compiled"),
    "CYRT_TEMPLATE_CACHE_SIZE": Setting(
        _count,
        1000,
        "calls of other libraries whose launches are known, at most; "
        "more are kept while plans or recordings hold them",
    ),
    "CYRT_TF32": Setting(
        _switch,
        False,
        "1: float32 products and convolutions may round their operands to TF32, for speed",
    ),
    "CYRT_CONV_AUTOTUNE": Setting(
        _switch,
        False,
        "1: the first convolution of a kind measures cuDNN's plans, and the fastest is remembered",
    ),
    "CYRT_NVTX": Setting(_nvtx, False, "1: an NVTX range around each commit, by the package nvtx"),
    "CYRT_CUPTI": Setting(
        _switch, True, "0: traces hold batches only, and no single operations, which CUPTI times"
    ),
    "CYRT_PDL": Setting(_switch, True, "0: no programmatic edges between kernels"),
    "CYRT_EARLY_LOADS": Setting(
        _switch, True, "0: no kernel loads its weights before those that it depends on have ended"
    ),
    "CYRT_CACHE": Setting(_switch, True, "0: compiled kernels are neither read from disk nor kept"),
    "CYRT_CACHE_DIR": Setting(str, None, "folder for compiled kernels; default: the user's cache"),
    "CYRT_CACHE_SIZE": Setting(
        _size, 1 << 30, "bytes of compiled kernels on disk, at most; the least used go first"
    ),
    "CYRT_JIT_DUMP": Setting(
        str,
        None,
        "folder for each compilation's source, PTX, cubin and log; nothing is taken "
        "from the cache then",
    ),
    "CYRT_LINEINFO": Setting(
        _switch, False, "1: source lines in what is compiled at run time, for profilers"
    ),
    "CYRT_EXIT_TIMEOUT": Setting(
        _seconds, 5.0, "seconds that the interpreter's exit waits for work in flight"
    ),
}


@cache
def get(name: str) -> Any:
    """The value of a setting.

    Raises
    ------
    ValueError
        The variable holds a text that is not of its type; the message names both.
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
    """Return the texts of the variables that are not at their defaults."""
    values = ((name, get(name)) for name in SETTINGS)
    return {
        name: os.environ.get(name, str(value))
        for name, value in values
        if value != SETTINGS[name].default
    }


def warn_of_unknown_names() -> None:
    """Warn of variables whose names begin as ours do and that nothing reads."""
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
