"""A server that forks processes which have imported NumPy and cyrt; see `processes.ForkServer`.

It opens no driver and starts no thread. It runs one process at a time: the next request waits for
its end.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
import types
from typing import Any

MOST_BYTES = 1 << 17  # bytes of the longest request


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Answer requests; return None at the end, and in each forked process its request."""
    while True:
        message, descriptors, *_ = socket.recv_fds(connection, MOST_BYTES, 2)
        if not message:
            return None
        process = os.fork()
        if not process:
            connection.close()
            os.setsid()
            for number, descriptor in enumerate(descriptors, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return json.loads(message)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(b"%d" % process)
        _, status = os.waitpid(process, 0)
        connection.send(b"%d" % os.waitstatus_to_exitcode(status))


def execute(program: str | list[str], cwd: str, env: dict[str, str]) -> None:
    """Run what a request names, as an interpreter of its own would."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    folders = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in folders if folder and folder not in sys.path]
    if isinstance(program, str):
        sys.argv = ["-c"]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), main.__dict__)
    elif program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, cwd)
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, os.path.dirname(program[0]))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests

    import numpy  # noqa: F401

    import cyrt  # noqa: F401

    gc.collect()
    gc.freeze()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request:
        execute(**request)
