"""The disk cache: entries of plain facts and bytes under a key, safe among many processes.

INVARIANTS
- An entry is written whole to a file of its own and renamed to its name: a reader, or a writer
  that is killed, sees the old one, the new one or none.
- Every byte of an entry is checked before any is used, its key among them; reading runs no code.
  One that fails is as good as absent.
- The cache never decides whether something works: what it cannot read is made anew, and what it
  cannot write is told once and forgotten.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import struct
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cyrt import settings

#: Raised with every change of what an entry holds: each format has a folder of its own.
FORMAT = 1

# Magic, length of the facts; SHA-256 over the rest of the header, the facts and the bytes.
_HEADER = struct.Struct("<8sQ32s")
_MAGIC = b"cyrt-jit"
_SUFFIX = ".entry"
_PARTIAL = ".partial"
# A writer takes milliseconds: what is older was left by one that was killed.
_ABANDONED_SECONDS = 3600


class DamagedEntry(ValueError):
    """An entry that is not as it was written."""


def _checksum(key: str, length: int, rest: bytes | memoryview) -> bytes:
    found = hashlib.sha256(_MAGIC + struct.pack("<Q", length) + key.encode())
    found.update(rest)
    return found.digest()


def packed(key: str, facts: dict[str, Any], body: bytes) -> bytes:
    """Return an entry as its file holds it."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    rest = text + body
    return _HEADER.pack(_MAGIC, len(text), _checksum(key, len(text), rest)) + rest


def unpacked(key: str, data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the facts and the bytes of an entry.

    Raises
    ------
    DamagedEntry
        If it is not whole, was altered, or is another key's; the message says which.
    """
    if len(data) < _HEADER.size:
        raise DamagedEntry(f"truncated: {len(data)} bytes")
    magic, length, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedEntry("not an entry of this cache")
    rest = memoryview(data)[_HEADER.size :]
    if checksum != _checksum(key, length, rest):
        raise DamagedEntry("altered or truncated, or another entry's: the checksum differs")
    return json.loads(bytes(rest[:length])), bytes(rest[length:])


class Entry(NamedTuple):
    """One file of the cache.

    Attributes
    ----------
    key : str
    nbytes : int
        Size of the file.
    used : float
        When it was last read or written, in seconds since the epoch.
    path : str
    """

    key: str
    nbytes: int
    used: float
    path: str


class Cache:
    """The entries in a folder.

    Parameters
    ----------
    folder : path
        Made, for its owner alone, when the first entry is written.
    limit : int
        Bytes on disk, at most; the entries not used for longest are removed first.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int) -> None:
        self.root = os.path.abspath(os.path.expanduser(folder))
        self.folder = os.path.join(self.root, f"jit-v{FORMAT}")
        self.limit = limit
        self._told = False
        self._trusted: bool | None = None

    def path(self, key: str) -> str:
        """Where the entry of a key is, or would be."""
        return os.path.join(self.folder, key + _SUFFIX)

    def get(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """Return an entry's facts and bytes; None where there is no sound one."""
        path = self.path(key)
        try:
            with open(path, "rb") as file:
                data = file.read()
            if not self._is_trusted():
                return None
            found = unpacked(key, data)
        except (OSError, ValueError):
            # What stands in the way of reading is replaced, or told of, when it is written.
            return None
        # Last use is the file's time; where it cannot be set, the entry is only older than it is.
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def put(self, key: str, facts: dict[str, Any], body: bytes = b"") -> bool:
        """Write an entry, and remove old ones above the limit; returns whether it is kept."""
        data = packed(key, facts, body)
        if len(data) > self.limit:
            return False
        try:
            # Parents as the system makes them; what is cyrt's own is its owner's alone.
            os.makedirs(os.path.dirname(self.root), exist_ok=True)
            for folder in (self.root, self.folder):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700)
            if not self._is_trusted():
                return False
            self._write(self.path(key), data)
        except OSError as error:
            self._tell("written", error)
            return False
        self._evict()
        return True

    def _write(self, path: str, data: bytes) -> None:
        import tempfile

        # mkstemp's files are their owner's alone.
        handle, partial = tempfile.mkstemp(_PARTIAL, dir=self.folder)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise

    def _is_trusted(self) -> bool:
        """Whether nobody else could have put code into the folder."""
        if self._trusted is None:
            found = os.stat(self.folder)
            owned = not hasattr(os, "geteuid") or found.st_uid in (0, os.geteuid())
            self._trusted = owned and not found.st_mode & 0o022
            if not self._trusted:
                self._tell("trusted", "it is another user's, or others may write there")
        return self._trusted

    def _tell(self, what: str, why: object) -> None:
        if not self._told:
            self._told = True
            warnings.warn(
                f"the cache of compiled kernels in {self.folder} cannot be {what}: {why}. Kernels "
                "are compiled in each process; set CYRT_CACHE_DIR to a folder of your own, or "
                "CYRT_CACHE=0 for no cache.",
                RuntimeWarning,
                stacklevel=2,
            )

    # -- all of it ---------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Return all entries, sound or not, the last used first."""
        return _entries(_files(self.folder))

    def load(self, entry: Entry) -> tuple[dict[str, Any], bytes]:
        """Return an entry's facts and bytes, without counting that as a use of it.

        Raises
        ------
        DamagedEntry, OSError
            If it is not as it was written, or cannot be read.
        """
        return unpacked(entry.key, Path(entry.path).read_bytes())

    def clear(self) -> tuple[int, int]:
        """Remove all entries, also those of other formats; returns how many, and their bytes."""
        count = nbytes = 0
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for folder in [f for f in os.scandir(self.root) if re.fullmatch(r"jit-v\d+", f.name)]:
                for item, facts in _files(folder.path):
                    if item.name.endswith((_SUFFIX, _PARTIAL)):
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(item.path)
                        count += item.name.endswith(_SUFFIX)
                        nbytes += facts.st_size
                with contextlib.suppress(OSError):
                    os.rmdir(folder.path)
        return count, nbytes

    def _evict(self) -> None:
        files = list(_files(self.folder))
        for item, facts in files:
            old = time.time() - facts.st_mtime > _ABANDONED_SECONDS
            if old and item.name.endswith(_PARTIAL):
                with contextlib.suppress(OSError):
                    os.unlink(item.path)
        kept = _entries(files)
        nbytes = sum(entry.nbytes for entry in kept)
        while nbytes > self.limit:
            oldest = kept.pop()
            nbytes -= oldest.nbytes
            # Another process may have removed it, or be reading it: an open file stays readable.
            with contextlib.suppress(OSError):
                os.unlink(oldest.path)


def _entries(files: Iterable[tuple[os.DirEntry[str], os.stat_result]]) -> list[Entry]:
    found = [
        Entry(item.name.removesuffix(_SUFFIX), facts.st_size, facts.st_mtime, item.path)
        for item, facts in files
        if item.name.endswith(_SUFFIX)
    ]
    return sorted(found, key=lambda entry: -entry.used)


def _files(folder: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as items:
        for item in items:
            with contextlib.suppress(FileNotFoundError):
                if item.is_file(follow_symlinks=False):
                    yield item, item.stat()


@functools.cache
def current() -> Cache | None:
    """The cache that the settings ask for; None with ``CYRT_CACHE=0``."""
    if not settings.get("CYRT_CACHE"):
        return None
    return Cache(settings.cache_dir(), settings.get("CYRT_CACHE_SIZE"))
