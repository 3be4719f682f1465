"""Normalisation and its gradients against NumPy in float64."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from rows_of_numbers import (
    LAYOUTS,
    LENGTHS,
    TYPES,
    as_view,
    assert_close,
    exact,
    launches,
    many_rows,
    numbers,
    rows_for,
)

import cyrt
from cyrt import nn


def moments(x, eps, centered):
    """Centered rows and the scale of each."""
    x = exact(x)
    centered = x - x.mean(-1, keepdims=True) if centered else x
    return centered, 1 / np.sqrt((centered**2).mean(-1, keepdims=True) + eps)


def normalized(x, weight=None, bias=None, eps=1e-5, centered=True):
    rows, scale = moments(x, eps, centered)
    result = rows * scale * (1 if weight is None else exact(weight))
    return result + (0 if bias is None else exact(bias))


def gradients(x, weight, g, eps=1e-5, centered=True):
    """The gradients of x, weight and bias."""
    rows, scale = moments(x, eps, centered)
    rows, g = rows * scale, exact(g)
    slope = g * (1 if weight is None else exact(weight))
    level = slope.mean(-1, keepdims=True) if centered else 0
    of_x = scale * (slope - level - rows * (slope * rows).mean(-1, keepdims=True))
    others = tuple(range(x.ndim - 1))
    return of_x, (g * rows).sum(others), g.sum(others)


def largest(x):
    return np.abs(x).max(initial=1)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_results(name, n, rng):
    """Every presence of the parameters, and the gradients."""
    x, g = (numbers(rng, name, rows_for(n), n) for _ in range(2))
    weight, bias = numbers(rng, name, n), numbers(rng, name, n)
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    for w, b in itertools.product((None, weight), (None, bias)):
        of = [None if each is None else cyrt.asarray(each) for each in (w, b)]
        assert_close(nn.layer_norm(a, *of), normalized(x, w, b), name, 4)
        found, wanted = nn.layer_norm_vjp(d, a, of[0], of[1]), gradients(x, w, g)
        for each, parameter, result in zip(found, (x, w, b), wanted, strict=True):
            assert (each is None) == (parameter is None)
            if each is not None:
                assert_close(each, result, name, largest(result))
        if b is None:
            assert_close(nn.rms_norm(a, of[0]), normalized(x, w, centered=False), name, 4)
            found = nn.rms_norm_vjp(d, a, of[0])
            wanted = gradients(x, w, g, centered=False)[:2]
            for each, parameter, result in zip(found, (x, w), wanted, strict=True):
                assert (each is None) == (parameter is None)
                if each is not None:
                    assert_close(each, result, name, largest(result))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(0, 8), (0, 70_000), (1, 8), (65_537, 3), (3, 0, 5)])
def test_numbers_of_rows(shape, name, rng):
    x, g, weight = (numbers(rng, name, *each) for each in (shape, shape, shape[-1:]))
    a, w, d = (cyrt.asarray(each) for each in (x, weight, g))
    assert_close(nn.layer_norm(a, w, w), normalized(x, weight, weight), name, 4)
    found = nn.layer_norm_vjp(d, a, w, w)
    for each, wanted in zip(found, gradients(x, weight, g), strict=True):
        assert each.shape == wanted.shape
        # Sums of many terms that nearly cancel: errors are those of their parts.
        assert_close(each, wanted, name, largest(wanted))


def test_rows_of_no_elements():
    x, w = cyrt.zeros((4, 0)), cyrt.zeros(0)
    assert nn.layer_norm(x, w, w).shape == (4, 0)
    assert [each.shape for each in nn.layer_norm_vjp(x, x, w, w)] == [(4, 0), (0,), (0,)]


def test_several_leading_dimensions(rng):
    x, weight = numbers(rng, "float32", 3, 4, 5, 24), numbers(rng, "float32", 24)
    a, w = cyrt.asarray(x), cyrt.asarray(weight)
    assert_close(nn.layer_norm(a, w), normalized(x, weight), "float32", 4)
    turned = cyrt.permute_dims(a, (1, 0, 2, 3))
    wanted = normalized(x.transpose(1, 0, 2, 3), weight)
    assert_close(nn.layer_norm(turned, w), wanted, "float32", 4)
    assert_close(nn.layer_norm(a[0, 0, 0], w), normalized(x[0, 0, 0], weight), "float32", 4)


@pytest.mark.parametrize("n", [24, 1000, 17_000])
@pytest.mark.parametrize("how", LAYOUTS)
def test_layouts(how, n, rng):
    x, g, weight = (numbers(rng, "float32", *each) for each in ((3, n), (3, n), (n,)))
    a, d, w = as_view(x, how), as_view(g, how), cyrt.asarray(weight)
    assert_close(nn.layer_norm(a, w), normalized(x, weight), "float32", 4)
    found = nn.rms_norm_vjp(d, a, w)
    for each, wanted in zip(found, gradients(x, weight, g, centered=False)[:2], strict=True):
        assert_close(each, wanted, "float32", largest(wanted))


@pytest.mark.parametrize("n", [24, 1000, 17_000])
@pytest.mark.parametrize("how", LAYOUTS)
def test_only_uneven_rows_are_copied(how, n, batched):
    x = np.ones((3, n), np.float32)
    a, w = as_view(x, how), cyrt.ones(n)
    names = launches(lambda: nn.layer_norm(a, w))
    assert any("copy" in each for each in names) != LAYOUTS[how]
    assert len(names) <= 3
    dense = cyrt.asarray(x)
    assert 1 <= len(launches(lambda: nn.layer_norm_vjp(dense, dense, w, w))) <= 3


def test_rows_of_a_broadcast_array(rng, batched):
    row = numbers(rng, "float32", 96)
    x = cyrt.broadcast_to(cyrt.asarray(row), (7, 96))
    assert_close(nn.layer_norm(x), normalized(np.broadcast_to(row, (7, 96))), "float32", 4)
    assert launches(lambda: nn.layer_norm(x)) == ["cyrt_layer_norm_float32"]
    column = cyrt.broadcast_to(cyrt.asarray(row[:, None]), (96, 40))
    assert_close(nn.layer_norm(column), np.zeros((96, 40)), "float32", 4)


@pytest.mark.parametrize("n", [96, 97, 17_000])
def test_strides_of_parameters(n, rng):
    """Steps, the order reversed, one number for all, addresses off a vector, no dimension."""
    x, g, wide = (numbers(rng, "float32", *each) for each in ((5, n), (5, n), (2 * n + 1,)))
    a, d, w = cyrt.asarray(x), cyrt.asarray(g), cyrt.asarray(wide)
    for of, host in (
        (w[::2][:n], wide[::2][:n]),
        (w[n - 1 :: -1], wide[n - 1 :: -1]),
        (w[1 : n + 1], wide[1 : n + 1]),
        (cyrt.broadcast_to(w[3], (n,)), np.broadcast_to(wide[3], (n,))),
        (w[3], wide[3]),
    ):
        assert_close(nn.layer_norm(a, of, of), normalized(x, host, host), "float32", 4)
        found, wanted = nn.layer_norm_vjp(d, a, of, of), gradients(x, host, g)
        assert_close(found[0], wanted[0], "float32", 4)
        for each, result in zip(found[1:], wanted[1:], strict=True):
            assert each.shape == of.shape
            result = result.sum() if of.ndim == 0 else result
            assert_close(each, result, "float32", 100)


@pytest.mark.parametrize("n", [4096, 70_000])
def test_large_means(n, rng):
    x = (1e4 + 0.1 * rng.normal(size=(2, n))).astype(np.float32)
    a, wanted = cyrt.asarray(x), normalized(x)
    assert np.abs(exact(nn.layer_norm(a)) - wanted).max() <= 1e-4 * np.abs(wanted).max()
    g = numbers(rng, "float32", 2, n)
    found = nn.layer_norm_vjp(cyrt.asarray(g), a, cyrt.ones(n))
    for each, result in zip(found[:2], gradients(x, None, g), strict=False):
        assert np.abs(exact(each) - result).max() <= 1e-4 * np.abs(result).max()


@pytest.mark.parametrize("mean", [0, 1e6])
@pytest.mark.parametrize("outliers", [1, 2, 5])
@pytest.mark.parametrize("n", [24, 512, 1023, 4096, 8192, 16_384, 70_000])
def test_outliers(n, outliers, mean, rng):
    """At the beginning, at the end and in between: the other elements lose nothing by them."""
    x = (mean + rng.normal(size=(7, n))).astype(np.float32)
    g, weight = numbers(rng, "float32", 7, n), numbers(rng, "float32", n)
    places = [range(outliers), range(n - outliers, n)]
    places += [rng.choice(n, outliers, replace=False) for _ in x[2:]]
    others = np.ones(x.shape, bool)
    for row, at in zip(x, places, strict=True):
        row[at] = np.array([1e4, -1e6, 1e4, 3e5, 1e6])[:outliers]
    for row, at in zip(others, places, strict=True):
        row[at] = False

    def check(found, wanted):
        error = np.where(others, np.abs(exact(found) - wanted), 0).max(-1)
        assert (error <= 1e-5 * np.where(others, np.abs(wanted), 0).max(-1)).all()
        assert_close(found, wanted, "float32", largest(wanted))

    a, w, d = (cyrt.asarray(each) for each in (x, weight, g))
    check(nn.layer_norm(a), normalized(x))
    check(nn.layer_norm(a, w, w), normalized(x, weight, weight))
    for each, wanted in zip(nn.layer_norm_vjp(d, a, w, w), gradients(x, weight, g), strict=True):
        if wanted.ndim == 2:
            check(each, wanted)
        else:
            assert_close(each, wanted, "float32", largest(wanted))
    of_normalized = nn.layer_norm_vjp(cyrt.ones(x.shape), a, w)[1]
    columns = others.all(0)
    wanted = normalized(x).sum(0)
    error = np.abs(exact(of_normalized) - wanted)[columns].max()
    assert error <= 1e-5 * np.abs(normalized(x)[:, columns]).max() * len(x)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("n", [33, 512, 4096, 70_000])
def test_means_far_from_0(n, name, rng):
    """Beside a spread of 10 units in the last place, and less."""
    unit = 0.0625 if name == "float32" else 2.0**-33
    for spread in (0.7, 10):
        x = (1e6 + unit * np.round(spread * rng.normal(size=(5, n)))).astype(name)
        g = numbers(rng, name, 5, n)
        a, d = cyrt.asarray(x), cyrt.asarray(g)
        offset = x - exact(x[:, :1])  # exact, and normalized by NumPy without loss
        assert_close(nn.layer_norm(a, eps=0), normalized(offset, eps=0), name, 4)
        of_x = gradients(offset, None, g, eps=0)[0]
        scale = largest(of_x)
        np.testing.assert_allclose(
            exact(nn.layer_norm_vjp(d, a, eps=0)[0]) / scale,
            of_x / scale,
            atol=4e-6 if name == "float32" else 1e-12,
        )


@pytest.mark.parametrize("n", [40, 41, 20_000])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(value, n, rng):
    x = numbers(rng, "float32", 4, n)
    x[1, n // 2] = value
    a, g = cyrt.asarray(x), cyrt.asarray(numbers(rng, "float32", 4, n))
    for found in (nn.layer_norm(a), nn.layer_norm_vjp(g, a)[0]):
        lost = np.isnan(exact(found))
        assert lost[1].all()
        assert not lost[[0, 2, 3]].any()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("n", [55, 328])
def test_equal_elements(n, name):
    """Their mean is exact, though 1 / n is not."""
    x = cyrt.full((3, n), 57_344, dtype=name)
    np.testing.assert_array_equal(exact(nn.layer_norm(x)), 0)
    assert np.isnan(exact(nn.layer_norm(x, eps=0))).all()
    for eps in (1e-5, 3e-5, 7e-6):  # scales of other bits: their product with the mean is rounded
        np.testing.assert_array_equal(exact(nn.layer_norm_vjp(x, x, eps=eps)[0]), 0)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(9001, 64), (203, 2048), (19, 9216)])
def test_blocks_take_several_rows(shape, name, rng):
    x, g, weight = (numbers(rng, name, *each) for each in (shape, shape, shape[-1:]))
    a, w, d = (cyrt.asarray(each) for each in (x, weight, g))
    wanted = gradients(x, weight, g)
    for each, result in zip(nn.layer_norm_vjp(d, a, w, w), wanted, strict=True):
        assert_close(each, result, name, largest(result))
    wanted = gradients(x, weight, g, centered=False)[:2]
    for each, result in zip(nn.rms_norm_vjp(d, a, w)[:2], wanted, strict=True):
        assert_close(each, result, name, largest(result))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [2056, 8200])
def test_many_rows(n, name, rng, batched):
    """The gradients of 16-bit elements stream."""
    x, g = (numbers(rng, name, many_rows(n), n) for _ in range(2))
    slant = np.linspace(-3, 3, n).astype(x.dtype)
    x, g = x + slant, g + slant  # means of parts of a row differ
    x[1] += 300  # far from 0, beside its standard deviation
    x[-1] = x[-1, 0]
    weight, bias = abs(numbers(rng, name, n)), numbers(rng, name, n)
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    for w, b in itertools.product((None, weight), (None, bias)):
        of = [None if each is None else cyrt.asarray(each) for each in (w, b)]
        end = "_" * (w is not None or b is not None) + "w" * (w is not None) + "b" * (b is not None)
        run = functools.partial(nn.layer_norm, a, *of)
        assert launches(run) == [f"cyrt_layer_norm_{name}{end}"]
        assert_close(run(), normalized(x, w, b), name, 4)
    w = cyrt.asarray(weight)
    assert launches(lambda: nn.rms_norm(a, w)) == [f"cyrt_rms_norm_{name}_w"]
    assert_close(nn.rms_norm(a, w), normalized(x, weight, centered=False), name, 4)
    assert_close(nn.rms_norm(a), normalized(x, centered=False), name, 4)
    x[-1] = x[0]  # the scale of equal elements multiplies what rounding leaves of them
    for each, result in zip(
        nn.layer_norm_vjp(d, cyrt.asarray(x), w, w), gradients(x, weight, g), strict=True
    ):
        assert_close(each, result, name, largest(result))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [1536, 4096])
def test_many_rows_that_fill_their_threads(n, name, rng):
    """A block has two rows, the last one has one."""
    rows = 32 * 1024 * cyrt.Device(0).multiprocessors // n + 1
    rows += 1 - rows % 2
    x = numbers(rng, name, rows, n) + np.linspace(-3, 3, n).astype(cyrt.dtype(name).numpy)
    x[1] += 300  # far from 0, beside its standard deviation
    x[-2], x[-1] = x[-1], x[-1, 0]
    weight, bias = numbers(rng, name, n), numbers(rng, name, n)
    a = cyrt.asarray(x)
    for w, b in itertools.product((None, weight), (None, bias)):
        of = [None if each is None else cyrt.asarray(each) for each in (w, b)]
        assert_close(nn.layer_norm(a, *of), normalized(x, w, b), name, 4)
        wanted = normalized(x, w, centered=False)
        assert_close(nn.rms_norm(a, of[0]), wanted, name, 4)
    np.testing.assert_array_equal(exact(nn.layer_norm(a))[-1], 0)
    x[2, -1], x[5, 0] = np.nan, np.inf
    lost = np.isnan(exact(nn.layer_norm(cyrt.asarray(x))))
    assert lost[[2, 5]].all()
    assert not np.delete(lost, [2, 5], axis=0).any()


@pytest.mark.parametrize("n", [24, 700])
def test_gradients_without_eps(n, rng):
    """Threads of a block that have no row add nothing to the sums, where 0 is divided by 0."""
    x, g, weight = (numbers(rng, "float32", *each) for each in ((37, n), (37, n), (n,)))
    a, d, w = (cyrt.asarray(each) for each in (x, g, weight))
    found = nn.layer_norm_vjp(d, a, w, w, 0)
    for each, wanted in zip(found, gradients(x, weight, g, 0), strict=True):
        assert_close(each, wanted, "float32", largest(wanted))


@pytest.mark.parametrize("function", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("n", [1, 33, 300])
def test_gradients_are_derivatives(function, n, rng):
    """Against differences of the function itself, in float64."""
    x, g, weight, bias = (rng.normal(size=each) for each in ((2, n), (2, n), (n,), (n,)))
    operands = [x, weight, bias] if function == "layer_norm" else [x, weight]

    def value(of):
        arrays = [cyrt.asarray(each) for each in of]
        return float((getattr(nn, function)(*arrays, eps=1e-3).numpy() * g).sum())

    a, w, d, b = (cyrt.asarray(each) for each in (x, weight, g, bias))
    if function == "layer_norm":
        found = nn.layer_norm_vjp(d, a, w, b, 1e-3)
    else:
        found = nn.rms_norm_vjp(d, a, w, 1e-3)
    step = 1e-5
    for i, each in enumerate(operands):
        direction = rng.normal(size=each.shape)
        ahead, behind = (
            [*operands[:i], each + sign * step * direction, *operands[i + 1 :]] for sign in (1, -1)
        )
        slope = (value(ahead) - value(behind)) / (2 * step)
        np.testing.assert_allclose((exact(found[i]) * direction).sum(), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [64, 65, 20_000])
def test_out(n, rng):
    x, weight = numbers(rng, "float32", 3, n), numbers(rng, "float32", n)
    w, wanted = cyrt.asarray(weight), normalized(x, weight)
    half = {"float16": cyrt.zeros((3, n), dtype="float16")}
    for out in (cyrt.zeros((3, n)), cyrt.zeros((3, n + 8))[:, 8:], cyrt.zeros((n, 3)).T):
        assert nn.layer_norm(cyrt.asarray(x), w, out=out) is out
        assert_close(out, wanted, "float32", 4)
    assert nn.layer_norm(cyrt.asarray(x), w, out=half["float16"]) is half["float16"]
    assert_close(half["float16"], wanted, "float16", 4)
    a = cyrt.asarray(x)
    assert nn.layer_norm(a, w, out=a) is a
    assert_close(a, wanted, "float32", 4)
    # The result overlaps x, or the weight, elsewhere than where it is read.
    room = cyrt.asarray(np.vstack([x, x[:1]]))
    nn.layer_norm(room[:3], w, out=room[1:])
    assert_close(room[1:], wanted, "float32", 4)
    rows = cyrt.asarray(np.vstack([x, weight[None]]))
    nn.layer_norm(rows[:3], rows[3], out=rows[1:])
    assert_close(rows[1:], wanted, "float32", 4)


@pytest.mark.parametrize("n", [64, 20_000])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_donation_changes_the_memory_only(name, n, rng):
    x, g, w = (numbers(rng, name, *each) for each in ((6, n), (6, n), (n,)))
    weight = cyrt.asarray(w)
    kept = nn.layer_norm_vjp(cyrt.asarray(g), cyrt.asarray(x), weight, weight)
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    donated = nn.layer_norm_vjp(d, a, weight, weight, donate=True)
    assert donated[0] is a
    for each, other in zip(kept, donated, strict=True):
        np.testing.assert_array_equal(each.numpy(), other.numpy())
    # x cannot be written: all its rows are one; so g is.
    a = cyrt.broadcast_to(cyrt.asarray(x[0]), (6, n))
    d = cyrt.asarray(g)
    kept = nn.rms_norm_vjp(d, a, weight)
    donated = nn.rms_norm_vjp(d, a, weight, donate=True)
    assert donated[0] is d
    np.testing.assert_array_equal(kept[0].numpy(), donated[0].numpy())
    a = cyrt.asarray(x)
    np.testing.assert_array_equal(
        nn.rms_norm_vjp(cyrt.asarray(x), cyrt.asarray(x), weight)[0].numpy(),
        nn.rms_norm_vjp(a, a, weight, donate=True)[0].numpy(),
    )


def test_inputs_are_kept(rng):
    x, g, w = (numbers(rng, "float32", *each) for each in ((6, 64), (6, 64), (64,)))
    a, d, weight = cyrt.asarray(x), cyrt.asarray(g).T.copy().T, cyrt.asarray(w)
    nn.layer_norm_vjp(d, a, weight, weight)
    nn.layer_norm(a, weight, weight)
    for array, host in ((a, x), (d, g), (weight, w)):
        np.testing.assert_array_equal(array.numpy(), host)


@pytest.mark.parametrize("n", [96, 97, 17_000])
def test_equal_inputs_give_equal_bits(n, rng, emulated):
    """3,000 times on a GPU; on the emulated device as many as take half a second."""
    rows = 300 if n < 1000 else 5
    x, g, w = (numbers(rng, "bfloat16", *each) for each in ((rows, n), (rows, n), (n,)))
    a, d, weight = cyrt.asarray(x), cyrt.asarray(g), cyrt.asarray(w)
    first = [each.numpy() for each in nn.layer_norm_vjp(d, a, weight, weight)]
    for _ in range(60 if emulated else 3000):
        again = nn.layer_norm_vjp(d, a, weight, weight)
        for each, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(each.view(np.uint16), other.numpy().view(np.uint16))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_few_long_rows_and_many_give_the_same(name, rng, batched):
    """Rows that threads hold, with as much shared memory as a block may have, and the same rows in
    parts."""
    many = 40 * cyrt.Device().multiprocessors
    host = numbers(rng, name, 5, 16_384)
    x = cyrt.asarray(np.tile(host, (many // 5, 1)))
    g = cyrt.asarray(np.tile(numbers(rng, name, 5, 16_384), (many // 5, 1)))
    w = cyrt.asarray(numbers(rng, name, 16_384))
    assert launches(lambda: nn.layer_norm_vjp(g, x, w, w))[0].endswith("_wb")
    assert launches(lambda: nn.layer_norm_vjp(g[:2], x[:2], w, w))[1].endswith("_long")
    assert_close(nn.layer_norm(x[:2], w, w), exact(nn.layer_norm(x, w, w)[:2]), name, 4)
    found = nn.layer_norm_vjp(g, x, w, w)
    assert_close(nn.layer_norm_vjp(g[:2], x[:2], w)[0], exact(found[0][:2]), name, 4)
    wanted = gradients(host, w.numpy(), g[:5].numpy())
    for each, sums in zip(found[1:], wanted[1:], strict=True):
        assert_close(each, many // 5 * sums, name, largest(many // 5 * sums))


def test_kernels_by_shape(batched):
    def names(rows, n, dtype="float32", shift=0):
        x = cyrt.zeros((rows, n + shift), dtype=dtype)[:, shift:]
        return [
            each.removeprefix("cyrt_layer_norm_") for each in launches(lambda: nn.layer_norm(x))
        ]

    assert names(40, 1024) == ["float32"]
    assert names(40, 1023) == ["float32_unaligned"]
    assert names(40, 1024, shift=1) == ["float32_unaligned"]
    assert names(40, 1024, "bfloat16", shift=8) == ["bfloat16"]
    assert names(1, 16_384) == ["float32_parts", "float32_long"]
    assert names(200, 32_768, "bfloat16") == ["bfloat16"]
    assert names(200, 32_776, "bfloat16") == ["bfloat16_parts", "bfloat16_long"]
    x = cyrt.zeros((40, 1024))
    w = cyrt.zeros(1024)
    assert launches(lambda: nn.layer_norm_vjp(x, x, w, w)) == [
        "cyrt_layer_norm_vjp_float32_wb",
        "cyrt_layer_norm_vjp_float32_columns",
    ]
    assert launches(lambda: nn.rms_norm_vjp(x, x)) == ["cyrt_rms_norm_vjp_float32"]


def test_no_race_in_checking_mode(python):
    """A loop of gradients, whose partials and states are temporary."""
    done = python(
        """
        import numpy as np
        import cyrt
        from cyrt import nn

        rng = np.random.default_rng(0)
        for n in (64, 65, 17_000):
            x, g = (cyrt.asarray(rng.normal(size=(9, n)).astype(np.float32)) for _ in range(2))
            w = cyrt.asarray(rng.normal(size=n).astype(np.float32))
            first = None
            for i in range(40):
                gx, gw, gb = nn.layer_norm_vjp(g, x, w, w)
                hx, hw = nn.rms_norm_vjp(gx, x, w, donate=True) if i % 2 else (gx, gw)
                if i % 2:
                    x = cyrt.asarray(rng.normal(size=(9, n)).astype(np.float32))
                total = cyrt.sum(hx) + cyrt.sum(gw) + cyrt.sum(gb) + cyrt.sum(hw)
            assert np.isfinite(total.item())
        print("done")
        """,
        CYRT_CHECK="1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]
    assert done.stderr == ""


def test_less_shared_memory(python):
    """The gradients of rows whose sums do not fit a block's shared memory are computed in parts."""
    done = python(
        """
        import ctypes
        import numpy as np
        from cyrt.driver import table

        SHARED_MEMORY_OPTIN = 97
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int
        )

        def attribute(found, which, device):
            status = original(found, which, device)
            if which == SHARED_MEMORY_OPTIN:
                found[0] = 99 << 10
            return status

        callback = prototype(attribute)
        name = "cuDeviceGetAttribute"
        original = prototype(table.replace(name, ctypes.cast(callback, ctypes.c_void_p).value, 0))

        import cyrt
        from cyrt import nn

        rng = np.random.default_rng(0)
        x, g = (cyrt.asarray(rng.normal(size=(80, 16_384)).astype(np.float32)) for _ in range(2))
        w = cyrt.ones(16_384)
        found = nn.layer_norm_vjp(g, x, w, w)
        cyrt.commit()
        print(*cyrt.current_encoder().last_plan().names)
        np.testing.assert_allclose(found[2].numpy(), g.numpy().sum(0), rtol=1e-4, atol=1e-4)
        """,
        CYRT_GRAPHS="1",
    )
    assert done.returncode == 0, done.stderr
    family = "cyrt_layer_norm_vjp_float32"
    assert done.stdout.split()[-3:] == [f"{family}_parts", f"{family}_long", f"{family}_columns"]


X = cyrt.ones((3, 8))
W = cyrt.ones(8)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: nn.layer_norm(X, cyrt.ones(7)), ValueError, r"weight: .*\(8,\).*\(3, 8\).*\(7,\)"),
        (lambda: nn.layer_norm(X, None, cyrt.ones((1, 8))), ValueError, r"bias: .*\(1, 8\)"),
        (lambda: nn.layer_norm(X, cyrt.ones(8, dtype="float16")), TypeError, "float32.*float16"),
        (lambda: nn.layer_norm(X, 2.0), TypeError, "weight: expected an Array, got .*float"),
        (lambda: nn.layer_norm(X, (8,)), TypeError, r"got \(8,\); the last axis is normalized"),
        (lambda: nn.rms_norm(X, [1.0] * 8), TypeError, "got list; cyrt.asarray"),
        (lambda: nn.layer_norm(X, eps=-1.0), ValueError, "eps: .*-1.0"),
        (lambda: nn.layer_norm(X, eps=float("nan")), ValueError, "eps: .*nan"),
        (lambda: nn.layer_norm(X, eps=10**400), ValueError, "eps: expected a finite number .*000"),
        (lambda: nn.layer_norm(X, eps="small"), TypeError, "eps: expected a number, got str"),
        (lambda: nn.layer_norm(X, eps=1j), TypeError, "eps: expected a number, got complex"),
        (lambda: nn.layer_norm(cyrt.ones(())), ValueError, r"x: expected at least one .*\(\)"),
        (lambda: nn.layer_norm(cyrt.ones(4, dtype="int32")), TypeError, "int32.*float16"),
        (lambda: nn.rms_norm(cyrt.ones(4, dtype="complex64")), TypeError, "rms_norm.*complex64"),
        (lambda: nn.layer_norm([1.0, 2.0]), TypeError, r"layer_norm: x: expected an Array.*list"),
        (lambda: nn.layer_norm(X, out=cyrt.ones((3, 7))), ValueError, r"\(3, 8\).*\(3, 7\)"),
        (lambda: nn.layer_norm(X, out=cyrt.ones((3, 8), dtype="int32")), TypeError, "int32"),
        (
            lambda: nn.layer_norm_vjp(cyrt.ones((8, 3)), X, W),
            ValueError,
            r"g: .*\(3, 8\).*\(8, 3\)",
        ),
        (
            lambda: nn.layer_norm_vjp(cyrt.ones((3, 8), dtype="float16"), X, W),
            TypeError,
            "g: expected float32.*float16",
        ),
        (lambda: nn.layer_norm_vjp(X, X, W, cyrt.ones(9)), ValueError, r"bias: .*\(9,\)"),
        (
            lambda: nn.rms_norm_vjp(X, X, cyrt.ones(9)),
            ValueError,
            r"rms_norm_vjp: weight: .*\(9,\)",
        ),
        (lambda: nn.rms_norm_vjp(None, X, W), TypeError, "g: expected an Array, got .*NoneType"),
    ],
)
def test_wrong_arguments(function, error, message):
    with cyrt.batch():  # no earlier program's round ends this batch
        with pytest.raises(error, match=message):
            function()
        assert cyrt.current_encoder().num_ops in (0, 1)  # the argument of the wrong type
