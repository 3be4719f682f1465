"""The tool that translates Cython modules."""

from __future__ import annotations

from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_what_has_not_changed_needs_no_cython(python, tmp_path):
    pytest.importorskip("Cython")
    done = python(
        f"""
        import sys
        import cythonize as tool

        sys.argv = ["cythonize.py", {str(tmp_path)!r}, "driver/exit_status"]
        tool.main()
        sys.modules["Cython.Build"] = None
        tool.main()
        tool.state = lambda: "another"
        try:
            tool.main()
        except ImportError:
            print("translates")
        """,
        folders=[TOOLS],
    )
    assert (done.returncode, done.stdout) == (0, "translates\n"), done.stderr
    assert (tmp_path / "driver.exit_status.c").exists()
