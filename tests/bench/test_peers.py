"""The benchmark's peers: each in a process of its own, its results checked."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import peers
import pytest

FAKES = """
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
"""


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


@pytest.mark.parametrize(
    ("name", "timed", "note"),
    [
        ("right", 1, None),
        (
            "wrong",
            0,
            "RuntimeError: numpy: element 0 is 200.0, expected 100; its time does not count",
        ),
        (
            "late",
            0,
            "RuntimeError: numpy: element 7 is 2111.0, expected 2100; its time does not count",
        ),
        ("fails", 1, "ValueError: two lines"),
        ("crashes", 1, "crashed: SIGSEGV"),
        ("exits", 1, "enough"),
        ("absent", 0, "not installed: pip install no-such-module"),
    ],
)
def test_a_peer_tells_its_time_or_why_not(fakes, name, timed, note):
    rows = fakes.measure(name, 2)
    assert [row.get("what") for row in rows if "host" in row] == ["numpy"] * timed
    assert all(0 <= row["host"] <= row["wall"] for row in rows if "host" in row)
    assert [row["note"] for row in rows if "note" in row] == ([] if note is None else [note])


def test_a_case_that_a_script_lacks(fakes, capsys):
    assert fakes.main(["--case", "none"]) == 2
    assert "no case is named 'none'; there are chain, right, wrong" in capsys.readouterr().err


def test_every_peer_is_a_function_of_its_own():
    ways = [peer.chains for peer in peers.PEERS.values()]
    assert len(set(ways)) == len(ways) == 9
    assert {
        "torch",
        "cupy",
        "cuda.core",
        "cuda.bindings",
        "triton",
        "numba",
        "jax",
        "mlx",
        "warp",
    } == set(peers.PEERS)


def test_peers_without_a_gpu_are_named(fakes, monkeypatch, tmp_path):
    monkeypatch.setattr(fakes, "_has_gpu", lambda: False)
    file = tmp_path / "rows.json"
    assert fakes.main(["--rounds", "1", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert {r["name"]: r["note"] for r in rows if r["kind"] == "peer"} == {
        **dict.fromkeys(fakes.PEERS, "no GPU"),
        "absent": "not installed: pip install no-such-module",
    }
