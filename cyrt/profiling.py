"""The entry to profiles; what writes them is imported with the first one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from os import PathLike
from typing import Any


def profile(file: str | PathLike[str]) -> AbstractContextManager[Any]:
    """Return a context that writes what runs inside, for https://ui.perfetto.dev.

    The file tells what the host records and launches, with the reason for each commit, and when
    the GPU ran it. Entering launches what was recorded before; leaving waits for the device.

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
        The file is no str or path.
    OSError
        The file cannot be written; raised where the context is entered.
    RuntimeError
        Another profile is being written; raised there, too.

    Examples
    --------
    >>> with cyrt.profile("out.json"):
    ...     x = cyrt.ones(1000) * 2
    """
    from cyrt.tracing import Profile

    return Profile(file)
