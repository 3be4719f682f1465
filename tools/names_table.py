"""Write docs/reference/names.md: a line for each public name of cyrt, under the page that has it.

``python -P tools/names_table.py`` needs the installed package: lines are first sentences of its
docstrings. A name that no page lists is first added to the page that lists the other names of its
module, before the first one that follows it in the alphabet.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cyrt
from cyrt.public_modules import NAMES as MODULES

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
TARGET = REFERENCE / "names.md"
HEAD = """\
# The names of cyrt

Every public name of `cyrt`, with a line for each: the functions of the array API standard, NumPy's
everyday functions, and cyrt's own. The headings lead to the pages that describe them in full. More
of NumPy's names are in [`cyrt.numpy`](numpy.md).

<!-- Written by python3 tools/run.py format. -->
"""
_BLOCK = re.compile(r"^::: cyrt\n((?:    .*\n)*)", re.MULTILINE)
_MEMBER = re.compile(r"^        - (\w+)$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:cyrt\.)?([^`]*)`")
_SENTENCE = re.compile(r"(.+?)[.:;](?:\s.*)?$")


def summary(name: str, value: Any) -> str:
    """Say in a line what a name is."""
    own = getattr(value, "__name__", name)
    if isinstance(value, cyrt.DType):
        return f"an element type of {8 * value.itemsize} bits"
    if own != name and getattr(cyrt, own, None) is value:
        return f"another name of `{own}`"
    if value is None or isinstance(value, (float, str)):
        return f"`{value!r}`"
    paragraph = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    sentence = _SENTENCE.sub(r"\1", _ROLE.sub(r"`\1`", paragraph))
    return sentence.replace("``", "`").replace("|", "\\|")


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """The title, the file and the names of each page of the reference, in the index's order."""
    index = (REFERENCE / "index.md").read_text()
    for title, file in re.findall(r"^\| \[([^]]*)\]\(([^)]*)\)", index, re.MULTILINE):
        for members in _BLOCK.findall((REFERENCE / file).read_text()):
            yield title, file, _MEMBER.findall(members)


def table() -> str:
    """Return the file's text."""
    lines = [HEAD]
    for title, file, names in sections():
        lines += [f"## [{title}]({file})", "", "| name | |", "|---|---|"]
        lines += [f"| `{name}` | {summary(name, getattr(cyrt, name))} |" for name in names]
        lines.append("")
    lines += ["## Modules", "", "| name | |", "|---|---|"]
    for name in MODULES:
        lines.append(f"| [`{name}`]({name}.md) | {summary(name, getattr(cyrt, name))} |")
    return "\n".join(lines) + "\n"


def home(name: str) -> str:
    """Return the module of a name's function or class; that of the class of an object with one."""
    value = getattr(cyrt, name)
    module = type(value).__module__
    return module if module.startswith("cyrt.") else getattr(value, "__module__", module)


def add_new_names() -> None:
    """Add each public name that no page lists to the page that lists its module's names."""
    pages = {name: file for _, file, names in sections() for name in names}
    for name in sorted(set(cyrt.__all__) - pages.keys() - set(MODULES)):
        kin = [each for each in pages if home(each) == home(name)]
        if not kin:
            sys.exit(f"no page of docs/reference lists {name}, nor another name of {home(name)}")
        file = Counter(pages[each] for each in kin).most_common(1)[0][0]
        kin = [each for each in kin if pages[each] == file]
        item, text = "        - {}\n".format, (REFERENCE / file).read_text()
        later = next((each for each in kin if each > name), None)
        old = item(later or kin[-1])
        new = item(name) + old if later else old + item(name)
        (REFERENCE / file).write_text(text.replace(old, new))
        pages[name] = file


if __name__ == "__main__":
    add_new_names()
    TARGET.write_text(table())
