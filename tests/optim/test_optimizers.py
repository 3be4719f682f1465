"""Optimizers: values beside NumPy's, in place, over many tensors, settled, and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from optimizer_reference import CASES, Reference

import cyrt
from cyrt import optim

TILE = 1024  # elements of float32 of a block of the kernel
SHAPES = [(3, 5), (), (TILE,), (TILE + 1,), (0,), (2, 700), (1,)]
EPSILONS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-14}
ids = [f"{name}-{len(settings)}-{i}" for i, (name, settings) in enumerate(CASES)]


@dataclass
class Layer:
    weight: cyrt.Array
    bias: cyrt.Array | None = None


class Pair(NamedTuple):
    left: object
    right: object


def draw(shapes, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    kind = cyrt.dtype(dtype).numpy
    return [np.asarray(rng.standard_normal(shape), kind) for shape in shapes]


def as_double(x):
    return np.asarray(x.astype(cyrt.float64).numpy())


def assert_steps_agree(reference, shapes, dtype="float32", steps=4, scale=1.0):
    params = [cyrt.asarray(p) for p in draw(shapes, dtype=dtype)]
    wanted = [as_double(p) for p in params]
    state = reference.cyrt.init(params)
    for step in range(steps):
        grads = [cyrt.asarray(scale * g, dtype=dtype) for g in draw(shapes, 1 + step, dtype)]
        found, state = reference.cyrt.update(grads, state, params)
        assert found is params
        # Rounding to 16 bits accumulates: each step begins with what the kernel has stored.
        wanted = reference.update([as_double(g) for g in grads], wanted)
        for p, want in zip(params, wanted, strict=True):
            np.testing.assert_allclose(as_double(p), want, EPSILONS[dtype], EPSILONS[dtype])
        wanted = [as_double(p) for p in params]
    return state


@pytest.mark.parametrize(("name", "settings"), CASES, ids=ids)
@pytest.mark.parametrize("dtype", EPSILONS)
def test_steps_agree_with_numpy(name, settings, dtype):
    state = assert_steps_agree(Reference(name, 0.01, **settings), SHAPES, dtype)
    (own,) = state.values()
    assert list(state) == [dtype]
    tile = TILE // 2 if dtype == "float64" else TILE
    tiles = sum(-(-int(np.prod(shape)) // tile) for shape in SHAPES)
    np.testing.assert_array_equal(own.step.numpy(), np.full(tiles, 4))
    for moment in (own.m, own.v):
        if moment is not None:
            assert moment.dtype == ("float64" if dtype == "float64" else "float32")
            assert moment.shape == (tiles * tile,)


@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
@pytest.mark.parametrize("scale", [1e-3, 10.0])
def test_gradients_are_clipped(name, scale):
    settings = {"momentum": 0.9} if name == "sgd" else {}
    reference = Reference(name, 0.01, max_norm=1.0, **settings)
    assert_steps_agree(reference, SHAPES, scale=scale)


def test_clipping_counts_all_types_together():
    params = [cyrt.zeros(3, dtype=cyrt.float64), cyrt.zeros(2), cyrt.zeros(4, dtype=cyrt.bfloat16)]
    grads = [cyrt.full(p.shape, 2.0, dtype=p.dtype) for p in params]
    assert optim.global_norm(grads).item() == 6.0
    assert optim.global_norm(grads).dtype == cyrt.float64
    optimizer = optim.clip_by_global_norm(3.0, optim.sgd(1.0))
    params, state = optimizer.update(grads, optimizer.init(params), params)
    assert sorted(state) == ["bfloat16", "float32", "float64"]
    for p in params:
        np.testing.assert_array_equal(as_double(p), -1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_clipping_hides_no_gradient_that_is_not_finite(bad):
    optimizer = optim.clip_by_global_norm(1.0, optim.sgd(1.0))
    params = [cyrt.zeros(2), cyrt.zeros(1)]
    grads = [cyrt.asarray([bad, 1.0]), cyrt.ones(1)]
    optimizer.update(grads, optimizer.init(params), params)
    assert np.isnan(params[0].numpy()[0])
    assert not np.abs(params[1].numpy()[0]) > 0


def test_global_norm_of_views_and_of_empty_arrays():
    x = cyrt.asarray(np.arange(6000, dtype=np.float32).reshape(60, 100))
    found = optim.global_norm({"t": x.T, "every": x[::2], "none": cyrt.zeros(0)})
    both = np.concatenate([x.numpy().ravel(), x.numpy()[::2].ravel()]).astype(np.float64)
    np.testing.assert_allclose(found.numpy(), np.linalg.norm(both), 1e-6)
    assert optim.global_norm(cyrt.zeros(0)).item() == 0


SCHEDULES = [
    optim.constant(0.1),
    optim.cosine(0.1, 5, end=0.01),
    optim.warmup(0.1, 3),
    optim.warmup(optim.cosine(0.1, 3), 2, start=0.05),
    optim.linear(0.1, 5, end=0.01),
    optim.warmup(optim.exponential(0.1, 2, 0.5, end=0.02), 2),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_follows_a_schedule(schedule, name, dtype):
    # A number would be the rate of every step.
    assert_steps_agree(Reference(name, schedule), [(4,)], dtype, steps=8)


def test_a_rate_in_an_array_is_read_at_each_step():
    rate = cyrt.asarray(0.5)
    optimizer = optim.sgd(rate)
    w = cyrt.zeros(3)
    state = optimizer.init(w)
    for value in (0.5, 0.25, 2.0):
        rate[()] = value
        w, state = optimizer.update(cyrt.ones(3), state, w)
    np.testing.assert_array_equal(w.numpy(), -2.75)


def test_nests_of_all_kinds_are_stepped_in_place():
    layer = Layer(cyrt.ones((2, 3)))
    params = {"layer": layer, "pair": Pair(cyrt.ones(4), [cyrt.ones(())]), "rest": (cyrt.ones(1),)}
    grads = {
        "rest": (cyrt.full(1, 4.0),),
        "pair": Pair(cyrt.full(4, 2.0), [cyrt.full((), 3.0)]),
        "layer": Layer(cyrt.full((2, 3), 1.0)),
    }
    weight = layer.weight
    optimizer = optim.sgd(1.0)
    state = optimizer.init(params)
    found, same = optimizer.update(grads, state, params)
    assert found is params
    assert same is state
    assert params["layer"] is layer
    assert layer.weight is weight
    assert weight.numpy().tolist() == [[0.0] * 3] * 2
    assert params["pair"].left.numpy().tolist() == [-1.0] * 4
    assert params["pair"].right[0].item() == -2
    assert params["rest"][0].item() == -3


def test_the_order_of_the_entries_of_a_dict_decides_nothing():
    """A state belongs to equal parameters, whatever else the optimizer stepped in between."""
    optimizer, w = optim.sgd(0.5, momentum=0.5), [cyrt.zeros(2), cyrt.zeros(2)]
    grads = {"a": cyrt.ones(2), "b": cyrt.full(2, 100.0)}
    params = {"a": w[0], "b": w[1]}
    state = optimizer.init(params)
    for each in (params, dict(reversed(params.items())), params):
        optimizer.init(cyrt.zeros(1))  # the next step finds no structure that it knows
        optimizer.update(grads, state, each)
    assert [each.tolist() for each in w] == [[-2.125] * 2, [-212.5] * 2]


def test_a_nest_without_elements_has_an_empty_state():
    optimizer = optim.adam(0.1)
    for params in ({}, [], None, [cyrt.zeros(0)], cyrt.zeros((3, 0))):
        assert optimizer.init(params) == {}
        assert optimizer.update(params, {}, params) == (params, {})


@pytest.mark.parametrize("count", [159, 160, 161, 321])
def test_tensors_beyond_one_launch_are_stepped_too(count):
    shapes = [(1 + i % 7,) for i in range(count)]
    reference = Reference("adam", 0.01, max_norm=0.5)
    assert_steps_agree(reference, shapes, steps=2)
    params, grads = ([cyrt.zeros(shape) for shape in shapes] for _ in range(2))
    optimizer = optim.sgd(0.1)
    found = cyrt.explain(optimizer.update, grads, optimizer.init(params), params)
    assert found.launches == -(-count // 160)


def test_views_of_one_array_are_tensors():
    whole = cyrt.zeros(3000)
    params = [whole[:7], whole[8:1500].reshape(2, 746), whole[1501:]]  # unaligned ones, too
    grads = [cyrt.ones(p.shape) for p in params]
    optimizer = optim.adam(0.5)
    state = optimizer.init(params)
    for _ in range(2):
        optimizer.update(grads, state, params)
    found = whole.numpy()
    assert found[7] == found[1500] == 0
    np.testing.assert_allclose(np.delete(found, [7, 1500]), -1.0, 1e-5)


def test_gradients_may_be_views_of_any_layout_and_of_the_parameters():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    w, other = cyrt.asarray(x), cyrt.asarray(x)
    optimizer = optim.sgd(0.5)
    state = optimizer.init([w, other])
    optimizer.update([w, w[::-1]], state, [w, other])
    np.testing.assert_array_equal(w.numpy(), x / 2)
    np.testing.assert_array_equal(other.numpy(), x - x[::-1] / 2)
    shared = cyrt.asarray([1.0, 2.0, 3.0, 4.0])
    params = [shared[:2], shared[2:]]
    optimizer.update([shared[2:], shared[1:3]], optimizer.init(params), params)
    assert shared.numpy().tolist() == [-0.5, 0.0, 2.0, 2.5]
    optimizer.update([cyrt.broadcast_to(cyrt.ones(()), (2, 3))] * 2, state, [w, other])
    np.testing.assert_array_equal(w.numpy(), x / 2 - 0.5)


def test_one_gradient_may_step_two_parameters():
    params, g = [cyrt.zeros(5), cyrt.ones(5)], cyrt.ones(5)
    optimizer = optim.sgd(1.0)
    optimizer.update([g, g], optimizer.init(params), params)
    assert [p.numpy().tolist() for p in params] == [[-1.0] * 5, [0.0] * 5]


def test_steps_are_ordered_with_what_reads_and_writes_the_parameters():
    w, optimizer = cyrt.zeros(2000), optim.sgd(1.0, momentum=0.5)
    state = optimizer.init(w)
    sums = []
    for _ in range(200):
        before = w * 2
        w, state = optimizer.update(before * 0 + 0.5, state, w)
        sums.append(before.sum() + w.sum())
        w *= 0.5
    wanted, p, m = [], 0.0, 0.0
    for _ in range(200):
        m = 0.5 * m + 0.5
        wanted.append(2000 * (2 * p + p - m))
        p = 0.5 * (p - m)
    np.testing.assert_allclose([each.item() for each in sums], wanted, 1e-5)


@pytest.mark.usefixtures("pooled", "batched")
@pytest.mark.parametrize("clip", [False, True])
def test_a_step_settles(clip):
    """Nothing changes from step to step but memory: no node of a settled batch is patched."""
    schedule = optim.warmup(optim.cosine(0.01, 10_000), 100)
    optimizer = optim.adamw(schedule)
    if clip:
        optimizer = optim.clip_by_global_norm(1.0, optimizer)
    with cyrt.Stream():
        params = {"a": cyrt.ones((40, 50)), "b": cyrt.ones(50), "c": cyrt.ones(3000)}
        state = optimizer.init(params)
        x = cyrt.ones((8, 40))

        def step():
            g = x @ params["a"] + params["b"]
            grads = {"a": x.T @ g, "b": g.sum(axis=0), "c": params["c"] * 2}
            optimizer.update(grads, state, params)
            cyrt.commit()

        for _ in range(60):
            step()
        cyrt.synchronize()
        before = cyrt.current_encoder().stats()
        for _ in range(20):
            step()
        cyrt.synchronize()
        after = cyrt.current_encoder().stats()
    change = {name: after[name] - before[name] for name in after}
    assert change["operations"] >= 20 * 5
    assert change["patched"] == change["instantiations"] == 0
    assert state["float32"].step.numpy().tolist() == [80] * 6
    # The loss function is a paraboloid: all fall.
    assert all((p.numpy() < 1).all() for p in params.values())


def test_a_state_is_saved_and_restored(tmp_path):
    optimizer = optim.adam(0.01)
    params, again = [[cyrt.asarray(p) for p in draw(SHAPES)] for _ in range(2)]
    grads = [cyrt.asarray(g) for g in draw(SHAPES, 1)]
    state = optimizer.init(params)
    optimizer.update(grads, state, params)
    cyrt.save_safetensors(tmp_path / "state", state["float32"]._asdict())
    optimizer.update(grads, state, params)
    optimizer.update(grads, optimizer.init(again), again)
    restored = {"float32": optim.State(**cyrt.load_safetensors(tmp_path / "state"))}
    optimizer.update(grads, restored, again)
    for p, q in zip(params, again, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_an_optimizer_serves_several_models():
    optimizer = optim.adam(0.1)
    models = [cyrt.zeros(3), {"w": cyrt.zeros(3)}, [cyrt.zeros(3)]]
    states = [optimizer.init(model) for model in models]
    for _ in range(3):
        for model, state in zip(models, states, strict=True):
            grads = {"w": cyrt.ones(3)} if isinstance(model, dict) else cyrt.ones(3)
            optimizer.update([grads] if isinstance(model, list) else grads, state, model)
    for model in (models[0], models[1]["w"], models[2][0]):
        np.testing.assert_allclose(model.numpy(), -0.3, 1e-5)


def test_an_explanation_lists_one_launch_a_type():
    params = [cyrt.zeros(3), cyrt.zeros(5), cyrt.zeros(2, dtype=cyrt.float16)]
    optimizer = optim.adam(0.1)
    state = optimizer.init(params)
    found = cyrt.explain(optimizer.update, params, state, params)
    assert [each[0] for each in found.kernels] == [
        "cyrt_adam_step_float16",
        "cyrt_adam_step_float32",
    ]
    assert found.complete


FLOAT = cyrt.ones(3)
GOOD = {"w": FLOAT, "b": cyrt.ones((2, 2))}


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"w": 1.0}, TypeError, r"params\['w'\]: expected Array, .* got float"),
        ({"w": np.ones(3)}, TypeError, r"params\['w'\]: expected Array, .* got ndarray"),
        ({1, 2}, TypeError, r"params: expected Array, .* got set"),
        ({"w": cyrt.arange(3)}, TypeError, r"adam: params\['w'\]: .* real floating.* got int64"),
        ([cyrt.ones(3, dtype=cyrt.complex64)], TypeError, r"adam: params\[0\]: .* got complex64"),
        ([cyrt.ones((2, 3)).T], ValueError, r"params\[0\]: .* contiguous .* \(4, 12\)"),
        ([cyrt.broadcast_to(cyrt.ones(1), (3,))[:1]], ValueError, "read-only"),
    ],
)
def test_other_parameters_are_refused(params, error, message):
    optimizer = optim.adam(0.1)
    with pytest.raises(error, match=message):
        optimizer.init(params)
    with pytest.raises(error, match=message):
        optimizer.update(params, {}, params)


@pytest.mark.parametrize(
    ("grads", "error", "message"),
    [
        ({"w": FLOAT}, ValueError, r"grads: keys are missing: \['b'\]"),
        ([FLOAT, FLOAT], ValueError, "grads: expected a dict of 2, got list"),
        ({"w": None, "b": FLOAT}, ValueError, r"grads\['w'\]: expected a leaf, got None"),
        ({"w": 1.0, "b": FLOAT}, TypeError, r"grads\['w'\]: expected Array.*got float"),
        ({"w": FLOAT, "b": FLOAT}, ValueError, r"grads\['b'\]: expected shape \(2, 2\).*\(3,\)"),
        (
            {"w": FLOAT.astype(cyrt.float16), "b": GOOD["b"]},
            TypeError,
            r"grads\['w'\]: expected float32.*float16",
        ),
    ],
)
def test_other_gradients_are_refused_and_nothing_is_stepped(grads, error, message):
    optimizer = optim.adam(0.1)
    params = {"w": cyrt.ones(3), "b": cyrt.ones((2, 2))}
    state = optimizer.init(params)
    with pytest.raises(error, match=message):
        optimizer.update(grads, state, params)
    assert state["float32"].step.numpy().tolist() == [0, 0]
    assert params["w"].numpy().tolist() == [1.0] * 3


def other_states(good):
    own = good["float32"]
    yield None, TypeError, "state: expected a dict with a State for .* float32.* got NoneType"
    yield own, TypeError, "got State"
    yield {}, TypeError, "got {}"
    yield {"float64": own}, TypeError, "got {'float64': State}"
    yield {"float32": tuple(own)}, TypeError, "got {'float32': tuple}"
    yield {**good, "float16": own}, TypeError, "'float16': State}"
    yield {"float32": own._replace(v=None)}, TypeError, r"state\['float32'\].v: .* got NoneType"
    yield {"float32": own._replace(step=own.step[:1])}, ValueError, r"step: .* 2 elements of int32"
    yield {"float32": own._replace(step=own.m)}, ValueError, r"step: .* got float32"
    yield {"float32": own._replace(m=own.m.astype("float64"))}, ValueError, r"m: .* float32.*got fl"
    wide = cyrt.zeros(2 * TILE + 1)
    yield {"float32": own._replace(m=wide[1:])}, ValueError, "multiple of 16 bytes"
    yield {"float32": own._replace(m=own.v)}, ValueError, r"\.m and state\['float32'\]\.v share"


@pytest.mark.parametrize("which", range(12))
def test_other_states_are_refused(which):
    optimizer = optim.adam(0.1)
    params = {"w": cyrt.ones(3), "b": cyrt.ones((2, 2))}
    state, error, message = list(other_states(optimizer.init(params)))[which]
    with pytest.raises(error, match=message):
        optimizer.update(params, state, params)
    assert params["w"].numpy().tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("make", "other", "field"),
    [
        (lambda: optim.sgd(0.1), optim.sgd(0.1, momentum=0.9), "m"),
        (lambda: optim.sgd(0.1, momentum=0.9), optim.adam(0.1), "v"),
        (lambda: optim.lion(0.1), optim.adam(0.1), "v"),
    ],
)
def test_a_state_of_another_optimizer_is_refused(make, other, field):
    params = cyrt.ones(3)
    with pytest.raises(ValueError, match=rf"state\['float32'\]\.{field}: expected None"):
        make().update(params, other.init(params), params)
    assert params.tolist() == [1, 1, 1]


def test_the_order_of_arguments_is_named():
    params = {"w": cyrt.ones(3)}
    optimizer = optim.adam(0.1)
    with pytest.raises(TypeError, match=r"the order .* is update\(grads, state, params\)"):
        optimizer.update(params, params, optimizer.init(params))


def test_parameters_that_share_memory_are_refused():
    x = cyrt.ones(10)
    optimizer = optim.sgd(0.1)
    for params in ({"a": x, "b": [x]}, {"a": x[:6], "b": [x[5:]]}, {"a": x[3:4], "b": [x]}):
        state = optimizer.init(params)
        with pytest.raises(ValueError, match=r"params\['a'\] and params\['b'\]\[0\] share memory"):
            optimizer.update(params, state, params)
    assert x.numpy().tolist() == [1.0] * 10
    params = [x[:5], x[5:], x[5:5]]
    optimizer.update(params, optimizer.init(params), params)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.sgd("0.1"), TypeError, "sgd: lr: expected a number, got str"),
        (lambda: optim.sgd(True), TypeError, "sgd: lr: expected a number, got bool"),
        (lambda: optim.adam([]), TypeError, "got list; the parameters are an argument of init"),
        (lambda: optim.adam(np.nan), ValueError, "adam: lr: expected a finite number of 0"),
        (
            lambda: optim.sgd(-0.1),
            ValueError,
            "sgd: lr: expected a finite number of 0 or more, got",
        ),
        (lambda: optim.sgd(0.1, momentum=1.0), ValueError, "momentum: expected a number below 1"),
        (lambda: optim.sgd(0.1, momentum=-1), ValueError, "momentum: expected a number from 0"),
        (lambda: optim.sgd(0.1, nesterov=True), ValueError, "expected a momentum above 0"),
        (lambda: optim.sgd(0.1, 0.9, 1), TypeError, "sgd: nesterov: expected a bool, got int"),
        (lambda: optim.sgd(0.1, weight_decay=-1), ValueError, "weight_decay: expected a finite"),
        (lambda: optim.adam(0.1, b1=1), ValueError, "adam: b1: expected a number below 1, got 1"),
        (lambda: optim.adam(0.1, b2=1.5), ValueError, "adam: b2: expected a number from 0"),
        (lambda: optim.adam(0.1, eps=-1e-8), ValueError, "adam: eps: expected"),
        (lambda: optim.adamw(0.1, weight_decay=None), TypeError, "adamw: weight_decay: .*NoneType"),
        (lambda: optim.lion(0.1, weight_decay=np.inf), ValueError, "lion: weight_decay: expected"),
        (lambda: optim.adam(cyrt.ones(1)), ValueError, r"adam: lr: .* got one of float32 of shape"),
        (lambda: optim.adam(cyrt.asarray(1)), ValueError, "adam: lr: .* got one of int64"),
        (lambda: optim.clip_by_global_norm(0, optim.sgd(0.1)), ValueError, "max_norm: .* above 0"),
        (lambda: optim.clip_by_global_norm(1.0, 3), TypeError, "expected an Optimizer, got int"),
        (
            lambda: optim.clip_by_global_norm(1.0, optim.clip_by_global_norm(1.0, optim.sgd(1))),
            ValueError,
            "expected one that does not clip, got clip_by_global_norm",
        ),
        (lambda: optim.global_norm({}), ValueError, "expected a nest with arrays"),
        (lambda: optim.global_norm([cyrt.arange(3)]), TypeError, r"grads\[0\]: .* got int64"),
        (lambda: optim.Optimizer(), TypeError, "make an Optimizer"),
    ],
)
def test_other_arguments_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "text",
    [
        "sgd(0.1, momentum=0.9, nesterov=True, weight_decay=0.0)",
        "adam(0.001, b1=0.9, b2=0.999, eps=1e-08)",
        "clip_by_global_norm(1.0, lion(0.1, b1=0.9, b2=0.99, weight_decay=0.5))",
        "adamw(Schedule(rate=0.1, start=0.0, end=0.0, warmup_steps=3, decay_steps=0, "
        "curve='cosine', factor=1.0), "
        "b1=0.9, b2=0.999, eps=1e-08, weight_decay=0.01)",
    ],
)
def test_an_optimizer_is_printed_as_it_is_made(text):
    assert repr(eval(text, vars(optim).copy())) == text
