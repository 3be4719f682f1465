"""Processes of their own that tests start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, BinaryIO

SECONDS = 300  # enough for a machine that is five times as slow
SERVER = Path(__file__).with_name("fork_server.py")
MORE_SECONDS = 30  # time to write the stacks of a process that has not ended


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
        raise has_not_ended(process.args, seconds, out, error) from None
    except BaseException:
        kill(process, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def has_not_ended(arguments, seconds: float, out: str, error: str) -> AssertionError:
    return AssertionError(
        f"{arguments} has not ended after {seconds} s:\n{out[-3000:]}\n{error[-9000:]}"
    )


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


class ForkServer:
    """Processes that begin with NumPy and cyrt imported, which takes most of a short one's time.

    A server of the calling process forks them. It is started at the first request.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None

    def run(
        self, program: str | list[str], *, seconds: float = SECONDS, cwd=None, env
    ) -> subprocess.CompletedProcess[str]:
        """Run a Python program until its end.

        Parameters
        ----------
        program : str or list of str
            A program's text, as after ``python -P -c``; or a file, or ``-m`` and a module, with
            arguments.
        seconds : float
            The time after which the process is ended, with its stacks in the error.
        cwd : path, optional
            The process's folder.
        env : mapping of str to str
            Its environment. A variable that only a starting interpreter reads has no effect.
        """
        if not isinstance(program, str):
            program = [str(argument) for argument in program]
        request = {"program": program, "cwd": os.fspath(cwd or os.getcwd()), "env": dict(env)}
        with self._lock, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            process = self._send(request, out, error)
            try:
                status = self._receive(seconds)
                if status is None:
                    self._end(process, signal.SIGABRT)
            except BaseException:
                self._end(process, signal.SIGKILL)
                raise
            texts = [_text(file) for file in (out, error)]
        if status is None:
            raise has_not_ended(program, seconds, *texts)
        return subprocess.CompletedProcess(program, status, *texts)

    def close(self) -> None:
        """End the server."""
        if self._connection is not None:
            self._connection.close()
            self._process.wait()
            self._connection = None

    def _send(self, request: dict[str, Any], out: BinaryIO, error: BinaryIO) -> int:
        """Return the id of the process that a request starts."""
        if self._connection is None:
            self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, SERVER, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, "PYTHONFAULTHANDLER": "1"},
                )
        descriptors = [out.fileno(), error.fileno()]
        socket.send_fds(self._connection, [json.dumps(request).encode()], descriptors)
        process = self._receive(SECONDS)
        assert process is not None, "the fork server has not answered"
        return process

    def _receive(self, seconds: float) -> int | None:
        """Return the server's next number; None if it does not come in time."""
        assert self._connection is not None
        self._connection.settimeout(seconds)
        try:
            message = self._connection.recv(32)
        except TimeoutError:
            return None
        assert message, "the fork server has ended"
        return int(message)

    def _end(self, process: int, number: int) -> None:
        """End a process and its children by a signal; by SIGKILL where it does not end them."""
        for each in number, signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, each)
            if self._receive(MORE_SECONDS) is not None:
                return


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
