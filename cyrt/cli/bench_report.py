"""The report of ``python -m cyrt bench``: the table and the JSON file."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table

from cyrt.bench.result import BenchResult
from cyrt.cli.output import console as output_console
from cyrt.cli.output import print_table


@dataclass
class Report:
    """All rows of a run, the device and the settings."""

    device: str
    emulated: bool
    compute_capability: tuple[int, int]
    settings: dict[str, str]  # the CYRT_ variables that are set
    rows: list[BenchResult]

    def times_less(self, row: BenchResult) -> float | None:
        """The host time of a C loop of ``cuLaunchKernel`` divided by the row's."""
        for floor in self.rows:
            if floor.kind == "floor" and floor.name == "C loop":
                if floor is row or not row.host or not floor.host or row.kind == "other":
                    return None
                return floor.host / row.host
        return None

    def explanation(self) -> str:
        """The reason why there are no wall times; empty if there are."""
        if not self.emulated:
            return ""
        return (
            "The emulated device runs kernels on the CPU, so the time that a GPU would take is not "
            "known: only the host's time to record and launch is shown. Launches on the emulated "
            "device take other times than with the NVIDIA driver; the floors are measured on the "
            "emulated device, too."
        )

    def show(self) -> None:
        """Print the table."""
        console = output_console()
        table = Table(
            title=f"{self.device}, {'emulated' if self.emulated else 'GPU'}: µs an operation",
            title_justify="left",
        )
        walls = any(row.wall is not None for row in self.rows)
        for heading in ("case", "what"):
            table.add_column(heading)
        for heading in ("host", *(["wall"] if walls else []), "C loop / host", "hits", "patched"):
            table.add_column(heading, justify="right")
        figures = list(dict.fromkeys(key for row in self.rows for key in row.figures or ()))
        for heading in figures:
            table.add_column(heading, justify="right")
        table.add_column("")
        for i, row in enumerate(self.rows):
            times = self.times_less(row)
            note = row.note
            if row.parts:
                note += "; ".join(f"{name} {value:.3f}" for name, value in row.parts.items())
            table.add_row(
                row.name,
                row.what,
                _cell(row.host, ",.3f"),
                *([_cell(row.wall, ",.3f")] if walls else []),
                _cell(times, ".2f"),
                _cell(row.hits, ".0f", " %"),
                _cell(row.patched, ".0f", " %"),
                *((row.figures or {}).get(heading, "") for heading in figures),
                note,
                end_section=i + 1 < len(self.rows) and self.rows[i + 1].kind != row.kind,
            )
        print_table(table, console)
        if self.settings:
            console.print("with " + " ".join(f"{k}={v}" for k, v in self.settings.items()))
        if self.emulated:
            console.print(self.explanation())

    def document(self) -> dict[str, Any]:
        """The JSON file's contents; times are in µs an operation."""
        return {
            "cyrt": metadata.version("cyrt"),
            "python": platform.python_version(),
            "device": self.device,
            "emulated": self.emulated,
            "compute_capability": list(self.compute_capability),
            "settings": self.settings,
            "note": self.explanation(),
            "rows": [
                asdict(row)
                | {
                    "hits": row.hits,
                    "patched": row.patched,
                    "times_less_than_c_loop": self.times_less(row),
                }
                for row in self.rows
            ],
        }

    def write(self, file: Path) -> None:
        """Write the JSON file."""
        file.write_text(
            json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"
