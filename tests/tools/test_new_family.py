"""The tool that writes a family of kernels. What it writes is built and tested by hand: it takes
minutes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("new_family", ROOT / "tools" / "new_family.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def root(tmp_path):
    """A checkout that has nothing but what the tool changes."""
    rooms = ("cyrt/nn", "cyrt/ops", "tests/nn", "tests/ops")
    for folder in ("kernels_cu/params", "cyrt/builtin/rows", *rooms):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("cyrt/nn/__init__.py", "cyrt/__init__.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in (".clang-format", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def run(tool, root, *arguments):
    """What the tool writes: the texts by their paths."""
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file()}
    tool.main([*arguments], root)
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and before.get(path) != path.read_text()
    }


@pytest.mark.parametrize("room", ["nn", "ops"])
def test_the_files_of_a_family(tool, root, room):
    files = run(tool, root, "group_norm", "--room", room)
    assert sorted(files) == sorted(
        [
            "kernels_cu/group_norm.cu",
            "kernels_cu/params/group_norm.h",
            "cyrt/builtin/group_norm.pxd",
            "cyrt/builtin/group_norm.pyx",
            "cyrt/builtin/rows/group_norm.py",
            f"cyrt/{room}/group_norm.pyi",
            f"cyrt/{room}/group_norm.pyx",
            "cyrt/nn/__init__.py" if room == "nn" else "cyrt/__init__.py",
            f"tests/{room}/test_group_norm.py",
        ]
    )
    public = files["cyrt/__init__.py" if room == "ops" else "cyrt/nn/__init__.py"]
    assert '    "group_norm",\n' in public
    assert not [name for name, text in files.items() if "@" in text.replace("@pytest", "")]
    module = "cyrt" if room == "ops" else "cyrt.nn"
    assert f">>> {module}.group_norm(" in files[f"cyrt/{room}/group_norm.pyx"]
    assert f"from {module} import group_norm" in files[f"tests/{room}/test_group_norm.py"]
    assert "struct CYRT_PARAMETERS GroupNorm {" in files["kernels_cu/params/group_norm.h"]
    assert "CYRT_GROUP_NORM(NAME, TYPE)" in files["kernels_cu/group_norm.cu"]


@pytest.mark.parametrize("name", ["x", "zeta", "selective_scan"])
def test_what_is_written_is_formatted(tool, root, name):
    run(tool, root, name)
    sources = [each for each in root.rglob("*") if each.suffix in (".cu", ".h")]
    folder = Path(sys.executable).parent
    if not (folder / "cython-lint").exists() or not (folder / "ruff").exists():
        pytest.skip("ruff and cython-lint are not installed beside Python")
    for command in (
        [
            "ruff",
            "check",
            "--quiet",
            "--select",
            "I,RUF022",
            "--fix",
            ".",
        ],  # as tools/run.py format
        ["ruff", "format", "--quiet", "."],
        ["clang-format", "-i", *sources],
        ["ruff", "check", "."],
        ["cython-lint", "cyrt"],
    ):
        done = subprocess.run(
            [folder / command[0], *command[1:]],
            cwd=root,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        )
        assert not done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["GroupNorm", "group-norm", "_norm", "norm_", "1d"])
def test_a_name_is_in_small_letters(tool, root, name, capsys):
    with pytest.raises(SystemExit):
        run(tool, root, name)
    assert "expected small letters, digits and underscores, got" in capsys.readouterr().err


def test_a_family_that_exists_is_left(tool, root, capsys):
    files = run(tool, root, "zeta")
    with pytest.raises(SystemExit):
        tool.main(["zeta"], root)
    assert "name: kernels_cu/params/zeta.h exists" in capsys.readouterr().err
    assert all((root / name).read_text() == text for name, text in files.items())
