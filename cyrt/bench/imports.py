"""The time of ``import cyrt`` after ``import numpy``, in new interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from cyrt.bench.result import BenchResult

PROGRAM = """
import time
import numpy
begin = time.perf_counter()
import cyrt
print(time.perf_counter() - begin)
"""


def run(rounds: int) -> Iterator[BenchResult]:
    """Yield the median of several imports, after one that fills the disk cache."""
    times = [
        float(
            subprocess.run(
                [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(1 + max(1, rounds // 5))
    ][1:]
    yield BenchResult(
        "other", "import", "import cyrt, numpy imported before", 1e6 * statistics.median(times)
    )
