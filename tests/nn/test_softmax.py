"""Softmax and cross entropy against NumPy in float64."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from numpy.exceptions import AxisError
from rows_of_numbers import (
    LAYOUTS,
    LENGTHS,
    TOLERANCES,
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


def logarithms(x, axis=-1):
    x = exact(x)
    away = x - x.max(axis, keepdims=True)
    return away - np.log(np.exp(away).sum(axis, keepdims=True))


def probabilities(x, axis=-1):
    return np.exp(logarithms(x, axis))


def softmax_gradient(y, g, axis=-1):
    y, g = exact(y), exact(g)
    return y * (g - (y * g).sum(axis, keepdims=True))


def losses(x, targets, axis=-1):
    found = np.take_along_axis(logarithms(x, axis), np.expand_dims(targets, axis), axis)
    return -found.squeeze(axis)


def loss_gradient(x, targets, g, axis=-1):
    hot = np.zeros(x.shape)
    np.put_along_axis(hot, np.expand_dims(targets, axis), 1.0, axis)
    return np.expand_dims(exact(g), axis) * (probabilities(x, axis) - hot)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_results(name, n, rng):
    x = (3 * rng.normal(size=(rows_for(n), n))).astype(cyrt.dtype(name).numpy)
    g, h = numbers(rng, name, *x.shape), numbers(rng, name, len(x))
    targets = rng.integers(0, n, len(x))
    targets[0], targets[-1] = n - 1, 0
    a, t = cyrt.asarray(x), cyrt.asarray(targets)
    # Probabilities of long rows are small: relative errors count.
    scale = probabilities(x).max()
    y = nn.softmax(a)
    assert_close(y, probabilities(x), name, scale)
    assert_close(nn.log_softmax(a), logarithms(x), name, 10)
    found = nn.softmax_vjp(cyrt.asarray(g), y)
    assert_close(found, softmax_gradient(y, g), name, scale)
    assert_close(nn.cross_entropy(a, t), losses(x, targets), name, 10)
    found = nn.cross_entropy_vjp(cyrt.asarray(h), a, t)
    assert_close(found, loss_gradient(x, targets, h), name, 1)


@pytest.mark.parametrize("shape", [(0, 8), (0, 70_000), (4, 0), (1, 8), (65_537, 3), (3, 0, 5)])
def test_numbers_of_rows(shape, rng):
    x, g = (numbers(rng, "float32", *shape) for _ in range(2))
    a = cyrt.asarray(x)
    y = nn.softmax(a, precise=True)
    assert y.shape == shape
    if x.size:
        assert_close(y, probabilities(x), "float32")
    assert_close(nn.softmax_vjp(cyrt.asarray(g), y), softmax_gradient(y, g), "float32")
    if shape[-1]:
        targets = rng.integers(0, shape[-1], shape[:-1])
        t = cyrt.asarray(targets)
        found = nn.cross_entropy(a, t)
        assert found.shape == shape[:-1]
        if x.size:
            assert_close(found, losses(x, targets), "float32", 10)
        assert nn.cross_entropy_vjp(found, a, t).shape == shape


@pytest.mark.parametrize("shape", [(24, 5, 7), (5, 24, 7), (40,)])
def test_every_axis(shape, rng):
    x, g = (numbers(rng, "float32", *shape) for _ in range(2))
    a, d = cyrt.asarray(x), cyrt.asarray(g)
    for axis in range(-len(shape), len(shape)):
        y = nn.softmax(a, axis)
        assert_close(y, probabilities(x, axis), "float32")
        assert_close(nn.log_softmax(a, axis), logarithms(x, axis), "float32", 10)
        assert_close(nn.softmax_vjp(d, y, axis), softmax_gradient(y, g, axis), "float32")
        others = shape[:axis] + shape[axis % len(shape) + 1 :]
        targets, h = rng.integers(0, shape[axis], others), numbers(rng, "float32", *others)
        t = cyrt.asarray(targets)
        assert_close(nn.cross_entropy(a, t, axis), losses(x, targets, axis), "float32", 10)
        found = nn.cross_entropy_vjp(cyrt.asarray(h), a, t, axis)
        assert_close(found, loss_gradient(x, targets, h, axis), "float32")
    with pytest.raises(AxisError):
        nn.softmax(a, len(shape))
    with pytest.raises(AxisError):
        nn.cross_entropy(a, cyrt.zeros(1, dtype="int32"), -len(shape) - 1)


@pytest.mark.parametrize("n", [24, 1000, 17_000])
@pytest.mark.parametrize("how", LAYOUTS)
def test_layouts(how, n, rng):
    x, g = (numbers(rng, "float32", 3, n) for _ in range(2))
    a, d = as_view(x, how), as_view(g, how)
    y = nn.softmax(a)
    assert_close(y, probabilities(x), "float32")
    assert_close(nn.softmax_vjp(d, as_view(y.numpy(), how)), softmax_gradient(y, g), "float32")
    t = cyrt.asarray([0, n - 1, 5])
    assert_close(nn.cross_entropy(a, t), losses(x, t.numpy()), "float32", 10)
    np.testing.assert_array_equal(a.numpy(), x)


@pytest.mark.parametrize("n", [24, 1000, 17_000])
@pytest.mark.parametrize("how", LAYOUTS)
def test_only_uneven_rows_are_copied(how, n, batched):
    a = as_view(np.ones((3, n), np.float32), how)
    names = launches(lambda: nn.softmax(a))
    assert any("copy" in each for each in names) != LAYOUTS[how]
    assert len(names) <= 3


@pytest.mark.parametrize("n", [40, 41, 20_000])
def test_what_is_not_finite(n, rng):
    x = numbers(rng, "float32", 6, n)
    x[0, n // 2] = np.nan
    x[1, n - 1] = np.inf
    x[2] = -np.inf
    x[3, : n // 2] = -np.inf
    x[4] = np.nan
    a, t = cyrt.asarray(x), cyrt.zeros(6, dtype="int64")
    for found in (
        nn.softmax(a),
        nn.log_softmax(a),
        nn.cross_entropy(a, t)[:, None],
        nn.cross_entropy_vjp(cyrt.ones(6), a, t),
    ):
        lost = np.isnan(exact(found))
        assert lost[[0, 1, 2, 4]].all()
        assert not lost[[3, 5]].any()
    assert_close(nn.softmax(a)[3:4], probabilities(x[3:4]), "float32")
    assert nn.cross_entropy(a, t).numpy()[3] == np.inf


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_many_rows_stream(name, rng, batched, emulated):
    outside = [] if emulated else [6]  # rows whose target is out of range, a fault there
    n = 8200
    x = (3 * rng.normal(size=(many_rows(n), n))).astype(cyrt.dtype(name).numpy)
    h, targets = numbers(rng, name, len(x)), rng.integers(0, n, len(x))
    x[1] += 100
    x[2, : n // 2] = -np.inf
    x[3, 5] = np.nan
    x[4, n - 1] = np.inf
    x[5] = -np.inf
    targets[:9] = n - 1
    targets[outside], targets[7] = n, -100
    a, t, g = cyrt.asarray(x), cyrt.asarray(targets), cyrt.asarray(h)
    finite = [row for row in range(len(x)) if not 3 <= row <= 5]
    in_range = [row for row in finite if row not in (*outside, 7)]
    tolerance = TOLERANCES[name]
    cases = {
        "softmax": (lambda: nn.softmax(a), probabilities(x[finite]), finite, 1),
        "log_softmax": (lambda: nn.log_softmax(a), logarithms(x[finite]), finite, 10),
        "cross_entropy": (
            lambda: nn.cross_entropy(a, t),
            losses(x[in_range], targets[in_range]),
            in_range,
            10,
        ),
        "cross_entropy_vjp": (
            lambda: nn.cross_entropy_vjp(g, a, t),
            loss_gradient(x[in_range], targets[in_range], h[in_range]),
            in_range,
            1,
        ),
    }
    for op, (run, wanted, good, scale) in cases.items():
        assert launches(run) == [f"cyrt_{op}_{name}_stream"]
        found = exact(run())
        if "cross" in op:
            np.testing.assert_array_equal(found[7], 0)
            found[7] = np.nan
        assert np.isnan(np.delete(found, good, 0)).all()
        np.testing.assert_allclose(found[good], wanted, tolerance, tolerance * scale)


@pytest.mark.parametrize("n", [4096, 70_000])
@pytest.mark.parametrize("offset", [1e4, -1e4])
def test_large_numbers(offset, n, rng):
    x = (offset + 10 * rng.normal(size=(2, n))).astype(np.float32)
    assert_close(nn.softmax(cyrt.asarray(x)), probabilities(x), "float32")
    assert_close(nn.log_softmax(cyrt.asarray(x)), logarithms(x), "float32", 10)


@pytest.mark.parametrize("n", [1, 33, 300])
def test_gradients_are_derivatives(n, rng):
    """Against differences of the function itself, in float64."""
    x, g, h = (rng.normal(size=each) for each in ((2, n), (2, n), (2,)))
    t, step, direction = cyrt.asarray([0, n - 1]), 1e-5, rng.normal(size=(2, n))

    def slope(value):
        return (value(x + step * direction) - value(x - step * direction)) / (2 * step)

    found = nn.softmax_vjp(cyrt.asarray(g), nn.softmax(cyrt.asarray(x)))
    expected = slope(lambda each: (nn.softmax(cyrt.asarray(each)).numpy() * g).sum())
    np.testing.assert_allclose((exact(found) * direction).sum(), expected, rtol=1e-5, atol=1e-6)
    found = nn.cross_entropy_vjp(cyrt.asarray(h), cyrt.asarray(x), t)
    expected = slope(lambda each: (nn.cross_entropy(cyrt.asarray(each), t).numpy() * h).sum())
    np.testing.assert_allclose((exact(found) * direction).sum(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [64, 65, 20_000])
def test_out(n, rng):
    x = numbers(rng, "float32", 3, n)
    wanted = probabilities(x)
    for out in (cyrt.zeros((3, n)), cyrt.zeros((3, n + 8))[:, 8:], cyrt.zeros((n, 3)).T):
        assert nn.softmax(cyrt.asarray(x), out=out) is out
        assert_close(out, wanted, "float32")
    narrow = cyrt.zeros((3, n), dtype="float16")
    assert nn.log_softmax(cyrt.asarray(x), out=narrow) is narrow
    assert_close(narrow, logarithms(x), "float16", 10)
    for axis in (0, 1):
        a = cyrt.asarray(x)
        assert nn.softmax(a, axis, out=a) is a
        assert_close(a, probabilities(x, axis), "float32")
    room = cyrt.asarray(np.vstack([x, x[:1]]))
    nn.softmax(room[:3], out=room[1:])
    assert_close(room[1:], wanted, "float32")


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint32", "int32", "int64", "uint64"])
def test_types_of_targets(name, rng):
    x = numbers(rng, "float32", 7, 20)
    targets = rng.integers(0, 20, 7)
    wide = np.zeros((7, 2), name)
    wide[:, 1] = targets
    for t in (cyrt.asarray(targets.astype(name)), cyrt.asarray(wide)[:, 1]):
        assert_close(nn.cross_entropy(cyrt.asarray(x), t), losses(x, targets), "float32", 10)


TARGETS_OUT_OF_RANGE = """
    import cyrt
    from cyrt import nn

    def fault(kind, rows, n, code, target):
        # Nothing waits for the result.
        for name in ("cross_entropy", "cross_entropy_vjp"):
            x, g = cyrt.zeros((rows, n), dtype=kind), cyrt.ones(rows, dtype=kind)
            targets = cyrt.zeros(rows, dtype=code)
            targets[rows - 1] = target
            cyrt.synchronize()
            try:
                if name == "cross_entropy":
                    result = nn.cross_entropy(x, targets)
                else:
                    result = nn.cross_entropy_vjp(g, x, targets)
                cyrt.synchronize()
            except cyrt.CudaError as error:
                text = str(error)
                assert "IndexError" in text and "ignore_index" in text, text
                print(error.name, *text.splitlines()[1].replace(",", "").split()[:2], text.count(
                    ": trap: target_out_of_range"))
                cyrt.Device().reset()
            else:
                print(name, result)
"""
OUT_OF_RANGE_CASES = {
    "": ("float32", 2, 20, "int32", 20),
    "_unaligned": ("float32", 2, 21, "int64", -1),
    "_long": ("float32", 2, 20_000, "int64", 1 << 40),
    "_stream": ("bfloat16", None, 8200, "int32", -5),
}


@pytest.mark.parametrize("variant", OUT_OF_RANGE_CASES)
def test_targets_out_of_range_trap_on_the_emulated_device(variant, python, only_emulated):
    kind, rows, n, code, target = OUT_OF_RANGE_CASES[variant]
    case = (kind, rows or many_rows(n), n, code, target)
    done = python(f"{textwrap.dedent(TARGETS_OUT_OF_RANGE)}\nfault(*{case})", CYRT_CHECK="0")
    assert done.stdout.splitlines() == [
        f"CUDA_ERROR_LAUNCH_FAILED kernel cyrt_{name}_{kind}{variant} 1"
        for name in ("cross_entropy", "cross_entropy_vjp")
    ], done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("n", [20, 20_000])
def test_targets_out_of_range_give_nan_on_a_gpu(n, rng, setting):
    setting(CYRT_CHECK="0")
    a = cyrt.asarray(numbers(rng, "float32", 4, n))
    t = cyrt.asarray([0, n, -1, n - 1])
    lost = [False, True, True, False]
    np.testing.assert_array_equal(np.isnan(nn.cross_entropy(a, t).numpy()), lost)
    found = np.isnan(nn.cross_entropy_vjp(cyrt.ones(4), a, t).numpy())
    np.testing.assert_array_equal(found.all(1), lost)
    np.testing.assert_array_equal(found.any(1), lost)


@pytest.mark.parametrize("n", [20, 20_000])
def test_targets_that_are_ignored(n, rng, setting):
    setting(CYRT_CHECK="1")
    x = numbers(rng, "float32", 5, n)
    x[1], x[2, 0] = -np.inf, np.nan
    g, t = rng.normal(size=5).astype(np.float32), np.array([0, -100, -100, 3, n - 1])
    for ignored in (-100, 3):
        targets = np.where(t == -100, ignored, t)
        lost, kept = targets == ignored, targets != ignored
        a, b = cyrt.asarray(x), cyrt.asarray(targets)
        options = {} if ignored == -100 else {"ignore_index": ignored}
        found = nn.cross_entropy(a, b, **options).numpy()
        np.testing.assert_array_equal(found[lost], 0)
        assert_close(found[kept], losses(x[kept], targets[kept]), "float32", 10)
        weights = cyrt.asarray(g)
        total = lambda a, b, w, o: (nn.cross_entropy(a, b, **o) * w).sum()  # noqa: E731
        for slope in (
            nn.cross_entropy_vjp(weights, a, b, **options).numpy(),
            cyrt.grad(total)(a, b, weights, options).numpy(),
        ):
            np.testing.assert_array_equal(slope[lost], 0)
            assert_close(slope[kept], loss_gradient(x[kept], targets[kept], g[kept]), "float32", 1)
    with pytest.raises(TypeError, match="cross_entropy: ignore_index: expected an int, got float"):
        nn.cross_entropy(a, b, ignore_index=1.0)


def test_second_derivatives_where_targets_are_ignored(rng):
    x = cyrt.asarray(numbers(rng, "float64", 3, 4))
    t, ones = cyrt.asarray([1, -100, 3]), cyrt.ones((3, 4), dtype="float64")
    slopes = cyrt.grad(lambda x: (nn.cross_entropy(x, t)).sum())
    second = cyrt.grad(lambda x: (slopes(x) * x).sum())(x).numpy()
    y = probabilities(x.numpy())
    away = x.numpy() - (y * x.numpy()).sum(1, keepdims=True)
    wanted = loss_gradient(x.numpy(), np.array([1, 0, 3]), ones[:, 0].numpy()) + y * away
    wanted[1] = 0
    np.testing.assert_allclose(second, wanted, 1e-12, 1e-12)


def test_checking_mode_checks_targets(setting):
    setting(CYRT_CHECK="1")
    x = cyrt.zeros((2, 5))
    for bad in (5, -1):
        with pytest.raises(IndexError, match=rf"targets: {bad} .* axis 1 with size 5"):
            nn.cross_entropy(x, cyrt.asarray([0, bad]))
        with pytest.raises(IndexError, match=rf"targets: {bad} .* axis 0 with size 5"):
            nn.cross_entropy_vjp(cyrt.ones(2), x.T, cyrt.asarray([0, bad]), 0)


@pytest.mark.parametrize("n", [96, 97, 17_000])
def test_equal_inputs_give_equal_bits(n, rng, emulated):
    """3,000 times on a GPU; on the emulated device as many as take half a second."""
    a = cyrt.asarray(numbers(rng, "bfloat16", 5, n))
    first = nn.softmax(a).numpy().view(np.uint16)
    of_first = nn.softmax_vjp(a, a).numpy().view(np.uint16)
    for _ in range(60 if emulated else 3000):
        np.testing.assert_array_equal(nn.softmax(a).numpy().view(np.uint16), first)
        np.testing.assert_array_equal(nn.softmax_vjp(a, a).numpy().view(np.uint16), of_first)


def test_few_long_rows_and_many_give_the_same(rng):
    """Rows that threads hold, and the same rows in parts."""
    x, g = (cyrt.asarray(numbers(rng, "float32", 80, 16_384)) for _ in range(2))
    for function in (nn.softmax, nn.log_softmax):
        np.testing.assert_allclose(
            function(x[:2]).numpy(), function(x).numpy()[:2], rtol=2e-6, atol=1e-8
        )
    y = nn.softmax(x)
    np.testing.assert_allclose(
        nn.softmax_vjp(g[:2], y[:2]).numpy(), nn.softmax_vjp(g, y).numpy()[:2], rtol=2e-5, atol=1e-9
    )


def test_kernels_by_shape(batched):
    def names(rows, n, dtype="float32"):
        x = cyrt.zeros((rows, n), dtype=dtype)
        return [each.removeprefix("cyrt_softmax_") for each in launches(lambda: nn.softmax(x))]

    assert names(40, 1024) == ["float32"]
    assert names(40, 1023) == ["float32_unaligned"]
    assert names(1, 16_384) == ["float32_parts", "float32_long"]
    assert names(200, 32_768, "bfloat16") == ["bfloat16"]
    assert names(200, 50_257, "bfloat16") == ["bfloat16_parts", "bfloat16_long"]
    x, t = cyrt.zeros((1, 16_384)), cyrt.zeros(1, dtype="int32")
    assert launches(lambda: nn.cross_entropy(x, t)) == [
        "cyrt_softmax_float32_parts",
        "cyrt_cross_entropy_float32_long",
    ]


def test_no_race_in_checking_mode(python):
    """A loop of steps whose states are temporary."""
    done = python(
        """
        import numpy as np
        import cyrt
        from cyrt import nn

        rng = np.random.default_rng(0)
        for n in (64, 65, 17_000):
            x = cyrt.asarray(rng.normal(size=(9, n)).astype(np.float32))
            t = cyrt.asarray(rng.integers(0, n, 9))
            for _ in range(40):
                loss = nn.cross_entropy(x, t)
                y = nn.softmax(x)
                x = x - nn.cross_entropy_vjp(cyrt.ones_like(loss), x, t) - nn.softmax_vjp(x, y)
                nn.softmax(y, out=y)
            assert np.isfinite(cyrt.sum(x + y).item())
        print("done")
        """,
        CYRT_CHECK="1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]
    assert done.stderr == ""


def test_logsumexp_is_that_of_ops():
    assert nn.logsumexp is cyrt.logsumexp


X = cyrt.ones((3, 8))
T = cyrt.zeros(3, dtype="int64")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: nn.softmax(cyrt.ones(())), ValueError, r"softmax: x: .*shape \(\)"),
        (lambda: nn.softmax(cyrt.ones(4, dtype="int32")), TypeError, "softmax.*int32.*float16"),
        (lambda: nn.softmax([1.0]), TypeError, "softmax: x: expected an Array, got .*list"),
        (lambda: nn.softmax(X, "last"), TypeError, "axis: expected an int, got str"),
        (lambda: nn.softmax(X, out=cyrt.ones((8, 3))), ValueError, r"\(3, 8\).*\(8, 3\)"),
        (lambda: nn.log_softmax(X, out=cyrt.ones((3, 8), dtype="int8")), TypeError, "int8"),
        (lambda: nn.softmax_vjp(cyrt.ones((3, 7)), X), ValueError, r"g: .*\(3, 8\).*y.*\(3, 7\)"),
        (
            lambda: nn.softmax_vjp(cyrt.ones((3, 8), dtype="float16"), X),
            TypeError,
            "g: expected float32, the type of y, got float16",
        ),
        (lambda: nn.cross_entropy(X, cyrt.ones(3)), TypeError, "targets: .*integers, got float32"),
        (
            lambda: nn.cross_entropy(X, cyrt.zeros(8, dtype="int64")),
            ValueError,
            r"targets: expected shape \(3,\).*\(3, 8\) without axis 1, got \(8,\)",
        ),
        (lambda: nn.cross_entropy(X, [0, 1, 2]), TypeError, "targets: expected an Array.*list"),
        (
            lambda: nn.cross_entropy(cyrt.ones((3, 0)), T),
            ValueError,
            r"logits: no elements along axis 1: shape \(3, 0\)",
        ),
        (
            lambda: nn.cross_entropy(cyrt.ones((3, 8), dtype="int64"), T),
            TypeError,
            "cross_entropy.*int64",
        ),
        (
            lambda: nn.cross_entropy_vjp(cyrt.ones(4), X, T),
            ValueError,
            r"g: expected shape \(3,\).*\(4,\)",
        ),
        (
            lambda: nn.cross_entropy_vjp(cyrt.ones(3, dtype="float64"), X, T),
            TypeError,
            "g: expected float32.*float64",
        ),
    ],
)
def test_wrong_arguments(function, error, message):
    with pytest.raises(error, match=message):
        function()
