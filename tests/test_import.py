"""Importing the sources instead of the installed package."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from pathlib import Path

import processes
import pytest

ROOT = Path(__file__).resolve().parent.parent


def run_in(folder, *arguments):
    """Run Python, which imports from this folder first."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"}
    return processes.run([sys.executable, "-B", *arguments], cwd=folder, env=environment)


needs_sources = pytest.mark.skipif(
    not (ROOT / "cyrt").exists(), reason="a wheel is tried in a folder without sources"
)


@needs_sources
@pytest.mark.parametrize("arguments", [("-c", "import cyrt"), ("-m", "cyrt", "info")])
def test_sources_say_how_to_import_the_package(arguments):
    done = run_in(ROOT, *arguments)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: cyrt was imported from its sources in {ROOT / 'cyrt'}, ")
    assert "No module named 'cyrt." in last
    assert "the option -P" in last


@needs_sources
def test_a_package_that_lacks_a_module_names_the_module(tmp_path):
    shutil.copytree(
        ROOT / "cyrt",
        tmp_path / "cyrt",
        ignore=shutil.ignore_patterns("meson.build", "emulator", "*.pyx", "*.pxd", "__pycache__"),
    )
    done = run_in(tmp_path, "-c", "import cyrt")
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: No module named 'cyrt.")


@pytest.mark.parametrize("enables", [True, False])
def test_a_python_without_the_gil_is_told_that_cyrt_needs_it(enables):
    """The interpreter's own function is replaced: it says what a free-threaded one would."""
    program = f"""
        import sys, warnings
        sys._is_gil_enabled = lambda: {enables} and "cyrt.driver.table" in sys.modules
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                import cyrt
            except ImportError as error:
                print("refused:", error)
        print([(str(each.message), each.filename) for each in caught])
    """
    done = processes.run([sys.executable, "-P", "-c", textwrap.dedent(program)])
    assert done.returncode == 0, done.stderr
    if enables:
        assert "cyrt needs the GIL, so its import has enabled" in done.stdout
        assert done.stdout.count("RuntimeWarning") == 0
        assert done.stdout.count("'<string>'") == 1
    else:
        assert done.stdout.startswith("refused: cyrt needs the GIL, which PYTHON_GIL=0 or -X gil=0")
        assert done.stdout.endswith("[]\n")
