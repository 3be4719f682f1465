"""The search for the fastest block of a kernel over n elements, on request, and its result.

A choice is an entry of the disk cache, keyed by the code, the kernel, the device's name and the
size class of n (its number of bits).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from statistics import median
from typing import TYPE_CHECKING, Any, SupportsIndex

from cyrt.error_text import show
from cyrt.jit import cache
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.memory import Buffer

if TYPE_CHECKING:
    from cyrt.kernels.kernel import Kernel

_SAMPLES = 7
_REPEATS = 16  # most launches in a sample
_SAMPLE_SECONDS = 1e-3  # intended duration of a sample


def choose(
    kernel: Kernel,
    n: int,
    blocks: Iterable[SupportsIndex],
    smem: int,
    written: Sequence[Buffer],
    args: tuple[Any, ...],
    declared: dict[str, Any],
) -> int:
    """Return the fastest of the blocks and store it; the memory that the kernel writes is restored.

    Parameters
    ----------
    written : sequence of Buffers and Arrays
        Memory that the kernel writes.
    args, declared
        The kernel's arguments, and its ``reads=`` and ``writes=``.
    """
    if n == 0:
        raise ValueError(f"{kernel.name}: n: expected at least 1 element to tune with")
    launches: dict[int, Callable[[], None]] = {
        block: partial(kernel[-(-n // block), block, smem], *args, **declared)
        for block in _allowed(kernel, blocks)
    }
    block = _fastest(launches, written)
    _remember(kernel, n, smem, block)
    return block


def _allowed(kernel: Kernel, blocks: Iterable[SupportsIndex]) -> list[int]:
    """The blocks that the kernel allows; an error if there is none."""
    if not isinstance(blocks, Iterable):
        raise TypeError(f"blocks: expected numbers of threads, got {show(blocks)}")
    candidates = list(blocks)
    for block in candidates:
        if isinstance(block, bool) or not hasattr(block, "__index__"):
            raise TypeError(f"blocks: expected numbers of threads, got {show(block)}")
        if block.__index__() < 1:
            raise ValueError(f"blocks: expected numbers of at least 1, got {block}")
    allowed = sorted({index(block) for block in candidates if index(block) <= kernel.max_threads})
    if not allowed:
        raise ValueError(
            f"{kernel.name}: blocks: expected a block of {kernel.max_threads:,} threads or fewer, "
            f"which is what the kernel allows, got {candidates}"
        )
    return allowed


def _fastest(launches: dict[int, Callable[[], None]], written: Sequence[Buffer]) -> int:
    """Time launches by events on the current stream."""
    aside = []
    for buffer in written:
        aside.append(Buffer(buffer.nbytes, buffer.device))
        aside[-1].copy_from(buffer)

    def restore() -> None:
        for buffer, copy in zip(written, aside, strict=True):
            copy.copy_to(buffer)

    def sample(launch: Callable[[], None], repeats: int) -> float:
        restore()
        begin, end = Event(), Event()
        begin.record()
        for _ in range(repeats):
            launch()
        end.record()
        return begin.elapsed_time(end) / 1e3 / repeats

    try:
        # The first round warms up, and determines the number of launches in a sample. It is the
        # same for all blocks, because a sample has a fixed cost.
        shortest = min(sample(launch, 1) for launch in launches.values())
        repeats = min(_REPEATS, 1 + int(_SAMPLE_SECONDS / max(shortest, 1e-9)))
        # Blocks are measured in turns, so that a change of the clock rate affects all of them.
        times: dict[int, list[float]] = {block: [] for block in launches}
        for _ in range(_SAMPLES):
            for block, launch in launches.items():
                times[block].append(sample(launch, repeats))
    finally:
        restore()
    return min(times, key=lambda block: median(times[block]))


def _facts(kernel: Kernel, n: int, smem: int) -> dict[str, object]:
    return {
        "kind": "tuning",
        "code": kernel.module._digest,
        "kernel": kernel.name,
        "device": Device.current().name,
        "elements": [1 << n.bit_length() - 1, (1 << n.bit_length()) - 1],
        "smem": smem,
    }


def _key(facts: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _remember(kernel: Kernel, n: int, smem: int, block: int) -> None:
    """Store the choice for later processes; a cache that cannot be written gives a warning."""
    store = cache.current()
    if store:
        facts = _facts(kernel, n, smem)
        store.put(_key(facts), {**facts, "block": block})


def recall_block(kernel: Kernel, n: int, smem: int) -> int | None:
    """Return the block that an earlier tuning chose; None if there was no tuning."""
    store = cache.current()
    found = store.get(_key(_facts(kernel, n, smem))) if store else None
    return found[0]["block"] if found else None
