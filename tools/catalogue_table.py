"""Write docs/catalogue.md: the element types with a kernel, for each built-in operation."""

from __future__ import annotations

from build_kernels import ROOT, catalogue

from cyrt.dtypes import DTYPES

TARGET = ROOT / "docs" / "catalogue.md"
HEAD = """\
# The catalogue

The element types for which each built-in operation has a kernel: ● is compiled in the wheel, ○ is
compiled at its first use, and kept on disk. The type is that of the inputs (of the last one if they
differ). The kernel is compiled from the expression. `copy`, `transpose` and `where` only move bits,
so one kernel serves all types of a size; it is listed under one of them. Casts, `to_TYPE`, exist
between all types.

<!-- Written by python3 tools/run.py format. -->
"""


def table() -> str:
    """Return the file's text."""
    types = [each.name for each in DTYPES]
    lines = [HEAD]
    templates = {row.template: None for row in catalogue.ROWS if row.template != "cast"}
    for template in templates:
        rows = [row for row in catalogue.ROWS if row.template == template]
        lines += [
            f"## {template}",
            "",
            f"| operation | expression | {' | '.join(types)} |",
            f"|---|---|{'---|' * len(types)}",
        ]
        for op in dict.fromkeys(row.op for row in rows):
            found = {row.dtype: row for row in rows if row.op == op}
            texts = dict.fromkeys(row.expression for row in found.values())
            shown = ", ".join(f"`{text}`".replace("|", "\\|") for text in texts)
            marks = [
                " " if name not in found else "●" if found[name].prebuilt else "○" for name in types
            ]
            lines.append(f"| {op} | {shown} | {' | '.join(marks)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    text = table()
    if TARGET.read_text() != text:
        TARGET.write_text(text)
