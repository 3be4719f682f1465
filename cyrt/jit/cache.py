"""The disk cache: entries of JSON facts and bytes under a key, safe for concurrent processes.

INVARIANTS
- An entry is written completely to a separate file, which is then renamed: a reader sees the old
  entry, the new one or none, also if a writer is killed.
- An entry is a regular file of the user's own, opened without following a link or waiting, of the
  size in its header. Every byte, including the key, is checked before any is used; reading runs no
  code. An entry that fails a check counts as absent.
- The ownership and mode of the folder are checked on the opened folder, at each use, and its files
  are opened through that handle, so that the folder cannot be replaced in between. Only the root
  may be a link.
- A file that another process is writing is never removed. A file that vanishes was removed by
  another process: this is not an error, and a writer writes it again.
- The cache never decides whether something works: an unreadable entry is made anew, and a failed
  write gives one warning.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import stat
import struct
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from cyrt import settings
from cyrt.logger import logger

#: Increased with every change of an entry's contents: each format has a separate folder.
FORMAT = 2

# Magic, lengths of the facts and of the bytes; SHA-256 over the rest of the header and both.
_HEADER = struct.Struct("<8sQQ32s")
_MAGIC = b"cyrt-jit"
_SUFFIX = ".entry"
_PARTIAL = ".partial"
# A writer takes milliseconds: an older file was left by a process that was killed.
_ABANDONED_SECONDS = 3600
# Number of attempts to create a folder that vanishes: another process may clear the cache in a
# loop.
_ATTEMPTS = 100
# The open does not follow a link at this path.
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The open does not wait for a FIFO at this path, nor acquire a terminal.
_ENTRY_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PARTIAL_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DamagedEntry(ValueError):
    """The entry was altered after it was written."""


class _Untrusted(OSError):
    """A folder into which others could have put code."""


def _checksum(key: str, sizes: tuple[int, int], rest: bytes | memoryview) -> bytes:
    found = hashlib.sha256(_MAGIC + struct.pack("<QQ", *sizes) + key.encode())
    found.update(rest)
    return found.digest()


def pack(key: str, facts: dict[str, Any], body: bytes) -> bytes:
    """Return an entry as the bytes of its file."""
    text = json.dumps(facts, separators=(",", ":")).encode()
    sizes = len(text), len(body)
    return _HEADER.pack(_MAGIC, *sizes, _checksum(key, sizes, text + body)) + text + body


def unpack(key: str, data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the facts and the bytes of an entry.

    Raises
    ------
    DamagedEntry
        If it is incomplete, was altered, or has another key; the message names the reason.
    """
    length, size = _sizes(data, len(data))
    rest = memoryview(data)[_HEADER.size :]
    if _HEADER.unpack_from(data)[3] != _checksum(key, (length, size), rest):
        raise DamagedEntry("altered, or another entry's: the checksum differs")
    try:
        facts = json.loads(bytes(rest[:length]))
    except (ValueError, RecursionError) as error:
        raise DamagedEntry(f"its facts cannot be read: {error}") from None
    if not isinstance(facts, dict):
        raise DamagedEntry(f"its facts are a {type(facts).__name__}")
    return facts, bytes(rest[length:])


def _sizes(header: bytes, nbytes: int) -> tuple[int, int]:
    """The lengths of the facts and of the bytes, from the header of a file of `nbytes`."""
    if len(header) < _HEADER.size:
        raise DamagedEntry(f"truncated: {len(header)} bytes")
    magic, length, size, _ = _HEADER.unpack_from(header)
    if magic != _MAGIC:
        raise DamagedEntry("not an entry of this cache")
    if nbytes != _HEADER.size + length + size:
        raise DamagedEntry(
            f"altered or truncated: {nbytes} bytes, and {_HEADER.size + length + size} were written"
        )
    return length, size


class Entry(NamedTuple):
    """One file of the cache.

    Attributes
    ----------
    key : str
    nbytes : int
        Size of the file.
    used : float
        Time of the last read or write, in seconds since the epoch.
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
        Created, accessible to its owner only, when the first entry is written.
    limit : int
        Most bytes on disk; the least recently used entries are removed first.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: int) -> None:
        self.root = os.path.abspath(os.path.expanduser(folder))
        self.folder = os.path.join(self.root, f"jit-v{FORMAT}")
        self.limit = limit
        self._warned = False

    def path(self, key: str) -> str:
        """The path of a key's entry, present or not."""
        return os.path.join(self.folder, key + _SUFFIX)

    def get(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """Return an entry's facts and bytes; None if there is no valid one."""
        try:
            with _opened(self.folder) as folder:
                _check_trust(folder)
                return unpack(key, self._read(folder, key, used=True))
        except _Untrusted as error:
            self._tell("trusted", error)
        except (OSError, ValueError, MemoryError):
            # A file that prevents reading is replaced, or reported, when the entry is written.
            pass
        return None

    def put(self, key: str, facts: dict[str, Any], body: bytes = b"") -> bool:
        """Write an entry, and remove old ones above the limit; return True if it is stored."""
        data = pack(key, facts, body)
        if len(data) > self.limit:
            return False
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._put(key + _SUFFIX, data)
                    return True
                except FileNotFoundError:
                    # Another process cleared the cache meanwhile.
                    if attempt == _ATTEMPTS:
                        raise
        except _Untrusted as error:
            self._tell("trusted", error)
        except OSError as error:
            self._tell("written", error)
        return False

    def _put(self, name: str, data: bytes) -> None:
        # Parents get the system's default mode; only the owner can access cyrt's own folder.
        os.makedirs(os.path.dirname(self.root), exist_ok=True)
        for path in (self.root, self.folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
        with _opened(self.folder) as folder:
            _check_trust(folder)
            partial = f"{os.urandom(16).hex()}{_PARTIAL}"
            handle = os.open(partial, _PARTIAL_FLAGS, 0o600, dir_fd=folder)
            try:
                with open(handle, "wb") as file:
                    file.write(data)
                try:
                    os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
                except IsADirectoryError:
                    os.rmdir(name, dir_fd=folder)  # an empty one
                    os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise
            # The entry is stored, even if removing the others fails.
            with contextlib.suppress(OSError):
                self._evict(folder)

    def _read(self, folder: int, key: str, used: bool) -> bytes:
        """Open an entry's file and check its type, owner and size; its contents are unchecked."""
        try:
            handle = os.open(key + _SUFFIX, _ENTRY_FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise DamagedEntry("not a regular file") from None
            raise
        try:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise DamagedEntry("not a regular file")
            if not _is_ours(facts):
                raise DamagedEntry("another user's, or others may write it")
            if facts.st_size > self.limit:
                raise DamagedEntry(f"{facts.st_size} bytes, more than the cache may hold")
            header = os.read(handle, _HEADER.size)
            data = header + os.read(handle, sum(_sizes(header, facts.st_size)))
            if used:
                # The file's time is the time of last use; if it cannot be set, the entry only looks
                # older.
                with contextlib.suppress(OSError):
                    os.utime(handle)
            return data
        finally:
            os.close(handle)

    def _tell(self, what: str, why: object) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"the cache of compiled kernels in {self.folder} cannot be {what}: {why}. Kernels "
                "are compiled in each process; set CYRT_CACHE_DIR to a folder of your own, or "
                "CYRT_CACHE=0 for no cache.",
                RuntimeWarning,
                stacklevel=2,
            )

    # -- the whole cache
    # -------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Return all entries, valid or not, the most recently used first."""
        try:
            with _opened(self.folder) as folder:
                return self._entries(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def load(self, entry: Entry) -> tuple[dict[str, Any], bytes]:
        """Return an entry's facts and bytes, without counting that as a use of it.

        Raises
        ------
        DamagedEntry, OSError
            If it differs from what was written, or cannot be read; a `FileNotFoundError` if another
            process has removed it.
        """
        with _opened(self.folder) as folder:
            return unpack(entry.key, self._read(folder, entry.key, used=False))

    def clear(self) -> tuple[int, int]:
        """Remove all entries, including those of other formats; return their number and bytes.

        Files that are being written are kept.
        """
        count = nbytes = 0
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in filter(re.compile(r"jit-v\d+").fullmatch, os.listdir(self.root)):
                path = os.path.join(self.root, name)
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    with _opened(path) as folder:
                        _remove_abandoned(folder)
                        for entry in self._entries(folder):
                            if _remove(folder, entry.key + _SUFFIX):
                                count += 1
                                nbytes += entry.nbytes
                    # A folder in which other processes keep files, or are about to write some, is
                    # kept.
                    with contextlib.suppress(OSError):
                        os.rmdir(path)
        return count, nbytes

    def _entries(self, folder: int) -> list[Entry]:
        found = [
            Entry(key, facts.st_size, facts.st_mtime, self.path(key))
            for key, facts in _files(folder, _SUFFIX)
        ]
        return sorted(found, key=lambda entry: -entry.used)

    def _evict(self, folder: int) -> None:
        """Remove the least recently used entries above the limit, and files of killed writers."""
        _remove_abandoned(folder)
        kept = self._entries(folder)
        # An entry larger than the limit was not written by this process, and is removed first.
        kept.sort(key=lambda entry: entry.nbytes > self.limit)
        nbytes = sum(entry.nbytes for entry in kept)
        while nbytes > self.limit:
            oldest = kept.pop()
            nbytes -= oldest.nbytes
            logger.info("the cache of kernels is above its limit: %s is removed", oldest.key)
            # Another process may have removed it, or be reading it: an open file stays readable.
            _remove(folder, oldest.key + _SUFFIX)


class _opened:
    """A folder's handle, for a ``with``; a `NotADirectoryError` for a link."""

    __slots__ = ("_handle",)

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, _FOLDER_FLAGS)

    def __enter__(self) -> int:
        return self._handle

    def __exit__(self, *fault: object) -> None:
        os.close(self._handle)


def _is_ours(facts: os.stat_result) -> bool:
    """True if no other user could have written a file, or into a folder."""
    return facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022


def _check_trust(folder: int) -> None:
    if not _is_ours(os.fstat(folder)):
        raise _Untrusted("it is another user's, or others may write there")


def _files(folder: int, suffix: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each name in a folder with this suffix, without the suffix, and the file's status."""
    for name in os.listdir(folder):
        if name.endswith(suffix):
            # Another process may have removed it.
            with contextlib.suppress(FileNotFoundError):
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield name.removesuffix(suffix), facts


def _remove_abandoned(folder: int) -> None:
    for name, facts in _files(folder, _PARTIAL):
        if time.time() - facts.st_mtime > _ABANDONED_SECONDS:
            _remove(folder, name + _PARTIAL)


def _remove(folder: int, name: str) -> bool:
    """Remove a file, a link or an empty folder; return True if this call removed it."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=folder)
            return True
    except OSError:
        pass
    else:
        return True
    return False


@functools.cache
def current() -> Cache | None:
    """The cache that the settings select; None with ``CYRT_CACHE=0``."""
    if not settings.get("CYRT_CACHE"):
        return None
    return Cache(settings.cache_dir(), settings.get("CYRT_CACHE_SIZE"))
