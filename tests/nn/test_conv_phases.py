"""Convolutions whose source's elements are a stride apart, to few channels: by phases."""

from __future__ import annotations

import numpy as np
import pytest
from conv_reference import ACTIVATIONS, TYPES, compare, convolve, input_gradient
from explaining import explain
from rows_of_numbers import exact, numbers

import cyrt
from cyrt import nn, settings
from cyrt.builtin import library_conv

# The images to compute: at least as many tiles as there are where phases are chosen.
BATCH = cyrt.Device(0).multiprocessors // 5 + 1
# Shapes of the input and of filters, and options. There are several tiles of 16 columns of places,
# or of 28 lines, and places and channels that fill none.
CASES = [
    ((BATCH, 33, 37, 3), (16, 7, 7), {"stride": 2, "padding": 3}),
    ((BATCH, 115, 21, 1), (40, 4, 4), {"stride": 2, "padding": 1}),
    ((BATCH, 12, 15, 2), (8, 3, 5), {"stride": 2, "padding": (0, 2), "flip": True}),
    ((BATCH, 13, 14, 4), (24, 3, 2), {"stride": 2, "padding": ((1, 0), (-1, 2))}),
    ((BATCH, 17, 22, 1), (16, 5, 1), {"stride": 3}),
    ((BATCH, 31, 14, 1), (8, 9, 11), {"stride": 4, "padding": 5}),
]
# Of the kernels in float32 and by tensor cores.
SUMS = [(12, 16), (4, 8), (8, 8), (16, 16), (12, 16), (16, 16)]


@pytest.fixture
def tf32(monkeypatch):
    """float32 may be rounded to TF32."""
    monkeypatch.setenv("CYRT_TF32", "1")
    settings.get.cache_clear()
    library_conv.decide(0)
    yield
    monkeypatch.undo()
    settings.get.cache_clear()
    library_conv.decide(0)


def kernels_of(op, name, *shapes, **options):
    return [kernel for kernel, *_ in explain(op, name, *shapes, **options).kernels]


def by_phases(name, kind):
    return [f"cyrt_conv_{name}_phase_weight", f"cyrt_conv_{name}_phases{kind}"]


def operands(rng, name, shape, filters, options):
    """Return a weight and a gradient of the result."""
    w = numbers(rng, name, *filters, shape[-1])
    results = convolve(np.zeros(shape), np.zeros(w.shape), **options).shape
    return w, numbers(rng, name, *results)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradients_of_an_input(case, name, rng):
    (shape, filters, options), (plain, tensor) = CASES[case], SUMS[case]
    w, g = operands(rng, name, shape, filters, options)
    kernels = by_phases(name, plain if name == "float32" else f"_tensor{tensor}")
    assert kernels_of("conv_input_vjp", name, shape, w.shape, **options) == kernels
    found = nn.conv_input_vjp(cyrt.asarray(g), shape, cyrt.asarray(w), **options)
    compare(found, input_gradient(g, w, shape, **options), name)


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("case", [0, 1])
def test_gradients_of_an_input_in_tf32(case, rng):
    (shape, filters, options), (_, tensor) = CASES[case], SUMS[case]
    w, g = operands(rng, "float32", shape, filters, options)
    kernels = by_phases("float32", f"_tensor{tensor}")
    assert kernels_of("conv_input_vjp", "float32", shape, w.shape, **options) == kernels
    found = nn.conv_input_vjp(cyrt.asarray(g), shape, cyrt.asarray(w), **options)
    wanted = input_gradient(g, w, shape, **options)
    error = np.linalg.norm(exact(found) - wanted) / np.linalg.norm(wanted)
    assert 1e-5 < error < 5e-4


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("flip", [False, True])
def test_dilated_inputs(flip, name, rng):
    x, w = numbers(rng, name, BATCH, 9, 12, 24), numbers(rng, name, 3, 4, 3, 24)
    b = numbers(rng, name, 6)[::2]
    options = {"input_dilation": 2, "padding": ((2, 1), (0, 3)), "flip": flip}
    kernels = by_phases(name, 12 if name == "float32" else "_tensor16")
    assert kernels_of("conv", name, x.shape, w.shape, **options) == kernels
    arrays = cyrt.asarray(x), cyrt.asarray(w)
    wanted = convolve(x, w, **options) + exact(b)
    for activation, function in ACTIVATIONS.items():
        found = nn.conv_general(*arrays, bias=cyrt.asarray(b), activation=activation, **options)
        compare(found, function(wanted), name)


def test_transposed_is_the_gradient_with_channels_exchanged(rng):
    x, w = numbers(rng, "float32", BATCH, 16, 18, 8), numbers(rng, "float32", 3, 4, 4, 8)
    found = nn.conv_transpose2d(cyrt.asarray(x), cyrt.asarray(w), 2, 1).numpy()
    exchanged = cyrt.asarray(np.ascontiguousarray(w.transpose(3, 1, 2, 0)))
    options = {"stride": 2, "padding": 1}
    wanted = nn.conv_input_vjp(cyrt.asarray(x), found.shape, exchanged, **options).numpy()
    np.testing.assert_array_equal(found, wanted)


def test_adjoint(rng):
    shape, filters, options = CASES[0]
    w, g = operands(rng, "float32", shape, filters, options)
    x = numbers(rng, "float32", *shape)
    back = exact(nn.conv_input_vjp(cyrt.asarray(g), shape, cyrt.asarray(w), **options))
    inner = (convolve(x, w, **options) * g).sum()
    assert (x * back).sum() == pytest.approx(inner, rel=1e-4)


@pytest.mark.parametrize("name", TYPES)
def test_parts_of_arrays(name, rng):
    """What is not aligned is left to other kernels, with equal results."""
    shape, filters, options = CASES[0]
    w, g = operands(rng, name, shape, filters, options)
    wide = np.zeros((*g.shape[:-1], 40), g.dtype)
    results = []
    for begin in 8, 9:
        wide[..., begin : begin + 16] = g
        part = cyrt.asarray(wide)[:, :, :, begin : begin + 16]
        results.append(nn.conv_input_vjp(part, shape, cyrt.asarray(w), **options))
        compare(results[-1], input_gradient(g, w, shape, **options), name)
    turned = cyrt.asarray(np.ascontiguousarray(g[:, ::-1]))[:, ::-1]
    again = nn.conv_input_vjp(turned, shape, cyrt.asarray(w), **options)
    np.testing.assert_array_equal(again.numpy(), results[0].numpy())


def test_what_is_not_by_phases():
    """Few places, too many sums, channels that are no vectors, groups, other strides."""
    options = {"stride": 2, "padding": 1}
    large = BATCH, 40, 40
    for name, shape, filters, more in [
        ("float32", (1, 8, 8, 3), (8, 3, 3, 3), {}),
        ("float32", (*large, 5), (8, 3, 3, 5), {}),
        ("float32", (*large, 3), (6, 3, 3, 3), {}),
        ("float16", (*large, 3), (12, 3, 3, 3), {}),
        ("float32", (*large, 4), (8, 3, 3, 2), {"groups": 2}),
        ("float32", (*large, 1), (8, 3, 3, 1), {"stride": 5}),
        ("float32", (*large, 1), (8, 3, 3, 1), {"stride": (2, 3)}),
        ("float32", (*large, 3), (8, 3, 3, 3), {"dilation": 2}),
        ("float32", (*large, 3), (8, 3, 3, 3), {"input_dilation": 2}),
    ]:
        found = kernels_of("conv_input_vjp", name, shape, filters, **(options | more))
        assert not any("phase" in kernel for kernel in found)
    assert (
        "phase" in kernels_of("conv_input_vjp", "float32", (*large, 3), (8, 3, 3, 3), **options)[0]
    )


def test_infinite_gradients_reach_their_windows_only(rng):
    """In float32, of stride 2, no zeros of the arranged weight are multiplied."""
    shape, filters, options = CASES[0]
    w, g = operands(rng, "float32", shape, filters, options)
    g[0, 3, 4, 5] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = input_gradient(g, w, shape, **options)
    found = exact(nn.conv_input_vjp(cyrt.asarray(g), shape, cyrt.asarray(w), **options))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
