"""Programs of array operators on 1,024 floats, each of which depends on the one before."""

from __future__ import annotations

import numpy as np

import cyrt
from cyrt.bench.program import CHAIN, CHAINS, N, Program, WrongResult


class ArrayChain(Program):
    """``x = x + b``, a new array each time; committed every 100 operations."""

    def __init__(self) -> None:
        self.x = cyrt.zeros(N)
        self.ones = cyrt.ones(N)
        self.count = 0

    def work(self) -> int:
        x, b = self.x, self.ones
        del self.x  # there is no other reference
        for _ in range(CHAINS):
            for _ in range(CHAIN):
                x = x + b
            cyrt.commit()
        self.x = x
        self.count += CHAIN * CHAINS
        return CHAIN * CHAINS

    def check(self) -> None:
        found = self.x.numpy()
        wrong = np.flatnonzero(found != self.count)
        if len(wrong):
            raise WrongResult(
                f"arrays: element {wrong[0]} is {found[wrong[0]]}, expected "
                f"{self.count} ({len(wrong)} of {N} are wrong)"
            )


class InPlaceChain(ArrayChain):
    """``x += b``."""

    def work(self) -> int:
        x, b = self.x, self.ones
        for _ in range(CHAINS):
            for _ in range(CHAIN):
                x += b
            cyrt.commit()
        self.count += CHAIN * CHAINS
        return CHAIN * CHAINS


class NumberChain(ArrayChain):
    """``x = x + 1.0``."""

    def work(self) -> int:
        x = self.x
        del self.x
        for _ in range(CHAINS):
            for _ in range(CHAIN):
                x = x + 1.0
            cyrt.commit()
        self.x = x
        self.count += CHAIN * CHAINS
        return CHAIN * CHAINS


class SyncedArrays(ArrayChain):
    """``x = x + b`` six times, then the first element on the host."""

    def work(self) -> int:
        x, b = self.x, self.ones
        del self.x
        for _ in range(6):
            x = x + b
        self.x = x
        self.count += 6
        if x[0].item() != self.count:
            self.check()
        return 6


PROGRAMS: dict[str, type[ArrayChain]] = {
    "x = x + b": ArrayChain,
    "x += b": InPlaceChain,
    "x = x + 1.0": NumberChain,
    "x = x + b six times, item()": SyncedArrays,
}
