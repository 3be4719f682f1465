"""Images in another size, against published values and dense matrices of PyTorch's formulas."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from differences import check_gradient
from rows_of_numbers import TYPES, assert_close, exact, numbers

import cyrt
from cyrt import nn

DIMENSIONS = {
    **{"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3)},
    **{"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)},
}
CASES = [(mode, ndim) for mode, found in DIMENSIONS.items() for ndim in found]
PAIRS = [(1, 1), (1, 5), (5, 1), (4, 4), (3, 7), (7, 3), (5, 10), (10, 5), (6, 25), (31, 2)]


def weights(n, count, mode, corners=False, factor=None):
    """The matrix of an axis, of n elements to `count`."""
    found = np.zeros((count, n))
    if corners:
        scale = (n - 1) / (count - 1) if count > 1 else 0.0
    else:
        scale = 1 / factor if factor else n / count
    for i in range(count):
        if mode.startswith("nearest"):
            at = np.float32(i + 0.5 * (mode == "nearest-exact")) * np.float32(scale)
            found[i, min(int(at), n - 1)] += 1
            continue
        at = scale * i if corners else scale * (i + 0.5) - 0.5
        if mode != "bicubic":
            at = max(at, 0.0)
        first = math.floor(at)
        t = at - first
        taps = {0: 1 - t, 1: t}
        if mode == "bicubic":
            taps = {k: cubic(abs(t - k)) for k in (-1, 0, 1, 2)}
        for k, weight in taps.items():
            found[i, min(max(first + k, 0), n - 1)] += weight
    return found


def cubic(x, a=-0.75):
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a


def resized(x, matrices):
    """Each spatial axis times its matrix."""
    for axis, matrix in enumerate(matrices, 1):
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x


def image(values):
    return cyrt.asarray(np.asarray(values, np.float32)[None, :, :, None])


def plane(x):
    return x[0, :, :, 0].numpy()


def test_values_of_pytorch_s_documentation():
    """Those of ``torch.nn.Upsample``."""
    x = image([[1, 2], [3, 4]])
    np.testing.assert_array_equal(
        plane(nn.interpolate(x, scale_factor=2)),
        [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]],
    )
    found = nn.interpolate(x, scale_factor=2, mode="bilinear")
    wanted = [
        [1, 1.25, 1.75, 2],
        [1.5, 1.75, 2.25, 2.5],
        [2.5, 2.75, 3.25, 3.5],
        [3, 3.25, 3.75, 4],
    ]
    np.testing.assert_array_equal(plane(found), wanted)
    found = nn.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
    np.testing.assert_allclose(plane(found)[1], [1.6667, 2, 2.3333, 2.6667], atol=1e-4)
    x = image([[1, 2, 0], [3, 4, 0], [0, 0, 0]])
    found = plane(nn.interpolate(x, scale_factor=2, mode="bilinear"))
    np.testing.assert_allclose(found[3], [2.25, 2.4375, 2.8125, 2.25, 0.75, 0], atol=1e-6)
    found = plane(nn.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True))
    np.testing.assert_allclose(found[3], [2.4, 2.72, 3.04, 2.56, 1.28, 0], atol=1e-6)


def test_values_of_onnx_s_cubic_resize():
    """Its cases ``resize_upsample_scales_cubic``, whose coefficient is PyTorch's."""
    x = image(np.arange(1, 17).reshape(4, 4))
    found = plane(nn.interpolate(x, scale_factor=2, mode="bicubic"))
    wanted = [
        0.47265625,
        0.76953125,
        1.24609375,
        1.875,
        2.28125,
        2.91015625,
        3.38671875,
        3.68359375,
    ]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    found = plane(nn.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True))
    wanted = [1, 1.34110787, 1.80029155, 2.32944606, 2.67055394, 3.19970845, 3.65889213, 4]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)


@pytest.mark.parametrize(("mode", "ndim"), CASES)
@pytest.mark.parametrize("corners", [None, False, True])
def test_sizes(mode, ndim, corners, rng):
    """Larger and smaller, each axis in its own way; and the gradients."""
    if mode.startswith("nearest") and corners is not None:
        return
    for turn in range(len(PAIRS)):
        pairs = [PAIRS[(turn + 3 * d) % len(PAIRS)] for d in range(ndim)]
        matrices = [weights(*pair, mode, corners) for pair in pairs]
        x = rng.normal(size=(2, *(n for n, _ in pairs), 3))
        sizes = tuple(count for _, count in pairs)
        found = nn.interpolate(cyrt.asarray(x), sizes, mode=mode, align_corners=corners)
        np.testing.assert_allclose(found.numpy(), resized(x, matrices), rtol=1e-12, atol=1e-12)
        g = rng.normal(size=found.shape)
        found = nn.interpolate_vjp(
            cyrt.asarray(g), cyrt.asarray(x), sizes, mode=mode, align_corners=corners
        )
        wanted = resized(g, [each.T for each in matrices])
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("mode", "ndim"), CASES)
@pytest.mark.parametrize("factor", [2, 0.5, 1.3, 0.7, 3.9])
def test_scale_factors(mode, ndim, factor, rng):
    """The factor is used as it is, though the size is rounded down."""
    factors = tuple(factor + 0.2 * d for d in range(ndim))
    inputs = (5, 6, 7)[:ndim]
    x = rng.normal(size=(1, *inputs, 2))
    matrices = [
        weights(n, math.floor(n * each), mode, False, each)
        for n, each in zip(inputs, factors, strict=True)
    ]
    found = nn.interpolate(cyrt.asarray(x), scale_factor=factors, mode=mode)
    np.testing.assert_allclose(found.numpy(), resized(x, matrices), rtol=1e-12, atol=1e-12)
    g = rng.normal(size=found.shape)
    found = nn.interpolate_vjp(cyrt.asarray(g), cyrt.asarray(x), None, factors, mode)
    wanted = resized(g, [each.T for each in matrices])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [1, 3, 40])
def test_types(name, mode, channels, rng):
    x = numbers(rng, name, 2, 6, 9, channels)
    matrices = [weights(6, 13, mode), weights(9, 4, mode)]
    found = nn.interpolate(cyrt.asarray(x), (13, 4), mode=mode)
    assert_close(found, resized(exact(x), matrices), name, 4)
    g = numbers(rng, name, 2, 13, 4, channels)
    found = nn.interpolate_vjp(cyrt.asarray(g), cyrt.asarray(x), (13, 4), mode=mode)
    assert_close(found, resized(exact(g), [each.T for each in matrices]), name, 8)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_gradients_are_derivatives(mode, rng):
    x = rng.normal(size=(1, 4, 5, 2))
    check_gradient(
        functools.partial(nn.interpolate, size=(7, 3), mode=mode),
        lambda g, x: nn.interpolate_vjp(g, x, (7, 3), mode=mode),
        x,
        rng,
    )


def test_views_and_one_size_for_all(rng):
    x = rng.normal(size=(3, 8, 6, 2))
    a = cyrt.asarray(x).transpose(3, 2, 1, 0)[:, ::-1]
    found = nn.interpolate(a, 5, mode="bilinear")
    wanted = resized(
        x.transpose(3, 2, 1, 0)[:, ::-1], [weights(6, 5, "bilinear"), weights(8, 5, "bilinear")]
    )
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_the_size_it_has(mode):
    """Elements beside infinite ones and NaN stay as they are."""
    x = image([[1, np.inf, 2], [np.nan, 3, -np.inf]])
    np.testing.assert_array_equal(plane(nn.interpolate(x, (2, 3), mode=mode)), plane(x))


def test_no_elements():
    assert nn.interpolate(cyrt.ones((0, 3, 2)), 5).shape == (0, 5, 2)
    assert nn.interpolate(cyrt.ones((2, 3, 0)), 5).shape == (2, 5, 0)
    found = nn.interpolate_vjp(cyrt.ones((0, 5, 2)), cyrt.ones((0, 3, 2)), 5)
    assert found.shape == (0, 3, 2)


X = cyrt.ones((1, 4, 4, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.interpolate(X, 2, mode="linear"),
            ValueError,
            r"interpolate: mode: 'linear' is for 1 spatial dimension, got x of shape "
            r"\(1, 4, 4, 3\), which has 2; for it there are 'nearest', 'nearest-exact', 'bilinear'",
        ),
        (lambda: nn.interpolate(X, 2, mode="cubic"), ValueError, "mode: expected 'nearest', 'near"),
        (lambda: nn.interpolate(X), ValueError, "expected size or scale_factor, got neither"),
        (lambda: nn.interpolate(X, 2, 2.0), ValueError, "size or scale_factor, got both"),
        (lambda: nn.interpolate(X, (2, 2, 2)), ValueError, "size: expected one number or 2, one"),
        (
            lambda: nn.interpolate(X, 2.5),
            TypeError,
            "interpolate: size: expected an int, got float",
        ),
        (lambda: nn.interpolate(X, True), TypeError, "size: expected an int, got bool"),
        (lambda: nn.interpolate(X, (2, 0)), ValueError, "size: expected outputs of 1 to"),
        (lambda: nn.interpolate(X, scale_factor=0.1), ValueError, r"got \(0, 0\) of inputs"),
        (lambda: nn.interpolate(X, scale_factor="2"), TypeError, "scale_factor: expected a number"),
        (lambda: nn.interpolate(X[0, 0], 2), ValueError, r"expected a shape \(N, \*spatial, C\)"),
        (lambda: nn.interpolate(X[:, :0], 2), ValueError, "elements along each spatial axis"),
        (
            lambda: nn.interpolate(X, 2, align_corners=False),
            ValueError,
            "align_corners: expected None for mode 'nearest', got False",
        ),
        (
            lambda: nn.interpolate(X, 2, mode="bilinear", align_corners=1),
            TypeError,
            "align_corners: expected a bool",
        ),
        (lambda: nn.interpolate_vjp(X, X, 2), ValueError, r"g: expected shape \(1, 2, 2, 3\)"),
        (lambda: nn.interpolate(X.astype("int32"), 2), TypeError, "x: expected a real floating"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
