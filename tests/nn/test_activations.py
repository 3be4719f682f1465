"""Activation functions of arrays; their kernels' values are tested beside the catalogue."""

from __future__ import annotations

import functools
import inspect
import pickle

import numpy as np
import pytest
from differences import check_gradient
from explaining import explain
from rows_of_numbers import TYPES, assert_close, exact, launches, numbers

import cyrt
from cyrt import nn
from cyrt.ops.elementwise import Elementwise

SLOPED = [
    "softplus",
    *(
        name.removesuffix("_vjp")
        for name in nn.__all__
        if name.endswith("_vjp") and isinstance(getattr(nn, name), Elementwise)
    ),
]
# Functions with a parameter, its name, and their results by NumPy.
PARAMETERS = {
    "leaky_relu": ("negative_slope", lambda x, a: np.where(x > 0, x, a * x)),
    "elu": ("alpha", lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))),
    "softplus": ("beta", lambda x, a: np.logaddexp(0, a * x) / a),
}


@pytest.mark.parametrize("name", SLOPED)
def test_gradients_are_derivatives(name, rng):
    function, vjp = getattr(nn, name), getattr(nn, f"{name}_vjp")
    x = rng.normal(size=300) * 3
    x = np.where(np.abs(x) < 1e-3, 1.0, x)  # relu has no derivative at 0
    g, step = rng.normal(size=300), 1e-6
    high, low = (exact(function(cyrt.asarray(x + d))) for d in (step, -step))
    found = vjp(cyrt.asarray(g), cyrt.asarray(x))
    np.testing.assert_allclose(found.numpy(), g * (high - low) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", PARAMETERS)
def test_parameters(function, name, rng):
    parameter, wanted = PARAMETERS[function]
    x = numbers(rng, name, 7, 40) * 3
    x = x.astype(cyrt.dtype(name).numpy)
    for value in (0.25, 1, np.float32(2.5), 1.75):
        forward = functools.partial(getattr(nn, function), **{parameter: value})
        assert_close(forward(cyrt.asarray(x)), wanted(exact(x), value), name, 4)
        turned = forward(cyrt.asarray(x.T.copy()).T)
        assert_close(turned, wanted(exact(x), value), name, 4)
        out = cyrt.zeros(x.shape, dtype="float64")
        assert forward(cyrt.asarray(x), out=out) is out
        assert_close(out.astype(name), wanted(exact(x), value), name, 4)
    default = inspect.signature(getattr(nn, function)).parameters[parameter].default
    found = getattr(nn, function)(cyrt.asarray(x))
    assert_close(found, wanted(exact(x), default), name, 4)
    assert getattr(nn, function)(cyrt.zeros((0, 3), dtype=name)).shape == (0, 3)


@pytest.mark.parametrize("function", PARAMETERS)
@pytest.mark.parametrize("value", [0.25, 1, 2.5])
def test_gradients_with_parameters_are_derivatives(function, value, rng):
    given = {PARAMETERS[function][0]: value}
    x = rng.normal(size=(9, 8)) * 3
    x = np.where(np.abs(x) < 1e-3, 1.0, x)
    forward, vjp = getattr(nn, function), getattr(nn, f"{function}_vjp")
    check_gradient(lambda x: forward(x, **given), lambda g, x: vjp(g, x, **given), x, rng, rel=1e-5)
    g, a = (cyrt.asarray(rng.normal(size=12).astype(np.float32)) for _ in range(2))
    out = cyrt.zeros(12)
    assert vjp(g, a, out=out, **given) is out
    np.testing.assert_array_equal(out.numpy(), vjp(g, a, **given).numpy())
    half = vjp(g.astype("bfloat16"), a.astype("bfloat16"), **given)
    assert half.dtype == cyrt.bfloat16
    np.testing.assert_allclose(exact(half), out.numpy(), rtol=3e-2, atol=3e-2)


def test_one_launch_with_a_parameter(batched):
    x = cyrt.ones((4, 100))
    for function, (parameter, _) in PARAMETERS.items():
        given = {parameter: 0.5}
        assert len(launches(lambda: getattr(nn, function)(x, **given))) == 1  # noqa: B023
        vjp = getattr(nn, f"{function}_vjp")
        assert len(launches(lambda: vjp(x, x, **given))) == 1  # noqa: B023
    assert len(launches(lambda: nn.glu(x))) == 1
    assert len(launches(lambda: nn.glu_vjp(x[:, :50], x))) == 2


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_glu(name, axis, rng):
    x = numbers(rng, name, 6, 4, 10)
    half, gate = np.split(exact(x), 2, axis)
    sigmoid = 1 / (1 + np.exp(-gate))
    assert_close(nn.glu(cyrt.asarray(x), axis), half * sigmoid, name, 4)
    g = numbers(rng, name, *half.shape)
    found = nn.glu_vjp(cyrt.asarray(g), cyrt.asarray(x), axis)
    wanted = np.concatenate([exact(g) * sigmoid, exact(g) * half * sigmoid * (1 - sigmoid)], axis)
    assert_close(found, wanted, name, 4)
    turned = cyrt.asarray(np.ascontiguousarray(x.T)).T
    assert_close(nn.glu_vjp(cyrt.asarray(g), turned, axis), wanted, name, 4)


def test_glu_of_float64(rng):
    check_gradient(nn.glu, nn.glu_vjp, rng.normal(size=(3, 8)), rng)
    assert nn.glu(cyrt.zeros((3, 0))).shape == (3, 0)


def test_swiglu(rng):
    gate, up, g = (numbers(rng, "float64", 6, 50) for _ in range(3))
    sigmoid = 1 / (1 + np.exp(-gate))
    found = nn.swiglu(cyrt.asarray(gate), cyrt.asarray(up))
    assert_close(found, gate * sigmoid * up, "float64")
    of_gate, of_up = nn.swiglu_vjp(*map(cyrt.asarray, (g, gate, up)))
    assert_close(of_up, gate * sigmoid * g, "float64")
    slope = sigmoid * (1 + gate * (1 - sigmoid))
    assert_close(of_gate, slope * up * g, "float64")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 33), (2, 5, 2048), (4100, 3), (0, 4)])
def test_swiglu_vjp_by_shape(name, shape, rng):
    """One element, rows that are no whole vectors, and as many as fill several blocks; contiguous,
    transposed, halves of other rows, and broadcast gradients."""
    host = [numbers(rng, name, *shape) for _ in range(3)]
    gate, up, g = (exact(each) for each in host)
    sigmoid = 1 / (1 + np.exp(-gate))
    wanted = sigmoid * (1 + gate * (1 - sigmoid)) * up * g, gate * sigmoid * g
    arrays = [cyrt.asarray(each) for each in host]
    turned = [cyrt.asarray(each.T.copy()).T for each in host]
    cases = [arrays, turned, (turned[0], *arrays[1:])]
    if shape:
        both = cyrt.concat(arrays[:2], axis=-1)
        cases.append((both[..., : shape[-1]], both[..., shape[-1] :], arrays[2]))
    for a, b, c in cases:
        for found, each in zip(nn.swiglu_vjp(c, a, b), wanted, strict=True):
            assert found.shape == shape
            assert_close(found, each, name, 4)
    ones = cyrt.broadcast_to(cyrt.ones((), dtype=name), shape)
    assert_close(nn.swiglu_vjp(ones, *arrays[:2])[1], gate * sigmoid, name, 4)


def test_swiglu_vjp_promotes(rng):
    x = cyrt.asarray(numbers(rng, "float16", 4, 10))
    wide = x.astype(cyrt.float32)
    found = nn.swiglu_vjp(wide, x, x)
    for each, wanted in zip(found, nn.swiglu_vjp(wide, wide, wide), strict=True):
        assert each.dtype == cyrt.float32
        np.testing.assert_array_equal(each.numpy(), wanted.numpy())


def test_swiglu_vjp_in_the_memory_of_its_operands(rng):
    """Gradients never share memory, nor overwrite what is read at another place or in another
    type."""
    x = [numbers(rng, "float32", 40, 16) for _ in range(3)]
    wanted = [each.numpy() for each in nn.swiglu_vjp(*map(cyrt.asarray, x))]
    repeated = [each.numpy() for each in nn.swiglu_vjp(*[cyrt.asarray(x[0])] * 3)]
    g, gate, up = map(cyrt.asarray, x)
    found = nn.swiglu_vjp(g, gate, up, donate=True)
    assert found[0] is gate
    assert found[1] is up
    g, gate, up = map(cyrt.asarray, x)
    wide = nn.swiglu_vjp(g, gate, up.astype(cyrt.float64), donate=True)
    assert wide[0].dtype == cyrt.float64
    same = cyrt.asarray(x[0])
    both = nn.swiglu_vjp(same, same, same, donate=True)
    assert both[0] is same
    columns = cyrt.asarray(np.concatenate(x, 1))  # views that are not contiguous keep their values
    apart = nn.swiglu_vjp(columns[:, :16], columns[:, 16:32], columns[:, 32:], donate=True)
    np.testing.assert_array_equal(columns.numpy(), np.concatenate(x, 1))
    turned = nn.swiglu_vjp(*(cyrt.asarray(each.T.copy()).T for each in x), donate=True)
    for i in range(2):
        for each in found[i], apart[i], turned[i]:
            np.testing.assert_array_equal(each.numpy(), wanted[i])
        np.testing.assert_array_equal(both[i].numpy(), repeated[i])
        np.testing.assert_allclose(wide[i].numpy(), wanted[i], 1e-5, 1e-6)
    line = cyrt.asarray(x[0].ravel())  # operands that overlap each other
    parts = line[:600], line[8:608], line[16:616]
    apart = [each.numpy() for each in nn.swiglu_vjp(*(each.copy() for each in parts))]
    for each, other in zip(nn.swiglu_vjp(*parts, donate=True), apart, strict=True):
        np.testing.assert_array_equal(each.numpy(), other)


def test_launches_of_swiglu_vjp():
    """One; several of more than 2**30 elements side by side."""
    assert explain("swiglu_vjp", "bfloat16", (3, 1 << 20)).launches == 1
    explained = explain("swiglu_vjp", "bfloat16", (5, 1 << 30))
    assert (explained.launches, explained.grid) == (5, 1 << 19)
    assert explain("swiglu_vjp", "float32", (1 << 32, 3)).launches == 12


@pytest.mark.gpu
def test_swiglu_vjp_of_many_elements():
    n = 2**30 + 3
    gate = cyrt.zeros(n, dtype=cyrt.bfloat16)
    up, g = cyrt.ones_like(gate), cyrt.ones_like(gate)
    gate[n - 2 :] = 2
    of_gate, of_up = nn.swiglu_vjp(g, gate, up)
    wanted = nn.swiglu_vjp(g[:4], gate[n - 4 :].copy(), up[:4])
    np.testing.assert_array_equal(exact(of_gate[n - 4 :]), exact(wanted[0]))
    np.testing.assert_array_equal(exact(of_up[n - 4 :]), exact(wanted[1]))
    assert bool(cyrt.all(of_gate[: n - 2] == 0.5))


def test_views_and_halves_of_an_array(rng):
    """The gate and the rest are often two halves of one product's rows."""
    both = numbers(rng, "float32", 5, 64)
    x = cyrt.asarray(both)
    gate, up = x[:, :32], x[:, 32:]
    wide = both.astype(np.float64)
    wanted = wide[:, :32] / (1 + np.exp(-wide[:, :32])) * wide[:, 32:]
    assert_close(nn.swiglu(gate, up), wanted, "float32")
    assert_close(nn.relu(x.T), np.maximum(wide.T, 0), "float32")
    of_gate, of_up = nn.swiglu_vjp(up, gate, up)
    again = nn.swiglu_vjp(up.copy(), gate.copy(), up.copy())
    np.testing.assert_array_equal(of_gate.numpy(), again[0].numpy())
    np.testing.assert_array_equal(of_up.numpy(), again[1].numpy())


def test_limits():
    x = cyrt.asarray([np.inf, -np.inf, np.nan, 1e30, -1e30])
    for name in "relu", "gelu", "gelu_tanh", "silu", "softplus", "hardswish":
        found = getattr(nn, name)(x).numpy()
        np.testing.assert_array_equal(found, [np.inf, 0, np.nan, np.float32(1e30), 0])
        slope = getattr(nn, f"{name}_vjp")(cyrt.ones(5, dtype=cyrt.float32), x).numpy()
        np.testing.assert_array_equal(slope[[0, 1, 3, 4]], [1, 0, 1, 0])


def test_what_elementwise_functions_take(rng):
    x = numbers(rng, "float32", 40)
    out = cyrt.zeros(40, dtype=cyrt.float32)
    assert nn.silu(cyrt.asarray(x), out=out) is out
    mask = cyrt.asarray(x > 0)
    nn.relu(cyrt.asarray(x) - 5, out=out, where=mask)
    wanted = np.where(x > 0, 0, x / (1 + np.exp(-x.astype(np.float64))))
    assert_close(out, wanted, "float32")
    assert nn.gelu(cyrt.asarray([1, 2])).dtype == cyrt.float32
    assert nn.gelu(cyrt.asarray(x), dtype=cyrt.float64).dtype == cyrt.float64


def test_names():
    assert repr(nn.gelu) == "<function cyrt.nn.gelu>"
    assert nn.gelu_vjp.__name__ == "gelu_vjp"
    assert pickle.loads(pickle.dumps(nn.gelu)) is nn.gelu
    assert nn.sigmoid is cyrt.sigmoid
    assert {name for name in dir(nn) if name.endswith("_vjp")} <= set(nn.__all__)
    for name in nn.__all__:
        assert getattr(nn, name).__doc__.strip(), name


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: nn.relu(1.0, x), TypeError, "relu: expected an Array, got only numbers"),
        (lambda x: nn.relu(np.ones(3)), TypeError, "relu: expected an Array, got numpy.ndarray"),
        (lambda x: nn.relu(x.astype(cyrt.complex64)), TypeError, "relu: not for complex64"),
        (lambda x: nn.leaky_relu([1.0]), TypeError, "leaky_relu: x: expected an Array, got list"),
        (lambda x: nn.leaky_relu(x, "1"), TypeError, "negative_slope: expected a number, got str"),
        (lambda x: nn.elu(x, np.inf), ValueError, "elu: alpha: expected a finite number, got inf"),
        (
            lambda x: nn.elu(x, 1e39),
            ValueError,
            "elu: alpha: 1e[+]39 is out of the range of float32",
        ),
        (lambda x: nn.elu(x.astype("float16"), 1e6), ValueError, "out of the range of float16"),
        (lambda x: nn.elu_vjp(x, x, 1e39), ValueError, "elu_vjp: alpha: .* range of float32"),
        (lambda x: nn.leaky_relu(x.astype("int32"), -1e39), ValueError, "range of float32"),
        (lambda x: nn.softplus(x, beta=1e-50), ValueError, "softplus: beta: 1e-50 is out of the"),
        (lambda x: nn.softplus(1.0, beta=1e39), ValueError, "out of the range of float32"),
        (lambda x: nn.softplus_vjp(x, x, beta=1e-50), ValueError, "softplus_vjp: beta: .* range"),
        (lambda x: nn.elu(x.astype(cyrt.complex64)), TypeError, "elu: not for complex64"),
        (lambda x: nn.elu_vjp(x[:2], x), ValueError, "do not broadcast"),
        (lambda x: nn.softplus(x, beta=0), ValueError, "softplus: beta: expected a number above 0"),
        (lambda x: nn.softplus(x, beta=True), TypeError, "beta: expected a number, got bool"),
        (
            lambda x: nn.softplus_vjp(x, x, beta=2, dtype="float64"),
            TypeError,
            "dtype: expected None unless",
        ),
        (
            lambda x: nn.glu(x),
            ValueError,
            r"glu: x: expected an even size along axis -1, got shape",
        ),
        (lambda x: nn.glu(x.astype("int32")), TypeError, "glu: x: expected a real floating-point"),
        (lambda x: nn.relu_vjp(x), TypeError, r"relu_vjp\(g, x, /"),
        (lambda x: nn.relu_vjp(x[:2], x), ValueError, "do not broadcast"),
        (lambda x: nn.swiglu(x, x[:2]), ValueError, "do not broadcast"),
        (
            lambda x: nn.swiglu_vjp(x[:1], x, x),
            ValueError,
            r"expected one shape, got \(3,\) of gate",
        ),
        (lambda x: nn.swiglu_vjp(x, x, [1.0]), TypeError, "swiglu_vjp: up: expected an Array"),
        (
            lambda x: nn.swiglu_vjp(*[x.astype(cyrt.int32)] * 3),
            TypeError,
            "swiglu_vjp has no kernel for int32; it has kernels for float16",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(cyrt.ones(3, dtype=cyrt.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_hardswish_has_the_sign_of_zero_as_in_pytorch(dtype):
    """But for minus infinity, of which PyTorch makes NaN."""
    x = cyrt.asarray([-4, -3, -np.inf, -0.0, 0.0], dtype=dtype)
    found = nn.hardswish(x)
    assert found.tolist() == [0] * 5
    assert cyrt.signbit(found).tolist() == [True] * 4 + [False]
