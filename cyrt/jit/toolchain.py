"""The installed NVRTC and NVIDIA headers, known without loading or searching.

Finding them costs more than reading a compiled kernel, so the disk cache stores their locations,
for as long as the inputs of the search stay the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from cyrt.jit import cache, headers, nvrtc

#: Inputs of the search for libraries and headers, in addition to Python's path.
_VARIABLES = ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH")
_SYSTEM = ("/etc/ld.so.cache", "/usr/local")


class Library(NamedTuple):
    """An NVRTC.

    Attributes
    ----------
    files : tuple of (str, int, int)
        Path, size in bytes and modification time in ns of the library and of the libraries that it
        loads; empty if its location is unknown.
    version : (int, int)
    archs : tuple of int
        The architectures that it compiles for, ascending: 90 is ``sm_90``.
    """

    files: tuple[tuple[str, int, int], ...]
    version: tuple[int, int]
    archs: tuple[int, ...]


class Folder(NamedTuple):
    """A folder of NVIDIA's headers.

    Attributes
    ----------
    path : str
    changed : int
        Time of its last change in ns.
    packages : tuple of str
        NVIDIA's packages in the same site folder, with their versions; none for a toolkit.
    """

    path: str
    changed: int
    packages: tuple[str, ...]


# The NVRTC and headers of this process; None until first used.
_library: Library | None = None
_folders: tuple[Folder, ...] | None = None


def library() -> Library:
    """Return the NVRTC that compiles in this process; a `CompileError` if there is none."""
    global _library
    if _library is None:
        _library = _remembered_library()
        if _library is None:
            _library = _loaded_library()
            _remember()
    return _library


def confirmed_library() -> Library:
    """Return the NVRTC that is loaded, and load it.

    Another package may have loaded one from another location; cyrt then uses that one.
    """
    global _folders, _library
    loaded = _loaded_library()
    if loaded != _library:
        if _library is not None and loaded.version[0] != _library.version[0]:
            _folders = None
        _library = loaded
        _remember()
    return loaded


def header_folders() -> tuple[Folder, ...]:
    """Return the folders of NVIDIA's headers that are installed, in the order of search."""
    global _folders
    if _folders is None:
        _folders = _remembered_folders()
        if _folders is None:
            _folders = tuple(
                Folder(path, _read_mtime(path), _packages(path))
                for path in headers.include_directories(library().version[0])
            )
            _remember()
    return _folders


def is_current() -> bool:
    """True if this process's NVRTC and headers are still the installed ones."""
    return (_library is None or _unchanged(_library)) and _are_unchanged(_folders or ())


def toolkit_folders(named: Sequence[str]) -> tuple[Folder, ...]:
    """Return those of the named folders that are an installed toolkit's headers.

    A toolkit is in the folder of ``CUDA_PATH`` or ``CUDA_HOME``, or in its installer's default
    folder. A folder of the user's own is not a toolkit, regardless of its contents.
    """
    there = _toolkit_places() if named else frozenset()
    return tuple(
        Folder(os.path.realpath(folder), _read_mtime(folder), ())
        for folder in named
        if _place(folder) in there and _has_cuda_alone(folder)
    )


@functools.cache
def lacking_names(folders: tuple[Folder, ...]) -> tuple[str, ...]:
    """Return the names that NVIDIA's headers include and do not contain, ascending.

    A user's folder may have them. Finding them reads all those headers, once per installation.
    """
    store = cache.current()
    key = hashlib.sha256(json.dumps(["lacking names", folders]).encode()).hexdigest()
    known = store.get(key) if store else None
    if known is not None and isinstance(known[0].get("lacking"), list):
        return tuple(known[0]["lacking"])
    found = headers.lacking_names([folder.path for folder in folders])
    if store:
        store.put(key, {"kind": "toolchain", "lacking": found})
    return found


# -- finding them ----------------------------------------------------------------------------------


@functools.cache
def _loaded_library() -> Library:
    version, archs = nvrtc.nvrtc_version(), tuple(nvrtc.supported_archs())
    path = nvrtc.library_path()
    files: list[str] = []
    if path is not None:
        folder = os.path.dirname(path)
        names = sorted(n for n in os.listdir(folder) if re.match(r"(lib)?nvrtc-builtins", n))
        files = [path, *(os.path.join(folder, name) for name in names)]
    return Library(tuple(map(_identity, files)), version, archs)


def _identity(path: str) -> tuple[str, int, int]:
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns


def _unchanged(library: Library) -> bool:
    try:
        return all(_identity(file[0]) == file for file in library.files)
    except OSError:
        return False


def _are_unchanged(folders: Sequence[Folder]) -> bool:
    return all(_read_mtime(folder.path) == folder.changed for folder in folders)


def _read_mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@functools.cache
def _toolkit_places() -> frozenset[tuple[int, int]]:
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), *glob("/usr/local/cuda*")]
    folders = [f"{root}/include{part}" for root in roots if root for part in ("", "/cccl")]
    return frozenset(filter(None, map(_place, folders)))


def _place(folder: str) -> tuple[int, int] | None:
    """The device and inode of a folder, the same for all its names; None if it is absent."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_cuda_alone(folder: str) -> bool:
    """True if the folder has CUDA's headers, and not all other headers as a system's folder has."""
    if os.path.basename(os.path.realpath(folder)) == "cccl":
        folder = os.path.join(folder, os.pardir)
    has_cuda, has_others = (
        os.path.exists(os.path.join(folder, name)) for name in ("cuda_runtime_api.h", "stdio.h")
    )
    return has_cuda and not has_others


def _packages(path: str) -> tuple[str, ...]:
    """NVIDIA's packages in the site folder that a header folder is in."""
    for parent in Path(path).parents:
        if parent.name in ("site-packages", "dist-packages"):
            return tuple(sorted(found.name for found in parent.glob("nvidia_*.dist-info")))
    return ()


# -- storing them ----------------------------------------------------------------------------------


@functools.cache
def _memory_key() -> str:
    """A hash of everything that decides the result of a search."""
    sites = [
        (path, _read_mtime(path))
        for path in sys.path
        if any(os.path.isdir(f"{path}/{name}") for name in ("nvidia", "cuda/bindings"))
    ]
    where: list[tuple[str, Any]] = [(name, os.environ.get(name)) for name in _VARIABLES]
    conda = f"{os.environ.get('CONDA_PREFIX', '')}/conda-meta"
    where += [(path, _read_mtime(path)) for path in (*_SYSTEM, conda)]
    where.append(("driver", nvrtc.driver_major()))
    return hashlib.sha256(json.dumps(["toolchain", sites, where]).encode()).hexdigest()


def _read_facts() -> dict[str, Any]:
    store = cache.current()
    found = store.get(_memory_key()) if store else None
    return found[0] if found else {}


def _remembered_library() -> Library | None:
    """The NVRTC that an earlier process loaded, if it is unchanged."""
    try:
        known = _read_facts()["library"]
        files = tuple((path, size, time) for path, size, time in known["files"])
        found = Library(files, tuple(known["version"]), tuple(known["archs"]))
    except (KeyError, TypeError, ValueError):
        return None
    return found if _unchanged(found) else None


def _remembered_folders() -> tuple[Folder, ...] | None:
    """The headers that an earlier process found, if they are unchanged."""
    try:
        facts = _read_facts()
        found = tuple(
            Folder(f["path"], f["changed"], tuple(f["packages"])) for f in facts["folders"]
        )
        major = facts["major"]
    except (KeyError, TypeError):
        return None
    return found if major == library().version[0] and _are_unchanged(found) else None


def _remember() -> None:
    store = cache.current()
    if store:
        facts: dict[str, Any] = {**_read_facts(), "kind": "toolchain"}
        if _library is not None and _library.files:
            facts["library"] = _library._asdict()
        if _folders is not None:
            facts["folders"] = [folder._asdict() for folder in _folders]
            facts["major"] = library().version[0]
        store.put(_memory_key(), facts)
