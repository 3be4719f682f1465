"""Common parts of the benchmark scripts: array libraries, clocks, reference rates, the rows.

Device times are medians between two events. On the emulated device, whose times are unrelated to a
GPU's, and with ``--small``, results are checked at small sizes and nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cyrt
from cyrt.builtin import background
from cyrt.graph import fusion, plan_cache

ROUNDS = 12
SETTLE_SECONDS = 60.0
QUIET = 8  # loops in a row in which nothing is compiled or compared, until a loop is settled
PATIENCE = 2.0  # seconds without news after which batches that wait for a comparison are left
ADDITIONS = 100_000  # of floats, for the speed of the host


@dataclass(frozen=True)
class Library:
    """An array library.

    Attributes
    ----------
    name : str
    module
    to_device, to_host : callable
        Convert from and to NumPy arrays.
    record_event : callable
        Records an event and returns it.
    elapsed : callable
        Waits for two events, and returns the milliseconds between them.
    synchronize : callable
    """

    name: str
    module: Any
    to_device: Callable[[np.ndarray], Any]
    to_host: Callable[[Any], np.ndarray]
    record_event: Callable[[], Any]
    elapsed: Callable[[Any, Any], float]
    synchronize: Callable[[], None]


@dataclass(frozen=True)
class Row:
    """A case in one library: times in µs per call, None if not timed."""

    case: str
    what: str
    device: float | None = None
    host: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Case:
    """A call on arrays, one function per library, and its expected result.

    The first input is the result where a function returns None.
    """

    name: str
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    nbytes: int
    functions: dict[str, Callable[..., Any]]

    def measure(self, session: Session, library: Library, tolerance: float = 0.0) -> Row:
        """Check the result to a relative tolerance, and measure the rate of `nbytes`."""
        inputs = [library.to_device(each) for each in self.inputs]
        function = self.functions[library.name]
        result = function(*inputs)
        found = library.to_host(inputs[0] if result is None else result)
        np.testing.assert_allclose(
            found.astype(self.expected.dtype), self.expected, tolerance, err_msg=self.name
        )
        took = session.device_time(library, lambda _: function(*inputs))
        return Row(
            self.name,
            f"{library.name}: {self.nbytes / 1e6:,.0f} MB moved",
            took,
            note=session.copy_note(took, self.nbytes),
        )


class Session:
    """One execution of a script.

    Attributes
    ----------
    small : bool
        True if results are only checked, at small sizes.
    libraries : list of Library
        cyrt first, then PyTorch and CuPy if they are installed; only cyrt if `small`.
    others : list of str
        The Pythons of other installations of cyrt, for a script that takes them.
    """

    def __init__(self, small: bool, others: Sequence[str] = ()) -> None:
        self.small, self.others = small, list(others)
        self.libraries = [_cyrt()]
        for other in () if small else (_torch, _cupy):
            try:
                self.libraries.append(other())
            except ImportError:
                continue

    def device_time(
        self,
        library: Library,
        work: Callable[[int], Any],
        sets: int = 1,
        busy: Callable[[], Any] | None = None,
    ) -> float | None:
        """Median µs per call on the device.

        Parameters
        ----------
        library : Library
        work : callable
            Function of the index of the set of inputs. Sets rotate, so that no cache keeps inputs
            from one call to the next.
        sets : int
        busy : callable, optional
            Puts other work on the device, during which the host records or launches the calls.
        """
        if self.small:
            return None
        times = []
        for _ in range(ROUNDS):
            if busy is not None:
                busy()
            begin = library.record_event()
            for i in range(sets):
                work(i)
            times.append(1e3 * library.elapsed(begin, library.record_event()) / sets)
        return statistics.median(times)

    def host_time(
        self, library: Library, work: Callable[[int], Any], sets: int = 1
    ) -> float | None:
        """Median µs per call that waits for its result; see :meth:`device_time`."""
        if self.small:
            return None
        times = []
        for round_number in range(ROUNDS):
            library.synchronize()
            begin = time.perf_counter()
            work(round_number % sets)
            library.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        return statistics.median(times)

    def copy_note(self, took: float | None, nbytes: int) -> str:
        """The rate of a call, and its fraction of a device copy's rate.

        Parameters
        ----------
        took : float, optional
            µs of the call.
        nbytes : int
            Bytes that it reads and writes, each once.
        """
        if took is None:
            return ""
        half = nbytes // 2
        pairs = [(cyrt.Buffer(half), cyrt.Buffer(half)) for _ in range(2)]
        for source, _ in pairs:
            source.fill(1)
        copy = self.device_time(self.libraries[0], lambda i: pairs[i][1].copy_from(pairs[i][0]), 2)
        return _rate_note(took, nbytes, copy, "a copy")

    def fill_note(self, took: float | None, nbytes: int) -> str:
        """The rate of a call that writes this many bytes, and its fraction of a fill's rate."""
        if took is None:
            return ""
        targets = [cyrt.Buffer(nbytes) for _ in range(2)]
        fill = self.device_time(self.libraries[0], lambda i: targets[i].fill(1), 2)
        return _rate_note(took, nbytes, fill, "a fill")


def _rate_note(took: float, nbytes: int, reference: float | None, name: str) -> str:
    assert reference is not None  # it is measured where the call is
    rate, most = nbytes / took / 1e3, nbytes / reference / 1e3
    return f"{rate:,.0f} GB/s; {100 * rate / most:.0f} % of {name}'s {most:,.0f}"


def _cyrt() -> Library:
    def record_event() -> cyrt.Event:
        event = cyrt.Event()
        event.record()
        return event

    def elapsed(begin: cyrt.Event, end: cyrt.Event) -> float:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library(
        "cyrt", cyrt, cyrt.asarray, lambda x: x.numpy(), record_event, elapsed, cyrt.synchronize
    )


def _torch() -> Library:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("this PyTorch has no CUDA")

    def to_device(host: np.ndarray) -> Any:
        if host.dtype.name == "bfloat16":  # PyTorch does not support ml_dtypes.bfloat16
            return torch.from_numpy(host.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(host).cuda()

    def to_host(x: Any) -> Any:
        return (x.float() if x.dtype == torch.bfloat16 else x).cpu().numpy()

    def record_event() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed(begin: Any, end: Any) -> Any:
        end.synchronize()
        return begin.elapsed_time(end)

    return Library(
        "PyTorch", torch, to_device, to_host, record_event, elapsed, torch.cuda.synchronize
    )


def _cupy() -> Library:
    import cupy

    def record_event() -> Any:
        event = cupy.cuda.Event()
        event.record()
        return event

    def elapsed(begin: Any, end: Any) -> Any:
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end)

    return Library(
        "CuPy",
        cupy,
        cupy.asarray,
        cupy.asnumpy,
        record_event,
        elapsed,
        cupy.cuda.get_current_stream().synchronize,
    )


def settle_fusion(run: Callable[[], object]) -> None:
    """Run a loop until everything that is hot in it is compiled and judged. A fused batch of
    earlier loops that does not come back is never judged, so nothing waits for it for long."""
    start = heard = time.monotonic()
    news, quiet = (0, 0), 0
    while quiet < QUIET and heard - start < SETTLE_SECONDS:
        waiting = sum(not each.judged for each in plan_cache.list_fused_plans())
        before, news = news, (fusion.counts()[0], waiting)
        if news != before or background.is_compiling():
            heard, quiet = time.monotonic(), 0
        elif not waiting or time.monotonic() - heard > PATIENCE:
            quiet += 1
        run()


def unfused(before: dict[str, int], after: dict[str, int]) -> str:
    """Return a note on the batches that were launched in between and not fused."""
    launches = after["launches"] - before["launches"]
    plain = launches - (after["fused_plans"] - before["fused_plans"])
    if plain == 0:
        return ""
    reasons = {
        plan.fusion.outcome: None
        for plan in plan_cache.list_plans()
        if plan.fusion is not None and plan.fusion.rejected
    }
    if plain == launches:
        return f"not fused: {'; '.join(reasons) or 'no batch came back often enough'}"
    return f"{plain} of {launches} launches not fused" + f": {'; '.join(reasons)}" * bool(reasons)


def main(
    description: str, measure: Callable[[Session], Iterable[Row]], takes_others: bool = False
) -> int:
    """Run a script: parse its options, measure, print each row when it is there.

    Parameters
    ----------
    description : str
        The script's docstring.
    measure : callable
        Yields the rows; raises AssertionError if a result is wrong.
    takes_others : bool
        Whether the script compares installations of cyrt.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--small", action="store_true", help="check results at small sizes, without times"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    if takes_others:
        parser.add_argument(
            "others", nargs="*", metavar="PYTHON", help="the Python of another installation of cyrt"
        )
    options = parser.parse_args()
    device = cyrt.Device()
    speed = f", whose host adds two floats in {time_addition():.0f} ns" * (not device.emulated)
    print(f"{device.name}{speed}: µs a call, on the host and on the device", flush=True)
    rows = []
    others = options.others if takes_others else []
    for row in measure(Session(options.small or device.emulated, others)):
        _print_row(row)
        rows.append(row)
    if options.json is not None:
        options.json.write_text(
            json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8",
        )
    return 0


def time_addition() -> float:
    """Return the least time in ns in which Python adds two floats in a loop: hosts of the same GPU
    differ by a factor of two."""
    times = []
    for _ in range(ROUNDS):
        x, y = 1.0, 2.0
        start = time.perf_counter()
        for _ in range(ADDITIONS):
            x = x + y
        times.append(time.perf_counter() - start)
    return 1e9 * min(times) / ADDITIONS


def _print_row(row: Row) -> None:
    host, device = ("" if each is None else f"{each:,.2f}" for each in (row.host, row.device))
    timed = host or device
    note = row.note if timed else "checked, not timed"
    print(f"{row.case:<32} {row.what:<64} {host:>12} {device:>12}  {note}".rstrip(), flush=True)
