"""The interpreter's exit: work in flight ends, within a limit, and what failed is told."""

from __future__ import annotations

import sys

from cyrt import settings
from cyrt.driver import exit_status, table
from cyrt.graph import completion
from cyrt.runtime import stream


def leave() -> None:
    """Wait for work in flight, refuse what comes later, tell of a fault that nobody was told of.

    Such a fault goes to stderr, and a status of 0 becomes 1.
    """
    seconds = settings.get("CYRT_EXIT_TIMEOUT")
    _, errors = stream.drain(seconds)
    completion.drain(seconds)
    table.close()
    for error in errors:
        print(f"cyrt: work that nobody waited for failed: {error}", file=sys.stderr)
    if errors:
        exit_status.fail()
