"""``python -m cyrt bench``: its table, its files, and that no time is shown of a wrong result."""

from __future__ import annotations

import json
import re
import sys
from xml.etree import ElementTree

import processes
import pytest

from cyrt import settings
from cyrt.bench import kernels, program
from cyrt.bench.cases import CASES
from cyrt.bench.floor_cases import FLOORS
from cyrt.bench.result import BenchResult
from cyrt.cli import bench, main
from cyrt.cli.bench_plot import draw
from cyrt.cli.bench_report import Report

LAUNCHES = ["record", "chain", "fork-join", "wide", "repoint", "reshape", "cold", "loop", "sync"]


@pytest.fixture
def graphs():
    if not settings.get("CYRT_GRAPHS"):
        pytest.skip("shows what graphs do: CYRT_GRAPHS=0")


def rows_of(file):
    return json.loads(file.read_text(encoding="utf-8"))["rows"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of all cases of launches in a process of its own: its rows and its text."""
    file = tmp_path_factory.mktemp("bench") / "rows.json"
    arguments = [argument for name in LAUNCHES for argument in ("--case", name)]
    done = processes.run(
        [
            sys.executable,
            "-P",
            "-m",
            "cyrt",
            "bench",
            *arguments,
            "--rounds",
            "2",
            "--json",
            str(file),
        ]
    )
    assert done.returncode == 0, done.stderr
    return rows_of(file), done.stdout


def test_every_case_has_its_row_beside_the_floors(whole, emulated):
    rows, text = whole
    assert [r["name"] for r in rows if r["kind"] == "floor"] == list(FLOORS)
    assert list(dict.fromkeys(r["name"] for r in rows if r["kind"] == "case")) == LAUNCHES
    loop = rows[0]
    (cold,) = (r for r in rows if r["name"] == "C cold")
    assert sum(cold["parts"].values()) == pytest.approx(cold["host"], rel=0.3)
    assert set(cold["parts"]) == {"nodes", "edges", "instantiation", "first launch"}
    for row in rows:
        if row["host"] is None:
            assert "programmatic" in row["what"] + row["name"]
            assert "compute capability" in row["note"]
            continue
        assert row["host"] > 0
        if row is not loop:
            assert row["times_less_than_c_loop"] == pytest.approx(loop["host"] / row["host"])
        timed = not emulated and row["name"] not in ("record", "cold", "C cold")
        assert (row["wall"] is not None) == timed, row
    assert (" wall " in text.splitlines()[2]) == (not emulated)
    assert ("the time that a GPU would take is not known" in text) == emulated
    for name in LAUNCHES:
        assert f" {name} " in text


@pytest.mark.usefixtures("graphs")
def test_the_counts_are_of_the_measured_work(whole):
    found = {}
    for row in whole[0]:
        if row["kind"] == "case":
            found.setdefault(row["name"], row)
    assert {name: row["counts"]["operations"] for name, row in found.items()} == {
        "record": 2 * 64,
        "chain": 2000,
        "fork-join": 1800,
        "wide": 2000,
        "repoint": 2000,
        "reshape": 2000,
        "cold": 200,
        "loop": 6 * 1009,
        "sync": 120,
    }
    assert found["record"]["counts"]["commits"] == 2  # none while it is timed
    assert found["sync"]["counts"]["commits"] == 20
    for name in ("chain", "sync", "wide", "fork-join"):
        assert (found[name]["hits"], found[name]["patched"]) == (100, 0)
    assert found["loop"]["hits"] >= 95
    assert found["repoint"]["patched"] > 40  # the first ones are built
    assert found["reshape"]["patched"] > 10
    assert found["cold"]["hits"] == 0


def test_a_case_alone_has_its_own_floors(tmp_path, capsys):
    file = tmp_path / "rows.json"
    assert (
        main(["bench", "--case", "sync", "--case", "sync", "--rounds", "1", "--json", str(file)])
        == 0
    )
    assert [r["name"] for r in rows_of(file)] == ["C loop", "sync"]
    assert " sync " in capsys.readouterr().out
    main(["bench", "--case", "import", "--rounds", "1", "--json", str(file)])
    assert [(r["kind"], r["times_less_than_c_loop"]) for r in rows_of(file)] == [("other", None)]


def test_direct_is_the_chain_without_graphs(tmp_path):
    file = tmp_path / "rows.json"
    assert main(["bench", "--case", "direct", "--rounds", "1", "--json", str(file)]) == 0
    loop, direct = rows_of(file)
    assert (loop["name"], direct["name"]) == ("C loop", "direct")
    assert direct["counts"] is None
    assert "launched directly" in direct["note"]
    assert direct["host"] > 0


def test_without_graphs_the_rows_say_so(python, tmp_path):
    file = tmp_path / "rows.json"
    done = python(
        f"""
        import sys
        from cyrt.cli import main
        main(["bench", "--case", "chain", "--case", "fork-join", "--case", "cold", "--rounds", "1",
              "--json", {str(file)!r}])
        """,
        CYRT_GRAPHS="0",
    )
    assert done.returncode == 0, done.stderr
    rows = [r for r in rows_of(file) if r["kind"] == "case"]
    assert [r["name"] for r in rows] == ["chain", "fork-join", "cold", "cold"]
    for row in rows:
        assert "CYRT_GRAPHS=0" in row["note"]
        assert (row["counts"], row["hits"], row["patched"]) == (None, None, None)
        assert "edges" not in row["what"]


def test_a_file_that_fills_up_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(bench, "_measure", lambda *_: None)
    assert main(["bench", "--case", "chain", "--json", "/dev/full"]) == 2
    error = capsys.readouterr().err
    assert error.splitlines()[-1].endswith("/dev/full cannot be written: No space left on device")
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "chian"], "no case is named 'chian'; there are record, chain"),
        (["--rounds", "0"], "rounds: expected a number from 1 to 2000, got 0"),
        (["--plot", "bars.txt"], "bars.txt: expected a name that ends in .svg or .png or .pdf"),
        (
            ["--json", "no/such/rows.json"],
            "no/such/rows.json cannot be written: there is no folder",
        ),
        (["--json", "/"], "/ cannot be written: it is a folder"),
        (["--json", "/proc/rows.json"], "/proc/rows.json cannot be written: "),
        (["--compare", "none.json", "b.json"], "none.json cannot be read: No such file"),
        (["--compare", __file__, "b.json"], "test_bench.py was not written by bench --json"),
        (["--compare", "a", "b", "--case", "chain"], "--case cannot be given beside it"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_measured(
    arguments, message, monkeypatch, capsys
):
    monkeypatch.setattr(bench, "_measure", lambda *_: pytest.fail("it measured"))
    assert main(["bench", *arguments]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)


def test_a_picture_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "--plot", "bars.svg"]) == 2
    assert "pip install 'cyrt[bench]'" in capsys.readouterr().err


def test_two_files_are_compared(tmp_path, capsys):
    rows = [
        [
            BenchResult("floor", "C loop", "cuLaunchKernel", 2.5),
            BenchResult("case", "chain", "full edges", 0.25, 1.0),
        ],
        [
            BenchResult("case", "chain", "full edges", 0.5, 0.75),
            BenchResult("peer", "torch", "eager", 5.0),
        ],
    ]
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, device, found in zip(files, ("one", "other"), rows, strict=True):
        Report(device, False, (9, 0), {"CYRT_GRAPHS": "1"}, found).write(file)
    assert main(["bench", "--compare", *map(str, files)]) == 0
    text = capsys.readouterr().out
    (line,) = (line for line in text.splitlines() if "full edges" in line)
    figures = ["0.250", "0.500", "2.00", "1.000", "0.750", "0.75"]
    assert line.replace("│", " ").split() == ["chain", "full", "edges", *figures]
    assert "only in A: C loop: cuLaunchKernel" in text
    assert "only in B: torch: eager" in text
    assert "The devices differ" in text
    assert f"B: {files[1]}, cyrt " in text
    assert "other, CYRT_GRAPHS=1" in text


def test_the_picture_has_a_bar_for_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "bars.svg"
    rows = [
        BenchResult("floor", "C loop", "cuLaunchKernel", 2.5, 2.75),
        BenchResult("case", "chain", "full edges", 0.25),
        BenchResult("peer", "torch", "", note="no GPU"),
        BenchResult("peer", "jax", "jitted", 35.0),
        BenchResult("other", "import", "import cyrt", 20000.0),
    ]
    draw(Report("a device", False, (9, 0), {}, rows), file)
    root = ElementTree.parse(file).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = file.read_text(encoding="utf-8")
    # Host and wall of floors, cases and peers.
    colours = "#9a9a9a", "#cfcfcf", "#3f7f00", "#a3cf6b", "#2b5c9e", "#9dbfe6"
    # A bar, and a patch in the legend.
    assert [drawn.count(f"fill: {each}") for each in colours] == [2, 2, 2, 0, 2, 0]
    for text in (
        "floor, in C: host, until the call returns",
        "floor, in C: wall, until the GPU has finished",
        "cyrt: host, until the call returns",
        "other library: host, until the call returns",
        "µs an operation; each line is ten times the one before",
    ):
        assert f"<!-- {text} -->" in drawn
    assert "cyrt: wall" not in drawn
    # One scale: what takes 140 times as long has a longer bar, and all begin at one place.
    begins, ends = [], {}
    for colour in ("#9a9a9a", "#3f7f00", "#2b5c9e"):
        path = re.search(rf'<path d="([^"]+)"[^>]*style="fill: {colour}', drawn)
        across = [float(x) for x in re.findall(r"[ML] (-?[\d.]+) ", path[1])]
        begins.append(min(across))
        ends[colour] = max(across)
    assert max(begins) - min(begins) < 0.1
    left, right = (
        float(x)
        for x in re.search(r'"patch_2">\s*<path d="M ([\d.]+) .*\nL ([\d.]+) ', drawn).groups()
    )
    tenth = 0.1 * (right - left)  # the least part of the picture that the shortest bar takes
    assert left + tenth < ends["#3f7f00"] < ends["#9a9a9a"] < ends["#2b5c9e"] < right
    for text in ("C loop: cuLaunchKernel", "chain: full edges", "2.75", "0.25", "a device"):
        assert f"<!-- {text} -->" in drawn
    assert "torch" not in drawn
    assert "20000" not in drawn


def test_a_picture_of_a_run(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "bars.svg"
    assert main(["bench", "--case", "sync", "--rounds", "1", "--plot", str(file)]) == 0
    assert "<!-- sync: commit and wait every 6 -->" in file.read_text(encoding="utf-8")


def test_nothing_is_shown_of_a_wrong_result(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(kernels, "SOURCE", kernels.SOURCE.replace("x[i] + b[i]", "x[i] + 2 * b[i]"))
    file = tmp_path / "rows.json"
    with pytest.raises(program.WrongResult, match=r"C loop: element 0 is 4000\.0, expected 2000"):
        main(["bench", "--case", "chain", "--rounds", "1", "--json", str(file)])
    assert capsys.readouterr().out == ""
    assert not file.exists()


@pytest.mark.parametrize("columns", [50, 200])
def test_help_lists_the_cases_and_says_where_others_are(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as leaving:
        main(["bench", "--help"])
    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    assert f"The cases are {', '.join(CASES)}. " in words
    assert "tools/benchmarks/" in words
