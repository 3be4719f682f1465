"""What ``import cyrt`` costs beyond ``import numpy``, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys

from cyrt.bench import Row

PROGRAM = """
import time
import numpy
begin = time.perf_counter()
import cyrt
print(time.perf_counter() - begin)
"""


def run() -> list[Row]:
    """The median of eleven, after one that warms the disk."""
    times = [
        float(subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                             check=True).stdout)
        for _ in range(12)
    ][1:]
    return [Row("import", "import cyrt, numpy imported before", 1e6 * statistics.median(times))]
