"""The public function of profiles; the first profile imports the code that writes them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from os import PathLike
from typing import Any


def profile(file: str | PathLike[str]) -> AbstractContextManager[Any]:
    """Return a context that writes a timeline of the work inside, for https://ui.perfetto.dev.

    The file shows what the host records and launches, with the reason for each commit, and when the
    GPU ran it. Entering the context launches what was recorded before, and waits for it; leaving it
    waits for the device.

    Parameters
    ----------
    file : str or path
        The file to write, JSON in the trace event format.

    Returns
    -------
    context manager

    Raises
    ------
    TypeError
        `file` is not a str or path.
    OSError
        The file cannot be written; raised when the context is entered.
    RuntimeError
        Another profile is being written; raised when the context is entered.

    Examples
    --------
    >>> with cyrt.profile("out.json"):
    ...     x = cyrt.ones(1000) * 2
    """
    from cyrt.tracing import Profile

    return Profile(file)
