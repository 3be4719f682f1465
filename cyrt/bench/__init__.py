"""``python -m cyrt bench``: what a launch costs, beside the floor measured in the same process.

Every case checks its results before it prints a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass
class Row:
    """One figure: what was measured, the time in µs, and what it stands beside."""

    case: str
    what: str
    microseconds: float
    note: str = ""


def _cases() -> dict[str, Callable[[], list[Row]]]:
    from cyrt.bench import emulated, imports, launch

    return {"launch": launch.run, "emulated": emulated.run, "import": imports.run}


def run(names: list[str] | None, json_file: str | None) -> int:
    """Run the cases, print a table, and write JSON where a file is named."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    import cyrt

    cases = _cases()
    for name in names or ():
        if name not in cases:
            raise SystemExit(f"no case is named {name!r}; there are {', '.join(cases)}")
    device = cyrt.Device()
    console = Console(soft_wrap=True)
    table = Table(title=f"{device.name}, {'emulated' if device.emulated else 'GPU'}")
    for heading, justify in (("case", "left"), ("what", "left"), ("µs", "right"), ("", "left")):
        table.add_column(heading, justify=justify)
    rows = []
    with console.status("measuring") as status:
        for name in names or cases:
            status.update(f"measuring {name}")
            rows += cases[name]()
    for row in rows:
        table.add_row(row.case, escape(row.what), f"{row.microseconds:,.3f}", row.note)
    console.print(table)
    if device.emulated:
        console.print("The emulated device runs on the CPU: only what the host pays to record and "
                      "launch is shown, not what a GPU would take.")
    if json_file:
        with open(json_file, "w") as file:
            json.dump({"device": device.name, "emulated": device.emulated,
                       "rows": [asdict(row) for row in rows]}, file, indent=1)
    return 0
