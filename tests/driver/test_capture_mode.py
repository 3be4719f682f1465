"""Calls that would end another library's capture are made in the relaxed mode."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "cyrt"
CALL = re.compile(
    r"\bcu\.(cu(?:EventQuery|EventSynchronize|EventElapsedTime|StreamQuery|StreamSynchronize"
    r"|MemAlloc|MemAllocManaged|MemHostAlloc|MemFree|MemFreeHost|ModuleLoadDataEx|ModuleUnload"
    r"|GraphInstantiateWithFlags|GraphExecDestroy))\("
)
FUNCTION = re.compile(r"^ *(?:cp?def|def)\b[^=\n]*\(", re.MULTILINE)


def calls_in(text):
    """Each such call, and whether its function relaxes the mode."""
    starts = [0, *(found.start() for found in FUNCTION.finditer(text)), len(text)]
    for begin, end in pairwise(starts):
        body = text[begin:end]
        for call in CALL.finditer(body):
            yield call[1], "relax()" in body[: call.start()]


def test_every_such_call_is_made_in_the_relaxed_mode():
    found = {}
    for path in ROOT.rglob("*.p[yx][xd]"):
        name = str(path.relative_to(ROOT))
        if not name.startswith("bench/"):  # measures the driver's own calls
            found[name] = list(calls_in(path.read_text()))
    assert sum(map(len, found.values())) >= 18
    assert {
        name: [call for call, relaxed in calls if not relaxed] for name, calls in found.items()
    } == {name: [] for name in found}


def test_a_call_without_it_is_found():
    text = "cdef int f():\n    relax()\n\ncdef int g():\n    cu.cuMemAlloc(p, 1)\n"
    assert list(calls_in(text)) == [("cuMemAlloc", False)]
