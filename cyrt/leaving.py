"""The interpreter's exit: wait for running work, up to a limit, and report failures."""

from __future__ import annotations

import sys

from cyrt import settings
from cyrt.builtin import background
from cyrt.driver import exit_status, table
from cyrt.graph import completion
from cyrt.runtime import waiting


def leave() -> None:
    """Wait for work in flight, close the driver, and report failures that nobody waited for, and
    work that has not ended in time.

    They are printed on stderr, and an exit status of 0 becomes 1.
    """
    if not table.is_open():
        return
    seconds = settings.get("CYRT_EXIT_TIMEOUT")
    busy, errors = waiting.drain(seconds)
    lost = [f"work that nobody waited for failed: {error}" for error in errors]
    limit = f"{seconds:g} s (CYRT_EXIT_TIMEOUT)"
    for ordinal in sorted(busy):
        operations, _, _ = table.operations_in_flight(ordinal).partition(" CYRT_")
        text = f"work on device {ordinal} did not end within {limit} and was given up. {operations}"
        lost.append(text.rstrip())
    if not completion.drain(seconds) and not busy:
        lost.append(f"completion handlers did not end within {limit} and were given up.")
    table.close()
    for text in lost:
        print(f"cyrt: {text}", file=sys.stderr)
    if lost:
        exit_status.fail()
    if background.is_compiling():
        exit_status.skip_exit_functions()
