"""Profiles: what the host recorded and launched, and when a GPU ran it, in a file for Perfetto."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import Counter, deque
from functools import cache
from os import PathLike
from typing import Any, NamedTuple

from cyrt import settings
from cyrt.driver import table
from cyrt.driver.errors import CudaError
from cyrt.driver.frames import outside_line
from cyrt.graph.commit import set_tracer
from cyrt.graph.recorder import commit_current
from cyrt.jit.mangling import readable_name
from cyrt.runtime.device import Device
from cyrt.runtime.event import Event
from cyrt.runtime.reserve import memory_stats
from cyrt.runtime.stream import Stream
from cyrt.runtime.waiting import synchronize
from cyrt.tracing.cupti import Collector, Unavailable

_CLOCK_SECONDS = 5.0  # an event's time is a float32 of ms: 1 µs is lost after 16 s
_CLOCK_NANOSECONDS, _CLOCK_READS = 30_000, 10  # attempts to read the clock twice within this time
# The counts of CommandEncoder.stats() that a profile contains.
_COUNTS = ("hits", "misses", "chained", "instantiations", "patched")
_HOST, _FIRST_DEVICE = 1, 2  # process numbers in the file


class _Clock:
    """The host's time at an event of a device, to within some µs."""

    def __init__(self, device: int) -> None:
        self.device, self.stream = device, Stream(device)
        self.uncertainty = 0  # ns, of the worst reading
        self.read()

    def read(self) -> None:
        """Record the event on an idle stream, between two readings of the host's clock.

        Work of another process may delay the second reading: the closest pair of readings counts.
        """
        closest = sys.maxsize
        for _ in range(_CLOCK_READS):
            event = Event(self.device)
            before = time.perf_counter_ns()
            event.record(self.stream)
            event.synchronize()
            apart = time.perf_counter_ns() - before
            if apart < closest:
                closest, self.event, self.time = apart, event, before + apart // 2
            if closest < _CLOCK_NANOSECONDS:
                break
        self.uncertainty = max(self.uncertainty, closest // 2)


class _TracedBatch(NamedTuple):
    """A batch whose events may not have been reached yet."""

    name: str
    device: int
    row: int
    zero: Event  # an event, and the host's time then
    time: int
    before: Event
    after: Event
    details: dict[str, Any]


class _Commit(NamedTuple):
    """A commit that has begun; the graph's commit records the events around the batch."""

    before: Event
    after: Event
    begun: int  # ns; 0: the first operation was recorded before the profile began
    time: int
    device: int
    reason: str
    stats: dict[str, int]


class Profile:
    """A context that writes a timeline of the work inside, for https://ui.perfetto.dev.

    Parameters
    ----------
    file : str or path
        The file to write, JSON in the trace event format.

    Raises
    ------
    OSError
        The file cannot be written; raised where the context is entered.
    RuntimeError
        Another profile is being written.

    Notes
    -----
    The host has a row for each stream: the span of recording a batch, that of its commit with the
    reason for it and the line of Python that caused it, and in it the launch. A GPU has a row for
    each stream with a span for each batch, measured by events, and, where CUPTI is installed and
    ``CYRT_CUPTI`` is not 0, rows of single operations. Memory in use is a curve. Entering launches
    what was recorded before; leaving waits for the device.
    """

    _current: Profile | None = None

    def __init__(self, file: str | PathLike[str]) -> None:
        self._path = os.fspath(file)
        self._lock = threading.RLock()  # a signal handler may commit, too

    def __enter__(self) -> Profile:
        if Profile._current is not None:
            raise RuntimeError(f"a profile is being written already, to {Profile._current._path}")
        self._file = open(self._path, "w", encoding="utf-8")
        self._events: list[dict[str, Any]] = []
        self._batches: deque[_TracedBatch] = deque()
        self._clocks: dict[int, _Clock] = {}
        self._streams: dict[int, tuple[int, int]] = {}  # device and row, by the state's address
        self._note = ""
        try:
            commit_current()
            synchronize()
            self._collector = self._start_collector()
            self._begin = time.perf_counter_ns()
        except BaseException:
            self._file.close()
            raise
        Profile._current = self
        set_tracer(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            # A program that failed has its own error.
            with contextlib.suppress(*([CudaError] if kind is not None else [])):
                synchronize()
        finally:
            set_tracer(None)
            Profile._current = None
            with self._file:
                if table.is_open():  # else this is a forked child: its parent writes the file
                    self._finish()

    # -- called by the commit --

    def begin_commit(self, encoder: Any, device: int, reason: str, begun: int) -> _Commit:
        """Return the events to record around a batch, which is about to be launched."""
        clock = self._clocks.get(device)
        if clock is None:
            clock = self._clocks[device] = _Clock(device)
        elif time.perf_counter_ns() - clock.time > 1e9 * _CLOCK_SECONDS:
            clock.read()
        events = Event(device), Event(device)
        return _Commit(*events, begun, time.perf_counter_ns(), device, reason, encoder.stats())

    def end_commit(
        self, encoder: Any, stream: int, commit: _Commit, launched: Any, launching: int, end: int
    ) -> None:
        """Add the spans of a batch: a Plan, or the names of operations that ran without one."""
        now = time.perf_counter_ns()
        names = [readable_name(name) for name in getattr(launched, "names", launched)]
        stats, clock = encoder.stats(), self._clocks[commit.device]
        common = Counter(names).most_common()
        what = {"operations": len(names)} | {
            "what": ", ".join(f"{name} × {n}" if n > 1 else name for name, n in common)
        }
        details = {
            "reason": commit.reason,
            "at": outside_line(),
            "thread": threading.current_thread().name,
            **{key: stats[key] - commit.stats[key] for key in _COUNTS},
            **what,
        }
        if stats["fused_plans"] != commit.stats["fused_plans"]:
            details["fused"] = ", ".join(
                f"{node.name}: {len(node.operations)} operations"
                for node in launched.fusion.nodes
                if node.operations
            )
        with self._lock:
            row = self._row(stream, commit.device)
            if commit.begun >= self._begin:
                self._span("record", _HOST, row, commit.begun, commit.time, what)
            self._span("commit", _HOST, row, commit.time, now, details)
            self._span("launch", _HOST, row, launching, end, {})
            self._batches.append(
                _TracedBatch(
                    names[0] if len(names) == 1 else f"{len(names)} operations",
                    commit.device,
                    row,
                    clock.event,
                    clock.time,
                    commit.before,
                    commit.after,
                    details,
                )
            )
            self._add(
                "C",
                "memory in use",
                _FIRST_DEVICE + commit.device,
                0,
                now,
                {"bytes": memory_stats(commit.device)["in_use"]},
            )
            self._read_batches(wait=False)

    # -- the file --

    def _start_collector(self) -> Collector | None:
        """CUPTI, or None where operations are not traced; `_note` says why."""
        if table.driver_info()[1]:
            self._note = "the emulated device: its times are the host's"
        elif not settings.get("CYRT_CUPTI"):
            self._note = "CYRT_CUPTI=0: batches, and no single operations"
        else:
            try:
                collector = _collector()
                collector.start()
                return collector
            except Unavailable as error:
                self._note = f"batches, and no single operations: {error}"
        return None

    def _row(self, stream: int, device: int) -> int:
        """The row of a stream."""
        return self._streams.setdefault(stream, (device, len(self._streams) + 1))[1]

    def _add(
        self, phase: str, name: str, process: int, row: int, at: int, details: dict[str, Any]
    ) -> dict[str, Any]:
        """Add an event of the trace event format; times there are in µs."""
        event = {
            "ph": phase,
            "name": name,
            "pid": process,
            "tid": row,
            "ts": (at - self._begin) / 1e3,
            "args": details,
        }
        self._events.append(event)
        return event

    def _span(
        self, name: str, process: int, row: int, start: int, end: int, details: dict[str, Any]
    ) -> None:
        self._add("X", name, process, row, start, details)["dur"] = (end - start) / 1e3

    def _read_batches(self, wait: bool) -> None:
        """Read the events of the batches, or of those that have ended, in their order."""
        while self._batches and (wait or self._batches[0].after.done):
            batch = self._batches.popleft()
            try:
                start = batch.time + int(1e6 * batch.zero.elapsed_time(batch.before))
                length = int(1e6 * batch.before.elapsed_time(batch.after))
            except CudaError:  # the device has failed
                continue
            process = _FIRST_DEVICE + batch.device
            self._span(batch.name, process, batch.row, start, start + length, batch.details)

    def _read_activities(self, collector: Collector) -> None:
        """Add single operations; operations of a stream that overlap are in separate rows.

        The driver runs the branches of graphs on many internal streams, so all graphs share rows.
        """
        shift = time.perf_counter_ns() - collector.now()
        rows: dict[tuple[int, str], list[list[int]]] = {}  # number and last end of each
        number = 1000
        for each in collector.stop():
            start, end, process = each.start + shift, each.end + shift, _FIRST_DEVICE + each.device
            origin = "graphs" if each.graph else f"CUPTI's stream {each.stream}"
            name = f"operations of {origin}"
            lanes = rows.setdefault((process, name), [])
            lane = next((row for row in lanes if row[1] <= start), None)
            if lane is None:
                lane = [number, 0]
                lanes.append(lane)
                self._name_row(process, number, name)
                number += 1
            lane[1] = end
            self._span(readable_name(each.name), process, lane[0], start, end, each.details)

    def _name_row(self, process: int, row: int, name: str) -> None:
        self._add("M", "thread_name", process, row, self._begin, {"name": name})

    def _name_process(self, process: int, name: str) -> None:
        self._add("M", "process_name", process, 0, self._begin, {"name": name})

    def _finish(self) -> None:
        self._read_batches(wait=True)
        if self._collector is not None:
            try:
                self._read_activities(self._collector)
            except Unavailable as error:
                self._note = f"batches, and no single operations: {error}"
        self._name_process(_HOST, "host")
        for device in self._clocks:
            self._name_process(_FIRST_DEVICE + device, f"GPU {device}: {Device(device).name}")
        for device, row in self._streams.values():
            self._name_row(_HOST, row, f"stream {row}")
            self._name_row(_FIRST_DEVICE + device, row, f"batches of stream {row}")
        uncertainty = max((clock.uncertainty for clock in self._clocks.values()), default=0)
        document = {
            "traceEvents": self._events,
            "otherData": {"note": self._note, "clock_uncertainty_us": uncertainty / 1e3},
        }
        json.dump(document, self._file)


@cache
def _collector() -> Collector:
    return Collector()
