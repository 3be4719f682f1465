"""The files on disk that a compilation can read, from a scan of its `#include`s.

INVARIANTS
- Every file that can change the code is found; other files may be found too. So conditions are not
  evaluated, comments are searched as well, and each name means all files that any search order
  could choose, now or after they are created.
- One rule covers everything that a scan cannot decide: each place where the compiler may ask for a
  file or for the time appears literally in the user's own texts, or the scan gives up. So
  `Undecidable` is raised for names produced by macros, words that could be pasted together, and
  trigraphs.
- NVIDIA's own headers are identified by their folder and packages, and not read here; headers that
  they include and do not contain are searched in the user's folders.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# Words that ask for a file or the time and that a macro may produce; a macro cannot produce a
# directive.
_ASKING = (
    "__DATE__", "__TIME__", "__TIMESTAMP__", "__has_include", "__has_include_next", "__has_embed",
)  # fmt: skip

# Patterns are compiled at their first use. Preprocessor identifiers are ASCII.
# Comments of several lines may separate the parts of a directive.
_GAP = r"(?>[ \t\r\v\f]|/\*(?s:.*?)\*/)*+"
_MARK = r"(?:#|%:)"
_WORDS = ("include", "embed")
_NAME = rf'(?a)(?:include(?:_next)?|embed)\b{_GAP}(\(?){_GAP}(?:"([^"\n]+)"|<([^>\n]+)>)?'
_NAMELESS_DIRECTIVE = rf'(?a){_MARK}(?={_GAP}(?:include(?:_next)?|embed)\b{_GAP}(?!["<]))'
# Possible first characters of such a word; a few other words match too.
_BEGINNING = r"(?a)_(?<!\w_)(?:_[hDT]\w*|_?(?!\w))"
# Directives that name __has_include without calling it.
_NAMING = rf"[ \t\r\v\f]*{_MARK}[ \t\r\v\f]*(?:(?:el)?ifn?def|define|undef)[ \t\r\v\f]+"
_CONDITION = rf"(?a)[ \t\r\v\f]*{_MARK}[ \t\r\v\f]*(?:el)?if\b"
_DEFINED = r"(?a)\bdefined[ \t]*\(?[ \t]*"
_COMMENT_OR_TEXT = (
    r"""(?as)//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|(?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<unclear>["']|/\*)"""
)

# The compiler finds no file either, or may not read it.
_ABSENT = (
    errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG,
)  # fmt: skip
# Source texts are much smaller.
_LARGEST_FILE = 64 << 20


class Undecidable(Exception):
    """The files that a compilation reads cannot be determined from its text."""


def includes_anything(text: str) -> bool:
    """True if a text may include a file."""
    return "include" in text or _splice_lines(text) is not text or "??/" in text


def dependencies(
    source: str,
    filename: str,
    headers: Mapping[str, str],
    preincluded: Sequence[str],
    folders: Sequence[str],
    known: Sequence[str],
    lacking: Callable[[], Sequence[str]],
    outside: str,
) -> list[tuple[str, str]]:
    """Return the files that a source includes, each with a hash of its content.

    Parameters
    ----------
    source, filename : str
        ``#include "…"`` searches the folder of the filename first.
    headers : mapping of str to str
        Headers in memory.
    preincluded : sequence of str
        Names included before the source.
    folders : sequence of str
        Folders to search for headers, in order.
    known : sequence of str
        Folders of headers that are not read; searched last.
    lacking : function
        Function that returns the names that the headers in `known` include and do not contain;
        called only if the user has header folders.
    outside : str
        Other text that the compiler receives: options, macros.

    Returns
    -------
    list of (str, str)
        Path and SHA-256, in the order found.

    Raises
    ------
    Undecidable
        If the files cannot be determined.
    """
    cwd = os.getcwd()
    here = os.path.join(cwd, os.path.dirname(filename))
    own = _without([os.path.join(cwd, folder) for folder in folders if folder], known)
    reading = _Reading()
    reading.add(source, here)
    reading.add(outside, here)
    for name, text in headers.items():
        reading.add(text, os.path.join(cwd, os.path.dirname(name)))
    for folder in own:
        # NVIDIA's headers also search the user's folders before their own.
        for other in known:
            for path in _common(folder, other):
                reading.take(*os.path.split(path))
        for name in _reachable(folder, lacking() if known else ()):
            reading.take(folder, name)
    for name in preincluded:
        for folder in (cwd, *own):
            reading.take(folder, name)
    while reading.waiting:
        text, folder = reading.waiting.pop()
        for name in _names(text):
            for searched in dict.fromkeys((folder, here, *own)):
                reading.take(searched, name)
    # A macro in NVIDIA's headers may paste its arguments.
    if known or any(mark in text for text in reading.texts for mark in ("##", "%:%:")):
        _check_no_word_is_pasted(reading.texts)
    return list(reading.found.items())


def included_names(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each name that a text includes literally, and True if it is in quotes."""
    for match in _occurrences(_splice_lines(text)):
        if match[2] or match[3]:
            yield match[2] or match[3], bool(match[2])


class _Reading:
    """The files that were read, and those whose includes have not been scanned.

    Attributes
    ----------
    found : dict of str to str
        Hash of the content, by path.
    texts : list of str
        All texts that were read, with lines joined.
    waiting : list of (str, str)
        Text, and the folder of its file.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.texts: list[str] = []
        self.waiting: list[tuple[str, str]] = []
        self._real: dict[str, str] = {}

    def add(self, text: str, folder: str) -> None:
        """Add a text to be scanned, from a file in `folder`."""
        text = _splice_lines(text)
        self.texts.append(text)
        self.waiting.append((text, folder))

    def take(self, searched: str, name: str) -> None:
        """Read the file that a folder has under a name, if there is one."""
        # The system resolves ".." behind a link. A folder has one canonical name here; otherwise
        # headers that include each other would be read for ever.
        unresolved, base = os.path.split(os.path.join(searched, name))
        folder = self._real.get(unresolved)
        if folder is None:
            folder = self._real[unresolved] = os.path.realpath(unresolved)
        path = os.path.join(folder, base)
        if path in self.found:
            return
        content = _content(path)
        if content is not None:
            self.found[path] = hashlib.sha256(content).hexdigest()
            # Bytes that are not UTF-8 are preserved in the names of files.
            self.add(content.decode("utf-8", "surrogateescape"), folder)


def _content(path: str) -> bytes | None:
    """A file's bytes; None if the compiler finds no file either."""
    if "\0" in path:
        raise Undecidable(f"a file's name with a NUL character: {path!r}")
    try:
        # Opening a FIFO would block, and a terminal would become the controlling terminal.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise Undecidable(f"{path} cannot be read: {error}") from None
    try:
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            return None
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LARGEST_FILE:
            raise Undecidable(f"{path} is not a file of text")
        # One additional byte detects a file that grows, or whose size the system does not know.
        content = os.read(handle, facts.st_size + 1)
    except OSError as error:
        raise Undecidable(f"{path} cannot be read: {error}") from None
    finally:
        os.close(handle)
    if len(content) != facts.st_size:
        raise Undecidable(f"{path} changes, or is not a file of text")
    return content


def _splice_lines(text: str) -> str:
    """Return a text with the lines joined that the preprocessor joins."""
    if "\\" in text and ("\\\n" in text or "\\\r\n" in text):
        return re.sub(r"\\\r?\n", "", text)
    return text


def _names(text: str) -> list[str]:
    """Return the names that a text includes, in comments and branches not taken as well."""
    if "__TIME" in text or "__DATE__" in text:
        raise Undecidable("__DATE__, __TIME__ and __TIMESTAMP__ differ each time")
    if "??" in text and ("??=" in text or "??/" in text):
        raise Undecidable("trigraphs, which are directives and splices in some dialects")
    asking = list(_occurrences(text))
    if _is_undecided(text, asking):
        # The word may be in a comment only.
        text = _without_comments(text, asking)
        if _is_undecided(text, _occurrences(text)):
            raise Undecidable("a file's name that a macro makes")
    return [match[2] or match[3] for match in asking if match[2] or match[3]]


def _occurrences(text: str) -> Iterator[re.Match[str]]:
    """Yield each word that may ask for a file; groups 2 and 3 are the name in quotes or <>."""
    for word in _WORDS:
        # This is much faster than a search for the pattern. The text after a word in a comment may
        # contain the next word.
        begin = text.find(word)
        while begin >= 0:
            match = re.compile(_NAME).match(text, begin)
            if match:
                yield match
            begin = text.find(word, begin + 1)


def _is_undecided(text: str, asking: Iterable[re.Match[str]]) -> bool:
    """True if a file may be included by a name that is not literal there."""
    nameless = False
    for match in asking:
        if text.endswith("__has_", 0, match.start()):
            if not _is_literal_question(text, match):
                return True
        elif not match[2] and not match[3]:
            nameless = True
    return nameless and re.search(_NAMELESS_DIRECTIVE, text) is not None


def _is_literal_question(text: str, match: re.Match[str]) -> bool:
    """True if a ``__has_include`` is called with the name that follows it, or not at all."""
    if match[1] and match[2]:
        # Macros do not replace text in quotes.
        return True
    line = text[text.rfind("\n", 0, match.start()) + 1 : match.start() - len("__has_")]
    if re.fullmatch(_NAMING, line):
        return True
    condition = re.match(_CONDITION, line)
    # The line may end a comment or a raw string.
    if not condition or any(mark in line for mark in ("*/", "'", '"')):
        return False
    before = line[condition.end() :]
    if re.search(rf"{_DEFINED}\Z", before):
        return True
    # As an argument of a macro, <name> is a sequence of words that other macros replace.
    while (shorter := re.sub(r"\([^()]*\)", " ", before)) != before:
        before = shorter
    return bool(match[1] and match[3]) and not re.search(r"\w\s*\(", before)


def _without_comments(text: str, asking: Iterable[re.Match[str]]) -> str:
    """Return a text without its comments; raise `Undecidable` if their limits are ambiguous."""
    if 'R"' in text or any(
        mark in (match[3] or "") for match in asking for mark in ("//", "/*", "'", '"')
    ):
        raise Undecidable("raw strings and odd names of files hide where comments begin")

    def kept(match: re.Match[str]) -> str:
        if match["unclear"]:
            raise Undecidable("quotes or comments without an end")
        return match[1] or " "

    return re.sub(_COMMENT_OR_TEXT, kept, text)


def _check_no_word_is_pasted(texts: Sequence[str]) -> None:
    """Raise `Undecidable` if words of the texts could be the first and last part of a keyword."""
    begun = {word for text in texts for word in re.findall(_BEGINNING, text)}
    parts = [(word, begin) for word in _ASKING for begin in begun if word.startswith(begin)]
    # A complete word is checked at its own position.
    parts = [(word, begin) for word, begin in parts if begin not in _ASKING]
    if not parts:
        return
    words = {word for text in texts for word in re.findall(r"(?a)\w+", text)}
    for word, begin in parts:
        if any(word[i:] in words for i in range(len(begin), len(word))):
            raise Undecidable(f"words that may be pasted to {word}")


def _without(folders: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the folders that differ from the others, links resolved."""
    there = {_identity(folder) for folder in others} if folders else set()
    return [folder for folder in folders if _identity(folder) not in there]


def _identity(folder: str) -> tuple[int, int] | str:
    try:
        found = os.stat(folder)
    except OSError:
        return folder
    return found.st_dev, found.st_ino


def _reachable(folder: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names whose first component a folder contains."""
    try:
        present = {*os.listdir(folder), ".", ".."}
    except OSError:
        return
    for name in names:
        if name.partition("/")[0] in present:
            yield name


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
