"""The code blocks of the documentation's pages.

Every block that begins with ```` ```python ```` runs: the blocks of a page in one process and
one namespace, in their order. A block of ```` ```text ```` right behind one is what it prints. A
comment on the line before a block changes that::

    <!-- not run: WHY -->       the block is for reading only
    <!-- own process -->        the block runs by itself, in a process of its own

Run as a program with a page's path, this module runs the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """A block of Python, the line where its code begins, and what it prints (None: anything)."""

    code: str
    line: int
    mark: str
    output: str | None = None


def blocks_of(text: str) -> list[Block]:
    """The blocks of Python in a page's text."""
    found: list[Block] = []
    before, end = "", 0  # the block before: its language, and where it ends
    for match in _FENCE.finditer(text):
        language = match["language"]
        if language == "python":
            line = text.count("\n", 0, match.start("code")) + 1
            found.append(Block(match["code"], line, match["mark"] or ""))
        elif language == "text" and before == "python" and not text[end : match.start()].strip():
            found[-1].output = match["code"]
        before, end = language, match.end()
    return found


def pages() -> list[Path]:
    """The pages that have blocks of Python."""
    every = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in every if "```python" in page.read_text()]


def run_block(block: Block, page: Path, names: dict[str, object]) -> None:
    """Run a block, and compare what it prints."""
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    if block.output is not None and printed.getvalue() != block.output:
        raise SystemExit(
            f"{page}:{block.line}: the block printed\n{printed.getvalue()}\nand the page says\n"
            f"{block.output}"
        )


def main() -> None:
    page, *line = sys.argv[1:]
    names: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block in blocks_of(Path(page).read_text()):
        alone = block.mark == "own process"
        if block.mark.startswith("not run") or alone != bool(line):
            continue
        if not line or int(line[0]) == block.line:
            run_block(block, Path(page), names)
            ran += 1
    if line and not ran:
        raise SystemExit(f"{page}: no block of its own process begins at line {line[0]}")


if __name__ == "__main__":
    main()
