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


SOURCES = {
    "__init__.py": "",
    "common.pxd": "cdef inline int one() noexcept:\n    return 1\n",
    "pair.pxd": "from cyrt.common cimport one\ncdef int two() noexcept\n",
    "pair.pyx": "cdef int two() noexcept:\n    return one() + one()\n",
    "sum.pyx": "from cyrt.pair cimport two\ndef four():\n    return two() + two()\n",
    "alone.pyx": "def nothing():\n    return 0\n",
}


@pytest.fixture
def translate(python, tmp_path):
    """Translate a small package, and print when each file was written that comes out."""
    pytest.importorskip("Cython")
    root, out = tmp_path / "sources", tmp_path / "out"
    out.mkdir()
    (root / "cyrt").mkdir(parents=True)
    for name, text in SOURCES.items():
        (root / "cyrt" / name).write_text(text)

    def run(**changed):
        for name, text in changed.items():
            (root / "cyrt" / f"{name}.pyx").write_text(text)
        done = python(
            f"""
            import pathlib, sys
            import cythonize as tool

            tool.ROOT = pathlib.Path({str(root)!r})
            sys.argv = ["cythonize.py", {str(out)!r}, "alone", "pair", "sum"]
            tool.main()
            """,
            folders=[TOOLS],
        )
        return done, {path.name: path.stat().st_mtime_ns for path in out.glob("*.c")}

    return run


def test_a_module_is_translated_alike_with_others_and_alone(translate):
    done, first = translate()
    assert done.returncode == 0, done.stderr
    assert set(first) == {"alone.c", "pair.c", "sum.c", "cython_utility.c"}
    # Its text is another one, its translation is not.
    done, second = translate(sum=f"{SOURCES['sum.pyx']}# the end\n")
    assert (done.returncode, second) == (0, first), done.stderr
    done, third = translate(sum=SOURCES["sum.pyx"].replace("+", "-"))
    assert done.returncode == 0, done.stderr
    assert {name for name in third if third[name] != second[name]} == {"sum.c"}


def test_a_refused_module_is_named_after_the_others_are_translated(translate):
    done, _ = translate(alone="cdef int number = 'text'\n")
    assert done.returncode == 1
    assert "alone.pyx:1:18: " in done.stderr
    assert done.stderr.endswith("Cython refuses cyrt/alone.pyx\n")
