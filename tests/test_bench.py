"""``python -m cyrt bench``: its table, its files, and that no time is shown of a wrong result."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import cyrt
from cyrt import bench, settings
from cyrt.__main__ import main
from cyrt.bench import cases, peers, programs
from cyrt.bench.floors import Chain as Floor
from cyrt.bench.report import Report, Row

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
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cyrt", "bench", *arguments, "--rounds", "2",
         "--json", str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return rows_of(file), done.stdout


def test_every_case_has_its_row_beside_the_floors(whole, emulated):
    rows, text = whole
    assert [r["name"] for r in rows if r["kind"] == "floor"] == list(cases.FLOORS)
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
    assert ("what a GPU would take is not known" in text) == emulated
    for name in LAUNCHES:
        assert f" {name} " in text


@pytest.mark.usefixtures("graphs")
def test_the_counts_are_of_the_measured_work(whole):
    found = {}
    for row in whole[0]:
        if row["kind"] == "case":
            found.setdefault(row["name"], row)
    assert {name: row["counts"]["operations"] for name, row in found.items()} == {
        "record": 2 * 64, "chain": 2000, "fork-join": 1800, "wide": 2000, "repoint": 2000,
        "reshape": 2000, "cold": 200, "loop": 6 * 1009, "sync": 120}
    assert found["record"]["counts"]["commits"] == 2       # none while it is timed
    assert found["sync"]["counts"]["commits"] == 20
    for name in ("chain", "sync", "wide", "fork-join"):
        assert (found[name]["hits"], found[name]["patched"]) == (100, 0)
    assert found["loop"]["hits"] >= 95
    assert found["repoint"]["patched"] > 40       # the first ones are built
    assert found["reshape"]["patched"] > 10
    assert found["cold"]["hits"] == 0


def test_a_case_alone_has_its_own_floors(tmp_path, capsys):
    file = tmp_path / "rows.json"
    assert bench.run(["sync", "sync"], rounds=1, json_file=file) == 0
    assert [r["name"] for r in rows_of(file)] == ["C loop", "sync"]
    assert " sync " in capsys.readouterr().out
    bench.run(["import"], rounds=1, json_file=file)
    assert [(r["kind"], r["times_less_than_c_loop"]) for r in rows_of(file)] == [("other", None)]


def test_direct_is_the_chain_without_graphs(tmp_path):
    file = tmp_path / "rows.json"
    assert bench.run(["direct"], rounds=1, json_file=file) == 0
    loop, direct = rows_of(file)
    assert (loop["name"], direct["name"]) == ("C loop", "direct")
    assert direct["counts"] is None
    assert "launched directly" in direct["note"]
    assert direct["host"] > 0


def test_without_graphs_the_rows_say_so(python, tmp_path):
    file = tmp_path / "rows.json"
    done = python(f"""
        import sys
        from cyrt.__main__ import main
        main(["bench", "--case", "chain", "--case", "fork-join", "--case", "cold", "--rounds", "1",
              "--json", {str(file)!r}])
        """, CYRT_GRAPHS="0")
    assert done.returncode == 0, done.stderr
    rows = [r for r in rows_of(file) if r["kind"] == "case"]
    assert [r["name"] for r in rows] == ["chain", "fork-join", "cold", "cold"]
    for row in rows:
        assert "CYRT_GRAPHS=0" in row["note"]
        assert (row["counts"], row["hits"], row["patched"]) == (None, None, None)
        assert "edges" not in row["what"]


@pytest.mark.parametrize(("arguments", "told"), [
    (["--case", "chian"], "no case is named 'chian'; there are record, chain"),
    (["--peers", "torch,tensorflow"], "no peer is named 'tensorflow'; there are torch, cupy"),
    (["--rounds", "0"], "rounds: expected a number from 1 to 2000, got 0"),
    (["--plot", "bars.txt"], "bars.txt: expected a name that ends in .svg or .png or .pdf"),
    (["--json", "no/such/rows.json"], "no/such/rows.json cannot be written: there is no such"),
    (["--json", "/"], "/ cannot be written: it is a folder"),
])
def test_bad_arguments_are_told_before_anything_is_measured(arguments, told, monkeypatch):
    monkeypatch.setattr(bench, "_measure", lambda *_: pytest.fail("it measured"))
    with pytest.raises(SystemExit) as error:
        main(["bench", *arguments])
    assert told in str(error.value)


def test_a_picture_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit, match=r"pip install 'cyrt\[bench\]'"):
        main(["bench", "--plot", "bars.svg"])


def test_the_picture_has_a_bar_for_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "bars.svg"
    Report("a device", False, (9, 0), {}, [
        Row("floor", "C loop", "cuLaunchKernel", 2.5, 2.75),
        Row("case", "chain", "full edges", 0.25),
        Row("peer", "torch", "", note="no GPU"),
        Row("other", "import", "import cyrt", 20000.0),
    ]).draw(file)
    root = ElementTree.parse(file).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = file.read_text(encoding="utf-8")
    # Host and wall of floors, cases and peers.
    colours = "#9a9a9a", "#cfcfcf", "#3f7f00", "#a3cf6b", "#2b5c9e", "#9dbfe6"
    assert [drawn.count(f"fill: {each}") for each in colours] == [1, 1, 1, 0, 0, 0]
    for text in ("C loop: cuLaunchKernel", "chain: full edges", "2.75", "0.25", "a device"):
        assert f"<!-- {text} -->" in drawn
    assert "torch" not in drawn
    assert "20000" not in drawn


def test_a_picture_of_a_run(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "bars.svg"
    assert main(["bench", "--case", "sync", "--rounds", "1", "--plot", str(file)]) == 0
    assert "<!-- sync: commit and wait every 6 -->" in file.read_text(encoding="utf-8")


# A kernel that is right until after the warm-up, and wrong within the measured work.
@pytest.mark.parametrize(("name", "limit"), [
    ("record", 150), ("chain", 2500), ("fork-join", 700), ("wide", 122), ("repoint", 2500),
    ("reshape", 2500), ("cold", 50), ("loop", 15000), ("sync", 40)])
def test_a_wrong_result_has_no_time(name, limit, monkeypatch):
    wrong = f" + (x[i] >= {limit}.0f ? 1.0f : 0.0f)"
    source = (programs.SOURCE.replace("x[i] + b[i]", "x[i] + b[i]" + wrong)
              .replace("b[i] + x[i]", "b[i] + x[i]" + wrong))
    monkeypatch.setattr(programs, "SOURCE", source)
    with pytest.raises(programs.WrongResult, match=r"element \d+ is .*, expected"):
        list(cases.CASES[name].run(cases.Bench(1)))


def test_nothing_is_shown_of_a_wrong_result(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(programs, "SOURCE",
                        programs.SOURCE.replace("x[i] + b[i]", "x[i] + 2 * b[i]"))
    file = tmp_path / "rows.json"
    with pytest.raises(programs.WrongResult, match=r"C loop: element 0 is 4000\.0, expected 2000"):
        bench.run(["chain"], rounds=1, json_file=file)
    assert capsys.readouterr().out == ""
    assert not file.exists()


@pytest.mark.parametrize("early", [False, True])
def test_floors_do_the_work(early):
    kernels = programs.Kernels()
    x = programs.buffer()
    chain = Floor(kernels.early_add if early else kernels.add, 4, 256, x, programs.buffer(1), 1024)
    assert not chain.programmatic or early
    for times in (chain.launch(7), chain.replay(3, 2), chain.cold(5)):
        assert all(each >= 0 for each in times)
    programs.expect(x, 7 + 3 * 3 + 5, "floors")
    for nodes in (1, 1001):
        with pytest.raises(ValueError, match=f"nodes: expected 2 to 1000, got {nodes}"):
            chain.cold(nodes)
        with pytest.raises(ValueError, match=f"nodes: expected 2 to 1000, got {nodes}"):
            chain.replay(nodes, 1)
    programs.expect(x, 7 + 3 * 3 + 5, "floors")


FAKES = '''
import numpy as np

def _fake(step, then=None, late=0):
    def chains():
        x = np.zeros(N, np.float32)
        def run():
            x[:] += step * CHAIN
            x[7] += late * (x[7] > 1000)
        yield Chain("numpy", run, lambda: None, lambda: x)
        if then is not None:
            then()
    return Peer(chains, ("numpy",), "numpy")

def _fail():
    raise ValueError("two\\n  lines")

PEERS = {
    "right": _fake(1),
    "wrong": _fake(2),
    "late": _fake(1, late=1),
    "fails": _fake(1, _fail),
    "crashes": _fake(1, lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "exits": _fake(1, lambda: sys.exit("enough")),
    "absent": Peer(_fail, ("no_such_module.part",), "no-such-module"),
}
'''


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """The file of the peers with others in it, on a machine that seems to have a GPU."""
    text, main_, end = Path(peers.__file__).read_text().partition('\nif __name__ == "__main__":')
    file = tmp_path / "fake_peers.py"
    file.write_text(text + FAKES + main_ + end)
    spec = importlib.util.spec_from_file_location("fake_peers", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fake_peers", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_has_gpu", lambda: True)
    return module


@pytest.mark.parametrize(("name", "timed", "note"), [
    ("right", 1, None),
    ("wrong", 0, "RuntimeError: numpy: element 0 is 200.0, expected 100; its time does not count"),
    ("late", 0, "RuntimeError: numpy: element 7 is 2111.0, expected 2100; its time does not count"),
    ("fails", 1, "ValueError: two lines"),
    ("crashes", 1, "crashed: SIGSEGV"),
    ("exits", 1, "enough"),
    ("absent", 0, "not installed: pip install no-such-module"),
])
def test_a_peer_tells_its_time_or_why_not(fakes, name, timed, note):
    rows = fakes.measure(name, 2)
    assert [row.get("what") for row in rows if "host" in row] == ["numpy"] * timed
    assert all(0 <= row["host"] <= row["wall"] for row in rows if "host" in row)
    assert [row["note"] for row in rows if "note" in row] == ([] if note is None else [note])


def test_peers_without_a_gpu_are_named(fakes, monkeypatch, tmp_path):
    monkeypatch.setattr(fakes, "_has_gpu", lambda: False)
    monkeypatch.setattr(bench, "measure", fakes.measure)
    monkeypatch.setattr(bench, "PEERS", fakes.PEERS)
    file = tmp_path / "rows.json"
    assert main(["bench", "--case", "sync", "--rounds", "1", "--peers", "--json", str(file)]) == 0
    assert {r["name"]: r["note"] for r in rows_of(file) if r["kind"] == "peer"} == {
        **dict.fromkeys(fakes.PEERS, "no GPU"), "absent": "not installed: pip install "
        "no-such-module"}


def test_every_peer_is_a_function_of_its_own():
    ways = [peer.chains for peer in peers.PEERS.values()]
    assert len(set(ways)) == len(ways) == 9
    assert {"torch", "cupy", "cuda.core", "cuda.bindings", "triton", "numba", "jax", "mlx",
            "warp"} == set(peers.PEERS)


def test_an_expected_result_is_compared_element_by_element():
    held = cyrt.Buffer(4 * programs.N)
    values = np.arange(programs.N, dtype=np.float32)
    held.copy_from(values)
    programs.expect(held, values, "arange")
    with pytest.raises(programs.WrongResult, match=r"here: element 1 is 1\.0, expected 0 \(1023 "):
        programs.expect(held, 0, "here")
