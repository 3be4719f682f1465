"""Which block a kernel over n elements is fastest with: measured on request, and remembered.

A choice is a small JSON file in the cache folder, keyed by the code, the kernel, the device's name
and the size class of n (its number of bits). It is written aside and renamed, so that a reader
never sees half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cyrt import settings
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory import Buffer

if TYPE_CHECKING:
    from cyrt.kernels.kernel import Kernel

_SAMPLES = 7
_REPEATS = 16           # launches in a sample, at most
_SAMPLE_SECONDS = 1e-3  # that a sample should last


def checked_blocks(kernel: Kernel, blocks: Iterable[int]) -> list[int]:
    """The blocks to try, those the kernel allows.

    Raises
    ------
    TypeError, ValueError
        One is no number of threads, or none is allowed.
    """
    given = list(blocks)
    for block in given:
        if isinstance(block, bool) or not hasattr(block, "__index__"):
            raise TypeError(f"blocks: expected numbers of threads, got {block!r}")
        if block.__index__() < 1:
            raise ValueError(f"blocks: expected numbers of at least 1, got {block}")
    allowed = sorted({b.__index__() for b in given if b <= kernel.max_threads})
    if not allowed:
        raise ValueError(f"{kernel.name}: blocks: expected one of at most {kernel.max_threads:,} "
                         f"threads, which the kernel allows, got {given}")
    return allowed


def fastest(launches: dict[int, Callable[[], None]], written: Sequence[Buffer]) -> int:
    """Time launches by events; what they write is as before when this returns.

    Parameters
    ----------
    launches : dict
        By block, what puts the kernel on the current stream.
    written : sequence of Buffers
        What the kernel writes.
    """
    aside = []
    for buffer in written:
        aside.append(Buffer(buffer.nbytes, buffer.device))
        aside[-1].copy_from(buffer)

    def restore() -> None:
        for buffer, copy in zip(written, aside, strict=True):
            buffer.copy_from(copy)

    def sample(launch: Callable[[], None], repeats: int) -> float:
        restore()
        begin, end = Event(), Event()
        begin.record()
        for _ in range(repeats):
            launch()
        end.record()
        return begin.elapsed_time(end) / 1e3 / repeats

    try:
        # The first round warms up, and tells how many launches make a sample.
        repeats = {
            block: min(_REPEATS, 1 + int(_SAMPLE_SECONDS / max(sample(launch, 1), 1e-9)))
            for block, launch in launches.items()
        }
        # Round by round: a clock that drifts moves all alike.
        times: dict[int, list[float]] = {block: [] for block in launches}
        for _ in range(_SAMPLES):
            for block, launch in launches.items():
                times[block].append(sample(launch, repeats[block]))
    finally:
        restore()
    return min(times, key=lambda block: median(times[block]))


def _identity(kernel: Kernel, n: int, smem: int) -> dict[str, object]:
    return {
        "code": kernel.module._digest,
        "kernel": kernel.name,
        "device": Device.current().name,
        "elements": [1 << n.bit_length() - 1, (1 << n.bit_length()) - 1],
        "smem": smem,
    }


def _path(identity: dict[str, object]) -> Path:
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return Path(settings.cache_dir()) / "tuning" / f"{key[:40]}.json"


def remember(kernel: Kernel, n: int, smem: int, block: int) -> None:
    """Keep the choice for later processes; a cache that cannot be written warns."""
    if not settings.get("CYRT_CACHE"):
        return
    identity = _identity(kernel, n, smem)
    path = _path(identity)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with open(handle, "w") as file:
                json.dump({**identity, "block": block}, file, indent=1)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        warnings.warn(f"{kernel.name}: the tuned block cannot be kept in {path.parent} ({error})",
                      RuntimeWarning, stacklevel=3)


def remembered(kernel: Kernel, n: int, smem: int) -> int | None:
    """The block that an earlier tuning chose; None where there was none that can be read."""
    if not settings.get("CYRT_CACHE"):
        return None
    try:
        block = json.loads(_path(_identity(kernel, n, smem)).read_bytes())["block"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return block if type(block) is int and 1 <= block <= kernel.max_threads else None
