"""Importing the sources instead of the installed package."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import processes
import pytest

ROOT = Path(__file__).resolve().parent.parent


def run_in(folder, *arguments):
    """Run Python, which imports from this folder first."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"}
    return processes.run([sys.executable, "-B", *arguments], cwd=folder, env=environment)


@pytest.mark.parametrize("arguments", [("-c", "import cyrt"), ("-m", "cyrt", "info")])
def test_sources_say_how_to_import_the_package(arguments):
    done = run_in(ROOT, *arguments)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: cyrt was imported from its sources in {ROOT / 'cyrt'}, ")
    assert "No module named 'cyrt." in last
    assert "the option -P" in last


def test_a_package_that_lacks_a_module_names_the_module(tmp_path):
    shutil.copytree(
        ROOT / "cyrt",
        tmp_path / "cyrt",
        ignore=shutil.ignore_patterns("meson.build", "emulator", "*.pyx", "*.pxd", "__pycache__"),
    )
    done = run_in(tmp_path, "-c", "import cyrt")
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: No module named 'cyrt.")
