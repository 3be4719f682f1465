"""Print the files that the build finds by their folders: a new one is named nowhere.

`tools/run.py build` configures the build again where the answer has changed.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = {"cyrt": ("*.pyx", "*.pyi", "*.py"), "kernels_cu": ("*.cu", "*.cuh", "*.h")}


def names() -> list[str]:
    """The files' paths in the checkout."""
    return sorted(
        each.relative_to(ROOT).as_posix()
        for folder, patterns in PATTERNS.items()
        for pattern in patterns
        for each in (ROOT / folder).rglob(pattern)
        if "emulator" not in each.parts
    )


if __name__ == "__main__":
    print(*names(), sep="\n")
