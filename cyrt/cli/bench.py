"""``python -m cyrt bench``: arguments, progress, and the report's files."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import cyrt
from cyrt import settings
from cyrt.bench.cases import CASES, Case
from cyrt.bench.floor_cases import FLOORS, measure_floor
from cyrt.bench.measurement import Bench
from cyrt.bench.result import BenchResult
from cyrt.cli.bench_comparison import compare
from cyrt.cli.bench_plot import PICTURES, draw
from cyrt.cli.bench_report import Report
from cyrt.cli.output import Refusal, one_line, say, unwritable

MOST_ROUNDS = 2000  # programs count in float32, which is exact up to 2**24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Measure what launches cost; each case checks its results first."
    parser.epilog = (
        f"The cases are {', '.join(CASES)}. Whole programs, other libraries, products, sorting, "
        "reductions, indexing, random numbers and elementwise kernels are measured by the scripts "
        "in tools/benchmarks/ of cyrt's source."
    )
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="measure only this case; repeatable"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=60,
        metavar="N",
        help="the number of measurements of each program, whose median is shown (default: 60)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="also draw the figures: .svg, .png or .pdf"
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("A", "B"),
        help="do not measure; print the figures of two files that --json wrote, and B / A",
    )


def run(options: argparse.Namespace, cases: Mapping[str, Case] = CASES) -> int:
    """Measure the cases that the options name, or all; print the table, and write the files.

    Raises
    ------
    Refusal
        An option is invalid, or there is no device or no compiler; nothing was printed.
    WrongResult
        A program's results are wrong; nothing was printed or written.
    """
    if options.compare is not None:
        for name in ("case", "json", "plot"):
            if getattr(options, name) is not None:
                raise Refusal(f"--compare measures nothing, so --{name} cannot be given beside it")
        return compare(*options.compare)
    names = list(dict.fromkeys(options.case or cases))
    for name in names:
        if name not in cases:
            raise Refusal(f"no case is named {name!r}; there are {', '.join(cases)}")
    if not 1 <= options.rounds <= MOST_ROUNDS:
        raise Refusal(f"rounds: expected a number from 1 to {MOST_ROUNDS}, got {options.rounds}")
    _check_files(options.json, options.plot)

    try:
        device = cyrt.Device()
    except cyrt.CudaError as error:
        raise Refusal(one_line(error)) from None
    report = Report(device.name, device.emulated, device.compute_capability, settings.changed(), [])
    try:
        _measure(report, {name: cases[name] for name in names}, options.rounds)
    except cyrt.CompileError as error:
        if error.name != "NVRTC_NOT_FOUND":
            raise
        raise Refusal(one_line(error)) from None
    report.show()
    for file, write in ((options.json, report.write), (options.plot, partial(draw, report))):
        try:
            if file is not None:
                write(file)
        except OSError as error:
            raise Refusal(f"{file} cannot be written: {error.strerror or error}") from None
    return 0


def run_script(cases: Mapping[str, Case], arguments: list[str] | None = None) -> int:
    """Run a script's cases with the command's options, and return the exit status."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.description, parser.epilog = None, f"cases: {', '.join(cases)}"
    options = parser.parse_args(arguments)
    try:
        return run(options, cases)
    except Refusal as refusal:
        say(f"{parser.prog}: {refusal}")
        return 2


def _check_files(json_file: Path | None, picture: Path | None) -> None:
    for file in (json_file, picture):
        reason = None if file is None else unwritable(file)
        if reason is not None:
            raise Refusal(f"{file} cannot be written: {reason}")
    if picture is not None:
        if picture.suffix.lower() not in PICTURES:
            raise Refusal(f"{picture}: expected a name that ends in {' or '.join(PICTURES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise Refusal(
                "--plot needs matplotlib, which is not installed: pip install 'cyrt[bench]'"
            )


def _measure(report: Report, cases: Mapping[str, Case], rounds: int) -> None:
    """Add the rows of the floors, with which the cases are compared, and those of the cases."""
    bench = Bench(rounds)
    floors = [floor for floor in FLOORS if any(floor in case.floors for case in cases.values())]
    console = Console(stderr=True)
    # On stderr, and erased at the end: a pipe gets the table only.
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=len(floors) + len(cases))

        def step(name: str, rows: Iterable[BenchResult]) -> None:
            progress.update(task, description=f"measuring {name}")
            report.rows.extend(rows)
            progress.advance(task)

        for name in floors:
            step(name, [measure_floor(bench, name)])
        for name, case in cases.items():
            step(name, case.run(bench))
