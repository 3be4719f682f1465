"""A browser without a window, driven by the DevTools protocol over two pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """A process of Chromium with one page; a context manager that ends it."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        # Chromium reads commands from the descriptor 3 and writes answers to 4.
        script = (
            "import fcntl, os, sys;"
            "first, second = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]);"
            "os.dup2(first, 3); os.dup2(second, 4); os.execv(sys.argv[3], sys.argv[3:])"
        )
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", script, str(read_commands), str(write_answers)),
                *(PROGRAM, "--headless", "--no-sandbox"),
                *("--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
                f"--user-data-dir={profile}",
            ],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self.session: dict[str, str] = {}
        self.count = 0
        self.unread = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self.count += 1
        command = {"id": self.count, "method": method, "params": parameters, **self.session}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self.unread:
                part = os.read(self.answers, 1 << 16)
                assert part, "the browser has ended"
                self.unread += part
            message, _, self.unread = self.unread.partition(b"\0")
            answer = json.loads(message)
            if answer.get("id") == self.count:  # others are events
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, url: str, expression: str) -> Any:
        """Show a page, and return an expression's first value that is true."""
        self.call("Page.navigate", url=url)
        return self.evaluate(
            "new Promise(done => { const look = () => { let found; "
            f"try {{ found = {expression} }} catch {{}} "
            "found ? done(found) : setTimeout(look, 50) }; look() })"
        )
