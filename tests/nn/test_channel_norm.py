"""batch_norm, group_norm and instance_norm against NumPy in float64, from PyTorch's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from differences import check_gradient
from rows_of_numbers import TYPES, assert_close, exact, numbers

import cyrt
from cyrt import nn


def normalized(x, mean, var, weight, bias, eps=1e-5):
    result = (x - mean) / np.sqrt(var + eps)
    result = result * (1 if weight is None else exact(weight))
    return result + (0 if bias is None else exact(bias))


def batch(x, weight=None, bias=None):
    x = exact(x)
    over = tuple(range(x.ndim - 1))
    return normalized(x, x.mean(over), x.var(over), weight, bias)


def group(x, groups, weight=None, bias=None):
    """Sample by sample and group by group."""
    x, result = exact(x), np.empty(x.shape)
    size = x.shape[-1] // groups
    for n in range(len(x)):
        for at in range(0, x.shape[-1], size):
            part = x[n, ..., at : at + size]
            result[n, ..., at : at + size] = normalized(part, part.mean(), part.var(), None, None)
    return normalized(result, 0, 1, weight, bias, 0)


def parameters(rng, name, count):
    weight, bias = numbers(rng, name, count), numbers(rng, name, count)
    return [(None, None), (weight, None), (None, bias), (weight, bias)]


def arrays(*each):
    return [None if one is None else cyrt.asarray(one) for one in each]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(2, 1), (64, 5), (3, 7, 33), (2, 5, 6, 8), (2, 3, 2, 3, 12)])
def test_batch_norm(name, shape, rng):
    x = numbers(rng, name, *shape) * 3 + 2
    x = x.astype(cyrt.dtype(name).numpy)
    channels = shape[-1]
    wide = "float64" if name == "float64" else "float32"
    over = tuple(range(x.ndim - 1))
    for weight, bias in parameters(rng, name, channels):
        mean, var = rng.normal(size=channels), rng.random(channels) + 0.5
        running = arrays(mean.astype(wide), var.astype(wide))
        of = arrays(weight, bias)
        found = nn.batch_norm(cyrt.asarray(x), *running, *of)
        assert_close(found, normalized(exact(x), mean, var, weight, bias), name, 16)
        np.testing.assert_allclose(running[0].numpy(), mean.astype(wide))
        found = nn.batch_norm(cyrt.asarray(x), *running, *of, training=True, momentum=0.3)
        assert_close(found, batch(x, weight, bias), name, 16)
        wanted = (
            0.7 * mean + 0.3 * exact(x).mean(over),
            0.7 * var + 0.3 * exact(x).var(over, ddof=1),
        )
        for each, result in zip(running, wanted, strict=True):
            assert_close(each, result, wide, 16)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("shape", "groups"),
    [((2, 6), 1), ((2, 6), 3), ((3, 7, 12), 4), ((2, 5, 6, 8), 8), ((2, 3, 2, 3, 12), 6)],
)
def test_group_norm(name, shape, groups, rng):
    x = (numbers(rng, name, *shape) * 3 + 2).astype(cyrt.dtype(name).numpy)
    for weight, bias in parameters(rng, name, shape[-1]):
        of = arrays(weight, bias)
        found = nn.group_norm(cyrt.asarray(x), groups, *of)
        assert_close(found, group(x, groups, weight, bias), name, 16)
        found = nn.instance_norm(cyrt.asarray(x), *of)
        assert_close(found, group(x, shape[-1], weight, bias), name, 16)


def test_one_group_is_a_layer_norm_of_all_but_the_first_axis(rng):
    x = cyrt.asarray(rng.normal(size=(3, 4, 5)))
    wanted = nn.layer_norm(x.reshape(3, 20)).reshape(3, 4, 5)
    np.testing.assert_allclose(nn.group_norm(x, 1).numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sums_and_large_means_of_small_types(name, rng):
    """4096 elements of a mean of 100 are no float16, nor their squares."""
    x = (100 + rng.normal(size=(4096, 2))).astype(cyrt.dtype(name).numpy)
    found = nn.batch_norm(cyrt.asarray(x), None, None, training=True)
    assert_close(found, batch(x), name, 4)


def test_large_means(rng):
    """A unit of the mean's last digit is 0.01 standard deviations."""
    x = (1e4 + 0.1 * rng.normal(size=(500, 3))).astype(np.float32)
    found = nn.batch_norm(cyrt.asarray(x), None, None, training=True)
    np.testing.assert_allclose(found.numpy(), batch(x), atol=1.2e-2)


def test_parameters_in_the_type_that_is_computed_in(rng):
    x = numbers(rng, "bfloat16", 8, 4)
    weight = rng.normal(size=4).astype(np.float32)
    of = arrays(x, weight, weight)
    found = nn.batch_norm(of[0], None, None, *of[1:], training=True)
    assert_close(found, batch(x, weight, weight), "bfloat16", 4)
    g = nn.batch_norm_vjp(of[0], of[0], None, None, *of[1:], training=True)
    assert [each.dtype for each in g] == [cyrt.bfloat16, cyrt.float32, cyrt.float32]


def calls(weight, bias):
    """Functions of x, weight and bias, and their gradients."""
    mean, var = cyrt.asarray([0.5, -1.0, 0, 2.0]), cyrt.asarray([1.0, 2.0, 0.5, 3.0])
    running = mean.astype("float64"), var.astype("float64")
    return {
        "training": (
            lambda x, *of: nn.batch_norm(x, None, None, *of, training=True),
            lambda g, x, *of: nn.batch_norm_vjp(g, x, None, None, *of, training=True),
        ),
        "inference": (
            lambda x, *of: nn.batch_norm(x, *running, *of),
            lambda g, x, *of: nn.batch_norm_vjp(g, x, *running, *of),
        ),
        "group_norm": (
            lambda x, *of: nn.group_norm(x, 2, *of),
            lambda g, x, *of: nn.group_norm_vjp(g, x, 2, *of),
        ),
        "instance_norm": (nn.instance_norm, nn.instance_norm_vjp),
    }


@pytest.mark.parametrize("kind", ["training", "inference", "group_norm", "instance_norm"])
@pytest.mark.parametrize("shape", [(5, 4), (3, 6, 4), (2, 3, 2, 4)], ids=str)
def test_gradients_are_derivatives(kind, shape, rng):
    if kind == "instance_norm" and len(shape) == 2:
        shape = (1, *shape)
    x = rng.normal(size=shape)
    for weight, bias in parameters(rng, "float64", 4):
        of = arrays(weight, bias)
        forward, backward = calls(*of)[kind]

        def along(place, values, forward=forward, backward=backward, of=of, x=x):
            """The function and the gradient of one operand."""

            def operands(each):
                given = [cyrt.asarray(x), *of]
                given[place] = each
                return given

            check_gradient(
                lambda each: forward(*operands(each)),
                lambda g, each: backward(g, *operands(each))[place],
                values,
                rng,
            )

        along(0, x)
        found = backward(cyrt.asarray(x), cyrt.asarray(x), *of)
        for place, parameter in ((1, weight), (2, bias)):
            assert (found[place] is None) == (parameter is None)
            if parameter is not None:
                along(place, parameter)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("kind", ["training", "inference", "group_norm", "instance_norm"])
def test_gradients_by_type(name, kind, rng):
    x, g = (numbers(rng, name, 4, 9, 4) for _ in range(2))
    of = arrays(*(numbers(rng, name, 4) for _ in range(2)))
    if kind == "inference":
        mean, var = cyrt.ones(4), cyrt.ones(4) * 2
        found = nn.batch_norm_vjp(*arrays(g, x), mean, var, *of)
        exactly = [each.astype("float64") for each in (*arrays(g, x), mean, var, *of)]
        wanted = nn.batch_norm_vjp(*exactly)
    else:
        backward = calls(*of)[kind][1]
        found = backward(*arrays(g, x), *of)
        wanted = backward(*(each.astype("float64") for each in (*arrays(g, x), *of)))
    for each, result in zip(found, wanted, strict=True):
        result = result.numpy()
        assert_close(each, result, name, max(4, np.abs(result).max()))


def test_views(rng):
    x = rng.normal(size=(5, 4, 6))
    a = cyrt.asarray(x).transpose(1, 2, 0)
    wanted = x.transpose(1, 2, 0)
    found = nn.batch_norm(a, None, None, training=True)
    np.testing.assert_allclose(found.numpy(), batch(wanted), rtol=1e-12)
    running = cyrt.zeros((2, 5), dtype="float64")
    nn.batch_norm(a, running[0], running[1], training=True)
    np.testing.assert_allclose(running[0].numpy(), 0.1 * wanted.mean((0, 1)), rtol=1e-12)


def test_no_elements():
    x, w = cyrt.zeros((0, 3, 4)), cyrt.ones(4)
    for found in (nn.group_norm(x, 2, w, w), nn.instance_norm(x, w, w), nn.batch_norm(x, w, w, w)):
        assert found.shape == (0, 3, 4)
    found = nn.group_norm_vjp(x, x, 2, w, w)
    assert [each.shape for each in found] == [(0, 3, 4), (4,), (4,)]
    assert not found[1].numpy().any()
    x = cyrt.zeros((3, 0))
    assert nn.batch_norm(x, x[0], x[0], training=True).shape == (3, 0)


def test_a_training_loop_is_replayed(batched, pooled, rng):
    """With dropout, whose key is another one in each step, and statistics that are updated."""
    with cyrt.Stream():
        encoder = cyrt.current_encoder()
        x = cyrt.asarray(rng.normal(size=(64, 8)).astype(np.float32))
        weight, mean, var = cyrt.ones(8), cyrt.zeros(8), cyrt.ones(8)
        before = encoder.stats()
        for step, key in enumerate(cyrt.random.split(cyrt.random.key(1), 40)):
            y = nn.batch_norm(nn.dropout(x, 0.5, key=key), mean, var, weight, None, True)
            of_y, of_weight, _ = nn.batch_norm_vjp(y, x, mean, var, weight, None, True)
            of_x = nn.dropout_vjp(of_y, x, 0.5, key=key)
            weight -= 0.01 * of_weight + 0.01 * of_x.mean(axis=0)
            cyrt.commit()
            if step == 19:
                before = encoder.stats()
        after = encoder.stats()
        assert np.isfinite(weight.numpy()).all()
    operations = after["operations"] - before["operations"]
    assert after["replayed"] - before["replayed"] == operations > 0
    assert after["misses"] == before["misses"]


X, W = cyrt.ones((2, 3, 4)), cyrt.ones(4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.batch_norm(X, W[:3], W),
            ValueError,
            r"batch_norm: running_mean: expected shape \(4,\), for x of shape \(2, 3, 4\), whose "
            r"channels are last, got \(3,\)",
        ),
        (lambda: nn.batch_norm(X, None, None), TypeError, "batch_norm: running_mean: expected an"),
        (lambda: nn.batch_norm(X, W, None, training=True), TypeError, "batch_norm: running_var: "),
        (lambda: nn.batch_norm(X, W, W, training=1), TypeError, "training: expected a bool"),
        (
            lambda: nn.batch_norm(X, W, W, momentum=2),
            ValueError,
            "batch_norm: momentum: expected a number from 0 to 1, got 2",
        ),
        (
            lambda: nn.batch_norm(X[:1, 0], W, W, training=True),
            ValueError,
            r"training needs two elements of each channel or more, got shape \(1, 4\)",
        ),
        (
            lambda: nn.batch_norm(X, W, W, W.astype("float64")),
            TypeError,
            "batch_norm: weight: expected float32, for x of float32, got float64",
        ),
        (
            lambda: nn.batch_norm(W, W, W),
            ValueError,
            r"batch_norm: x: expected a shape \(N, ..., C\), got \(4,\)",
        ),
        (
            lambda: nn.group_norm(X, 3),
            ValueError,
            "group_norm: num_groups: expected a divisor of 4, the number of channels of x of shape",
        ),
        (lambda: nn.group_norm(X, 2.0), TypeError, "num_groups: expected an int, got float"),
        (lambda: nn.group_norm(X, 2, eps=-1), ValueError, "eps: expected a finite number of 0"),
        (lambda: nn.instance_norm(X.astype("int32")), TypeError, "x: expected a real floating"),
        (lambda: nn.instance_norm_vjp(X[:1], X), ValueError, r"g: expected shape \(2, 3, 4\)"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("which", [0, 1])
def test_statistics_that_cannot_be_written_are_refused_before_either_is(which):
    running = [cyrt.zeros(3), cyrt.ones(3)]
    running[which] = cyrt.broadcast_to(cyrt.ones(1), (3,))
    x = cyrt.asarray([[1.0, 2, 3], [3, 4, 5]])
    name = ("running_mean", "running_var")[which]
    with pytest.raises(ValueError, match=f"batch_norm: {name}: it is updated, .* read-only view"):
        nn.batch_norm(x, *running, training=True)
    assert running[1 - which].tolist() == [1 - which] * 3
    with pytest.raises(ValueError, match="running_var: expected another Array than running_mean"):
        nn.batch_norm(x, running[1 - which], running[1 - which], training=True)
