"""The project's commands: which runs of the tests the matrix has."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parent.parent.parent / "tools" / "run.py"
MODES = ["CYRT_GRAPHS=0", "CYRT_CHECK=1", "CYRT_TEST_GC=1"]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.delenv("CYRT_DEVICE", raising=False)
    monkeypatch.syspath_prepend(PATH.parent)
    spec = importlib.util.spec_from_file_location("run", PATH)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run_matrix(tool, monkeypatch, fails=""):
    """The commands of the matrix over one folder; the one that sets `fails` fails."""
    calls = []

    def call(*command, **environment):
        calls.append((command, environment))
        return int(any(f"{name}={value}" == fails for name, value in environment.items()))

    monkeypatch.setattr(tool, "call", call)
    tool.matrix(["tests/nn"])
    return calls


def test_the_matrix_runs_each_mode(tool, monkeypatch, capsys):
    monkeypatch.setattr(tool, "another_python", lambda: None)
    calls = run_matrix(tool, monkeypatch)
    assert [set(environment.items()) for _, environment in calls] == [
        {("CYRT_DEVICE", "emulated"), ("OPENBLAS_NUM_THREADS", "1"), tuple(mode.split("="))}
        for mode in MODES
    ]
    assert all(command[0].name == "pytest" and command[-1] == "tests/nn" for command, _ in calls)
    output = capsys.readouterr().out
    assert "no other Python is installed" in output
    assert all(f"{mode}: passed" in output for mode in MODES)


def test_the_matrix_has_another_python_in_an_environment_of_its_own(tool, monkeypatch):
    monkeypatch.setattr(tool, "another_python", lambda: "/usr/bin/python3.14")
    command, environment = run_matrix(tool, monkeypatch)[-1]
    assert command == ("/usr/bin/python3.14", PATH, "suite", "tests/nn")
    assert environment == {"VENV": ".venv-python3.14"}


@pytest.mark.parametrize("mode", MODES)
def test_all_modes_run_where_one_fails(tool, monkeypatch, capsys, mode):
    monkeypatch.setattr(tool, "another_python", lambda: None)
    with pytest.raises(SystemExit, match="1"):
        run_matrix(tool, monkeypatch, mode)
    output = capsys.readouterr().out
    assert {each: f"{each}: failed" in output for each in MODES} == {
        each: each == mode for each in MODES
    }


def test_a_python_that_does_not_start_is_none(tool, monkeypatch, tmp_path):
    for minor, text in ((1, "#!/bin/sh\nexit 127\n"), (2, "#!/bin/sh\nexit 0\n")):
        file = tmp_path / f"python3.{sys.version_info[1] + minor}"
        file.write_text(text)
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    works, broken = file, tmp_path / f"python3.{sys.version_info[1] + 1}"
    assert tool.another_python() == str(works)
    works.unlink()
    assert broken.exists()
    assert tool.another_python() is None


def test_the_build_writes_entry_points_to_installed_metadata(tool, tmp_path):
    info = tmp_path / "cyrt-0.1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("cyrt/__init__.py,,\n")
    for _ in range(2):
        tool.write_entry_points(info)
        assert "[pytest11]\ncyrt = pytest_cyrt\n" in (info / "entry_points.txt").read_text()
        record = (info / "RECORD").read_text().splitlines()
        assert record == ["cyrt/__init__.py,,", "cyrt-0.1.0.dist-info/entry_points.txt,,"]
    (found,) = importlib.metadata.Distribution.at(info).entry_points.select(group="pytest11")
    assert (found.name, found.value) == ("cyrt", "pytest_cyrt")
