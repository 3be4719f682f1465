"""``python -m cyrt bench``: what a launch costs, beside the floors measured in the same process.

Every case checks its results, those of the measured work included, before it prints a time.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import cyrt
from cyrt import settings
from cyrt.bench.cases import CASES, FLOORS, Bench
from cyrt.bench.peers import PEERS, measure
from cyrt.bench.report import PICTURES, Report, Row

MOST_ROUNDS = 2000      # programs count in float32, exactly up to 2**24


def run(names: list[str] | None = None, *, rounds: int = 60, others: str | None = None,
        json_file: Path | None = None, picture: Path | None = None) -> int:
    """Measure, print a table, and write what is asked for.

    Parameters
    ----------
    names : list of str, optional
        Cases; all where left out.
    rounds : int
        How often each is measured; the median counts.
    others : str, optional
        Peers to measure as well: names with commas between, or ``all``.
    json_file, picture : Path, optional
        Files to write: the figures, and bars of them (.svg, .png or .pdf).

    Raises
    ------
    SystemExit
        An argument is none of what there is; the message names both. Nothing was measured.
    WrongResult
        A program's results are wrong. Nothing was printed or written.
    """
    for name in names or ():
        if name not in CASES:
            raise SystemExit(f"no case is named {name!r}; there are {', '.join(CASES)}")
    if others is None:
        peers = []
    else:
        peers = list(PEERS) if others == "all" else [name.strip() for name in others.split(",")]
    for name in peers:
        if name not in PEERS:
            raise SystemExit(f"no peer is named {name!r}; there are {', '.join(PEERS)}")
    if not 1 <= rounds <= MOST_ROUNDS:
        raise SystemExit(f"rounds: expected a number from 1 to {MOST_ROUNDS}, got {rounds}")
    for file in (json_file, picture):
        if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
            raise SystemExit(f"{file} cannot be written: "
                             + ("it is a folder" if file.is_dir() else "there is no such folder"))
    if picture is not None:
        if picture.suffix not in PICTURES:
            raise SystemExit(f"{picture}: expected a name that ends in {' or '.join(PICTURES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise SystemExit("--plot needs matplotlib, which is not installed: "
                             "pip install 'cyrt[bench]'")

    device = cyrt.Device()
    report = Report(device.name, device.emulated, device.compute_capability,
                    {name: os.environ[name] for name, setting in settings.SETTINGS.items()
                     if settings.get(name) != setting.default}, [])
    _measure(report, list(dict.fromkeys(names or CASES)), list(dict.fromkeys(peers)), rounds)
    report.show()
    if json_file is not None:
        report.write(json_file)
    if picture is not None:
        report.draw(picture)
    return 0


def _measure(report: Report, names: list[str], peers: list[str], rounds: int) -> None:
    """Fill the report: the floors that the cases are compared with, the cases, the peers."""
    bench = Bench(rounds)
    floors = [floor for floor in FLOORS
              if any(floor in CASES[name].floors for name in names)
              or (peers and floor == "C loop")]
    console = Console(stderr=True)
    # On stderr, and gone at the end: a pipe gets the table and no more.
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                  console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(floors) + len(names) + len(peers))

        def step(what: str, rows: Iterable[Row]) -> None:
            progress.update(task, description=f"measuring {what}")
            report.rows.extend(rows)
            progress.advance(task)

        for name in floors:
            step(name, [bench.floor(name)])
        for name in names:
            step(name, CASES[name].run(bench))
        for name in peers:
            step(name, (Row("peer", name, **found) for found in measure(name, rounds)))
