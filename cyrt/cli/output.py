"""The output of the commands, and the errors that end them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cyrt.configuration import layout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Refusal(Exception):
    """A command cannot run: an argument is wrong, or something is missing. The text is one line."""


class OutputLost(Exception):
    """Standard output cannot be written; the exception's cause is the system's error."""


class _CheckedFile:
    """A file whose errors are raised as :class:`OutputLost`, unlike those of other files."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError as error:
            raise OutputLost from error

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise OutputLost from error


@contextlib.contextmanager
def checked_output() -> Iterator[None]:
    """Raise :class:`OutputLost` if what the block prints cannot be written."""
    with contextlib.ExitStack() as stack:
        # A process may be started without standard output.
        output = _CheckedFile(sys.stdout or stack.enter_context(open(os.devnull, "w")))
        stack.enter_context(contextlib.redirect_stdout(output))
        yield
        output.flush()


def flush_script_output() -> None:
    """Write what a script has printed; the script may have closed its output."""
    with contextlib.suppress(AttributeError, ValueError):
        _CheckedFile(sys.stdout).flush()


def report_lost_output(lost: OutputLost) -> None:
    """Print the cause, and keep the interpreter's exit from writing the rest once more."""
    cause = lost.__cause__
    # A reader that has closed its end of a pipe needs no message.
    if not isinstance(cause, BrokenPipeError) and sys.stderr is not None:
        print(
            f"cyrt: the output cannot be written: {getattr(cause, 'strerror', cause)}",
            file=sys.stderr,
        )
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):
        os.dup2(null, sys.stdout.fileno())
    os.close(null)


def say(text: str) -> None:
    """Print a line on standard error, which may be missing or closed."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"{text}\n")


def one_line(error: Exception | str) -> str:
    """Return an error's text on one line; its lines are sentences."""
    lines = (line.strip().removesuffix(".") for line in str(error).splitlines())
    return ". ".join(filter(None, lines))


def unwritable(file: Path) -> str | None:
    """Return why a file cannot be written, or None. A file that exists stays as it is."""
    try:
        if file.is_dir():
            return "it is a folder"
        if not file.absolute().parent.is_dir():
            return f"there is no folder {file.absolute().parent}"
        exists = file.exists()
        if exists and not file.is_file():
            return None  # a pipe or a terminal: opening it could wait
        file.open("ab").close()
        if not exists:
            Path(os.path.realpath(file)).unlink()
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_cache_folder(folder: Path) -> None:
    """Refuse a path that is not a folder, and a folder that cannot be read or created, without
    changing anything."""
    try:
        if folder.is_dir():
            os.listdir(folder)
        else:
            missing = folder
            while not (folder.exists() or missing.parent.exists()):
                missing = missing.parent
            missing.mkdir()
            with contextlib.suppress(OSError):  # another process has just used it
                missing.rmdir()
    except OSError as error:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise Refusal(
            f"the cache folder {folder} cannot be used: {reason}; set CYRT_CACHE_DIR to another"
        ) from None


def console() -> Console:
    """Return a console that folds lines only in narrow terminals, and prints brackets unchanged."""
    from rich.console import Console

    # rich takes a terminal that calls itself "dumb" for one of 80 columns.
    size = shutil.get_terminal_size()
    width = size.columns if sys.stdout.isatty() else 1000
    return Console(highlight=False, markup=False, emoji=False, width=width, height=size.lines)


def print_rows(titled: Iterable[tuple[str, str]]) -> None:
    """Print titles and, beside them, their texts, which are wrapped in a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(layout(titled, width)))


def print_table(table: Table, console: Console, width: int | None = None) -> None:
    """Print a table without its empty columns, and without blanks at the ends of lines.

    The table is printed with one line for each cell if the terminal is too narrow for its words, or
    if the terminal has less than 80 columns and is too narrow for its lines.

    Parameters
    ----------
    table : Table
    console : Console
        What :func:`console` returns.
    width : int, optional
        The maximum number of columns, at which words are cut. By default no word is cut.
    """
    from rich.measure import Measurement

    table.columns = [each for each in table.columns if any(map(str, each.cells))]
    wanted = Measurement.get(console, console.options.update(max_width=1000), table)
    if console.width < (80 if width is not None else max(80, wanted.minimum)) and (
        wanted.maximum > console.width
    ):
        cells = [[str(cell) for cell in column.cells] for column in table.columns]
        headings = [str(column.header) for column in table.columns]
        if table.title:
            print(table.title)
        for row in zip(*cells, strict=True):
            print_rows((name, cell) for name, cell in zip(headings, row, strict=True) if cell)
            print()
        return
    with console.capture() as captured:
        console.print(table, width=None if width is None else min(console.width, width))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
