"""Convolutions by the library: the stand-in's on the emulated device."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from conv_reference import ACTIVATIONS, TYPES, arrays, check, compare, convolve, exact
from explaining import explain
from rows_of_numbers import numbers
from standin_cudnn import Note
from threads import run_in_threads

import cyrt
from cyrt import nn
from cyrt.builtin import library_conv
from cyrt.graph import template
from cyrt.libs import cudnn


def problems(standin):
    """What was asked for, in cuDNN's terms."""
    return [
        (
            ("forward", "data", "filter")[graph.kind],
            *(tuple(each.dim) for each in graph.tensors),
            tuple(graph.stride),
        )
        for graph in standin.graphs
    ]


# -- shapes and options ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_all_three(standin, rng, ndim, groups, name):
    shapes = (2, *(6, 5, 4)[:ndim], 4), (8, *(3, 2, 2)[:ndim], 4 // groups)
    check(rng, name, *shapes, padding=1, groups=groups)
    assert [kind for kind, *_ in problems(standin)] == ["forward", "data", "filter"]
    assert standin.launched == 9, "each is captured three times"


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("padding", [0, 2, ((1, 0), (0, 2)), ((0, 3), (2, 2))])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows(standin, rng, stride, padding, dilation):
    check(
        rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4),
        stride=stride, padding=padding, dilation=dilation,
    )  # fmt: skip
    assert standin.asked == 3


def test_equal_padding_where_the_outputs_allow_it(standin, rng):
    """Windows of 7 at distances of 2 reach only some of the zeros behind."""
    check(rng, "float32", (1, 20, 20, 3), (4, 7, 7, 3), stride=2, padding=3)
    assert [(graph.low, graph.high) for graph in standin.graphs] == [([3, 3], [3, 3])] * 3
    check(rng, "float32", (1, 20, 21, 3), (4, 7, 7, 3), stride=2, padding=((3, 2), (3, 2)))
    assert [(graph.low, graph.high) for graph in standin.graphs[3:]] == [([3, 3], [3, 1])] * 3


def test_one_dimension_is_two(standin, rng):
    check(rng, "float32", (2, 9, 4), (6, 3, 4), stride=2)
    assert problems(standin)[0] == ("forward", (2, 4, 1, 9), (6, 4, 1, 3), (2, 6, 1, 4), (1, 2))


@pytest.mark.parametrize(("stride", "more"), [(1, 0), (2, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_transposed_ones_are_the_gradients_of_others(standin, rng, dilation, more, stride):
    _, _, a, b = arrays(rng, "float32", (2, 5, 6, 4), (4, 3, 2, 1))
    options = {"padding": 1, "groups": 4, "dilation": dilation, "output_padding": more}
    found = nn.conv_transpose2d(a, b, stride, **options)
    kind, image, _, result, strides = problems(standin)[0]
    assert (kind, image) == ("data", (2, 4, *found.shape[1:3]))
    assert (result, strides) == ((2, 4, 5, 6), (stride, stride))
    library_conv.decide(0, False)
    compare(found, exact(nn.conv_transpose2d(a, b, stride, **options)), "float32")


def test_gradients_of_transposed_ones(standin, rng):
    options = {"padding": 1, "input_dilation": 2, "flip": True}
    check(rng, "float32", (2, 5, 6, 4), (4, 3, 3, 1), groups=4, **options)
    assert [kind for kind, *_ in problems(standin)] == ["data", "forward", "filter"]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_transposed_ones_whose_filters_would_have_to_be_exchanged(standin, rng, groups):
    options = {"padding": 1, "input_dilation": 2, "flip": True}
    check(rng, "float32", (2, 5, 6, 4), (8, 3, 3, 4 // groups), groups=groups, **options)
    assert standin.asked == 0


@pytest.mark.parametrize(
    "options",
    [
        {"flip": True, "stride": 2},
        {"input_dilation": 2},
        {"padding": -1},
        {"padding": ((0, 0), (2, -1))},
    ],
)
def test_windows_that_the_library_has_not(standin, rng, options):
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4), **options)
    assert standin.launched == 0


def test_a_kernel_of_one_place_is_not_turned(standin, rng):
    check(rng, "float32", (2, 9, 8, 4), (3, 1, 1, 4), flip=True, stride=2)
    assert [kind for kind, *_ in problems(standin)] == ["forward", "data", "filter"]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_and_activation(standin, rng, activation, name):
    x, w, a, b = arrays(rng, name, (2, 6, 5, 4), (8, 3, 3, 4))
    bias = numbers(rng, name, 16)[::2]
    wanted = ACTIVATIONS.get(activation, lambda y: y)(convolve(x, w) + exact(bias))
    for each in (cyrt.asarray(bias), cyrt.asarray(numbers(rng, name, 16))[::2]):
        each[...] = cyrt.asarray(np.ascontiguousarray(bias))
        found = nn.conv2d(a, b, bias=each, activation=activation)
        compare(found, wanted, name)
    assert standin.asked == 2
    assert standin.graphs[1].bias_.stride[1] == 2
    compare(nn.conv2d(a, b, activation="relu"), np.maximum(convolve(x, w), 0), name)


# -- operands --------------------------------------------------------------------------------------


def test_views(standin, rng):
    """Parts of images, of channels and of filters are read where they are."""
    x, w, a, b = arrays(rng, "float32", (4, 9, 10, 12), (10, 3, 3, 8))
    found = nn.conv2d(a[::2, 1:8, 2:9, 4:], b[1:6])
    compare(found, convolve(x[::2, 1:8, 2:9, 4:], w[1:6]), "float32")
    assert standin.graphs[0].tensors[0].stride == [2 * 9 * 120, 1, 120, 12]
    found = nn.conv2d(a[:, ::2, :, :8], b[::2])
    compare(found, convolve(x[:, ::2, :, :8], w[::2]), "float32")
    assert standin.asked == 2


def test_strides_that_the_library_does_not_read(standin, rng):
    x, w, a, b = arrays(rng, "float32", (2, 7, 7, 4), (8, 3, 3, 4))
    for view, wanted in (
        (a[:, ::-1], x[:, ::-1]),
        (cyrt.permute_dims(a, (0, 2, 1, 3)), x.swapaxes(1, 2)),
        (cyrt.broadcast_to(a[:1], a.shape), x[:1].repeat(2, 0)),
    ):
        compare(nn.conv2d(view, b), convolve(wanted, w), "float32")
    assert standin.asked == 0


def test_memory_that_is_not_aligned(standin, rng):
    x, w, _, b = arrays(rng, "float32", (2, 7, 7, 4), (8, 3, 3, 4))
    flat = cyrt.asarray(np.concatenate([[0], x.ravel()]).astype(np.float32))
    found = nn.conv2d(cyrt.reshape(flat[1:], x.shape), b)
    compare(found, convolve(x, w), "float32")
    assert standin.asked == 0


def test_small_ones_and_wide_types_are_own_kernels(standin, rng):
    shapes = (2, 9, 8, 4), (3, 3, 2, 4)  # 98 places, 24 elements of a window, 3 filters
    assert explain("conv", "float64", *shapes).kernel.startswith("cyrt_")
    library_conv.decide(0, True, 7056)
    assert explain("conv", "float32", *shapes).kernel == "conv_FLOAT"
    library_conv.decide(0, True, 7057)
    assert explain("conv", "float32", *shapes).kernel.startswith("cyrt_")
    assert standin.asked == 1


LARGE = (32, 14, 14, 256), (256, 3, 3, 256)
POINTS = (32, 28, 28, 64), (128, 1, 1, 64)


@pytest.mark.parametrize(
    ("own", "op", "dtype", "shapes", "options"),
    [
        (True, "conv", "float32", LARGE, {"padding": 1}),
        (True, "conv_input_vjp", "float32", LARGE, {"padding": 1}),
        (False, "conv_weight_vjp", "float32", LARGE, {"padding": 1}),
        (False, "conv", "float16", LARGE, {"padding": 1}),
        (False, "conv", "float32", [(1, 8, 8, 64), POINTS[1]], {}),  # one tile
        (False, "conv", "float32", [(32, 20, 20, 64), (64, 3, 3, 64)], {}),  # cuDNN transforms it
        (True, "conv", "float32", [(32, 41, 41, 64), (64, 3, 3, 64)], {"stride": 2}),
        (False, "conv_input_vjp", "float32", [(32, 41, 41, 64), (64, 3, 3, 64)], {"stride": 2}),
        (True, "conv", "float32", POINTS, {}),
        (True, "conv_input_vjp", "float32", [POINTS[0], (128, 1, 1, 64)], {}),
        (False, "conv", "float32", [(32, 28, 28, 62), (128, 1, 1, 62)], {}),  # no whole vectors
        (True, "conv", "bfloat16", [(2, 9, 9, 8), (8, 3, 3, 1)], {"groups": 8}),
        (True, "conv_input_vjp", "float32", [(2, 9, 9, 8), (8, 3, 3, 1)], {"groups": 8}),
        (False, "conv_weight_vjp", "float32", [(2, 9, 9, 8), (8, 3, 3, 1)], {"groups": 8}),
        (False, "conv", "float32", [(2, 9, 9, 8), (8, 3, 5, 1)], {"groups": 8}),
    ],
)
def test_what_own_kernels_compute_faster(standin, op, dtype, shapes, options, own):
    assert explain(op, dtype, *shapes, **options).kernel.startswith("cyrt_") == own


def test_tf32_is_the_librarys(standin, setting):
    setting(CYRT_TF32="1")
    library_conv.decide(0, True, 1)
    assert not explain("conv", "float32", *LARGE, padding=1).kernel.startswith("cyrt_")


def test_tensors_that_are_too_large(standin, rng, monkeypatch):
    monkeypatch.setattr(library_conv, "MOST_SPAN", 2 * 9 * 8 * 4)
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 0
    monkeypatch.setattr(library_conv, "MOST_SPAN", 2 * 9 * 8 * 4 + 1)
    template.forget()
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 3


# -- plans -----------------------------------------------------------------------------------------


def test_a_call_is_learned_once(standin, rng):
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    wanted = convolve(x, w)
    for _ in range(20):
        compare(nn.conv2d(a, b), wanted, "float32")
    assert (standin.asked, standin.launched) == (1, 3)
    assert cyrt.current_encoder().stats()["templates"] == 1


def test_equal_shapes_and_other_strides_are_other_plans(standin, rng):
    """The dilation of the input and the output's shape belong to the key."""
    _, _, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 8))
    one, options = cyrt.asarray(numbers(rng, "float32", 4, 3, 2, 1)), {"groups": 4}
    results = [nn.conv_transpose2d(a, one, stride, **options).shape for stride in (1, 2, 1, 2)]
    assert results == [(2, 8, 7, 4), (2, 13, 12, 4)] * 2
    nn.conv_transpose2d(a, one, 2, output_padding=1, **options)
    g = cyrt.zeros((2, 3, 3, 8), dtype=cyrt.float32)
    for size in (5, 6):
        nn.conv_input_vjp(g, (2, size, size, 8), b, stride=2, padding=1)
    assert standin.asked == 5


def test_what_the_library_does_not_provide_is_remembered(standin, rng):
    standin.plans = []
    for _ in range(3):
        check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 3


def test_plans_that_do_not_run_here(standin, rng):
    standin.plans = [None, (1, 2 << 30), (1, 4096)]
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.built == [1, 2] * 3
    standin.plans = [None, (1, 2 << 30)]
    template.forget()
    standin.launched = 0
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.launched == 0


@pytest.mark.parametrize("tf32", [False, True])
def test_notes(standin, rng, setting, tf32):
    setting(CYRT_TF32=str(int(tf32)))
    library_conv.decide(0, True, 1)
    always = {Note.NONDETERMINISTIC, Note.DOWN_CONVERT_INPUTS}
    for name in TYPES:
        check(rng, name, (2, 9, 8, 4), (3, 3, 2, 4))
        exactly = name == "float32" and not tf32
        for graph in standin.graphs[-3:]:
            assert set(graph.barred) == always | ({Note.TENSOR_CORE} if exactly else set())


def test_workspaces(standin, rng):
    standin.plans = [(1, 4096)]
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    for _ in range(4):
        compare(nn.conv2d(a, b), convolve(x, w), "float32")
    streams = [cyrt.Stream() for _ in range(3)]
    results = []
    for stream in streams:
        with stream:
            results.extend(nn.conv2d(a, b) for _ in range(5))
    for found in results:
        compare(found, convolve(x, w), "float32")


def test_no_memory_for_the_workspace(standin, rng, monkeypatch):
    monkeypatch.setattr(library_conv, "MOST_WORKSPACE", 1 << 40)
    standin.plans = [(1, 1 << 38)]
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 3


def test_templates_are_dropped_and_learned_again(standin, rng, setting):
    setting(CYRT_TEMPLATE_CACHE_SIZE="2")
    template.forget()
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        for _ in range(3):
            for padding in (0, 1, 2):
                found = nn.conv2d(a, b, padding=padding)
                compare(found, convolve(x, w, padding=padding), "float32")
                library_conv.decide(0, True, 1)  # no plan holds the template
    assert template.count_templates() == 2
    assert standin.asked == 9


def test_plans_hold_their_templates(standin, rng, setting):
    setting(CYRT_TEMPLATE_CACHE_SIZE="2")
    template.forget()
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    for _ in range(3):
        for padding in (0, 1, 2):
            found = nn.conv2d(a, b, padding=padding)
            compare(found, convolve(x, w, padding=padding), "float32")
    assert template.count_templates() == 3
    assert standin.asked == 3


def test_two_threads(standin, rng):
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    cyrt.synchronize()
    wanted, found = {}, {}
    for padding in range(4):
        wanted[padding] = convolve(x, w, padding=padding)

    def work(index):
        found[index] = [nn.conv2d(a, b, padding=p % 4).numpy() for p in range(12)]

    assert run_in_threads(*(partial(work, i) for i in range(4))) == []
    for each in found.values():
        for p, result in enumerate(each):
            np.testing.assert_allclose(result, wanted[p % 4], rtol=1e-4, atol=1e-4)
    assert len(found) == 4


def test_patched_graphs_are_as_launches_without_graphs(standin, rng):
    """A graph whose call is patched with other addresses computes what its kernels do alone."""
    shapes = (2, 6, 6, 4), (8, 3, 3, 4)
    inputs = [arrays(rng, "float32", *shapes) for _ in range(4)]

    def rounds():
        found = []
        for _, _, a, b in inputs:
            y = nn.conv2d(a, b, padding=1)
            found.append((y, nn.conv_input_vjp(y, shapes[0], b, padding=1)))
            cyrt.commit()
        return [each.numpy().tobytes() for pair in found for each in pair]

    patched = rounds()
    assert rounds() == patched
    with cyrt.CommandEncoder(graphs=False) as encoder, encoder.stream:
        assert rounds() == patched


# -- errors ----------------------------------------------------------------------------------------


def test_bad_parameters_are_what_the_library_does_not_provide(standin, rng):
    standin.status = "BAD_PARAM_SHAPE_MISMATCH"
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.launched == 0


def test_other_statuses_are_errors_with_shapes_and_types(standin, rng):
    _, _, a, b = arrays(rng, "float16", (2, 9, 8, 4), (3, 3, 2, 4))
    standin.status = "INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
    with pytest.raises(cyrt.OutOfMemoryError, match="HOST_ALLOCATION_FAILED"):
        nn.conv2d(a, b)
    standin.status, standin.failure = None, "EXECUTION_FAILED_CUDART"
    with pytest.raises(cyrt.CudaError) as caught:
        nn.conv2d(a, b, stride=2)
    assert (caught.value.call, caught.value.code) == ("cudnnBackendExecute", 5000)
    text = str(caught.value)
    assert "CUDNN_STATUS_EXECUTION_FAILED_CUDART" in text
    assert "float16 convolution (forward), image (2, 4, 9, 8), filter (3, 4, 3, 2)" in text
    standin.failure = None
    check(rng, "float16", (2, 9, 8, 4), (3, 3, 2, 4))


def test_a_library_that_is_too_old_is_not_used(standin, rng, monkeypatch):
    standin.version = 80907
    opened = cudnn.open_frontend(standin)
    monkeypatch.setattr(cudnn, "find", lambda: opened)
    library_conv.decide(0, None, 1)
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 0


def test_explain_tells_the_library(standin):
    explained = explain("conv", "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert (explained.origin, explained.kernel) == ("cuDNN 9.19.0", "conv_FLOAT")
    assert explained.grid == 3 * 2 * 7 * 7 // 128 + 1
    library_conv.decide(0, False)
    explained = explain("conv", "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert explained.kernel.startswith("cyrt_")
