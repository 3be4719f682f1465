"""Standard output, and the error that it cannot be written."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from rich.console import Console


class OutputLost(Exception):
    """Standard output cannot be written; the cause is the system's error."""


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
        print(f"cyrt: the output cannot be written: {cause.strerror}", file=sys.stderr)
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):
        os.dup2(null, sys.stdout.fileno())
    os.close(null)


def console() -> Console:
    """A console that folds lines in a narrow terminal only, and prints brackets as they are."""
    return Console(
        highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 1000
    )
