"""What files on disk a compilation can read: a scan of its `#include`s.

INVARIANTS
- A file that can change the code is found; one that cannot may be found too. So conditions are not
  evaluated, comments are searched as well, and of every name all the files are taken that any
  order of search could choose, or could choose once they exist.
- Where that cannot be told (a name made by a macro), nothing is claimed.
- NVIDIA's own headers are known by their folder and packages, and not read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence

# Between the parts of a directive may be comments, which may be several lines long.
_GAP = r"(?:[ \t\v\f]|/\*.*?\*/)*"
# Begins with a plain word, which is what makes the search fast.
_INCLUDE = rf'(?s)include(?:_next)?\b{_GAP}(\(?){_GAP}(?:"([^"\n]+)"|<([^>\n]+)>)?'
_COMMENT_OR_TEXT = (
    r"""(?s)//[^\n]*|/\*.*?(?:\*/|\Z)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')"""
)
# What compiles differently the next time, whatever is in the files.
_TRANSIENT = ("__DATE__", "__TIME__")


class Untold(Exception):
    """What a compilation reads cannot be told from its text."""


def includes_anything(text: str) -> bool:
    """Whether a text may include a file."""
    return "include" in text or "\\\n" in text


def dependencies(
    source: str,
    filename: str,
    headers: Mapping[str, str],
    preincluded: Sequence[str],
    folders: Sequence[str],
    known: Sequence[str],
    outside: str,
) -> list[tuple[str, str]]:
    """Return the files that a source includes, each with what tells its content.

    Parameters
    ----------
    source, filename : str
        The filename's folder is where ``#include "…"`` looks first.
    headers : mapping of str to str
        Headers in memory.
    preincluded : sequence of str
        Names included before the source.
    folders : sequence of str
        Where headers are looked for, in order.
    known : sequence of str
        Folders of headers that are not to be read, looked in last.
    outside : str
        What else the compiler is told: options, macros.

    Returns
    -------
    list of (str, str)
        Path and SHA-256, in the order found; of a toolkit's folder its time of change.

    Raises
    ------
    Untold
        If it cannot be told.
    """
    cwd = os.getcwd()
    here = os.path.join(cwd, os.path.dirname(filename))
    folders = [os.path.join(cwd, folder) for folder in folders if folder]
    # Whoever names NVIDIA's own does not change them.
    theirs = [folder for folder in folders if folder in known or _is_toolkit(folder)]
    own = [folder for folder in folders if folder not in theirs]
    reading = _Reading({folder: str(os.stat(folder).st_mtime_ns) for folder in theirs})
    reading.waiting = [(source, here), (outside, here)]
    reading.waiting += [
        (text, os.path.join(cwd, os.path.dirname(name))) for name, text in headers.items()
    ]
    for folder in own:
        # NVIDIA's headers too look in the user's folders before their own.
        for other in known:
            for path in _common(folder, other):
                reading.take(*os.path.split(path))
    for name in preincluded:
        for place in (cwd, *own):
            reading.take(place, name)
    while reading.waiting:
        text, folder = reading.waiting.pop()
        for name in _names(text):
            for place in dict.fromkeys((folder, here, *own)):
                reading.take(place, name)
    return list(reading.found.items())


class _Reading:
    """Files read, and those whose own includes are still to be looked at.

    Attributes
    ----------
    found : dict of str to str
        What tells the content, by path.
    waiting : list of (str, str)
        Text, and the folder of its file.
    """

    def __init__(self, found: dict[str, str]) -> None:
        self.found = found
        self.waiting: list[tuple[str, str]] = []
        self._real: dict[str, str] = {}

    def take(self, place: str, name: str) -> None:
        """Read the file that a folder has under a name, if there is one."""
        # Where ".." leads, behind a link, is the system's to say; and a folder has one name here,
        # or headers that include each other would go on forever.
        given, base = os.path.split(os.path.join(place, name))
        folder = self._real.get(given)
        if folder is None:
            folder = self._real[given] = os.path.realpath(given)
        path = os.path.join(folder, base)
        if path in self.found:
            return
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            # Not there, or not to be read by the compiler either.
            return
        self.found[path] = hashlib.sha256(content).hexdigest()
        self.waiting.append((content.decode("latin-1"), folder))


def _names(text: str) -> list[str]:
    """Return the names that a text includes, in comments and branches not taken as well."""
    if any(name in text for name in _TRANSIENT):
        raise Untold("__DATE__ and __TIME__ differ each time")
    if "\\\n" in text or "\\\r" in text:
        text = re.sub(r"\\\r?\n", "", text)
    if "include" not in text:
        return []
    names = list(_named(text))
    if "" in names:
        # Perhaps a comment speaks of it. Raw strings hide where comments begin.
        plain = re.sub(_COMMENT_OR_TEXT, lambda m: m[1] or " ", text)
        if 'R"' in text or "" in _named(plain):
            raise Untold("an #include whose name a macro makes")
    return [name for name in names if name]


def _named(text: str) -> Iterator[str]:
    """Yield the name in each directive, or nothing where there is none."""
    for m in re.finditer(_INCLUDE, text):
        asks = text.endswith("__has_", 0, m.start()) and m[1]
        if asks or _is_directive(text, m.start()):
            yield m[2] or m[3] or ""


def _is_directive(text: str, end: int) -> bool:
    """Whether what stands before `end` is a directive's mark, with comments and spaces after."""
    while True:
        while end and text[end - 1] in " \t\v\f":
            end -= 1
        if not text.endswith("*/", 0, end):
            return text.endswith(("#", "%:"), 0, end)
        end = max(0, text.rfind("/*", 0, end - 2))


def _is_toolkit(folder: str) -> bool:
    if os.path.basename(folder) == "cccl":
        folder = os.path.dirname(folder)
    # A system's folder may hold CUDA's headers among all others.
    has_cuda, has_others = (
        os.path.exists(os.path.join(folder, name)) for name in ("cuda_runtime_api.h", "stdio.h")
    )
    return has_cuda and not has_others


def _common(mine: str, theirs: str) -> Iterator[str]:
    """Yield the files of one folder whose relative paths are also in another."""
    try:
        entries = list(os.scandir(mine))
    except OSError:
        return
    for entry in entries:
        other = os.path.join(theirs, entry.name)
        if entry.is_dir():
            if os.path.isdir(other):
                yield from _common(entry.path, other)
        elif os.path.exists(other):
            yield entry.path
