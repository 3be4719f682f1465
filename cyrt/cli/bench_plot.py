"""The picture of ``python -m cyrt bench --plot``."""

from __future__ import annotations

from math import ceil, floor, log10
from pathlib import Path

from cyrt.bench.result import BenchResult
from cyrt.cli.bench_report import Report

PICTURES = (".svg", ".png", ".pdf")
# For each kind of row: its name in the legend, and the colours of its host and wall times.
_KINDS = {
    "floor": ("floor, in C", "#9a9a9a", "#cfcfcf"),
    "case": ("cyrt", "#3f7f00", "#a3cf6b"),
    "peer": ("other library", "#2b5c9e", "#9dbfe6"),
}


def draw(report: Report, file: Path) -> None:
    """Draw the host and wall times of all rows that have them, as horizontal bars on one scale.

    The scale is logarithmic, because other libraries may take a hundred times as long. All bars
    begin at the same power of ten.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows = [row for row in report.rows if row.kind in _KINDS and row.host is not None]
    figure = Figure(figsize=(9, 2.2 + 0.42 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for y, row in enumerate(rows):
        bars = _bars(row)
        for i, (_, value, colour) in enumerate(bars):
            height = y + 0.4 * (i - (len(bars) - 1) / 2)
            axes.barh(height, value, 0.38, color=colour)
            axes.annotate(
                f"{value:.3g}",
                (value, height),
                (3, 0),
                fontsize=7,
                textcoords="offset points",
                verticalalignment="center",
            )
    axes.set_yticks(range(len(rows)), [f"{row.name}: {row.what}" for row in rows], fontsize=8)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xscale("log")
    values = [value for row in rows for _, value, _ in _bars(row)]
    if values:
        lowest, highest = log10(min(values)), log10(max(values))
        axes.set_xlim(10.0 ** (ceil(lowest) - 1), 10.0 ** (floor(highest + 0.2) + 1))
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("µs an operation; each line is ten times the one before")
    axes.set_title(
        f"{report.device}{' (emulated: host costs only)' if report.emulated else ''}", fontsize=10
    )
    legend = dict.fromkeys((label, colour) for row in rows for label, _, colour in _bars(row))
    figure.legend(
        handles=[Patch(color=colour, label=label) for label, colour in legend],
        loc="outside lower center",
        ncols=3,
        fontsize=8,
    )
    figure.savefig(file)


def _bars(row: BenchResult) -> list[tuple[str, float, str]]:
    """The legend, the time and the colour of each of a row's bars."""
    who, host, wall = _KINDS[row.kind]
    bars = [
        (f"{who}: host, until the call returns", row.host, host),
        (f"{who}: wall, until the GPU has finished", row.wall, wall),
    ]
    return [(label, value, colour) for label, value, colour in bars if value is not None]
