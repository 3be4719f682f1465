"""The tool that counts instructions: its comparison with the table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parent.parent.parent / "tools" / "instruction_counts.py"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("instruction_counts", PATH)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.setattr(found, "TABLE", tmp_path / "table.json")
    monkeypatch.setattr(found.shutil, "which", lambda program: f"/bin/{program}")
    monkeypatch.setattr(found, "toolchain", lambda: "gcc 12, CPython 3.11")
    return found


def run(tool, monkeypatch, counts, *arguments):
    monkeypatch.setattr(tool, "count", lambda: counts)
    return tool.main([*arguments])


def write(tool, counts, key="gcc 12, CPython 3.11"):
    tool.TABLE.write_text(json.dumps({key: counts}))


@pytest.mark.parametrize(("found", "status"), [(1040, 1), (1031, 1), (1030, 0), (700, 0)])
def test_a_rise_by_more_than_3_percent_fails(tool, monkeypatch, capsys, found, status):
    write(tool, {"x + b": 1000, "slice": 500})
    assert run(tool, monkeypatch, {"x + b": found, "slice": 500}) == status
    output = capsys.readouterr().out
    assert f"{found:,} instructions, 1,000 in the table" in output
    assert ("which is more than +3%" in output) == bool(status)
    assert ("--write" in output) == bool(status)


def test_an_operation_that_the_table_lacks_passes(tool, monkeypatch, capsys):
    write(tool, {"x + b": 1000})
    assert run(tool, monkeypatch, {"x + b": 1000, "slice": 500}) == 0
    assert "slice                         500 instructions\n" in capsys.readouterr().out


@pytest.mark.parametrize("known", ["clang 19, CPython 3.11", None])
def test_another_compiler_passes_and_prints(tool, monkeypatch, capsys, known):
    if known is not None:
        write(tool, {"x + b": 10}, known)
    assert run(tool, monkeypatch, {"x + b": 1000}) == 0
    output = capsys.readouterr().out
    assert "1,000 instructions\n" in output
    assert "nothing is compared: the table has no counts for gcc 12, CPython 3.11" in output


def test_counts_are_written_beside_other_compilers(tool, monkeypatch):
    write(tool, {"x + b": 10}, "clang 19, CPython 3.11")
    assert run(tool, monkeypatch, {"x + b": 1000}, "--write") == 0
    assert json.loads(tool.TABLE.read_text()) == {
        "clang 19, CPython 3.11": {"x + b": 10},
        "gcc 12, CPython 3.11": {"x + b": 1000},
    }
    assert run(tool, monkeypatch, {"x + b": 2000}) == 1
    assert run(tool, monkeypatch, {"x + b": 2000}, "--write") == 0
    assert run(tool, monkeypatch, {"x + b": 2000}) == 0


def test_without_valgrind_it_says_so_and_passes(tool, monkeypatch, capsys):
    monkeypatch.setattr(tool.shutil, "which", lambda program: None)
    assert tool.main([]) == 0
    assert capsys.readouterr().out == "instructions are not counted: valgrind is missing\n"


def test_the_first_threads_parts_are_read_in_order(tool, tmp_path):
    for name, text in (
        ("out.10-01", "totals: 30"),
        ("out.2-01", "events: Ir\nsummary: 20\n\ntotals: 20\n"),
        ("out.2-02", "totals: 7"),
        ("out.1-01", "totals: 10"),
    ):
        (tmp_path / name).write_text(text)
    assert tool.parts(tmp_path) == [10, 20, 30]


def test_each_program_has_a_name(tool):
    assert len(tool.programs()) == len(tool.NAMES)


def test_the_committed_table_has_counts_of_all(tool):
    for counts in json.loads(PATH.with_suffix(".json").read_text()).values():
        assert set(counts) == {*tool.NAMES} - {tool.FLOATS}
