"""Random programs of several threads, with signals, finalizers, handlers, refused launches, two
devices and little memory.

``CYRT_TEST_PROGRAMS`` sets how many programs of each kind run, ``CYRT_TEST_SEED`` the first one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import processes
import pytest

PROGRAMS = Path(__file__).parents[1] / "thread_programs.py"


@pytest.mark.parametrize("kind", ["plain", "refused", "devices", "limited"])
def test_random_threads(kind, emulated):
    """In a process of its own: a deadlock or a crash is reported with each thread's stack."""
    count = int(os.environ.get("CYRT_TEST_PROGRAMS", "20"))
    first = os.environ.get("CYRT_TEST_SEED", "0")
    devices = {"CYRT_EMULATED_DEVICES": "2"} if emulated and kind == "devices" else {}
    done = processes.run(
        [
            sys.executable,
            "-X",
            "faulthandler",
            PROGRAMS,
            "--kind",
            kind,
            "--first",
            first,
            "--count",
            str(count),
        ],
        seconds=processes.SECONDS + 50 * count,
        env={**os.environ, **devices},
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
