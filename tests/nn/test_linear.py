"""Linear layers, compared with float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rows_of_numbers import assert_close, exact, numbers
from scipy.special import erf

import cyrt
from cyrt import nn

FUNCTIONS = {
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


def layer(x, weight, bias, activation, residual, norm):
    x, weight = exact(x), exact(weight)
    if norm is not None:
        scale, *shift, eps = norm
        if shift:
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * exact(scale)
        for each in shift:
            x = x + exact(each)
    y = FUNCTIONS[activation](x @ weight.T + (0 if bias is None else exact(bias)))
    return y if residual is None else exact(residual) + y


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("activation", FUNCTIONS)
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
    found = nn.linear(*arrays[:3], activation, arrays[3], rms_norm=norm)
    wanted = layer(x, w, b, activation, residual, None if scale is None else (scale, 1e-5))
    # Each step rounds its result.
    assert_close(found, wanted, name, scale=8 * max(1, np.abs(wanted).max()))


def operations_of(work):
    encoder = cyrt.current_encoder()
    before = encoder.stats()["operations"]
    work()
    return encoder.stats()["operations"] - before


class Layer:
    """A layer's operands, as NumPy's and as Arrays."""

    def __init__(self, rng, name, rows, length, out, gated=False):
        features = out // 2 if gated else out
        shapes = {
            "x": (*rows, length),
            "weight": (out, length),
            "bias": (out,),
            "residual": (*rows, features),
            "norm": (length,),
        }
        self.name = name
        self.host = {each: numbers(rng, name, *shape) for each, shape in shapes.items()}
        weight = self.host["weight"]
        self.host["weight"] = (weight / length**0.5).astype(weight.dtype)
        self.arrays = {each: cyrt.asarray(host) for each, host in self.host.items()}

    def check(self, activation=None, absent=(), **views):
        """Compute it without some operands, and with views of others, and compare. Return how many
        operations it took."""
        given = {**self.arrays, **views, **dict.fromkeys(absent)}
        host = {**self.host, **dict.fromkeys(absent)}
        given["rms_norm"], host["norm"] = (
            None if scale is None else (scale, 1e-5) for scale in (given.pop("norm"), host["norm"])
        )
        found = []
        took = operations_of(lambda: found.append(nn.linear(**given, activation=activation)))
        wanted = layer(**host, activation=activation)
        assert_close(found[0], wanted, self.name, scale=2 * max(1, np.abs(wanted).max()))
        return took


FUSED = ["float16", "bfloat16", "float32"]
PRESENCES = [
    tuple(name for name, there in zip(("bias", "residual", "norm"), bits, strict=True) if not there)
    for bits in itertools.product((False, True), repeat=3)
]


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("rows", [(), (1, 1), (2,), (3, 3), (16,)], ids=str)
def test_few_rows_are_one_operation(name, rows, rng):
    """With every operand and without, sizes that fill no tile."""
    plain, gated = (Layer(rng, name, rows, 72, 74, gated) for gated in (False, True))
    for absent in PRESENCES:
        assert plain.check("gelu_tanh" if "norm" in absent else None, absent) == 1
        assert gated.check("swiglu", absent) == 1


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("length", [8, 1032, 2056, 4160])
def test_lengths(name, length, rng):
    """Shorter than a warp's step, and of several rounds of a block's threads."""
    for rows in (1, 5):
        assert Layer(rng, name, (rows,), length, 20, True).check("swiglu") == 1


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("length", [40, 1032])
def test_many_features_of_one_row(name, length, rng):
    """More than the device's blocks take at once: a block goes on to other rows of the matrix."""
    x, w, scale = (numbers(rng, name, *shape) for shape in ((1, length), (20, length), (length,)))
    features = 300 * cyrt.Device().multiprocessors + 3
    wide = cyrt.asarray(w)[cyrt.arange(features) % 20]
    for norm in ((scale,), (scale, x[0])):
        given = {("layer_norm" if norm[1:] else "rms_norm"): (*map(cyrt.asarray, norm), 1e-5)}
        found = nn.linear(cyrt.asarray(x), wide, **given).numpy()
        wanted = layer(x, w, None, None, None, (*norm, 1e-5))
        most = 8 * np.abs(wanted).max()
        assert_close(found, wanted[:, np.arange(features) % 20], name, scale=most)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("length", [8, 72, 1032, 2048, 8232])
@pytest.mark.parametrize("mean", [0, 100])
def test_layer_norm_of_one_row(name, length, mean, rng):
    """It is an operation of its own if the row has more than 512 vectors."""
    data = Layer(rng, name, (1,), length, 20, True)
    shift = numbers(rng, name, length)
    x = (data.host["x"] + np.asarray(mean, data.host["x"].dtype)).astype(data.host["x"].dtype)
    operands = [cyrt.asarray(each) for each in (x, data.host["weight"], data.host["norm"], shift)]
    found = []
    took = operations_of(
        lambda: found.append(
            nn.linear(*operands[:2], activation="swiglu", layer_norm=(*operands[2:], 1e-5))
        )
    )
    assert took == (2 if length == 8232 else 1)
    norm = data.host["norm"], shift, 1e-5
    wanted = layer(x, data.host["weight"], None, "swiglu", None, norm)
    assert_close(found[0], wanted, name, scale=2 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize(("rows", "operations"), [(3, 2), (17, 4)])
@pytest.mark.parametrize("absent", [(), (0,), (1,), (0, 1)], ids=str)
def test_layer_norms_of_more_rows(rows, operations, absent, rng):
    """They are operations of their own, as those without a weight or a bias are."""
    x, w, b = (numbers(rng, "float32", *shape) for shape in ((rows, 16), (20, 16), (20,)))
    norm = [numbers(rng, "float32", 16) for _ in range(2)]
    given = [None if i in absent else cyrt.asarray(each) for i, each in enumerate(norm)]
    for i in absent:
        norm[i] = np.full(16, 1 - i, np.float32)
    x, w, b = (cyrt.asarray(each) for each in (x, w, b))
    for some, expected in ((x, operations), (x[:1], 1 + bool(absent))):
        before = cyrt.current_encoder().stats()["operations"]
        found = nn.linear(some, w, b, "relu", layer_norm=(*given, 1e-5))
        assert cyrt.current_encoder().stats()["operations"] - before == expected
        wanted = layer(some.numpy(), w.numpy(), b.numpy(), "relu", None, (*norm, 1e-5))
        assert_close(found, wanted, "float32", scale=2 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("rows", [1, 2, 16, 17])
def test_rms_norms_without_a_weight(rows, name, rng):
    x, w = numbers(rng, name, rows, 64), numbers(rng, name, 24, 64)
    found = nn.linear(cyrt.asarray(x), cyrt.asarray(w), rms_norm=(None, 1e-5))
    wanted = layer(x, w, None, None, None, (np.ones(64), 1e-5))
    assert_close(found, wanted, name, scale=4 * np.abs(wanted).max())


@pytest.mark.parametrize("length", [72, 2048])
@pytest.mark.parametrize("outliers", [1, 2, 5])
@pytest.mark.parametrize("mean", [0, 1e6])
def test_layer_norm_of_one_row_with_outliers(length, outliers, mean, rng):
    """What the other elements contribute is as accurate as without them."""
    x = (mean + rng.normal(size=(1, length))).astype(np.float32)
    w, scale, shift = (
        numbers(rng, "float32", *each) for each in ((20, length), (length,), (length,))
    )
    for places in (range(outliers), range(length - outliers, length)):
        row, weights = x.copy(), w.copy()
        row[0, places] = np.array([1e4, -1e6, 1e4, 3e5, 1e6])[:outliers]
        weights[:, places] = 0
        norm = (*map(cyrt.asarray, (scale, np.zeros_like(shift))), 1e-5)
        found = exact(nn.linear(cyrt.asarray(row), cyrt.asarray(weights), layer_norm=norm))
        wanted = layer(row, weights, None, None, None, (scale, np.zeros_like(shift), 1e-5))
        assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("rows", [1, 4])
def test_activations_of_a_few_rows(activation, rows, rng):
    gated = activation == "swiglu"
    assert Layer(rng, "float32", (rows,), 16, 18, gated).check(activation) == 1


@pytest.mark.parametrize(("name", "rows", "length"), [("bfloat16", 17, 64), ("float32", 2, 63)])
def test_other_layers_are_operations_of_their_own(name, rows, length, rng):
    data = Layer(rng, name, (rows,), length, 24, True)
    for absent in PRESENCES:
        assert data.check("swiglu", absent) == 5 - len(absent)


def test_types_that_promote(rng):
    data = Layer(rng, "float64", (2,), 8, 12)
    given = {name: data.arrays[name].astype("float32") for name in ("weight", "bias")}
    data.host.update((name, array.numpy()) for name, array in given.items())
    data.check(absent=("norm",), **given)


def test_no_rows():
    found = nn.linear(cyrt.zeros((0, 8)), cyrt.zeros((6, 8)), cyrt.zeros(6), "swiglu")
    assert found.shape == (0, 3)


def apart(x, way):
    """The same values, with other memory between them."""
    host = x.numpy()
    if way == "transposed":
        return cyrt.asarray(np.ascontiguousarray(host.T)).T
    if way == "backwards":
        return cyrt.asarray(np.ascontiguousarray(host[..., ::-1]))[..., ::-1]
    if way == "rows backwards":
        return cyrt.asarray(np.ascontiguousarray(host[::-1]))[::-1]
    before, behind = {"aligned": (8, 8), "unaligned": (1, 2), "rows unaligned": (8, 1)}[way]
    wide = np.full((*host.shape[:-1], before + host.shape[-1] + behind), np.nan, host.dtype)
    wide[..., before : before + host.shape[-1]] = host
    return cyrt.asarray(wide)[..., before : before + host.shape[-1]]


WAYS = ["aligned", "unaligned", "rows unaligned", "transposed", "backwards", "rows backwards"]


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_strides(rows, way, rng):
    """Not-a-numbers lie beside the operands. Those that are small are copied, if they must be."""
    data = Layer(rng, "bfloat16", (rows,), 40, 50, True)
    for each in data.arrays:
        took = data.check("swiglu", **{each: apart(data.arrays[each], way)})
        if each == "weight":
            assert (took == 1) == (way in ("aligned", "rows backwards"))
        else:
            assert took <= 2


def test_keywords_and_vectors(rng):
    x, w = numbers(rng, "float32", 64), numbers(rng, "float32", 16, 64)
    found = nn.linear(cyrt.asarray(x), cyrt.asarray(w), activation="relu")
    assert_close(found, layer(x, w, None, "relu", None, None), "float32", scale=64)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": (3, 5)}, ValueError, r"x of shape \(..., in\).*got \(3, 5\) and \(6, 4\)"),
        ({"x": ()}, ValueError, r"got \(\) and \(6, 4\)"),
        ({"weight": (2, 6, 4)}, ValueError, r"\(out, in\)"),
        ({"bias": (4,)}, ValueError, r"bias: expected shape \(6,\), got \(4,\)"),
        ({"residual": (3, 4)}, ValueError, r"residual: expected shape \(3, 6\), got \(3, 4\)"),
    ],
)
def test_wrong_shapes(change, error, message):
    operands = {"x": (3, 4), "weight": (6, 4), **change}
    with pytest.raises(error, match=message):
        nn.linear(**{name: cyrt.zeros(shape) for name, shape in operands.items()})


def test_wrong_arguments():
    x, w = cyrt.zeros((3, 4)), cyrt.zeros((5, 4))
    with pytest.raises(ValueError, match="None or one of 'relu', .* got 'elu'"):
        nn.linear(x, w, activation="elu")
    with pytest.raises(ValueError, match=r"linear: activation: expected None or .* got \['relu'\]"):
        nn.linear(x, w, activation=["relu"])
    with pytest.raises(ValueError, match=r"even number of rows for swiglu, got shape \(5, 4\)"):
        nn.linear(x, w, activation="swiglu")
    with pytest.raises(TypeError, match=r"linear: x: expected an Array, got numpy\.ndarray"):
        nn.linear(np.zeros((3, 4), np.float32), w)
    with pytest.raises(TypeError, match="linear: residual: expected an Array, got .*int"):
        nn.linear(x, w, residual=1)
    for other in "int32", "complex64":
        with pytest.raises(
            TypeError, match=f"x and weight of floating-point types, .* {other} and"
        ):
            nn.linear(cyrt.asarray(np.zeros((3, 4), other)), w)


RMS, LAYER = "rms_norm", "layer_norm"


@pytest.mark.parametrize("rows", [1, 3, 17])
@pytest.mark.parametrize(
    ("which", "norm", "error", "message"),
    [
        (RMS, lambda: cyrt.ones(4), TypeError, r"linear: rms_norm: .* tuple \(weight, eps\), got"),
        (
            RMS,
            lambda: (cyrt.ones(4),) * 3,
            TypeError,
            r"rms_norm: expected a tuple \(weight, eps\)",
        ),
        (
            LAYER,
            lambda: cyrt.ones(4),
            TypeError,
            r"layer_norm: .* \(weight, bias, eps\), got Array",
        ),
        (LAYER, lambda: (cyrt.ones(4), 1e-5), TypeError, r"layer_norm: .* \(weight, bias, eps\)"),
        (
            LAYER,
            lambda: (cyrt.ones(4), np.ones(4), 1e-5),
            TypeError,
            "bias: expected an Array, got numpy",
        ),
        (
            LAYER,
            lambda: (cyrt.ones(4), cyrt.ones(3), 1e-5),
            ValueError,
            r"bias: expected shape \(4,\)",
        ),
        (
            LAYER,
            lambda: (cyrt.ones(4), cyrt.ones(4), -1.0),
            ValueError,
            "layer_norm: eps: expected a",
        ),
        (RMS, lambda: (np.ones(4), 1e-5), TypeError, "weight: expected an Array, got numpy"),
        (
            RMS,
            lambda: (cyrt.ones(5), 1e-5),
            ValueError,
            r"weight: expected shape \(4,\).*got \(5,\)",
        ),
        (RMS, lambda: (cyrt.ones(4, dtype="float16"), 1e-5), TypeError, "float16"),
        (
            RMS,
            lambda: (cyrt.ones(4), -1.0),
            ValueError,
            "eps: expected a finite number of 0 or more",
        ),
        (RMS, lambda: (cyrt.ones(4), "1"), TypeError, "eps: expected a number, got str"),
    ],
)
def test_wrong_norms(rows, which, norm, error, message):
    """The shapes are those of layers that are fused, and of others."""
    with pytest.raises(error, match=message):
        nn.linear(cyrt.zeros((rows, 4)), cyrt.zeros((5, 4)), **{which: norm()})


def test_two_norms():
    x, w, scale = cyrt.zeros((3, 4)), cyrt.zeros((5, 4)), cyrt.ones(4)
    with pytest.raises(
        TypeError, match="rms_norm and layer_norm: expected at most one .* got both"
    ):
        nn.linear(x, w, rms_norm=(scale, 1e-5), layer_norm=(scale, scale, 1e-5))


# -- gradients -------------------------------------------------------------------------------------


def differences(function, arrays, g, step=1e-6):
    """The gradients of ``sum(function(*arrays) * g)`` in float64, by central differences."""
    found = []
    for i, array in enumerate(arrays):
        slope = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (step, -step):
                moved = [each.copy() for each in arrays]
                moved[i][place] += sign
                sides.append((function(*moved) * g).sum())
            slope[place] = (sides[0] - sides[1]) / (2 * step)
        found.append(slope)
    return found


@pytest.mark.parametrize("name", [*FUSED, "float64"])
@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("rows", [(), (3,), (2, 3)], ids=str)
def test_gradients(name, activation, rows, rng):
    """In float64 beside differences of the reference, in other types beside those of float64."""
    x, w, b = (numbers(rng, name, *shape) for shape in ((*rows, 8), (6, 8), (6,)))
    g = numbers(rng, name, *rows, 3 if activation == "swiglu" else 6)
    wide = [exact(each) for each in (x, w, b)]
    wanted = differences(lambda *of: layer(*of, activation, None, None), wide, exact(g))
    arrays = [cyrt.asarray(each) for each in (x, w, b)]
    found = nn.linear_vjp(cyrt.asarray(g), *arrays, activation)
    for each, expected, like in zip(found, wanted, (x, w, b), strict=True):
        assert each.shape == like.shape
        most = 16 * max(1, np.abs(expected).max())
        if name == "float64":
            np.testing.assert_allclose(each.numpy(), expected, rtol=1e-6, atol=1e-8 * most)
        else:
            assert_close(each, expected, name, scale=most)
    assert nn.linear_vjp(cyrt.asarray(g), *arrays[:2], activation=activation)[2] is None


def test_gradients_have_the_types_of_their_operands(rng):
    x, w, b = (cyrt.asarray(numbers(rng, "float32", *shape)) for shape in ((3, 8), (6, 8), (6,)))
    narrow, wide = w.astype("float16"), b.astype("float64")
    found = nn.linear_vjp(cyrt.ones((3, 6), dtype="float64"), x, narrow, wide, "gelu")
    assert [str(each.dtype) for each in found] == ["float32", "float16", "float64"]
    with pytest.raises(TypeError, match="linear_vjp: g: expected float64, the type of the result"):
        nn.linear_vjp(cyrt.ones((3, 6)), x, narrow, wide)


@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("out", [0, 6])
def test_gradients_of_nothing(shape, out):
    x, w, b = cyrt.ones(shape), cyrt.ones((out, shape[-1])), cyrt.ones(out)
    found = nn.linear_vjp(cyrt.ones((*shape[:-1], out)), x, w, b)
    assert [each.shape for each in found] == [x.shape, w.shape, b.shape]
    assert not found[1].size or not bool(cyrt.any(found[1]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_gradients_that_are_not_finite(value, rng):
    """A value that is not finite reaches what is multiplied with it, and nothing else."""
    x, w, g = (numbers(rng, "float32", *shape) for shape in ((5, 8), (6, 8), (5, 6)))
    g[2, 3] = value
    of_x, of_w, of_b = nn.linear_vjp(*map(cyrt.asarray, (g, x, w, w[:, 0])))
    np.testing.assert_array_equal(np.isfinite(of_x.numpy()).all(1), np.arange(5) != 2)
    np.testing.assert_array_equal(np.isfinite(of_w.numpy()).all(1), np.arange(6) != 3)
    np.testing.assert_array_equal(of_b.numpy()[3], np.float32(value))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"g": (3, 5)}, ValueError, r"linear_vjp: g: expected shape \(3, 6\), got \(3, 5\)"),
        ({"x": (3, 5)}, ValueError, r"linear_vjp: expected x of shape \(\.\.\., in\)"),
        ({"bias": (5,)}, ValueError, r"linear_vjp: bias: expected shape \(6,\), got \(5,\)"),
    ],
)
def test_wrong_shapes_of_gradients(change, error, message):
    shapes = {"g": (3, 6), "x": (3, 4), "weight": (6, 4), **change}
    with pytest.raises(error, match=message):
        nn.linear_vjp(**{name: cyrt.zeros(shape) for name, shape in shapes.items()})


def test_wrong_arguments_of_gradients():
    g, x, w = cyrt.zeros((3, 5)), cyrt.zeros((3, 4)), cyrt.zeros((5, 4))
    with pytest.raises(ValueError, match="linear_vjp: activation: expected None or .* got 'elu'"):
        nn.linear_vjp(g, x, w, activation="elu")
    with pytest.raises(
        ValueError, match="linear_vjp: weight: expected an even number of rows for swiglu"
    ):
        nn.linear_vjp(g, x, w, activation="swiglu")
    with pytest.raises(TypeError, match="linear_vjp: bias: expected a real floating-point type"):
        nn.linear_vjp(g, x, w, cyrt.zeros(5, dtype="int32"))
