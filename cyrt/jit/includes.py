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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

# Between the parts of a directive may be comments, which may be several lines long.
_GAP = r"(?:[ \t\v\f]|/\*.*?\*/)*"
_INCLUDE = (
    rf"(?s)(?:(?:\#|%:){_GAP}include(?:_next)?\b|\b__has_include(?:_next)?\b{_GAP}\(){_GAP}"
    r'(?:"([^"\n]+)"|<([^>\n]+)>)?'
)
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
    here = os.path.dirname(os.path.abspath(filename))
    folders = [os.path.abspath(folder) for folder in folders if folder]
    # Whoever names NVIDIA's own does not change them.
    theirs = [folder for folder in folders if folder in known or _is_toolkit(folder)]
    found = {folder: str(os.stat(folder).st_mtime_ns) for folder in theirs}
    own = [folder for folder in folders if folder not in found]
    # (text, the folder of its file)
    waiting = [(source, here), (outside, here)]
    waiting += [(text, os.path.abspath(os.path.dirname(name))) for name, text in headers.items()]
    for folder in own:
        # NVIDIA's headers too look in the user's folders before their own.
        for other in known:
            _take(_common(folder, other), found, waiting)
    for name in preincluded:
        _take((os.path.join(folder, name) for folder in (os.getcwd(), *own)), found, waiting)
    while waiting:
        text, folder = waiting.pop()
        for name in _names(text):
            _take((os.path.join(f, name) for f in (folder, here, *own)), found, waiting)
    return list(found.items())


def _take(paths: Iterable[str], found: dict[str, str], waiting: list[tuple[str, str]]) -> None:
    for path in map(os.path.normpath, paths):
        if path in found:
            continue
        try:
            content = Path(path).read_bytes()
        except OSError:
            # Not there, or not to be read by the compiler either.
            continue
        found[path] = hashlib.sha256(content).hexdigest()
        waiting.append((content.decode("latin-1"), os.path.dirname(path)))


def _names(text: str) -> list[str]:
    """Return the names that a text includes, in comments and branches not taken as well."""
    if any(name in text for name in _TRANSIENT):
        raise Untold("__DATE__ and __TIME__ differ each time")
    if "\\\n" in text or "\\\r" in text:
        text = re.sub(r"\\\r?\n", "", text)
    if "include" not in text:
        return []
    pairs = re.findall(_INCLUDE, text)
    if ("", "") in pairs:
        # Perhaps a comment speaks of it. Raw strings hide where comments begin.
        plain = re.sub(_COMMENT_OR_TEXT, lambda m: m[1] or " ", text)
        if 'R"' in text or ("", "") in re.findall(_INCLUDE, plain):
            raise Untold("an #include whose name a macro makes")
    return [quoted or angled for quoted, angled in pairs if quoted or angled]


def _is_toolkit(folder: str) -> bool:
    # CCCL's are in a folder within.
    name = "cuda_runtime_api.h"
    return any(os.path.exists(os.path.join(f, name)) for f in (folder, os.path.dirname(folder)))


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
