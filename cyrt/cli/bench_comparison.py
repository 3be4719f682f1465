"""``python -m cyrt bench --compare A B``: two files that ``--json`` wrote, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from cyrt.cli.output import Refusal, print_table
from cyrt.cli.output import console as output_console

_Rows = dict[tuple[str, str, str], dict[str, Any]]


def compare(one: Path, other: Path) -> int:
    """Print the times of every row that both files have, and their ratio.

    Raises
    ------
    Refusal
        A file cannot be read, or ``--json`` did not write it.
    """
    documents = [_read(one), _read(other)]
    before, after = (_rows(document) for document in documents)
    console = output_console()
    for name, file, document in zip("AB", (one, other), documents, strict=True):
        settings = "".join(f", {k}={v}" for k, v in document["settings"].items())
        console.print(f"{name}: {file}, cyrt {document['cyrt']}, {document['device']}{settings}")
    if documents[0]["device"] != documents[1]["device"]:
        console.print("The devices differ, so the ratios are theirs, too.")
    table = Table(title="µs an operation", title_justify="left")
    for heading in ("case", "what"):
        table.add_column(heading)
    times = [t for t in ("host", "wall") if any(row[t] is not None for row in before.values())]
    for time in times:
        for heading in (f"{time} A", f"{time} B", "B / A"):
            table.add_column(heading, justify="right")
    for key, row in before.items():
        if key in after:
            cells = []
            for time in times:
                cells += _cells(row[time], after[key][time])
            table.add_row(*key[1:], *cells)
    print_table(table, console)
    for name, rows in (("A", before.keys() - after.keys()), ("B", after.keys() - before.keys())):
        if rows:
            only = sorted(f"{case}: {what}" for _, case, what in rows)
            console.print(f"only in {name}: {'; '.join(only)}")
    return 0


def _read(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for row in document["rows"]:
            row["kind"], row["name"], row["what"], row["host"], row["wall"]
        document["cyrt"], document["device"], document["settings"].items()
    except OSError as error:
        raise Refusal(f"{file} cannot be read: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Refusal(f"{file} was not written by bench --json") from None
    return document


def _rows(document: dict[str, Any]) -> _Rows:
    return {(row["kind"], row["name"], row["what"]): row for row in document["rows"]}


def _cells(one: float | None, other: float | None) -> list[str]:
    ratio = "" if not one or other is None else f"{other / one:.2f}"
    return [*("" if time is None else f"{time:,.3f}" for time in (one, other)), ratio]
