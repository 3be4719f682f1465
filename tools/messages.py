"""List the messages of errors that the tests provoke, each with the call that makes it, to be read.

``python -P tools/messages.py [TEST ...]`` runs the tests of ``cyrt.nn``, ``ops``, ``kernels`` and
NumPy's functions, or those named, and prints a message for each place in cyrt that raises one.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

ROOMS = ("tests/nn", "tests/ops", "tests/kernels", "tests/numpy", "tests/test_refusals.py")


class Collector:
    """A pytest plugin that notes what the blocks of ``pytest.raises`` raise."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], tuple[str, str]] = {}

    def note(self, error: BaseException, trace: TracebackType | None) -> None:
        """Note an error by the place that raises it."""
        if trace is None:
            return
        call = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip()
        while trace.tb_next is not None:
            trace = trace.tb_next
        file = trace.tb_frame.f_code.co_filename
        if "cyrt/" in file and "tests/" not in file:
            place = file[file.rindex("cyrt/") :], trace.tb_lineno
            self.found.setdefault(place, (f"{type(error).__name__}: {error}", call))

    def pytest_configure(self) -> None:
        original: Callable[..., Any] = pytest.raises
        collector = self

        class Noted:
            def __init__(self, context: Any) -> None:
                self.context = context

            def __enter__(self) -> Any:
                return self.context.__enter__()

            def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
                if error is not None:
                    collector.note(error, trace)
                return self.context.__exit__(kind, error, trace)

        def raises(*arguments: Any, **options: Any) -> Any:
            context = original(*arguments, **options)
            return Noted(context) if hasattr(context, "__exit__") else context

        pytest.raises = raises


def main(tests: list[str]) -> int:
    collector = Collector()
    status = pytest.main(["-q", "--no-header", *(tests or ROOMS)], plugins=[collector])
    for (file, line), (message, call) in sorted(collector.found.items()):
        print(f"\n{file}:{line}\n  {call}\n  {message}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
