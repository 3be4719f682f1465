"""A list of the batches that are launched: the reason of the commit, names and edges of each."""

from __future__ import annotations

import bisect
import contextlib
from types import SimpleNamespace

import cyrt
from cyrt.graph import commit as commits


class Log:
    """Is told of each batch that is launched, as a trace is."""

    def __init__(self):
        self.batches, self.times = [], []

    def begin_commit(self, encoder, device, reason, begun):
        return SimpleNamespace(before=cyrt.Event(), after=cyrt.Event(), reason=reason)

    def end_commit(self, encoder, stream, commit, launched, launching, end):
        names = list(getattr(launched, "names", launched))  # without a graph it is a list of names
        # Another thread may have launched the next batch, and told of it, meanwhile.
        i = bisect.bisect(self.times, launching)
        self.times.insert(i, launching)
        self.batches.insert(i, (commit.reason, names, list(getattr(launched, "edges", ()))))


@contextlib.contextmanager
def logged():
    """Yield a list to which the batches that are launched inside the block are appended."""
    log = Log()
    commits.set_tracer(log)
    try:
        yield log.batches
    finally:
        commits.set_tracer(None)
