"""Gradients of the functions of cyrt.nn, beside difference quotients and in narrow types."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import cyrt
from cyrt import nn
from cyrt.ops.elementwise import Elementwise
from cyrt.tape import kind_of_rule

KEY = cyrt.random.key(3)


def draw(*shape, seed=0, dtype="float64", least=None):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if least is not None:
        x = np.abs(x) + least
    return cyrt.asarray(x, dtype=dtype)


def weighted(function, *arrays, seed=11):
    """The sum of a function's result, each element times a number of its own."""
    result = function(*arrays)
    numbers = draw(*result.shape, seed=seed, dtype="bfloat16")  # the same in all types
    return (result * numbers.astype(result.dtype)).sum()


def assert_gradients_are_slopes(function, *arrays, tolerance=2e-6, size=1e-5):
    """Compare the gradient along random directions with difference quotients."""
    argnums = tuple(range(len(arrays)))
    found = cyrt.grad(lambda *args: weighted(function, *args), argnums)(*arrays)
    for gradient, x in zip(found, arrays, strict=True):
        assert gradient.shape == x.shape
        assert gradient.dtype == x.dtype
    for seed in range(3):
        directions = [draw(*x.shape, seed=100 + seed, dtype=x.dtype) for x in arrays]
        high, low = (
            weighted(function, *(x + sign * d for x, d in zip(arrays, directions, strict=True)))
            for sign in (size, -size)
        )
        wanted = (high.item() - low.item()) / (2 * size)
        slope = sum((g * d).sum().item() for g, d in zip(found, directions, strict=True))
        scale = 1 + max(abs(g.numpy()).max() if g.size else 0 for g in found)
        assert abs(slope - wanted) <= tolerance * scale * sum(x.size for x in arrays) ** 0.5


def activation(function, **settings):
    return lambda: (lambda x: function(x, **settings), draw(4, 7))


def attention(mask=None, rope=None, heads=(4, 2), rows=5, keys=6, **other):
    def case():
        q, k, v = draw(2, heads[0], rows, 8), draw(2, heads[1], keys, 8), draw(2, heads[1], keys, 8)
        return lambda q, k, v: nn.attention(q, k, v, mask=mask, rope=rope, **other), q, k, v

    return case


def conv(function, spatial, channels=4, filters=6, kernel=3, **settings):
    def case():
        groups = settings.get("groups", 1)
        x = draw(2, *spatial, channels)
        weight = draw(filters, *(kernel,) * len(spatial), channels // groups, seed=1)
        bias = draw(filters, seed=2)
        return lambda x, w, b: function(x, w, bias=b, **settings), x, weight, bias

    return case


def linear(activation=None, rows=(3, 2), norm=None, residual=False):
    def case():
        outputs = 8
        x, weight, bias = draw(*rows, 6), draw(outputs, 6, seed=1), draw(outputs, seed=2)
        more = [draw(6, seed=3, least=0.5), draw(6, seed=4)]
        rest = draw(*rows, outputs // 2 if activation == "swiglu" else outputs, seed=5)

        def function(x, weight, bias, scale, shift, rest):
            settings = {}
            if norm == "rms_norm":
                settings["rms_norm"] = (scale, 1e-3)
            elif norm == "layer_norm":
                settings["layer_norm"] = (scale, shift, 1e-3)
            return nn.linear(x, weight, bias, activation, rest if residual else None, **settings)

        return function, x, weight, bias, *more, rest

    return case


def loss(function, **settings):
    return lambda: (lambda x, t: function(x, t, **settings), draw(5, 3), draw(5, 3, seed=1))


def probabilities(**settings):
    return lambda: (
        lambda x, t: nn.binary_cross_entropy(nn.sigmoid(x), nn.sigmoid(t), **settings),
        draw(5, 3),
        draw(5, 3, seed=1),
    )


def batch_norm(training):
    def case():
        mean, variance = draw(3, seed=3), draw(3, seed=4, least=0.5)

        def function(x, weight, bias):
            running = [each.astype(x.dtype, copy=True) for each in (mean, variance)]
            return nn.batch_norm(x, *running, weight, bias, training=training)

        return function, draw(4, 5, 3), draw(3, seed=1), draw(3, seed=2)

    return case


def attention_with(argument, value):
    def case():
        q, k, v = draw(2, 4, 5, 8), draw(2, 2, 6, 8), draw(2, 2, 6, 8)

        def function(q, k, v, number):
            return nn.attention(q, k, v, **{argument: number})

        return function, q, k, v, value

    return case


INDICES = cyrt.asarray([[1, 0, 3], [3, 3, 1]])
CASES = {
    **{
        name: [activation(getattr(nn, name))]
        for name in nn.__all__
        if isinstance(getattr(nn, name), Elementwise)
        and kind_of_rule(getattr(nn, name)) == "gradient"
        and len(inspect.signature(getattr(nn, name)).parameters) == 4  # x, out, where, dtype
    },
    "attention": [
        attention(),
        attention("causal"),
        attention(cyrt.asarray(np.arange(30).reshape(5, 6) % 4 > 0)),
        attention(heads=(3, 3), rows=1, scale=0.3),
        attention_with("mask", draw(5, 6, seed=7)),
        attention_with("sinks", draw(4, seed=7)),
    ],
    "avg_pool": [lambda: (lambda x: nn.avg_pool(x, 2, 1, 1), draw(2, 5, 4, 3))],
    "batch_norm": [batch_norm(True), batch_norm(False)],
    "binary_cross_entropy": [
        loss(nn.binary_cross_entropy, with_logits=True, reduction="none"),
        probabilities(),
        probabilities(reduction="sum"),
    ],
    "conv1d": [conv(nn.conv1d, (9,), stride=2, padding=1, activation="relu")],
    "conv2d": [
        conv(nn.conv2d, (6, 5)),
        conv(nn.conv2d, (6, 5), padding=1, groups=2, activation="gelu"),
    ],
    "conv3d": [conv(nn.conv3d, (4, 3, 4), kernel=2, dilation=2, activation="silu")],
    "conv_general": [
        conv(nn.conv_general, (5, 6), padding=((1, 0), (2, 1)), input_dilation=2, flip=True)
    ],
    "conv_transpose1d": [conv(nn.conv_transpose1d, (5,), stride=2, padding=1, output_padding=1)],
    "conv_transpose2d": [
        conv(nn.conv_transpose2d, (4, 3), stride=(2, 1), dilation=(1, 2), activation="relu"),
        conv(nn.conv_transpose2d, (4, 3), padding=((1, 0), (2, 1)), groups=2),
    ],
    "conv_transpose3d": [conv(nn.conv_transpose3d, (2, 3, 2), kernel=2, stride=2)],
    "cross_entropy": [
        lambda: (lambda x: nn.cross_entropy(x, INDICES), draw(2, 3, 4)),
        lambda: (lambda x: nn.cross_entropy(x, INDICES, axis=1), draw(2, 4, 3)),
    ],
    "dropout": [lambda: (lambda x: nn.dropout(x, 0.3, key=KEY), draw(6, 7))],
    "elu": [activation(nn.elu, alpha=0.7)],
    "embedding": [lambda: (lambda w: nn.embedding(INDICES, w), draw(4, 5))],
    "glu": [lambda: (nn.glu, draw(3, 8)), lambda: (lambda x: nn.glu(x, 0), draw(4, 3))],
    "group_norm": [
        lambda: (
            lambda x, w, b: nn.group_norm(x, 2, w, b),
            draw(3, 5, 4),
            draw(4, seed=1),
            draw(4, seed=2),
        )
    ],
    "huber_loss": [loss(nn.huber_loss, reduction=r, delta=0.7) for r in ("none", "sum", "mean")],
    "instance_norm": [lambda: (lambda x, w: nn.instance_norm(x, w), draw(3, 5, 4), draw(4))],
    "interpolate": [
        lambda: (lambda x: nn.interpolate(x, 7, mode="linear"), draw(2, 4, 3)),
        lambda: (lambda x: nn.interpolate(x, scale_factor=2.0), draw(2, 4, 3, 3)),
    ],
    "l1_loss": [loss(nn.l1_loss, reduction="none"), loss(nn.l1_loss)],
    "layer_norm": [
        lambda: (nn.layer_norm, draw(3, 4, 6), draw(6, seed=1), draw(6, seed=2)),
        lambda: (nn.layer_norm, draw(3, 6)),
    ],
    "leaky_relu": [activation(nn.leaky_relu, negative_slope=-0.2)],
    "linear": [
        linear(),
        linear("relu"),
        linear("gelu", norm="rms_norm", residual=True),
        linear("swiglu", norm="layer_norm", residual=True),
        linear("relu", rows=(), residual=True),
        linear("silu", rows=(5, 4)),
        linear("gelu_tanh", rows=(20,)),
    ],
    "log_softmax": [lambda: (nn.log_softmax, draw(4, 6))],
    "logsumexp": [lambda: (lambda x: nn.logsumexp(x, axis=0), draw(4, 6))],
    "max_pool": [lambda: (lambda x: nn.max_pool(x, 2, 2, 0), draw(2, 6, 4, 3))],
    "mse_loss": [loss(nn.mse_loss, reduction=r) for r in ("none", "sum", "mean")],
    "rms_norm": [
        lambda: (nn.rms_norm, draw(3, 4, 6), draw(6, seed=1)),
        lambda: (nn.rms_norm, draw(3, 6)),
    ],
    "softmax": [
        lambda: (nn.softmax, draw(4, 6)),
        lambda: (lambda x: nn.softmax(x, axis=0), draw(4, 6)),
    ],
    "softplus": [activation(nn.softplus), activation(nn.softplus, beta=2.0)],
    "swiglu": [
        lambda: (nn.swiglu, draw(4, 6), draw(4, 6, seed=1)),
        lambda: (nn.swiglu, draw(4, 1), draw(6, seed=1)),
        lambda: (lambda x: nn.swiglu(x, 2.0) + nn.swiglu(0.5, x), draw(4, 6)),
    ],
}
# Rotations have no kernels of float64.
ROTATIONS = [
    attention("causal", rope={"dims": 4}, position=3),
    lambda: (lambda x: nn.rope(x, 4, offset=2), draw(2, 3, 5, 6)),
    lambda: (lambda x: nn.rope(x, 6, traditional=True, scale=0.5), draw(2, 5, 6)),
]
NAMED = [
    pytest.param(case, id=f"{name}-{i}")
    for name, cases in CASES.items()
    for i, case in enumerate(cases)
]


def test_every_function_is_differentiated_or_refused():
    functions = {name for name in nn.__all__ if not name.endswith("_vjp")}
    for name in functions - CASES.keys() - {"one_hot", "rope"}:
        with pytest.raises(TypeError, match="has no gradient"):
            cyrt.grad(lambda x: weighted(getattr(nn, name), x))(draw(4, 7, dtype="float32"))  # noqa: B023
    assert cyrt.grad(lambda x: (nn.one_hot(INDICES, 4) * x).sum())(cyrt.ones(())).item() == 6


@pytest.mark.parametrize("case", NAMED)
def test_gradients_are_slopes(case):
    assert_gradients_are_slopes(*case())


@pytest.mark.parametrize("case", ROTATIONS)
def test_gradients_through_rotations_are_slopes(case):
    function, *arrays = case()
    narrow = [x.astype("float32") for x in arrays]
    assert_gradients_are_slopes(function, *narrow, tolerance=1e-3, size=1e-2)


FIRST = [pytest.param(cases[0], id=name) for name, cases in CASES.items()]
OTHER = [
    pytest.param(CASES[name][i], id=f"{name}-{i}")
    for name, i in (
        ("attention", 1),
        ("attention", 4),
        ("batch_norm", 1),
        ("binary_cross_entropy", 1),
        ("conv2d", 1),
        ("conv_transpose2d", 0),
        ("cross_entropy", 1),
        ("glu", 1),
        ("layer_norm", 1),
        ("linear", 1),
        ("linear", 3),
        ("rms_norm", 1),
        ("softplus", 1),
        ("swiglu", 1),
        ("swiglu", 2),
    )
]


@pytest.mark.parametrize("case", FIRST + OTHER)
def test_gradients_are_differentiated(case):
    function, *arrays = case()
    argnums = tuple(range(len(arrays)))

    def gradients(*args):
        found = cyrt.grad(lambda *own: weighted(lambda *a: function(*a) ** 2, *own), argnums)(*args)
        return cyrt.concat([each.reshape(-1) for each in found])

    # Where an outer level differentiates it, the gradient is a composition instead of one kernel.
    composed, _ = cyrt.vjp(gradients, *arrays)
    np.testing.assert_allclose(composed.numpy(), gradients(*arrays).numpy(), rtol=1e-9, atol=1e-9)
    assert_gradients_are_slopes(gradients, *arrays, tolerance=2e-5)


@pytest.mark.parametrize(
    "function",
    [
        *(nn.relu, nn.gelu, nn.gelu_tanh, nn.silu, nn.selu, nn.hardswish, nn.leaky_relu, nn.elu),
        *(nn.softplus, nn.softmax, lambda x: nn.max_pool(x.reshape(1, 7, 1), 3, 2, 1)),
    ],
)
def test_compositions_have_the_gradients_of_kernels_at_edges(function):
    x = cyrt.asarray(np.array([-800.0, -3.0, -0.0, 0.0, 3.0, 3.0, 800.0]))
    gradient = cyrt.grad(lambda x: weighted(function, x))
    composed, _ = cyrt.vjp(gradient, x)
    np.testing.assert_allclose(composed.numpy(), gradient(x).numpy(), rtol=1e-12, atol=1e-300)


@pytest.mark.gpu  # on the emulated device it is a fault, see tests/nn/test_softmax.py
def test_a_target_out_of_range_has_no_gradient_in_silence():
    x, targets = draw(3, 4), cyrt.asarray([1, 4, -1])
    gradient = cyrt.grad(lambda x: nn.cross_entropy(x, targets).sum())
    composed, _ = cyrt.vjp(gradient, x)
    for found in (gradient(x), composed):
        assert np.isnan(found.numpy()).all(axis=1).tolist() == [False, True, True]


def test_compositions_compute_in_float32():
    x = draw(4, 6, dtype="bfloat16")
    for function in (nn.layer_norm, nn.gelu):
        gradient = cyrt.grad(lambda x, f=function: weighted(f, x).astype("float32"))
        composed, _ = cyrt.vjp(gradient, x)
        assert composed.dtype == "bfloat16"
        wanted = gradient(x.astype("float64")).numpy()
        np.testing.assert_allclose(composed.astype("float64").numpy(), wanted, rtol=0.02, atol=0.02)


def test_a_kernel_without_a_gradient_is_named():
    x = draw(3)
    with pytest.raises(TypeError, match="gelu_vjp: there is no gradient"):
        cyrt.grad(lambda x: nn.gelu_vjp(x, x).sum())(x)


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_narrow_types_are_near(case, dtype):
    """Other kernels than those of float64 compute them."""
    function, *arrays = case()
    narrow = [x.astype(dtype) for x in arrays]
    argnums = tuple(range(len(arrays)))

    def gradients(arrays):
        return cyrt.grad(lambda *args: weighted(function, *args).astype("float32"), argnums)(
            *arrays
        )

    found, wanted = gradients(narrow), gradients([x.astype("float64") for x in narrow])
    tolerance = 2e-4 if dtype == "float32" else 0.1
    for each, want in zip(found, wanted, strict=True):
        assert each.dtype == dtype
        scale = max(1.0, abs(want.numpy()).max())
        np.testing.assert_allclose(
            each.astype("float64").numpy(), want.numpy(), rtol=tolerance, atol=tolerance * scale
        )
