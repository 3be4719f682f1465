"""Linear layers, compared with float64."""

from __future__ import annotations

import itertools

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
        weight, *shift, eps = norm
        if shift:
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * exact(weight)
        for each in shift:
            x = x + exact(each)
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
            "w": (out, length),
            "b": (out,),
            "residual": (*rows, features),
            "norm": (length,),
        }
        self.name = name
        self.host = {each: numbers(rng, name, *shape) for each, shape in shapes.items()}
        self.host["w"] = (self.host["w"] / length**0.5).astype(self.host["w"].dtype)
        self.arrays = {each: cyrt.asarray(host) for each, host in self.host.items()}

    def check(self, activation=None, absent=(), **views):
        """Compute it without some operands, and with views of others, and compare. Return how many
        operations it took."""
        given = {**self.arrays, **views, **dict.fromkeys(absent)}
        host = {**self.host, **dict.fromkeys(absent)}
        given["norm"], host["norm"] = (
            None if each["norm"] is None else (each["norm"], 1e-5) for each in (given, host)
        )
        found = []
        took = operations_of(lambda: found.append(nn.linear(**given, activation=activation)))
        wanted = layer(**host, activation=activation)
        assert_close(found[0], wanted, self.name, scale=2 * max(1, np.abs(wanted).max()))
        return took


FUSED = ["float16", "bfloat16", "float32"]
PRESENCES = [
    tuple(name for name, there in zip(("b", "residual", "norm"), bits, strict=True) if not there)
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
        given = (*map(cyrt.asarray, norm), 1e-5)
        found = nn.linear(cyrt.asarray(x), wide, norm=given).numpy()
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
    operands = [cyrt.asarray(each) for each in (x, data.host["w"], data.host["norm"], shift)]
    found = []
    took = operations_of(
        lambda: found.append(
            nn.linear(*operands[:2], activation="swiglu", norm=(*operands[2:], 1e-5))
        )
    )
    assert took == (2 if length == 8232 else 1)
    norm = data.host["norm"], shift, 1e-5
    wanted = layer(x, data.host["w"], None, "swiglu", None, norm)
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
        found = nn.linear(some, w, b, "relu", norm=(*given, 1e-5))
        assert cyrt.current_encoder().stats()["operations"] - before == expected
        wanted = layer(some.numpy(), w.numpy(), b.numpy(), "relu", None, (*norm, 1e-5))
        assert_close(found, wanted, "float32", scale=2 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("rows", [1, 2, 16, 17])
def test_rms_norms_without_a_weight(rows, name, rng):
    x, w = numbers(rng, name, rows, 64), numbers(rng, name, 24, 64)
    found = nn.linear(cyrt.asarray(x), cyrt.asarray(w), norm=(None, 1e-5))
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
        found = exact(nn.linear(cyrt.asarray(row), cyrt.asarray(weights), norm=norm))
        wanted = layer(row, weights, None, None, None, (scale, np.zeros_like(shift), 1e-5))
        assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("activation", SLOPES)
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
    given = {name: data.arrays[name].astype("float32") for name in ("w", "b")}
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
        if each == "w":
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
    with pytest.raises(ValueError, match=r"linear: activation: expected None or .* got \['relu'\]"):
        nn.linear(x, w, activation=["relu"])
    with pytest.raises(ValueError, match=r"even number of rows of w, got \(5, 4\)"):
        nn.linear(x, w, activation="swiglu")
    with pytest.raises(TypeError, match=r"linear: x: expected an Array, got numpy\.ndarray"):
        nn.linear(np.zeros((3, 4), np.float32), w)
    with pytest.raises(TypeError, match="linear: residual: expected an Array, got .*int"):
        nn.linear(x, w, residual=1)
    for other in "int32", "complex64":
        with pytest.raises(TypeError, match=f"x and w of floating-point types, .* {other} and"):
            nn.linear(cyrt.asarray(np.zeros((3, 4), other)), w)


@pytest.mark.parametrize("rows", [1, 3, 17])
@pytest.mark.parametrize(
    ("norm", "error", "message"),
    [
        (lambda: cyrt.ones(4), TypeError, "norm: expected a tuple of weight and eps"),
        (lambda: (cyrt.ones(4),) * 4, TypeError, "or of weight, bias and eps, got"),
        (lambda: (cyrt.ones(4), np.ones(4), 1e-5), TypeError, "bias: expected an Array, got numpy"),
        (lambda: (cyrt.ones(4), cyrt.ones(3), 1e-5), ValueError, r"bias: expected shape \(4,\)"),
        (lambda: (cyrt.ones(4), cyrt.ones(4), -1.0), ValueError, "layer_norm: eps: expected a"),
        (lambda: (np.ones(4), 1e-5), TypeError, "weight: expected an Array, got numpy"),
        (lambda: (cyrt.ones(5), 1e-5), ValueError, r"weight: expected shape \(4,\).*got \(5,\)"),
        (lambda: (cyrt.ones(4, dtype="float16"), 1e-5), TypeError, "float16"),
        (lambda: (cyrt.ones(4), -1.0), ValueError, "eps: expected a finite number of 0 or more"),
        (lambda: (cyrt.ones(4), "1"), TypeError, "eps: expected a number, got str"),
    ],
)
def test_wrong_norms(rows, norm, error, message):
    """The shapes are those of layers that are fused, and of others."""
    with pytest.raises(error, match=message):
        nn.linear(cyrt.zeros((rows, 4)), cyrt.zeros((5, 4)), norm=norm())
