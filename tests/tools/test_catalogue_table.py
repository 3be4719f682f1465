"""The documentation's table of the catalogue."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_documentation_is_of_this_catalogue(python):
    done = python(f"""
        import sys
        sys.path.insert(0, {str(ROOT / "tools")!r})
        import catalogue_table
        assert catalogue_table.table() == catalogue_table.TARGET.read_text(), \\
            "run tools/run.py format"
    """)
    assert done.returncode == 0, done.stderr
