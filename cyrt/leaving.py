"""The interpreter's exit: wait for work in flight, up to a limit, and report failures."""

from __future__ import annotations

import sys

from cyrt import settings
from cyrt.driver import exit_status, table
from cyrt.graph import completion
from cyrt.runtime import waiting


def leave() -> None:
    """Wait for work in flight, close the driver, and report failures that nobody waited for.

    They are printed on stderr, and an exit status of 0 becomes 1.
    """
    if not table.is_open():
        return
    seconds = settings.get("CYRT_EXIT_TIMEOUT")
    _, errors = waiting.drain(seconds)
    completion.drain(seconds)
    table.close()
    for error in errors:
        print(f"cyrt: work that nobody waited for failed: {error}", file=sys.stderr)
    if errors:
        exit_status.fail()
