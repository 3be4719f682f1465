"""Array libraries measured one beside the other, in one process, and what the device can do.

Times are the device's, between events: those of work that is recorded or put on a stream.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import cyrt

ROUNDS = 12


@dataclass
class Library:
    """One that is measured.

    Attributes
    ----------
    put, get : callable
        To the device, and back.
    mark : callable
        Gives an event, recorded.
    between : callable
        ms between two of them, once both have passed.
    """

    name: str
    put: Callable[[np.ndarray], Any]
    get: Callable[[Any], np.ndarray]
    mark: Callable[[], Any]
    between: Callable[[Any, Any], float]

    def time(self, work: Callable[[int], Any], sets: int) -> float:
        """Median µs of a call; `work` is given the number of the set of inputs to use."""
        times = []
        for _ in range(ROUNDS):
            begin = self.mark()
            for each in range(sets):
                work(each)
            times.append(1e3 * self.between(begin, self.mark()) / sets)
        return statistics.median(times)


def own() -> Library:
    """This one."""

    def mark() -> cyrt.Event:
        event = cyrt.Event()
        event.record()
        return event

    def between(begin: cyrt.Event, end: cyrt.Event) -> float:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library("cyrt", cyrt.asarray, lambda x: x.numpy(), mark, between)


def _torch() -> Library:
    import torch

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(begin: Any, end: Any) -> float:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library("PyTorch", lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy(),
                   mark, between)


def _cupy() -> Library:
    import cupy

    def mark() -> Any:
        event = cupy.cuda.Event()
        event.record()
        return event

    def between(begin: Any, end: Any) -> float:
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end)

    return Library("CuPy", cupy.asarray, cupy.asnumpy, mark, between)


def libraries() -> Iterator[Library]:
    """This one, and on a GPU those of the others that are installed."""
    yield own()
    if cyrt.Device().emulated:
        return
    for other in (_torch, _cupy):
        try:
            yield other()
        except ImportError:
            continue


def copy_rate(nbytes: int) -> float:
    """GB/s of a plain device copy that reads and writes so many bytes together."""
    half = nbytes // 2
    pairs = [(cyrt.Buffer(half), cyrt.Buffer(half)) for _ in range(2)]
    for source, _ in pairs:
        source.fill(1)
    return nbytes / own().time(lambda each: pairs[each][1].copy_from(pairs[each][0]), 2) / 1e3


def write_rate(nbytes: int) -> float:
    """GB/s of filling so many bytes."""
    targets = [cyrt.Buffer(nbytes) for _ in range(2)]
    return nbytes / own().time(lambda each: targets[each].fill(1), 2) / 1e3
