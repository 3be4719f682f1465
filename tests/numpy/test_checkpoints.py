"""Checkpoints: nests of arrays, generators, keys and numbers in a file."""

from __future__ import annotations

import copy
import io
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import cyrt
from cyrt import optim, random


@dataclass
class Layer:
    weight: cyrt.Array
    bias: cyrt.Array | None


def a_nest():
    return {
        "layers": [
            Layer(cyrt.arange(6).reshape(2, 3) * 0.5, None),
            Layer(cyrt.ones(2), cyrt.ones(())),
        ],
        "half": (cyrt.asarray([1.5, -2.0], dtype="bfloat16"), np.arange(3)),
        "state": optim.adam(0.1).init([cyrt.ones(5)]),
        "rng": random.default_rng(7),
        "key": random.key(1 << 63),
        1: [3, 2.5, True, np.float32(0.5)],
        "none": {},
    }


def assert_equal(found, wanted):
    """Compare nests, their types and their leaves."""
    assert type(found) is type(wanted)
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_equal(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for each, other in zip(found, wanted, strict=True):
            assert_equal(each, other)
    elif isinstance(wanted, Layer):
        assert_equal(vars(found), vars(wanted))
    elif isinstance(wanted, random.Generator):
        assert found.state == wanted.state
    elif isinstance(wanted, (cyrt.Array, np.ndarray)):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted.tolist()
    else:
        assert found == wanted


def test_a_nest_comes_back(tmp_path):
    nest, like = a_nest(), a_nest()
    nest["rng"].random(3)
    nest[1][0], nest["half"][1][:] = 40, 5
    nest["layers"][0].weight += 1
    cyrt.save_checkpoint(tmp_path / "file", nest)
    assert_equal(cyrt.load_checkpoint(tmp_path / "file.npz", like), nest)
    assert like["rng"].state == (7, 0)
    names = cyrt.load(tmp_path / "file.npz")
    assert sorted(names) == [
        "1.0",
        "1.1",
        "1.2",
        "1.3",
        "half.0",
        "half.1",
        "key",
        "layers.0.weight",
        "layers.1.bias",
        "layers.1.weight",
        "rng",
        "state.float32.m",
        "state.float32.step",
        "state.float32.v",
    ]
    assert names["rng"].tolist() == [7, 1]
    with np.load(tmp_path / "file.npz") as host:
        assert host["layers.0.weight"].tolist() == nest["layers"][0].weight.tolist()


def test_a_leaf_is_a_nest_too():
    file = io.BytesIO()
    cyrt.save_checkpoint(file, cyrt.arange(3))
    file.seek(0)
    assert cyrt.load_checkpoint(file, cyrt.arange(3, 6)).tolist() == [0, 1, 2]


def test_training_continues_as_if_it_had_not_been_interrupted(tmp_path):
    optimizer = optim.adam(optim.cosine(0.1, 20))

    def begin():
        params = {"w": cyrt.ones(4)}
        return {"params": params, "state": optimizer.init(params), "rng": random.default_rng(3)}

    def train(now, steps):
        for _ in range(steps):
            grads = {"w": now["rng"].normal(size=(4,)) + now["params"]["w"]}
            optimizer.update(grads, now["state"], now["params"])
        return now

    whole = train(begin(), 6)
    cyrt.save_checkpoint(tmp_path / "now.npz", train(begin(), 4))
    assert_equal(train(cyrt.load_checkpoint(tmp_path / "now.npz", like=begin()), 2), whole)


def test_a_generator_keeps_its_place():
    rng = random.default_rng(5)
    rng.random(3)
    with pytest.raises(ValueError, match="scale"):
        rng.normal(0.0, -1.0)
    rng.random()  # uses the key of the call that failed
    with pytest.raises(ValueError, match="scale"):
        rng.normal(0.0, -1.0)
    others = [pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng), random.default_rng(0)]
    others[2].state = rng.state
    assert rng.state == (5, 3, 2)
    wanted = [rng.random(2).tolist() for _ in range(3)]
    for other in others:
        assert [other.random(2).tolist() for _ in range(3)] == wanted
        assert other.state == rng.state == (5, 5)
    for state in ((), (1,), (1, -1), (1 << 64, 0)):
        with pytest.raises(ValueError, match="state: expected two or more ints from 0"):
            rng.state = state
    assert rng.state == (5, 5)


@pytest.mark.parametrize(
    ("like", "error", "message"),
    [
        ({"w": cyrt.ones(3)}, ValueError, "`like` lacks 'rng'"),
        (
            {"w": cyrt.ones(3), "rng": random.default_rng(1), "b": 1, "c": 2},
            ValueError,
            "the file lacks 'b', 'c'",
        ),
        (
            {"w": cyrt.ones(4), "rng": random.default_rng(1)},
            ValueError,
            r"like\['w'\]: expected shape \(4,\), got \(3,\)",
        ),
        (
            {"w": cyrt.ones(3, "float64"), "rng": random.default_rng(1)},
            TypeError,
            r"like\['w'\]: expected float64, got float32",
        ),
        (
            {"w": random.default_rng(1), "rng": random.default_rng(1)},
            TypeError,
            r"like\['w'\]: expected the state of a Generator, got float32 of shape \(3,\)",
        ),
        ({"w": "text"}, TypeError, r"like\['w'\]: expected Array, .*, got str"),
    ],
)
def test_another_structure_is_refused(like, error, message, tmp_path):
    cyrt.save_checkpoint(tmp_path / "w.npz", {"w": cyrt.ones(3), "rng": random.default_rng(1)})
    with pytest.raises(error, match=message):
        cyrt.load_checkpoint(tmp_path / "w.npz", like)


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "w.npz"
    cyrt.save_checkpoint(path, {"w": cyrt.ones(1)})
    for nest, error, message in (
        ({"w": {1, 2}}, TypeError, r"nest\['w'\]: expected Array, .*, got set"),
        ({"a.b": 1, "a": {"b": 2}}, ValueError, r"\['a.b'\] and .*\['a'\]\['b'\] have the same"),
        ({"w": np.array(["a"])}, TypeError, r"nest\['w'\]: "),
    ):
        with pytest.raises(error, match=message):
            cyrt.save_checkpoint(path, nest)
    assert cyrt.load(path)["w"].tolist() == [1.0]
    np.save(tmp_path / "one.npy", np.ones(2))
    with pytest.raises(ValueError, match="expected a file .npz, got one of a single array"):
        cyrt.load_checkpoint(tmp_path / "one.npy", cyrt.ones(2))
    (tmp_path / "bad.npz").write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="load_checkpoint: .* is damaged"):
        cyrt.load_checkpoint(tmp_path / "bad.npz", {"w": cyrt.ones(1)})


def test_arrays_of_a_file_say_where_nests_go():
    for call in (
        lambda: cyrt.save(io.BytesIO(), {"w": cyrt.ones(1)}),
        lambda: cyrt.savez(io.BytesIO(), params={"w": cyrt.ones(1)}),
        lambda: cyrt.savez(io.BytesIO(), {"w": cyrt.ones(1)}),
        lambda: cyrt.savez(io.BytesIO(), rng=random.default_rng(1)),
    ):
        with pytest.raises(TypeError, match=r"save_checkpoint\(file, nest\)"):
            call()
