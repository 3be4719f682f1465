"""Convolutions and their gradients against windows in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conv_reference import (
    ACTIVATIONS,
    TYPES,
    check,
    compare,
    convolve,
    input_gradient,
    weight_gradient,
)
from explaining import explain
from rows_of_numbers import exact, launches, numbers

import cyrt
from cyrt import nn
from cyrt.builtin import library_conv


@pytest.fixture
def own_kernels():
    """No library, which a GPU may have."""
    library_conv.decide(0, False)
    yield
    library_conv.decide(0)


@pytest.fixture(autouse=True, params=["own", pytest.param("library", marks=pytest.mark.gpu)])
def whose(request):
    """Every test holds for cyrt's own kernels, and where a library computes what is large."""
    library_conv.decide(0, False if request.param == "own" else None)
    yield
    library_conv.decide(0)


# -- sizes -----------------------------------------------------------------------------------------

CHANNELS = [(1, 1, 1), (1, 6, 1), (1, 1, 6), (4, 32, 64)]
PLACES = [(1, 1, 1, 0), (3, 3, 1, 0), (31, 5, 5, 2)]


@pytest.mark.parametrize("name", [*TYPES, "float64"])
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("channels", CHANNELS)
def test_one_dimension(channels, places, name, rng):
    (n, c, o), (size, kernel, stride, padding) = channels, places
    check(rng, name, (n, size, c), (o, kernel, c), stride=stride, padding=padding)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("places", [(1, 1, 1, 0), (3, 3, 1, 0), (11, 5, 5, 2), (6, 3, 2, 1)])
@pytest.mark.parametrize("channels", [(1, 1, 1), (1, 6, 1), (2, 1, 6), (2, 32, 64)])
def test_two_dimensions(channels, places, name, rng):
    (n, c, o), (size, kernel, stride, padding) = channels, places
    shapes = (n, size, size + 1, c), (o, kernel, kernel, c)
    check(rng, name, *shapes, stride=stride, padding=padding)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("places", [(1, 1, 1, 0), (3, 3, 1, 0), (7, 5, 5, 2)])
@pytest.mark.parametrize("channels", [(1, 1, 1), (1, 6, 1), (2, 1, 6), (1, 16, 24)])
def test_three_dimensions(channels, places, name, rng):
    (n, c, o), (size, kernel, stride, padding) = channels, places
    shapes = (n, size, size, size, c), (o, kernel, kernel, kernel, c)
    check(rng, name, *shapes, stride=stride, padding=padding)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("results", [32, 64])
def test_groups(groups, results, name, rng):
    check(rng, name, (2, 6, 5, 32), (results, 3, 2, 32 // groups), groups=groups, padding=1)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(2, 50, 8), (2, 9, 7, 24), (1, 3, 5, 4, 64), (3, 8, 8, 5)])
@pytest.mark.parametrize("stride", [1, 2])
def test_one_channel_a_group(shape, stride, name, rng):
    c = shape[-1]
    kernel = (3,) * (len(shape) - 2)
    check(rng, name, shape, (c, *kernel, 1), groups=c, padding=1, stride=stride)


def test_several_results_of_a_channel(rng):
    check(rng, "float32", (2, 6, 6, 8), (24, 3, 3, 1), groups=8, padding=1)
    check(rng, "float16", (2, 6, 6, 8), (64, 3, 3, 1), groups=8, padding=1)


def test_large_tiles(rng):
    """More rows, columns and terms than one tile of 128 by 64 has."""
    for name in TYPES:
        check(rng, name, (2, 10, 15, 72), (80, 3, 3, 72), padding=1)
        check(rng, name, (1, 150, 70), (66, 3, 70))


def test_sums_in_parts(rng):
    """Few results of many terms."""
    check(rng, "float32", (1, 40, 40, 4), (3, 39, 38, 4))
    check(rng, "bfloat16", (1, 40, 40, 8), (8, 39, 38, 8))


def test_a_large_filter(rng):
    x, w = numbers(rng, "float32", 1, 181, 181, 1), numbers(rng, "float32", 1, 182, 182, 1)
    found = nn.conv2d(cyrt.asarray(x), cyrt.asarray(w), padding=1)
    compare(found, convolve(x, w, padding=1), "float32")


# -- options ---------------------------------------------------------------------------------------

DILATIONS = list(itertools.product([1, 2], [1, 5], [1, 2], [1, 3]))


@pytest.mark.parametrize("dilations", DILATIONS)
def test_dilations(dilations, rng):
    kernel, source = dilations[:2], dilations[2:]
    options = {"dilation": kernel, "input_dilation": source, "padding": 1}
    check(rng, "float32", (2, 8, 13, 4), (6, 3, 2, 4), **options)
    check(rng, "float16", (1, 8, 13, 8), (8, 3, 2, 8), stride=(2, 3), flip=True, **options)


@pytest.mark.parametrize("stride", [2, 5])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_strides(stride, ndim, rng):
    shapes = (2, *(11, 7, 6)[:ndim], 8), (5, *(3, 4, 2)[:ndim], 8)
    check(rng, "float32", *shapes, stride=stride, padding=2)
    check(rng, "float32", (*shapes[0][:-1], 8), (8, *shapes[1][1:-1], 1), stride=stride, groups=8)


PADDINGS = [((1, 0), (0, 2)), ((-1, 3), (2, -2)), ((-2, -1), (0, 0)), (0, 3), -1]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("flip", [False, True])
def test_padding_and_flip(padding, flip, rng):
    check(rng, "float32", (2, 7, 6, 4), (3, 3, 2, 4), padding=padding, flip=flip)
    options = {"stride": (2, 1), "input_dilation": 2, "groups": 8}
    check(rng, "bfloat16", (2, 7, 6, 8), (8, 2, 3, 1), padding=padding, flip=flip, **options)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("groups", [1, 16])
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_and_activation(activation, groups, name, rng):
    x, w = numbers(rng, name, 2, 6, 16), numbers(rng, name, 16, 3, 16 // groups)
    b = numbers(rng, name, 32)[::2]
    arrays = cyrt.asarray(x), cyrt.asarray(w)
    wanted = convolve(x, w, groups=groups) + exact(b)
    wanted = ACTIVATIONS.get(activation, lambda y: y)(wanted)
    options = {"groups": groups, "bias": cyrt.asarray(b), "activation": activation}
    compare(nn.conv_general(*arrays, **options), wanted, name)
    compare(nn.conv1d(*arrays, **options), wanted, name)


def test_bias_after_sums_in_parts(rng):
    x, w, b = (numbers(rng, "float32", *s) for s in ((1, 30, 30, 4), (6, 30, 29, 4), (6,)))
    found = nn.conv2d(*(cyrt.asarray(each) for each in (x, w)), bias=cyrt.asarray(b))
    assert any(name.endswith("_sum") for name in launches_of("conv", x.shape, w.shape))
    compare(found, convolve(x, w) + b, "float32")


def test_many_parts_are_added_by_several_threads(rng):
    x, g = numbers(rng, "float32", 1, 32, 32, 128), numbers(rng, "float32", 1, 32, 32, 128)
    shape, options = (128, 1, 1, 1), {"groups": 128}
    found = explain("conv_weight_vjp", "float32", x.shape, shape, **options).kernels
    assert found[-1][2] == (32, 8)
    found = nn.conv_weight_vjp(cyrt.asarray(g), cyrt.asarray(x), shape, **options)
    compare(found, weight_gradient(g, x, shape, **options), "float32")


def launches_of(op, *shapes, dtype="float32", **options):
    return [kernel for kernel, *_ in explain(op, dtype, *shapes, **options).kernels]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_functions_of_dimensions(ndim, rng):
    x, w = (
        numbers(rng, "float32", 1, *(6, 5, 4)[:ndim], 4),
        numbers(rng, "float32", 4, *(2,) * ndim, 2),
    )
    function = getattr(nn, f"conv{ndim}d")
    found = function(cyrt.asarray(x), cyrt.asarray(w), 2, 1, 2, 2)
    wanted = convolve(x, w, stride=2, padding=1, dilation=2, groups=2)
    compare(found, wanted, "float32")


# -- transposed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "more"), [(1, 0, 1, 0), (2, 1, 1, 1), (5, 2, 2, 3)]
)
def test_transposed(ndim, groups, stride, padding, dilation, more, rng):
    """It is the gradient of a convolution's input, whose weight has its channels exchanged."""
    x = numbers(rng, "float32", 2, *(5, 4, 3)[:ndim], 4)
    w = numbers(rng, "float32", 8, *(3, 2, 3)[:ndim], 4 // groups)
    options = {"stride": stride, "padding": padding, "groups": groups}
    sizes = [
        (n - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + more
        for n, k in zip(x.shape[1:-1], w.shape[1:-1], strict=True)
    ]
    exchanged = [np.swapaxes(each, 0, -1) for each in np.split(w, groups)]
    shape = 2, *sizes, 8
    wanted = input_gradient(x, np.concatenate(exchanged), shape, dilation=dilation, **options)
    options |= {"dilation": dilation, "output_padding": more}
    function = getattr(nn, f"conv_transpose{ndim}d")
    compare(function(cyrt.asarray(x), cyrt.asarray(w), **options), wanted, "float32")


def test_transposed_strides_of_equal_shapes(rng):
    """No launch takes the place of another one whose operands look alike."""
    x, w = numbers(rng, "float32", 1, 6, 6, 8), numbers(rng, "float32", 8, 3, 3, 8)
    arrays = cyrt.asarray(x), cyrt.asarray(w)
    shape = 1, 6, 6, 8
    for stride, padding in [(1, 1), (2, (4, 3)), (1, 1), (2, (4, 3))]:
        low, high = (padding, padding) if stride == 1 else padding
        found = nn.conv_transpose2d(*arrays, stride=stride, padding=((low, high),) * 2)
        assert found.shape == shape
        pads = ((2 - low, 2 - high),) * 2
        compare(found, convolve(x, w, padding=pads, input_dilation=stride, flip=True), "float32")


def test_output_padding_for_each_dimension(rng):
    x, w = numbers(rng, "float32", 1, 4, 4, 2), numbers(rng, "float32", 3, 3, 3, 2)
    found = nn.conv_transpose2d(
        cyrt.asarray(x),
        cyrt.asarray(w),
        stride=(2, 3),
        padding=((1, 0), (0, 1)),
        output_padding=(1, 2),
    )
    pads = (2 - 1, 2 - 0 + 1), (2 - 0, 2 - 1 + 2)
    compare(found, convolve(x, w, padding=pads, input_dilation=(2, 3), flip=True), "float32")
    bias = cyrt.ones(3, dtype=cyrt.float32)
    again = nn.conv_transpose2d(cyrt.asarray(x), cyrt.asarray(w), bias=bias, activation="relu")
    wanted = np.maximum(convolve(x, w, padding=2, flip=True) + 1, 0)
    compare(again, wanted, "float32")


# -- gradients as adjoints -------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_adjoints(stride, groups, rng):
    """<conv(x, w), g> = <x, input_vjp(g)> = <w, weight_vjp(g)>."""
    shape, kernel = (2, 12, 11, 6), (6, 3, 4, 6 // groups)
    options = {"stride": stride, "groups": groups, "padding": ((2, 1), (0, 3)), "flip": True}
    options |= {"dilation": (2, 1), "input_dilation": (1, 2)}
    x, w = (cyrt.asarray(numbers(rng, "float64", *each)) for each in (shape, kernel))
    y = nn.conv_general(x, w, **options)
    g = cyrt.asarray(numbers(rng, "float64", *y.shape))
    inner = float(cyrt.sum(y * g))
    assert float(cyrt.sum(x * nn.conv_input_vjp(g, shape, w, **options))) == pytest.approx(inner)
    assert float(cyrt.sum(w * nn.conv_weight_vjp(g, x, kernel, **options))) == pytest.approx(inner)


# -- layouts ---------------------------------------------------------------------------------------


# Parts of an array (6, 12, 9, 32), and how many copies are made of them.
VIEWS = {
    "part": (np.s_[1:3, 2:7, 1:9, 16:], 0),
    "not aligned": (np.s_[:2, :5, :, 3:19], 0),
    "steps": (np.s_[::3, ::2, ::-1, :16], 0),
    "other channels": (np.s_[:2, :5, :, ::2], 1),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("groups", [1, 16])
@pytest.mark.parametrize("view", VIEWS)
def test_strided_views(view, groups, name, rng):
    x, w = numbers(rng, name, 6, 12, 9, 32), numbers(rng, name, 32, 3, 2, 16 // groups)
    key, _ = VIEWS[view]
    part, filters = cyrt.asarray(x)[key], cyrt.asarray(w)[::2]
    wanted = convolve(x[key], w[::2], groups=groups)
    compare(nn.conv2d(part, filters, groups=groups), wanted, name)
    g = cyrt.asarray(numbers(rng, name, *wanted.shape, 2))[..., 0]
    wanted = weight_gradient(g, x[key], filters.shape, groups=groups)
    compare(nn.conv_weight_vjp(g, part, filters.shape, groups=groups), wanted, name)
    wanted = input_gradient(g, w[::2], part.shape, groups=groups)
    compare(nn.conv_input_vjp(g, part.shape, filters, groups=groups), wanted, name)


@pytest.mark.usefixtures("batched")
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_copied_only_if_their_channels_are_apart(view, rng):
    key, copies = VIEWS[view]
    part = cyrt.asarray(numbers(rng, "float32", 6, 12, 9, 32))[key]
    filters = cyrt.asarray(numbers(rng, "float32", 32, 3, 2, 16))[::2]
    assert len(launches(lambda: nn.conv2d(part, filters))) == 1 + copies
    assert len(launches(lambda: nn.conv2d(part, filters[:, ::2]))) == 2 + copies


def test_broadcast_input_and_transposed_weight(rng):
    x, w = numbers(rng, "float32", 1, 6, 8), numbers(rng, "float32", 8, 3, 8)
    wide = cyrt.broadcast_to(cyrt.asarray(x), (3, 6, 8))
    found = nn.conv1d(wide, cyrt.asarray(w).T)
    compare(found, convolve(np.broadcast_to(x, (3, 6, 8)), w.T), "float32")


def test_many_outputs(rng):
    x = numbers(rng, "float32", 1, 70_001, 1)
    found = nn.conv1d(cyrt.asarray(x), cyrt.ones((1, 2, 1), dtype=cyrt.float32))
    compare(found, exact(x[:, :-1]) + exact(x[:, 1:]), "float32")


def test_types_promote(rng):
    x, w, b = numbers(rng, "float16", 1, 5, 4), numbers(rng, "float32", 3, 2, 4), np.ones(3)
    found = nn.conv1d(cyrt.asarray(x), cyrt.asarray(w))
    compare(found, convolve(x, w), "float32")
    found = nn.conv1d(cyrt.asarray(x), cyrt.asarray(w), bias=cyrt.asarray(b))
    compare(found, convolve(x, w) + 1, "float64")


# -- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "options"),
    [
        ((0, 5, 3), (4, 2, 3), {}),
        ((2, 5, 0), (4, 2, 0), {}),
        ((2, 5, 3), (0, 2, 3), {}),
        ((2, 5, 1), (0, 2, 1), {}),
        ((2, 0, 3), (4, 2, 3), {"padding": 1}),
        ((2, 1, 3), (4, 2, 3), {}),
        ((2, 1, 3), (4, 2, 3), {"stride": 2}),
        ((2, 0, 3), (4, 2, 3), {"padding": 2, "input_dilation": 3}),
        ((0, 5, 4), (4, 2, 1), {"groups": 4}),
    ],
)
def test_no_elements(x_shape, w_shape, options, rng):
    check(rng, "float32", x_shape, w_shape, **options)


def test_no_channels_leave_the_bias():
    x, w = cyrt.zeros((2, 5, 0), dtype=cyrt.float32), cyrt.zeros((3, 2, 0), dtype=cyrt.float32)
    bias = cyrt.asarray(np.array([1, -2, 3], np.float32))
    found = nn.conv1d(x, w, bias=bias, activation="relu").numpy()
    np.testing.assert_array_equal(found, np.broadcast_to([1, 0, 3], (2, 4, 3)))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(value, groups, name, rng):
    x, w = numbers(rng, name, 2, 9, 8), numbers(rng, name, 8, 3, 8 // groups)
    x[0, 4, 2] = value
    found = exact(nn.conv1d(cyrt.asarray(x), cyrt.asarray(w), groups=groups))
    with np.errstate(invalid="ignore"):
        wanted = convolve(x, w, groups=groups)
    touched = ~np.isfinite(wanted)
    assert touched.any()
    assert not touched[1].any()
    np.testing.assert_array_equal(found[touched], wanted[touched])
    assert np.isfinite(found[~touched]).all()
    g = numbers(rng, name, *wanted.shape)
    g[1, 3, 5] = value
    with np.errstate(invalid="ignore"):
        wanted = weight_gradient(g, x, w.shape, groups=groups)
    arrays = cyrt.asarray(g), cyrt.asarray(x), w.shape
    found = exact(nn.conv_weight_vjp(*arrays, groups=groups))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))


def test_an_infinite_weight_meets_padding():
    """Zeros of the padding are multiplied."""
    for groups in 1, 4:
        x = cyrt.ones((1, 4, 4), dtype=cyrt.float32)
        w = cyrt.full((4, 3, 4 // groups), np.inf, dtype=cyrt.float32)
        found = nn.conv1d(x, w, padding=1, groups=groups).numpy()[0, :, 0]
        np.testing.assert_array_equal(found, [np.nan, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("groups", [1, 8])
def test_equal_results_run_to_run(groups, rng):
    shape, kernel = (3, 14, 14, 8), (8, 5, 5, 8 // groups)
    x, w = (cyrt.asarray(numbers(rng, "float32", *each)) for each in (shape, kernel))
    g = nn.conv2d(x, w, groups=groups)
    runs = [
        (
            nn.conv_weight_vjp(g, x, kernel, groups=groups),
            nn.conv_input_vjp(g, shape, w, groups=groups),
            nn.conv2d(x, w, groups=groups),
        )
        for _ in range(3)
    ]
    for run in runs[1:]:
        for found, first in zip(run, runs[0], strict=True):
            np.testing.assert_array_equal(found.numpy(), first.numpy())


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((5, 4), {"padding": 1}),
        ((4, 11), {"padding": 1, "flip": True}),
        ((3, 9), {"padding": [(2, 0), (0, 3)]}),
        ((8, 3), {}),
    ],
)
def test_strips_of_neighbouring_outputs(size, options, name, rng):
    shapes = (2, *size, 24), (24, 3, 3, 1)
    kernel = f"cyrt_conv_{name}_depthwise_strip"
    for op in "conv", "conv_input_vjp":
        assert launches_of(op, *shapes, dtype=name, groups=24, **options) == [kernel]
    check(rng, name, *shapes, groups=24, **options)


@pytest.mark.parametrize("name", TYPES)
def test_strips_of_a_part_of_an_array(name, rng):
    x, w = numbers(rng, name, 2, 7, 8, 48), numbers(rng, name, 16, 3, 3, 1)
    b, a = numbers(rng, name, 16), cyrt.asarray(x)[:, 1:6, ::2, 16:32]
    found = nn.conv2d(
        a, cyrt.asarray(w), padding=1, groups=16, bias=cyrt.asarray(b), activation="relu"
    )
    wanted = convolve(x[:, 1:6, ::2, 16:32], w, padding=1, groups=16) + exact(b)
    compare(found, np.maximum(wanted, 0), name)


# -- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "shapes", "options", "kernels"),
    [
        ("conv", [(32, 56, 56, 64), (64, 3, 3, 64)], {"padding": 1}, [""]),
        ("conv", [(1, 4, 4, 64), (64, 3, 3, 64)], {}, ["_small", "_sum"]),
        ("conv", [(32, 28, 28, 128), (128, 3, 3, 1)], {"groups": 128}, ["_depthwise_strip"]),
        ("conv", [(32, 28, 28, 128), (128, 5, 5, 1)], {"groups": 128}, ["_depthwise"]),
        ("conv", [(32, 28, 28, 3), (6, 3, 3, 1)], {"groups": 3}, ["_depthwise_elements"]),
        ("conv_input_vjp", [(32, 56, 56, 64), (64, 3, 3, 64)], {"padding": 1}, [""]),
        ("conv_weight_vjp", [(32, 56, 56, 64), (64, 3, 3, 64)], {"padding": 1}, ["", "_sum"]),
        (
            "conv_weight_vjp",
            [(32, 28, 28, 128), (128, 3, 3, 1)],
            {"groups": 128},
            ["_depthwise", "_sum"],
        ),
    ],
)
@pytest.mark.usefixtures("own_kernels")
def test_explanations(op, shapes, options, kernels):
    for name in TYPES:
        found = launches_of(op, *shapes, dtype=name, **options)
        assert found == [f"cyrt_{op}_{name}{each}" for each in kernels]


def test_more_outputs_than_one_launch_has():
    for op in "conv", "conv_input_vjp":
        assert len(launches_of(op, (70_000, 40_000, 8), (8, 1, 8))) == 2
    with pytest.raises(ValueError, match="more than 2,147,483,647 outputs .* 2,800,000,000"):
        explain("conv_weight_vjp", "float32", (70_000, 40_000, 8), (8, 1, 8))


@pytest.mark.usefixtures("own_kernels")
def test_explanation_of_the_inputs_gradient_by_channels():
    found = launches_of("conv_input_vjp", (2, 9, 9, 8), (8, 3, 3, 1), groups=8)
    assert found == ["cyrt_conv_float32_depthwise_strip"]


def test_arguments_that_change_in_place(rng):
    """Shapes that were checked are not checked again, but only with arguments that are the same."""
    x, w = cyrt.asarray(numbers(rng, "float32", 2, 9, 9, 4)), cyrt.zeros((8, 3, 3, 4))
    pads, pairs = [1, 1], ((1, 0), [0, 2])
    for high in 1, 4:
        pads[1] = high
        pairs[1][1] = high
        for _ in range(2):
            assert nn.conv2d(x, w, padding=pads).shape == (2, 9, 7 + 2 * high, 8)
            assert nn.conv2d(x, w, padding=pairs).shape == (2, 8, 7 + high, 8)
            assert nn.conv_general(x, w, flip=high > 1).shape == (2, 7, 7, 8)
    for groups, stride in (2, 1), (1, 2), (2, 2), (1, 1):
        y = nn.conv2d(x, cyrt.zeros((8, 3, 3, 4 // groups)), stride, groups=groups)
        assert y.shape == (2, 7 // stride + stride - 1, 7 // stride + stride - 1, 8)


def test_what_was_read_for_one_function_is_checked_for_another():
    x, w = cyrt.zeros((2, 9, 4)), cyrt.zeros((8, 3, 4))
    nn.conv1d(x, w)
    with pytest.raises(ValueError, match="conv2d: expected an input .* of 4 dimensions"):
        nn.conv2d(x, w)
    nn.conv1d(x, w)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "w", "options", "message"),
    [
        ((2, 5, 6), (4, 3, 6), {"groups": 4}, r"got \(2, 5, 6\) and \(4, 3, 6\) with groups=4"),
        ((2, 5, 6), (4, 3, 2), {"groups": 3}, r"got \(2, 5, 6\) and \(4, 3, 2\) with groups=3"),
        ((2, 5, 6), (4, 3, 5), {}, r"got \(2, 5, 6\) and \(4, 3, 5\) with groups=1"),
        ((2, 5, 6), (4, 3, 6), {"groups": 0}, "with groups=0"),
        ((2, 5, 6), (4, 3, 6), {"groups": 1 << 70}, "groups=1180591620717411303424"),
        ((2, 5, 6), (4, 3, 3, 6), {}, r"of as many dimensions.*\(2, 5, 6\) and \(4, 3, 3, 6\)"),
        ((5, 6), (3, 6), {}, r"3 to 5, got \(5, 6\) and \(3, 6\)"),
        ((1,) * 6, (1,) * 6, {}, "3 to 5"),
        ((2, 3, 6), (4, 5, 6), {}, "size 5 is larger than the padded input of size 3 .* negative"),
        ((2, 3, 6), (4, 5, 6), {"stride": 5}, "of size 3 .* negative"),
        ((2, 3, 6), (4, 2, 6), {"dilation": 4}, "has 5 places, the input 3"),
        ((2, 3, 6), (4, 2, 6), {"padding": -1}, None),
        ((2, 3, 6), (4, 2, 6), {"padding": -2}, "has 2 places, the input -1"),
        ((2, 3, 6), (4, 0, 6), {}, r"kernel of sizes above 0, got \(0,\)"),
        ((2, 3, 6), (4, 2, 6), {"stride": 0}, "stride: expected an int .* got 0"),
        ((2, 3, 6), (4, 2, 6), {"stride": -1}, "stride: .* got -1"),
        ((2, 3, 6), (4, 2, 6), {"stride": (1, 1)}, r"stride: .* tuple of 1 int, .* \(1, 1\)"),
        ((2, 3, 6), (4, 2, 6), {"dilation": 0}, "dilation: .* got 0"),
        ((2, 3, 6), (4, 2, 6), {"input_dilation": 0}, "input_dilation: .* got 0"),
        ((2, 3, 6), (4, 2, 6), {"padding": ((1, 1), (1, 1))}, "1 pairs"),
        ((2, 3, 6), (4, 2, 6), {"padding": ((1, 1, 1),)}, "1 pairs"),
        ((2, 3, 6), (4, 2, 6), {"activation": "swiglu"}, "one of 'relu', .* got 'swiglu'"),
        ((2, 3, 6), (4, 2, 6), {"padding": 1 << 40}, "padding: .* got 1099511627776"),
        ((2, 3, 6), (4, 2, 6), {"padding": -1 << 70}, "padding: .* got -1180591620717411303424"),
        ((2, 3, 6), (4, 2, 6), {"dilation": 1 << 27, "padding": 1 << 26}, None),
        ((2, 3, 6), (4, 3, 6), {"dilation": (1 << 28) - 1}, "268,435,456 and more"),
    ],
)
def test_wrong_values(x, w, options, message):
    arrays = cyrt.zeros(x, dtype=cyrt.float32), cyrt.zeros(w, dtype=cyrt.float32)
    if message is None:
        nn.conv_general(*arrays, **options)
        return
    with pytest.raises(ValueError, match=message):
        nn.conv_general(*arrays, **options)


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (
            nn.conv_input_vjp,
            ((1, 4, 6, 6), (4, 3, 3, 3), (1, 8, 8, 3)),
            r"cyrt.moveaxis\(g, 1, -1\)",
        ),
        (nn.conv_weight_vjp, ((1, 4, 6, 6), (1, 8, 8, 3), (4, 3, 3, 3)), r"moveaxis\(g, 1, -1\)"),
        (nn.conv_weight_vjp, ((1, 8, 8, 3), (1, 6, 6, 4), (4, 3, 3, 3)), "; g and x seem to be ex"),
        (nn.conv_input_vjp, ((4, 3, 3, 3), (1, 6, 6, 4), (1, 8, 8, 3)), "; g and weight seem to "),
        (nn.conv2d, ((4, 3, 3, 3), (1, 8, 8, 3)), "; x and weight seem to be exchanged: the order"),
        (
            nn.conv_transpose2d,
            ((1, 8, 8, 3), (3, 5, 4, 4)),
            r"PyTorch's: .*moveaxis\(weight, 0, -1",
        ),
        (nn.conv_input_vjp, ((1, 5, 6, 4), (4, 3, 3, 3), (1, 8, 8, 3)), r"got \(1, 5, 6, 4\)$"),
    ],
)
def test_what_seems_to_be_meant(function, shapes, message):
    """Gradients have the shape of the absent operand last."""
    first, second = (cyrt.zeros(each, dtype=cyrt.float32) for each in shapes[:2])
    absent = shapes[2:]
    operands = (*absent, second) if function is nn.conv_input_vjp else (second, *absent)
    with pytest.raises(ValueError, match=message):
        function(first, *operands)


def test_wrong_types():
    x, w = cyrt.zeros((2, 5, 6), dtype=cyrt.float32), cyrt.zeros((4, 3, 6), dtype=cyrt.float32)
    with pytest.raises(TypeError, match="x of int32 and weight of float32"):
        nn.conv1d(cyrt.astype(x, cyrt.int32), w)
    with pytest.raises(TypeError, match="x of float32 and weight of complex64"):
        nn.conv_general(x, cyrt.astype(w, cyrt.complex64))
    with pytest.raises(TypeError, match="conv1d: weight: expected an Array, got numpy.ndarray"):
        nn.conv1d(x, w.numpy())
    with pytest.raises(TypeError, match=r"stride: expected an int .* got 1\.5"):
        nn.conv1d(x, w, stride=1.5)
    bias = cyrt.zeros(4)  # by position, as PyTorch's functions take it
    for call in (
        lambda bias: nn.conv1d(x, w, bias),
        cyrt.grad(lambda bias: nn.conv1d(x, w, bias).sum()),
        cyrt.grad(lambda bias: nn.conv1d(x, w * bias[0], bias).sum()),
    ):
        with pytest.raises(TypeError, match=r"^conv1d: stride: .* shape \(4,\); .* bias=$"):
            call(bias)
    with pytest.raises(TypeError, match="padding: expected an int, .* pairs .* got 'same'"):
        nn.conv1d(x, w, padding="same")
    with pytest.raises(TypeError, match="groups: expected an int, got None"):
        nn.conv1d(x, w, groups=None)
    with pytest.raises(ValueError, match=r"bias: expected shape \(4,\).*\(4, 3, 6\), got \(3,\)"):
        nn.conv1d(x, w, bias=cyrt.zeros(3, dtype=cyrt.float32))
    with pytest.raises(TypeError, match="bias of int64"):
        nn.conv1d(x, w, bias=cyrt.zeros(4, dtype=cyrt.int64))
    with pytest.raises(ValueError, match=r"conv2d: .* of 4 dimensions, got \(2, 5, 6\)"):
        nn.conv2d(x, w)
    with pytest.raises(ValueError, match=r"conv_transpose2d: .* of 4 dimensions, got \(2, 5, 6\)"):
        nn.conv_transpose2d(x, w)
    with pytest.raises(ValueError, match="conv1d: dilation: .* got 0"):
        nn.conv1d(x, w, dilation=0)
    with pytest.raises(ValueError, match="conv_transpose1d: stride: .* got 0"):
        nn.conv_transpose1d(x, w, stride=0)
    with pytest.raises(ValueError, match="output_padding: .* got -1"):
        nn.conv_transpose1d(x, w, output_padding=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_padding": (1 << 28) - 1}, "places beside the input .* output_padding 268435455"),
        ({"dilation": 1 << 27}, "places beside the input .* dilation 134217728, "),
        ({"padding": 1 - (1 << 28)}, "places beside .* padding -268435455 and -268435455, "),
        ({"padding": 5}, "size would be -6 in spatial dimension 0, of an input of size 2"),
    ],
)
def test_transposed_convolutions_name_their_own_arguments(options, message):
    x, w = cyrt.ones((1, 2, 1)), cyrt.ones((1, 3, 1))
    with pytest.raises(ValueError, match=f"conv_transpose1d: .*{message}"):
        nn.conv_transpose1d(x, w, **options)


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_a_transposed_convolution_of_no_places(stride):
    """The size of its result follows the formula, too: (0 - 1) * stride + 4."""
    x, w = cyrt.ones((1, 0, 1)), cyrt.ones((2, 4, 1))
    found = nn.conv_transpose1d(x, w, stride, bias=cyrt.ones(2))
    np.testing.assert_array_equal(found.numpy(), np.ones((1, 4 - stride, 2)))
    with pytest.raises(ValueError, match="size would be -1"):
        nn.conv_transpose1d(x, w, 5)


@pytest.mark.parametrize(
    ("x", "weight", "groups", "hint"),
    [
        ((1, 3, 8, 8), (4, 3, 3, 3), 1, r"channels of x seem .* cyrt\.moveaxis\(x, 1, -1\)"),
        ((1, 8, 9, 3), (4, 3, 5, 5), 1, r"channels of weight seem .*moveaxis\(weight, 1, -1\)"),
        ((1, 3, 8, 9), (4, 3, 5, 5), 1, "channels of x and of weight seem to come first"),
        ((1, 6, 8, 9), (4, 3, 5, 5), 2, "channels of x and of weight seem to come first"),
        ((1, 8, 8, 4), (4, 3, 3, 2), 3, "with groups=3$"),
        ((1, 9, 7, 5), (4, 3, 3, 2), 1, "with groups=1$"),
    ],
)
def test_channels_that_come_first(x, weight, groups, hint):
    shapes = r"x of shape \(N, H, W, C\) and weight of shape \(O, KH, KW, C / groups\), .*"
    with pytest.raises(ValueError, match=f"^conv2d: channels come last: expected {shapes}{hint}"):
        nn.conv2d(cyrt.ones(x), cyrt.ones(weight), groups=groups)
    with pytest.raises(ValueError, match=hint):
        nn.conv_weight_vjp(cyrt.ones(x), cyrt.ones(x), weight, groups=groups)


def test_wrong_shapes_of_gradients():
    g, w = cyrt.zeros((2, 3, 4), dtype=cyrt.float32), cyrt.zeros((4, 3, 6), dtype=cyrt.float32)
    x = cyrt.zeros((2, 5, 6), dtype=cyrt.float32)
    assert nn.conv_input_vjp(g, (2, 5, 6), w).shape == (2, 5, 6)
    with pytest.raises(ValueError, match=r"g: expected .* \(2, 4, 4\), .* got \(2, 3, 4\)"):
        nn.conv_input_vjp(g, (2, 6, 6), w)
    with pytest.raises(ValueError, match=r"g: expected .* \(3, 3, 4\), .* got \(2, 3, 4\)"):
        nn.conv_input_vjp(g, (3, 5, 6), w)
    with pytest.raises(ValueError, match=r"got \(2, 5, 7\) and \(4, 3, 6\) with groups=1"):
        nn.conv_input_vjp(g, (2, 5, 7), w)
    with pytest.raises(ValueError, match=r"g: expected .* \(2, 3, 5\), .* got \(2, 3, 4\)"):
        nn.conv_weight_vjp(g, x, (5, 3, 6))
    with pytest.raises(ValueError, match=r"g: expected .* \(2, 2, 4\), .* got \(2, 3, 4\)"):
        nn.conv_weight_vjp(g, x, (4, 4, 6))
    for shape in [(4, 3), (4, 3, -6), (4, 3, 1 << 70), (4,) * 6]:
        with pytest.raises(ValueError, match="weight_shape: expected 3 to 5 sizes"):
            nn.conv_weight_vjp(g, x, shape)
    for shape in [5, (2, 5.0, 6), (*[4] * 6, None)]:
        with pytest.raises(TypeError, match="input_shape: expected a tuple of int, got "):
            nn.conv_input_vjp(g, shape, w)
    assert nn.conv_input_vjp(g, iter(np.array([2, 5, 6])), w).shape == (2, 5, 6)
    with pytest.raises(TypeError, match="weight of int64 and g of float32"):
        nn.conv_input_vjp(g, (2, 5, 6), cyrt.astype(w, cyrt.int64))
