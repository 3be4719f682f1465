"""Activation kernels against float64, their derivatives against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from applying import apply

import cyrt
from cyrt.builtin import catalogue
from cyrt.dtypes import dtype

erfc = np.vectorize(math.erfc, otypes=[np.float64])
EPSILONS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
ROWS = [row for row in catalogue.ROWS if row.template == "activation"]


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def limited(function, low, high=None):
    """The function, with its limits at minus infinity and infinity."""

    def of(x, *rest):
        with np.errstate(all="ignore"):
            found = function(np.where(np.isinf(x), 0, x), *rest)
        found = np.where(x == -np.inf, low, found)
        return np.where(x == np.inf, x if high is None else high, found)

    return of


silu = limited(lambda x: x * sigmoid(x), 0)
gelu = limited(lambda x: 0.5 * x * erfc(-x / math.sqrt(2)), 0)
gelu_tanh = limited(lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)), 0)
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def elu_slope(x, alpha):
    return np.where(x > 0, 1, alpha * np.exp(np.minimum(x, 0)))


SLOPES = {
    "selu": lambda x: SELU_SCALE * elu_slope(x, SELU_ALPHA),
    "hardswish": lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, (2 * x + 3) / 6)),
    "relu": lambda x: (x > 0).astype(np.float64),
    "silu": limited(lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), 0, 1),
    "gelu": limited(
        lambda x: 0.5 * erfc(-x / math.sqrt(2)) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        0,
        1,
    ),
    "gelu_tanh": limited(
        lambda x: (
            sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
            + x
            * (2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2))
            * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
            * sigmoid(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        ),
        0,
        1,
    ),
    "sigmoid": lambda x: sigmoid(x) * sigmoid(-x),
    "tanh": lambda x: 4 * sigmoid(2 * x) * sigmoid(-2 * x),
    "softplus": sigmoid,
}
FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "softplus": softplus,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "selu": lambda x: SELU_SCALE * elu(x, SELU_ALPHA),
    "hardswish": limited(lambda x: x * np.clip(x + 3, 0, 6) / 6, 0),
}
REFERENCE = {
    **FUNCTIONS,
    **{f"{name}_vjp": lambda g, x, name=name: SLOPES[name](x) * g for name in SLOPES},
    "maximum_vjp": lambda g, x, other: g * ((x > other) + 0.5 * (x == other)),
    "minimum_vjp": lambda g, x, other: g * ((x < other) + 0.5 * (x == other)),
    "swiglu": lambda gate, up: silu(gate) * up,
    "glu": lambda x, gate: x * sigmoid(gate),
    "glu_gate_vjp": lambda g, x, gate: g * x * sigmoid(gate) * sigmoid(-gate),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, x * slope),
    "leaky_relu_vjp": lambda g, x, slope: g * np.where(x > 0, 1, slope),
    "elu": elu,
    "elu_vjp": lambda g, x, alpha: g * elu_slope(x, alpha),
    "softplus": lambda x, beta: softplus(x * beta) / beta,
    "softplus_of_beta_vjp": lambda g, x, beta: g * sigmoid(x * beta),
}


def inputs(row, rng):
    special = [0.0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 10, -10, 88, -88, 200, -200, 1e-3, -1e-3]
    found = []
    for _ in row.inputs:
        x = rng.normal(size=403) * 10.0 ** rng.integers(-3, 2, 403)
        x[: len(special)] = special
        found.append(x.astype(dtype(row.dtype).numpy))
    found[input_of(row)][100:103] = [np.inf, -np.inf, np.nan]
    if row.op in ("softplus", "softplus_of_beta_vjp"):
        found[-1] = np.maximum(np.abs(found[-1]), 1e-2).astype(found[-1].dtype)
    return found


def input_of(row):
    """The operand that is the function's input; of a gradient, the first is that of the result."""
    return int(row.op.endswith("_vjp"))


def run(row, arrays):
    buffers = []
    for array in arrays:
        buffers.append(cyrt.Buffer(array.nbytes))
        buffers[-1].copy_from(array.view(np.uint8))
    out = cyrt.Buffer(arrays[0].nbytes)
    apply(row.op, buffers, out, row.dtype, len(arrays[0]))
    result = np.empty(out.nbytes, np.uint8)
    out.copy_to(result)
    return result.view(dtype(row.output).numpy).astype(np.float64)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kernels[0])
def test_values(row, rng):
    arrays = inputs(row, rng)
    wide = [each.astype(np.float64) for each in arrays]
    found = run(row, arrays)
    with np.errstate(all="ignore"):
        wanted = REFERENCE[row.op](*wide)
        wanted = wanted.astype(dtype(row.output).numpy).astype(np.float64)
        # A slope crosses 0: its error is one of its terms'.
        x = wide.pop(input_of(row))
        size = np.maximum(np.abs(wanted), np.abs(np.prod(wide, axis=0)) if wide else 0)
        # The argument of an exponential is as inexact as it is large.
        bound = EPSILONS[row.output] * 8 * size * (1 + np.where(np.isfinite(x), x**2, 0))
        exact = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        least = {"float16": 2**-24}.get(row.output, 1e-38)
        off = ~(exact | (np.abs(found - wanted) <= np.minimum(bound, 1e-2 * size) + least))
    assert not off.any(), (x[off][:5], found[off][:5], wanted[off][:5])


@pytest.mark.parametrize("name", SLOPES)
def test_references_are_derivatives(name):
    """The references above, by central differences."""
    x = np.linspace(-6, 6, 241) + 1e-2
    step = 1e-6
    slope = (FUNCTIONS[name](x + step) - FUNCTIONS[name](x - step)) / (2 * step)
    np.testing.assert_allclose(SLOPES[name](x), slope, rtol=1e-6, atol=1e-8)


def test_every_activation_has_a_reference():
    assert {row.op for row in ROWS} <= set(REFERENCE)
