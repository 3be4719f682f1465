"""``python -m cyrt cache``: the entries of the disk cache."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cyrt import settings
from cyrt.cli.output import Refusal, check_cache_folder, print_rows, print_table
from cyrt.cli.output import console as output_console
from cyrt.configuration import amount as _size
from cyrt.jit.cache import Cache, Entry
from cyrt.jit.image import from_facts

# Columns of the list in a terminal, where longer names are cut; `show` prints them completely.
WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    parser.set_defaults(action="list")
    actions.add_parser(
        "list", help="show each entry's kernels, architecture, size and age (the default)"
    )
    show = actions.add_parser("show", help="show one entry completely")
    show.add_argument("key", metavar="KEY", help="the key that `list` shows, or its beginning")
    actions.add_parser("clear", help="remove all entries")
    actions.add_parser("verify", help="check every entry's checksum")


def run(options: argparse.Namespace) -> int:
    """Run an action, and return the exit status: 1 if an entry is damaged.

    Raises
    ------
    Refusal
        No entry has the key, or the folder cannot be used.
    """
    console = output_console()
    cache = Cache(settings.cache_dir(), settings.get("CYRT_CACHE_SIZE"))
    check_cache_folder(Path(cache.root))
    try:
        if not settings.get("CYRT_CACHE"):
            console.print("CYRT_CACHE=0: nothing is read from the cache, and nothing written.")
        if options.action == "show":
            return _show(cache, options.key)
        return {"list": _list, "clear": _clear, "verify": _verify}[options.action](cache, console)
    except OSError as error:
        raise Refusal(f"{error.filename}: {error.strerror}") from None


_Found = tuple[dict[str, Any], bytes]


def _age(used: float) -> str:
    seconds = max(0.0, time.time() - used)
    for unit, many in (("s", 60), ("min", 60), ("h", 24)):
        if seconds < many:
            return f"{seconds:.0f} {unit}"
        seconds /= many
    return f"{seconds:.0f} d"


def _read(cache: Cache, entries: list[Entry]) -> Iterator[tuple[Entry, _Found | str]]:
    """Yield each entry with its facts and bytes, or with the message that says why it is damaged.

    Entries that another process has removed meanwhile are skipped.
    """
    for entry in entries:
        found: _Found | str
        try:
            found = cache.load(entry)
            if found[0].get("kind") == "kernel":
                from_facts(*found)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            found = str(error)
        yield entry, found


def _kernels(facts: dict[str, Any]) -> list[str]:
    """The distinct signatures of an image's kernels."""
    image = from_facts(facts, b"")
    return list(dict.fromkeys(str(s) for s in image.signatures.values()))


def _list(cache: Cache, console: Console) -> int:
    rows = Table(box=None, pad_edge=False)
    # The names of the kernels come last: no other line is longer if those of one entry are long.
    for heading in ("key", "arch", "size", "last used", "file", "kernels"):
        rows.add_column(
            heading,
            no_wrap=heading not in ("kernels", "file"),
            max_width=16 if heading == "file" and console.is_terminal else None,
        )
    count = total = damaged = 0
    for entry, found in _read(cache, cache.entries()):
        count += 1
        total += entry.nbytes
        size, age = _size(entry.nbytes), _age(entry.used)
        if isinstance(found, str):
            damaged += 1
            rows.add_row(entry.key[:12], "", size, age, "", f"damaged: {found}")
        elif found[0].get("kind") == "kernel":
            facts = found[0]
            names = list(dict.fromkeys(s[0] for s in facts["signatures"].values()))
            rows.add_row(
                entry.key[:12], facts["arch"], size, age, facts["file"], ", ".join(names) or "none"
            )
    if rows.row_count:
        print_table(rows, console, WIDTH if console.is_terminal else console.width)
    console.print(
        f"{cache.folder}: {count} entries, {_size(total)} of {_size(cache.limit)}"
        + (f", {damaged} damaged (compiled anew when wanted)" if damaged else "")
    )
    return 0


def _show(cache: Cache, key: str) -> int:
    if not key:
        raise Refusal("KEY: expected a key as `list` shows it, or how it begins, got ''")
    matching = [entry for entry in cache.entries() if entry.key.startswith(key)]
    read = list(_read(cache, matching)) if len(matching) == 1 else []
    if not read:
        what = f"{len(matching)} entries begin" if len(matching) > 1 else "no entry begins"
        raise Refusal(f"{what} with {key!r} in {cache.folder}")
    entry, found = read[0]
    facts: list[tuple[str, str]] = []
    facts.append(("key", entry.key))
    facts.append(("path", entry.path))
    facts.append(("size", f"{_size(entry.nbytes)}, last used {_age(entry.used)} ago"))
    if isinstance(found, str):
        facts.append(("damaged", found))
    else:
        known, code = found
        for name in ("kind", "file", "arch", "format"):
            if name in known:
                facts.append((name, known[name]))
        if known.get("kind") == "kernel":
            facts.append(("code", _size(len(code))))
            facts.append(("kernels", "\n".join(_kernels(known))))
            facts.append(("names", "\n".join(f"{n}: {s}" for n, s in known["lowered"].items())))
            facts.append(("options", " ".join(known["options"])))
            facts.append(("macros", "\n".join(known["macros"]) or "none"))
            facts.append(("NVRTC", ", ".join(known["nvrtc"])))
            facts.append(("log", known["log"] or "nothing"))
        else:
            for name in known.keys() - {"kind"}:
                facts.append((name, str(known[name])))
    print_rows(facts)
    return int(isinstance(found, str))


def _clear(cache: Cache, console: Console) -> int:
    count, nbytes = cache.clear()
    console.print(f"{cache.root}: {count} entries removed, {_size(nbytes)}")
    return 0


def _verify(cache: Cache, console: Console) -> int:
    count = damaged = 0
    for entry, found in _read(cache, cache.entries()):
        count += 1
        if isinstance(found, str):
            damaged += 1
            console.print(f"{entry.path}: {found}")
    console.print(
        f"{cache.folder}: {count} entries, {damaged} damaged"
        + (" (compiled anew when wanted)" if damaged else "")
    )
    return int(bool(damaged))
