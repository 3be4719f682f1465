"""What MkDocs calls while it builds the documentation: pages from the repository's root, links, and
C++ in Python's strings."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.lexers import LEXERS, python
from pygments.lexers.c_like import CudaLexer
from pygments.token import String

sys.path.insert(0, str(Path(__file__).parent))
from repository import ROOT, web_address

# Pages of the site, and the files in the repository's root that they show.
ROOT_PAGES = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "license.md": "LICENSE",
}
_PAGE_OF = {source: page for page, source in ROOT_PAGES.items()}
_LINK = re.compile(r"(!?)\[([^]\n]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")

# What counts for more or less than other pages in the search: the first that a page's path begins
# with.
_BOOSTS = {
    "reference/": 2,
    "environment": 4,
    "performance": 0.3,
    "catalogue": 0.3,
    "changelog": 0.3,
}


def on_config(config: MkDocsConfig) -> None:
    """Link to the repository where its address is known."""
    address = web_address()
    if address:
        config.repo_url = address
        config.repo_name = posixpath.basename(address)
        config.edit_uri = "edit/main/docs/"


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages from the root."""
    for page, source in ROOT_PAGES.items():
        path = ROOT / source
        if source == "LICENSE":
            text = f"# License\n\n```text\n{path.read_text().rstrip()}\n```\n"
            files.append(File.generated(config, page, content=text))
        else:
            files.append(File.generated(config, page, abs_src_path=str(path)))


def on_pre_page(page: Page, config: MkDocsConfig, files: Files) -> None:
    """Let "edit" lead to the file in the root that a page shows."""
    source = ROOT_PAGES.get(page.file.src_uri)
    if source and config.repo_url:
        page.edit_url = f"{config.repo_url}/edit/main/{source}"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links between files of the repository lead to the pages that show them."""
    here = page.file.src_uri
    for beginning, boost in _BOOSTS.items():
        if here.startswith(beginning):
            page.meta["search"] = {"boost": boost}
            break
    folder = posixpath.dirname(ROOT_PAGES.get(here, f"docs/{here}"))

    def rewrite(match: re.Match[str]) -> str:
        image, text, path, anchor = match.groups(default="")
        target = posixpath.normpath(posixpath.join(folder, path))
        if not (ROOT / target).exists():  # code that looks like a link
            return match[0]
        if target in _PAGE_OF or target.startswith("docs/"):
            found = _PAGE_OF.get(target, target.removeprefix("docs/"))
            path = posixpath.relpath(found, posixpath.dirname(here) or ".")
        elif config.repo_url:
            path = f"{config.repo_url}/blob/main/{target}"
        else:
            return text
        return f"{image}[{text}]({path}{anchor})"

    return _LINK.sub(rewrite, markdown)


class PythonWithCudaLexer(python.PythonLexer):  # type: ignore[misc]
    """Python whose strings are shown as CUDA C++ where they have a kernel."""

    name = "Python with CUDA C++"
    aliases = python.PythonLexer.aliases

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[Any]:
        held: list[Any] = []  # the tokens of one string
        for token in super().get_tokens_unprocessed(text, stack):
            if token[1] in String:
                held.append(token)
            else:
                yield from self.shown(held)
                held = []
                yield token
        yield from self.shown(held)

    def shown(self, tokens: list[Any]) -> Iterator[Any]:
        text = "".join(value for _, _, value in tokens)
        if not re.search(r"\b__(global|device)__\b", text):
            yield from tokens
            return
        begin = tokens[0][0]
        parts = re.fullmatch(r"(?s)(\w*)('''|\"\"\"|'|\")(.*)\2", text)
        assert parts is not None
        prefix, quotes, code = parts.groups()
        yield begin, String.Affix, prefix
        yield begin + len(prefix), String, quotes
        begin += len(prefix + quotes)
        for index, kind, value in CudaLexer(stripnl=False).get_tokens_unprocessed(code):
            yield begin + index, kind, value
        yield begin + len(code), String, quotes


python.PythonLexer = PythonWithCudaLexer  # the lexer of consoles uses it, too
LEXERS["PythonLexer"] = (__name__, PythonWithCudaLexer.name, *LEXERS["PythonLexer"][2:])
__all__ = ["PythonWithCudaLexer"]  # what Pygments takes from this module
