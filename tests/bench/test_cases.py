"""The benchmark's cases: no time is yielded of a wrong result."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import settling
from outside import only_graphs

import cyrt
from cyrt.bench import kernels, program
from cyrt.bench.cases import CASES
from cyrt.bench.floors import Floor
from cyrt.bench.measurement import Bench


def test_views_cost_little(setting):
    # The best of many tries of each case, until they do: other work of the machine makes any one of
    # them slow, for many seconds if the device's threads are starved, too. Operations on contiguous
    # arrays are recorded, as those on views are.
    setting(CYRT_REPLAY="0")
    most = {"x[1:-1]": 0.65, "x[1:-1, :-2]": 1.1, "x + b, b a slice": 1.8, "x + b, b a row": 1.8}
    host, tries, end = {}, 0, time.monotonic() + 60
    while tries < 6 or time.monotonic() < end:
        with cyrt.Stream():
            for row in CASES["views"].run(Bench(20)):
                host[row.what] = min(row.host, host.get(row.what, row.host))
        ratios = {what: host[what] / host["x + b, contiguous"] for what in most}
        tries += 1
        if tries > 6 and all(ratios[what] < most[what] for what in most):
            return
    raise AssertionError(ratios)


# A kernel that is right until after the warm-up, and wrong within the measured work.
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("record", 150),
        ("chain", 2500),
        ("fork-join", 700),
        ("wide", 122),
        ("repoint", 2500),
        ("reshape", 2500),
        ("cold", 50),
        ("loop", 15000),
        ("sync", 40),
    ],
)
def test_a_wrong_result_has_no_time(name, limit, monkeypatch):
    wrong = f" + (x[i] >= {limit}.0f ? 1.0f : 0.0f)"
    source = kernels.SOURCE.replace("x[i] + b[i]", "x[i] + b[i]" + wrong).replace(
        "b[i] + x[i]", "b[i] + x[i]" + wrong
    )
    monkeypatch.setattr(kernels, "SOURCE", source)
    with pytest.raises(program.WrongResult, match=r"element \d+ is .*, expected"):
        list(CASES[name].run(Bench(1)))


@pytest.mark.parametrize("early", [False, True])
def test_floors_do_the_work(early):
    compiled = kernels.Kernels()
    x = program.buffer()
    chain = Floor(compiled.early_add if early else compiled.add, 4, 256, x, program.buffer(1), 1024)
    assert not chain.programmatic or early
    for times in (chain.launch(7), chain.replay(3, 2), chain.cold(5)):
        assert all(each >= 0 for each in times)
    program.expect(x, 7 + 3 * 3 + 5, "floors")
    for nodes in (1, 1001):
        with pytest.raises(ValueError, match=f"nodes: expected 2 to 1000, got {nodes}"):
            chain.cold(nodes)
        with pytest.raises(ValueError, match=f"nodes: expected 2 to 1000, got {nodes}"):
            chain.replay(nodes, 1)
    program.expect(x, 7 + 3 * 3 + 5, "floors")


def test_an_expected_result_is_compared_element_by_element():
    held = cyrt.Buffer(4 * program.N)
    values = np.arange(program.N, dtype=np.float32)
    held.copy_from(values)
    program.expect(held, values, "arange")
    with pytest.raises(program.WrongResult, match=r"here: element 1 is 1\.0, expected 0 \(1023 "):
        program.expect(held, 0, "here")


def test_dispatch_is_less_than_the_whole():
    (row,) = CASES["dispatch"].run(Bench(1))
    assert row.host < float(row.note.split()[0])


@only_graphs
def test_programs_count_their_own_graphs(monkeypatch, tmp_path):
    """A program on the stream of one that has ended may launch that one's graphs."""
    name = "Adam, 50 tensors"
    monkeypatch.setattr(settling, "PROGRAMS", {name: settling.PROGRAMS[name]})
    found = []
    for i in range(2):
        file = tmp_path / str(i)
        assert settling.main(["--rounds", "8", "--json", str(file)]) == 0
        rows = json.loads(file.read_text())["rows"]
        found.append([int(row["figures"]["execs"]) for row in rows if row["kind"] == "case"])
    first, second = found
    # Without the topologies that the first run made, the second would count half of them or fewer.
    assert all(0 < before < 2 * after for before, after in zip(first, second, strict=True))


@pytest.mark.parametrize("emulated", [False, True])
def test_a_program_for_gpus_says_so_elsewhere(emulated, monkeypatch):
    name = settling.ONLY_ON_A_GPU
    monkeypatch.setattr(
        settling, "PROGRAMS", {name: settling.PROGRAMS["transformer, growing cache"]}
    )
    rows = list(settling.run(lambda: cyrt.stream(cyrt.Stream()), 8, emulated=emulated))
    assert [row.what.split(", a commit")[0] for row in rows] == [name] * (1 if emulated else 2)
    assert all(("on a GPU only" in row.note) == (row.host is None) == emulated for row in rows)
