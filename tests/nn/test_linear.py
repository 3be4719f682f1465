"""Linear layers, compared with float64."""

from __future__ import annotations

import numpy as np
import pytest
from rows_of_numbers import assert_close, exact, numbers
from scipy.special import erf

import cyrt
from cyrt import nn

SLOPES = {
    None: lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "gelu": lambda y: y * 0.5 * (1 + erf(y / np.sqrt(2))),
    "gelu_tanh": lambda y: 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))),
    "silu": lambda y: y / (1 + np.exp(-y)),
    "swiglu": lambda y: np.multiply(*_halves(y)),
}


def _halves(y):
    gate, up = np.split(y, 2, -1)
    return gate / (1 + np.exp(-gate)), up


def layer(x, w, b, activation, residual, norm):
    x, w = exact(x), exact(w)
    if norm is not None:
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + norm[1]) * exact(norm[0])
    y = SLOPES[activation](x @ w.T + (0 if b is None else exact(b)))
    return y if residual is None else exact(residual) + y


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("activation", SLOPES)
@pytest.mark.parametrize("whole", [False, True], ids=["alone", "with all"])
def test_results(name, activation, whole, rng):
    x, w = numbers(rng, name, 3, 5, 64), numbers(rng, name, 136, 64) / np.float32(8)
    w = w.astype(x.dtype)
    features = 68 if activation == "swiglu" else 136
    b = numbers(rng, name, 136) if whole else None
    residual = numbers(rng, name, 3, 5, features) if whole else None
    scale = numbers(rng, name, 64) if whole else None
    arrays = [None if each is None else cyrt.asarray(each) for each in (x, w, b, residual, scale)]
    norm = (arrays[4], 1e-5) if whole else None
    found = nn.linear(*arrays[:3], activation, arrays[3], norm)
    wanted = layer(x, w, b, activation, residual, None if scale is None else (scale, 1e-5))
    # Each step rounds its result.
    assert_close(found, wanted, name, scale=8 * max(1, np.abs(wanted).max()))


def test_keywords_and_vectors(rng):
    x, w = numbers(rng, "float32", 64), numbers(rng, "float32", 16, 64)
    found = nn.linear(cyrt.asarray(x), cyrt.asarray(w), activation="relu")
    assert_close(found, layer(x, w, None, "relu", None, None), "float32", scale=64)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": (3, 5)}, ValueError, r"x of shape \(..., in\).*got \(3, 5\) and \(6, 4\)"),
        ({"x": ()}, ValueError, r"got \(\) and \(6, 4\)"),
        ({"w": (2, 6, 4)}, ValueError, r"\(out, in\)"),
        ({"b": (4,)}, ValueError, r"b: expected shape \(6,\), got \(4,\)"),
        ({"residual": (3, 4)}, ValueError, r"residual: expected shape \(3, 6\), got \(3, 4\)"),
    ],
)
def test_wrong_shapes(change, error, message):
    operands = {"x": (3, 4), "w": (6, 4), **change}
    with pytest.raises(error, match=message):
        nn.linear(**{name: cyrt.zeros(shape) for name, shape in operands.items()})


def test_wrong_arguments():
    x, w = cyrt.zeros((3, 4)), cyrt.zeros((5, 4))
    with pytest.raises(ValueError, match="None or one of 'relu', .* got 'elu'"):
        nn.linear(x, w, activation="elu")
    with pytest.raises(ValueError, match=r"even number of rows of w, got \(5, 4\)"):
        nn.linear(x, w, activation="swiglu")
    with pytest.raises(TypeError, match="x: expected an Array, got ndarray"):
        nn.linear(np.zeros((3, 4), np.float32), w)
    with pytest.raises(TypeError, match="norm: expected a tuple"):
        nn.linear(x, w, norm=cyrt.ones(4))
