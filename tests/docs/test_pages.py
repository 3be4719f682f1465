"""The code blocks of the documentation's pages run, and print what the pages say."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import blocks
import pytest
from blocks import DOCS, ROOT, blocks_of

PAGES = [page for page in blocks.pages() if page.parent != DOCS / "tutorial"]
ALONE = [
    (page, block.line)
    for page in blocks.pages()
    for block in blocks_of(page.read_text())
    if block.mark == "own process"
]


def run_page(fork_server, page: Path, *line: object) -> None:
    """Run a page's blocks in a process and a folder of their own."""
    with TemporaryDirectory() as folder:
        done = fork_server.run(
            [blocks.__file__, page, *line],
            cwd=folder,
            env={**os.environ, "CYRT_GRAPHS": "1", "CYRT_LAUNCH_BLOCKING": "0", "CYRT_REPLAY": "1"},
        )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(fork_server, page):
    run_page(fork_server, page)


@pytest.mark.usefixtures("only_emulated")
@pytest.mark.parametrize(
    ("page", "line"), ALONE, ids=lambda value: str(getattr(value, "stem", value))
)
def test_block_in_a_process_of_its_own(fork_server, page, line):
    run_page(fork_server, page, line)


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_marks_are_known():
    for page in blocks.pages():
        for block in blocks_of(page.read_text()):
            known = block.mark in ("", "own process") or block.mark.startswith("not run: ")
            assert known, f"{page}:{block.line}: {block.mark}"


def test_a_block_that_prints_something_else_is_found(fork_server, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```sh\nls\n```\n\n```text\n2\n```\n")
    run_page(fork_server, page)  # the text is not Python's
    page.write_text("```python\nx = 3\n```\n\n```python\nprint(x)\n```\n\n```text\n4\n```\n")
    with pytest.raises(AssertionError, match="printed"):
        run_page(fork_server, page)
    page.write_text(page.read_text().replace("4", "3"))
    run_page(fork_server, page)
    page.write_text("```python\nprint(1)\n```\n\n```sh\nls\n```\n\n```text\n2\n```\n")
    run_page(fork_server, page)  # the text is not Python's
    page.write_text("```python\nx = 3\n\nx.y\n```\n")
    with pytest.raises(AssertionError, match=r'page.md", line 4'):
        run_page(fork_server, page)
