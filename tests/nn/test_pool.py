"""Pooling and its gradients against windows in float64."""

from __future__ import annotations

import numpy as np
import pytest
from explaining import explain
from rows_of_numbers import assert_close, exact, launches, numbers
from windows import Windows

import cyrt
from cyrt import nn

TYPES = ["float16", "bfloat16", "float32"]


def windows_of(x, kernel_size, stride=None, padding=0):
    ndim = x.ndim - 2
    kernel = [kernel_size] * ndim if np.isscalar(kernel_size) else list(kernel_size)
    return Windows(x.shape, kernel, kernel if stride is None else stride, padding)


def taps_last(of, unfolded):
    """Move the taps of all dimensions behind the channels, as one axis."""
    axes = [0, *range(1, 2 * of.ndim, 2), 2 * of.ndim + 1, *range(2, 2 * of.ndim + 1, 2)]
    moved = np.transpose(unfolded, axes)
    return moved.reshape(*moved.shape[: of.ndim + 2], -1), np.argsort(axes), moved.shape


def greatest(x, **options):
    of = windows_of(x, **options)
    return taps_last(of, of.unfold(exact(x), -np.inf))[0].max(-1)


def mean(x, **options):
    of = windows_of(x, **options)
    return taps_last(of, of.unfold(exact(x)))[0].mean(-1)


def greatest_gradient(x, g, **options):
    of = windows_of(x, **options)
    taps, back, shape = taps_last(of, of.unfold(exact(x), -np.inf))
    passed = np.zeros(taps.shape)
    np.put_along_axis(passed, taps.argmax(-1)[..., None], exact(g)[..., None], -1)
    return of.fold(np.transpose(passed.reshape(shape), back))


def mean_gradient(x, g, **options):
    of = windows_of(x, **options)
    taps, back, shape = taps_last(of, of.unfold(exact(x)))
    passed = np.broadcast_to(exact(g)[..., None] / taps.shape[-1], taps.shape)
    return of.fold(np.transpose(passed.reshape(shape), back))


def check(rng, name, shape, **options):
    x = numbers(rng, name, *shape)
    a = cyrt.asarray(x)
    wanted = greatest(x, **options)
    found = nn.max_pool(a, **options)
    assert str(found.dtype) == name
    np.testing.assert_array_equal(exact(found), wanted)
    assert_close(nn.avg_pool(a, **options), mean(x, **options), name)
    g = numbers(rng, name, *wanted.shape)
    b = cyrt.asarray(g)
    scale = 4 * max(1, np.abs(exact(g)).max(initial=0))
    found = nn.max_pool_vjp(b, a, **options)
    assert_close(found, greatest_gradient(x, g, **options), name, scale)
    found = nn.avg_pool_vjp(b, a, **options)
    assert_close(found, mean_gradient(x, g, **options), name, scale)


@pytest.mark.parametrize("channels", [1, 8])
def test_errors_of_means_do_not_grow_with_the_window(channels, rng):
    """A sum of all elements one by one is off by 7e-5 for the constant."""
    shape = 1, 150, 150, channels
    x = rng.random(shape, np.float32)
    for values in np.full(shape, 0.1, np.float32), x:
        exact_mean = values.mean((1, 2), dtype=np.float64)
        found = nn.avg_pool(cyrt.asarray(values), 150).numpy()[0, 0]
        np.testing.assert_allclose(found, exact_mean, 2e-6)


def test_errors_of_gradients_of_means_do_not_grow_with_the_window():
    """One element is in all 60 * 60 windows; its gradient is their gradients' mean. A sum of these
    one by one is off by 1e-5."""
    ones = cyrt.full((1, 60, 60, 1), 0.1)
    found = nn.avg_pool_vjp(ones, cyrt.zeros((1, 119, 119, 1)), 60, stride=1)
    np.testing.assert_allclose(found.numpy()[0, 59, 59], 0.1, 2e-6)


def test_infinities_in_large_windows():
    x = np.zeros((1, 300, 1), np.float32)
    x[0, 3] = np.inf
    assert nn.avg_pool(cyrt.asarray(x), 300).item() == np.inf
    x[0, 250] = -np.inf
    assert np.isnan(nn.avg_pool(cyrt.asarray(x), 300).item())
    assert nn.max_pool(cyrt.asarray(x), 300).item() == np.inf


CASES = [
    ((2, 9, 8), {"kernel_size": 2}),
    ((2, 31, 5), {"kernel_size": 5, "stride": 2, "padding": 2}),
    ((3, 8, 7, 16), {"kernel_size": 2}),
    ((3, 8, 7, 24), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 8, 7, 3), {"kernel_size": (3, 1), "stride": (1, 2), "padding": (1, 0)}),
    ((1, 8, 7, 8), {"kernel_size": (2, 3), "stride": 1, "padding": ((0, 1), (2, -1))}),
    ((2, 5, 4, 6, 8), {"kernel_size": 2, "stride": 1}),
    ((1, 6, 6, 5, 3), {"kernel_size": (3, 2, 1), "stride": (2, 3, 4)}),
    ((1, 12, 8), {"kernel_size": 2, "stride": 5}),
    ((1, 1, 1, 1), {"kernel_size": 1}),
    ((1, 40, 300), {"kernel_size": 4}),
]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("shape", "options"), CASES)
def test_results(shape, options, name, rng):
    check(rng, name, shape, **options)


def test_double(rng):
    check(rng, "float64", (2, 8, 7, 6), kernel_size=3, stride=2, padding=1)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((0, 6, 4), {"kernel_size": 2}),
        ((2, 6, 0), {"kernel_size": 2}),
        ((2, 0, 4), {"kernel_size": 2, "padding": 1}),
        ((2, 1, 4), {"kernel_size": 2}),
    ],
)
def test_no_elements(shape, options, rng):
    x = cyrt.asarray(numbers(rng, "float32", *shape))
    outputs = windows_of(x, **options).index[0].shape[0]
    expected = shape[0], outputs, shape[2]
    for function in nn.max_pool, nn.avg_pool:
        found = function(x, **options)
        assert found.shape == expected
        np.testing.assert_array_equal(
            found.numpy(), np.full(expected, -np.inf if function is nn.max_pool else 0)
        )
    g = cyrt.ones(expected, dtype=cyrt.float32)
    for function in nn.max_pool_vjp, nn.avg_pool_vjp:
        np.testing.assert_array_equal(function(g, x, **options).numpy(), np.zeros(shape))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("channels", [3, 8])
def test_the_first_of_equal_elements(name, channels):
    x = np.zeros((1, 6, 6, channels), cyrt.dtype(name).numpy)
    x[0, 2:4, 2:4] = 1
    g = np.arange(1, 26, dtype=np.float32).reshape(1, 5, 5, 1).repeat(channels, 3).astype(x.dtype)
    found = nn.max_pool_vjp(cyrt.asarray(g), cyrt.asarray(x), 2, 1)
    np.testing.assert_array_equal(exact(found), greatest_gradient(x, g, kernel_size=2, stride=1))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("channels", [3, 8])
def test_not_finite(name, channels, rng):
    x = numbers(rng, name, 2, 7, 6, channels)
    x[0, 1, 1], x[0, 1, 2], x[0, 4, 4] = np.nan, np.inf, -np.inf
    x[1] = -np.inf
    x[0, 2, 2, 0] = np.nan
    options = {"kernel_size": 2, "stride": 1, "padding": ((1, 0), (0, 0))}
    a = cyrt.asarray(x)
    np.testing.assert_array_equal(exact(nn.max_pool(a, **options)), greatest(x, **options))
    with np.errstate(invalid="ignore"):
        wanted = mean(x, **options)
    assert_close(nn.avg_pool(a, **options), wanted, name)
    g = numbers(rng, name, *wanted.shape)
    # The first NaN is the greatest; where all are minus infinity, the first element, not padding.
    of = windows_of(x, **options)
    taps, back, shape = taps_last(of, of.unfold(exact(x), np.nan))
    inside = taps_last(of, of.unfold(np.ones(x.shape)))[0] > 0
    ranks = np.where(np.isnan(taps), np.inf, np.where(taps == np.inf, 1e30, taps))
    ranks = np.where(inside, np.maximum(ranks, -1e30), -np.inf)
    passed = np.zeros(taps.shape)
    np.put_along_axis(passed, ranks.argmax(-1)[..., None], exact(g)[..., None], -1)
    wanted = of.fold(np.transpose(passed.reshape(shape), back))
    assert_close(nn.max_pool_vjp(cyrt.asarray(g), a, **options), wanted, name, 4)


# Parts of an array (6, 12, 9, 32), and how many copies are made of them.
VIEWS = {
    "part": (np.s_[1:3, 2:7, 1:9, 16:], 0),
    "not aligned": (np.s_[:2, :5, :, 3:19], 0),
    "steps": (np.s_[::3, ::2, ::-1, :16], 0),
    "other channels": (np.s_[:2, :5, :, ::2], 1),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("view", VIEWS)
def test_strided_views(view, name, rng):
    x, options = numbers(rng, name, 6, 12, 9, 32), {"kernel_size": 2, "stride": (1, 2)}
    key, _ = VIEWS[view]
    part, wanted = cyrt.asarray(x)[key], greatest(x[key], **options)
    np.testing.assert_array_equal(exact(nn.max_pool(part, **options)), wanted)
    assert_close(nn.avg_pool(part, **options), mean(x[key], **options), name)
    g = cyrt.asarray(numbers(rng, name, *wanted.shape, 2))[..., 1]
    found = nn.max_pool_vjp(g, part, **options)
    assert_close(found, greatest_gradient(x[key], g, **options), name, 8)
    found = nn.avg_pool_vjp(g, part, **options)
    assert_close(found, mean_gradient(x[key], g, **options), name, 8)


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("function", [nn.max_pool, nn.avg_pool])
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_copied_only_if_their_channels_are_apart(view, function, rng):
    key, copies = VIEWS[view]
    part = cyrt.asarray(numbers(rng, "float32", 6, 12, 9, 32))[key]
    assert len(launches(lambda: function(part, 2))) == 1 + copies


def test_adjoint(rng):
    x, v = (cyrt.asarray(numbers(rng, "float64", 2, 11, 9, 4)) for _ in range(2))
    options = {"kernel_size": (3, 4), "stride": (2, 3), "padding": ((2, 1), (0, 1))}
    g = cyrt.asarray(numbers(rng, "float64", *nn.avg_pool(x, **options).shape))
    inner = float(cyrt.sum(nn.avg_pool(v, **options) * g))
    assert float(cyrt.sum(v * nn.avg_pool_vjp(g, x, **options))) == pytest.approx(inner)


def test_equal_results_run_to_run(rng):
    x = cyrt.asarray(numbers(rng, "float16", 2, 20, 20, 8))
    g = nn.max_pool(x, 5, 1)
    runs = [(nn.max_pool_vjp(g, x, 5, 1), nn.avg_pool_vjp(g, x, 5, 1)) for _ in range(3)]
    for run in runs[1:]:
        for found, first in zip(run, runs[0], strict=True):
            np.testing.assert_array_equal(found.numpy(), first.numpy())


@pytest.mark.parametrize("name", TYPES)
def test_explanations(name):
    for op in "max_pool", "avg_pool", "avg_pool_vjp":
        assert explain(op, name, (2, 8, 8, 16), (2, 2)).kernel == f"cyrt_{op}_{name}"
        assert explain(op, name, (2, 8, 8, 9), (2, 2)).kernel == f"cyrt_{op}_{name}_elements"
    found = [kernel for kernel, *_ in explain("max_pool_vjp", name, (2, 9, 16), (3,)).kernels]
    assert found == [f"cyrt_max_pool_vjp_{name}_taps", f"cyrt_max_pool_vjp_{name}"]


@pytest.mark.parametrize(
    ("shape", "arguments", "message"),
    [
        ((4, 5), (2,), r"3 to 5 dimensions, got \(4, 5\)"),
        ((1,) * 6, (1,), "3 to 5 dimensions"),
        ((1, 3, 2), (5,), "size 5 is larger than the padded input of size 3 .* negative"),
        ((1, 3, 2), (0,), "kernel_size: .* got 0"),
        ((1, 3, 2), ((2, 2),), r"kernel_size: .* tuple of 1 int.* got \(2, 2\)"),
        ((1, 3, 2), (2, 0), "stride: .* got 0"),
        ((1, 3, 2), (2, 1, ((1, 2, 3),)), "padding: .* 1 pairs"),
    ],
)
def test_wrong_values(shape, arguments, message):
    x = cyrt.zeros(shape, dtype=cyrt.float32)
    for function in nn.max_pool, nn.avg_pool:
        with pytest.raises(ValueError, match=f"{function.__name__}: .*{message}"):
            function(x, *arguments)


@pytest.mark.parametrize("padding", [2, ((2, 0),), ((-1, 2),)])
def test_windows_of_padding_have_no_maximum(padding):
    x = cyrt.ones((1, 5, 1))
    for name, run in (
        ("max_pool", lambda: nn.max_pool(x, 2, 1, padding)),
        ("max_pool_vjp", lambda: nn.max_pool_vjp(x, x, 2, 1, padding)),
    ):
        with pytest.raises(ValueError, match=f"^{name}: padding: expected less than 2, .*, got 2"):
            run()
    assert [0.0] in nn.avg_pool(x, 2, 1, padding).tolist()[0]


def test_windows_with_one_element_have_a_maximum():
    x = cyrt.asarray([[[-1.0], [-2.0]]])
    assert nn.max_pool(x, 3, 1, ((2, 0),)).tolist() == [[[-1.0], [-1.0]]]


def test_wrong_types_and_gradients():
    x = cyrt.zeros((2, 6, 4), dtype=cyrt.float32)
    with pytest.raises(TypeError, match="max_pool: x: expected a real .* int32"):
        nn.max_pool(cyrt.astype(x, cyrt.int32), 2)
    with pytest.raises(TypeError, match="avg_pool: x: expected an Array, got list"):
        nn.avg_pool([1.0], 2)
    with pytest.raises(TypeError, match=r"kernel_size: .* got 2\.5"):
        nn.avg_pool(x, 2.5)
    for function in nn.max_pool_vjp, nn.avg_pool_vjp:
        with pytest.raises(ValueError, match=r"g: expected shape \(2, 3, 4\), .* got \(2, 4, 4\)"):
            function(cyrt.zeros((2, 4, 4), dtype=cyrt.float32), x, 2)
        with pytest.raises(TypeError, match="g: expected float32, the type of x, got float16"):
            function(cyrt.zeros((2, 3, 4), dtype=cyrt.float16), x, 2)
