"""Processes of their own that tests start."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

SECONDS = 300  # enough for a machine that is five times as slow
MORE_SECONDS = 30  # for the stacks of a process that has not ended by then


def start(arguments, *, env=None, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(argument) for argument in arguments],
        env={**(os.environ if env is None else env), "PYTHONFAULTHANDLER": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def finish(
    process: subprocess.Popen[str], seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Wait for a process; return it with its output.

    A Python process that does not end in time prints the stacks of its threads, which the error
    shows.
    """
    try:
        out, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        out, error = end(process)
        raise AssertionError(
            f"{process.args} has not ended after {seconds} s:\n{out[-3000:]}\n{error[-9000:]}"
        ) from None
    except BaseException:
        kill(process, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def run(arguments, *, seconds: float = SECONDS, **options) -> subprocess.CompletedProcess[str]:
    """Run a program, see `finish`."""
    return finish(start(arguments, **options), seconds)


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a process and its children; return what they had printed, and their stacks."""
    kill(process, signal.SIGABRT)
    try:
        return process.communicate(timeout=MORE_SECONDS)
    except subprocess.TimeoutExpired:
        kill(process, signal.SIGKILL)
        return process.communicate()


def kill(process: subprocess.Popen[str], number: int) -> None:
    """Send a signal to a process and its children, which are a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
