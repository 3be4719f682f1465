"""The Python code that calls cyrt, for warnings and reports."""

from __future__ import annotations

import sys
from types import FrameType


def _first_outside(frame: FrameType | None) -> tuple[FrameType | None, int]:
    """Return the first frame, from `frame` outwards, that is not of cyrt, and its number,
    counted from 1."""
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cyrt":
        frame, level = frame.f_back, level + 1
    return frame, level


def outside_stacklevel() -> int:
    """Return the stack level of the code that called cyrt, as ``warnings.warn`` counts it in the
    function that calls this one."""
    return _first_outside(sys._getframe(1))[1]


def outside_line() -> str:
    """Return the file and line of the code that called cyrt, or ``""`` if there is none."""
    frame, _ = _first_outside(sys._getframe(1))
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
