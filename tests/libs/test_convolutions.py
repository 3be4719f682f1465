"""Convolutions by the library: the stand-in's on the emulated device, cuDNN's on a GPU."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from conv_reference import ACTIVATIONS, TYPES, check, compare, convolve, exact
from rows_of_numbers import numbers
from standin_cudnn import Frontend, Note

import cyrt
from cyrt import nn
from cyrt.builtin import conv_tuning, library_conv
from cyrt.graph import template
from cyrt.jit import cache
from cyrt.kernels import explain
from cyrt.libs import cudnn


@pytest.fixture(scope="module")
def built(emulated):
    if not emulated:
        pytest.skip("on a GPU the library is NVIDIA's")
    made = Frontend()
    made.use_driver()
    return made


@pytest.fixture
def standin(built, monkeypatch):
    built.reset()
    opened = cudnn.open_frontend(built)
    monkeypatch.setattr(cudnn, "find", lambda: opened)
    monkeypatch.setattr(cudnn, "_handles", cudnn._Handles())
    template.forget()
    library_conv.decide(0, True, 1)
    yield built
    library_conv.decide(0)
    template.forget()


@pytest.fixture
def tuning(standin, setting, monkeypatch, tmp_path):
    setting(CYRT_CONV_AUTOTUNE="1")
    library_conv.decide(0, True, 1)
    store = cache.Cache(tmp_path / "cache", 1 << 20)
    monkeypatch.setattr(cache, "current", lambda: store)
    return store


def arrays(rng, name, *shapes):
    hosts = [numbers(rng, name, *shape) for shape in shapes]
    return *hosts, *(cyrt.asarray(host) for host in hosts)


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
        stride=stride, padding=padding, kernel_dilation=dilation,
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
    check(rng, "float64", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 0
    library_conv.decide(0, True, 1 << 20)
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.asked == 0


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
    _, _, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    one, options = cyrt.asarray(numbers(rng, "float32", 4, 3, 3, 1)), {"groups": 4}
    results = [nn.conv_transpose2d(a, one, stride, **options).shape for stride in (1, 2, 1, 2)]
    assert results == [(2, 8, 8, 4), (2, 13, 13, 4)] * 2
    nn.conv_transpose2d(a, one, 2, output_padding=1, **options)
    g = cyrt.zeros((2, 3, 3, 8), dtype=cyrt.float32)
    for size in (5, 6):
        nn.conv_input_vjp(g, b, (2, size, size, 4), stride=2, padding=1)
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
    for _ in range(3):
        for padding in (0, 1, 2):
            found = nn.conv2d(a, b, padding=padding)
            compare(found, convolve(x, w, padding=padding), "float32")
    assert template.held() == 2
    assert standin.asked == 9


def test_two_threads(standin, rng):
    x, w, a, b = arrays(rng, "float32", (2, 6, 6, 4), (8, 3, 3, 4))
    cyrt.synchronize()
    wanted, found = {}, {}
    for padding in range(4):
        wanted[padding] = convolve(x, w, padding=padding)

    def work(index):
        found[index] = [nn.conv2d(a, b, padding=p % 4).numpy() for p in range(12)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found.values():
        for p, result in enumerate(each):
            np.testing.assert_allclose(result, wanted[p % 4], rtol=1e-4, atol=1e-4)
    assert len(found) == 4


def test_replays_are_as_fresh_graphs(standin, rng, setting):
    """A graph whose call is patched with other addresses computes what a new one does."""
    shapes = (2, 6, 6, 4), (8, 3, 3, 4)
    inputs = [arrays(rng, "float32", *shapes) for _ in range(4)]

    def rounds():
        found = []
        for _, _, a, b in inputs:
            y = nn.conv2d(a, b, padding=1)
            found.append((y, nn.conv_input_vjp(y, b, shapes[0], padding=1)))
            cyrt.commit()
        return [each.numpy().tobytes() for pair in found for each in pair]

    patched = rounds()
    assert rounds() == patched
    setting(CYRT_GRAPH_UPDATE="none")
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
    told = explain("conv", "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert (told.origin, told.kernel) == ("cuDNN 9.19.0", "conv_FLOAT")
    assert told.grid == 3 * 2 * 7 * 7 // 128 + 1
    library_conv.decide(0, False)
    told = explain("conv", "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert told.kernel.startswith("cyrt_")


# -- the fastest plan ------------------------------------------------------------------------------


def test_the_fastest_plan_is_measured_and_remembered(tuning, standin, rng, monkeypatch):
    standin.plans = [(60, 4096), None, (1, 0), (30, 0)]
    x, w, a, b = arrays(rng, "float32", (2, 20, 20, 4), (8, 3, 3, 4))
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [0, 2, 3, 2]
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    entry = tuning.load(tuning.entries()[0])[0]
    assert (entry["kind"], entry["plan"], entry["cudnn"]) == ("convolution", "eng2", "9.19.0")
    assert entry["problem"]["image"]["shape"] == [2, 4, 20, 20]
    template.forget()
    standin.built.clear()
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [2]
    # Another library may not have that plan.
    template.forget()
    standin.plans = [(1, 0)]
    compare(nn.conv2d(a, b), convolve(x, w), "float32")


def test_few_plans_are_measured(tuning, standin, rng):
    standin.plans = [(1, 0)] * 40
    check(rng, "float16", (2, 9, 8, 4), (3, 3, 2, 4), stride=2)
    assert len(standin.built) == 3 * (conv_tuning.MOST_PLANS + 1)


def test_no_memory_to_measure_in(tuning, standin, rng, monkeypatch):
    monkeypatch.setattr(conv_tuning, "ALIGNMENT", 1 << 50)
    standin.plans = [(60, 0), (1, 0)]
    check(rng, "float32", (2, 9, 8, 4), (3, 3, 2, 4))
    assert standin.built == [0] * 3
    assert tuning.entries() == []


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def library(monkeypatch):
    found, reason = cudnn.find()
    if found is None:
        pytest.skip(reason)
    library_conv.decide(0, None, 1)
    yield found
    library_conv.decide(0)


TOLERANCES = {"float16": 3e-3, "bfloat16": 2e-2, "float32": 2e-5}
CASES = [
    ((2, 9, 8, 16), (24, 3, 3, 16), {"padding": 1}),
    ((2, 28, 28, 64), (64, 3, 3, 64), {"padding": 1}),
    ((2, 28, 28, 64), (64, 1, 1, 64), {"stride": 2}),
    ((1, 40, 40, 3), (16, 7, 7, 3), {"stride": 2, "padding": 3}),
    ((2, 17, 15, 5), (7, 3, 2, 5), {"stride": (2, 1), "padding": ((1, 0), (0, 2))}),
    ((2, 14, 14, 32), (32, 3, 3, 32), {"kernel_dilation": 2, "padding": 2}),
    ((2, 14, 14, 32), (64, 3, 3, 8), {"groups": 4, "padding": 1}),
    ((2, 14, 14, 32), (32, 3, 3, 1), {"groups": 32, "padding": 1}),
    ((4, 100, 32), (48, 5, 32), {"padding": 2}),
    ((1, 6, 10, 10, 16), (16, 3, 3, 3, 16), {"padding": 1}),
    ((2, 9, 8, 16), (24, 3, 3, 16), {"padding": 1, "input_dilation": 2, "flip": True}),
    ((2, 9, 8, 16), (16, 3, 3, 1), {"input_dilation": 2, "flip": True, "groups": 16}),
    ((2, 9, 8, 16), (24, 3, 3, 16), {"input_dilation": 2}),
]


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_against_own_kernels(library, rng, case, name):
    """The library present and absent: equal within the type's tolerance, and from run to run."""
    x_shape, w_shape, options = CASES[case]
    _, _, x, w = arrays(rng, name, x_shape, w_shape)

    def results():
        y = nn.conv_general(x, w, **options)
        given = nn.conv_input_vjp(y, w, x_shape, **options)
        return y, given, nn.conv_weight_vjp(y, x, w_shape, **options)

    first, second = results(), results()
    library_conv.decide(0, False)
    for found, again, wanted in zip(first, second, results(), strict=True):
        assert found.numpy().tobytes() == again.numpy().tobytes()
        scale = np.abs(exact(wanted)).max()
        np.testing.assert_allclose(
            exact(found) / scale, exact(wanted) / scale, rtol=0, atol=TOLERANCES[name]
        )


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_and_activation_on_a_gpu(library, rng, activation, name):
    x, w, a, b = arrays(rng, name, (2, 14, 14, 32), (64, 3, 3, 32))
    bias = numbers(rng, name, 64)
    wanted = ACTIVATIONS.get(activation, lambda y: y)(convolve(x, w) + exact(bias))
    found = nn.conv2d(a, b, bias=cyrt.asarray(bias), activation=activation)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(exact(found) / scale, wanted / scale, rtol=0, atol=TOLERANCES[name])


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("stride", [1, 2])
def test_views_on_a_gpu(library, rng, name, stride):
    """Parts of images, of channels and of filters, at distances of their own."""
    _, _, x, w = arrays(rng, name, (4, 18, 20, 48), (48, 3, 3, 32))
    views = [
        (x[..., 16:], w),
        (x[:, ::2, :, :32], w),
        (x[::2, 1:17, 2:19, 8:40], w[16:]),
        (x[:, :, ::2, 16:], w[::2]),
    ]
    options = {"stride": stride, "padding": 1}

    def results():
        found = []
        for image, filters in views:
            y = nn.conv2d(image, filters, **options)
            g = cyrt.concat([y, y], axis=-1)[..., : y.shape[-1]]
            found.append(y)
            found.append(nn.conv_input_vjp(g, filters, image.shape, **options))
            found.append(nn.conv_weight_vjp(g, image, filters.shape, **options))
        return found

    first = results()
    library_conv.decide(0, False)
    for i, (found, wanted) in enumerate(zip(first, results(), strict=True)):
        scale = np.abs(exact(wanted)).max()
        np.testing.assert_allclose(
            exact(found) / scale, exact(wanted) / scale, rtol=0, atol=TOLERANCES[name],
            err_msg=f"view {i // 3}, operation {i % 3}",
        )  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
def test_calls_are_templates_and_outlive_what_learned_them(library, rng, name):
    """One channel a group is compiled at run time, and float32 leaves traces in padding."""
    template.forget()
    _, _, x, w = arrays(rng, name, (8, 28, 28, 64), (64, 3, 3, 64))
    one = cyrt.asarray(numbers(rng, name, 64, 3, 3, 1))
    before = cyrt.current_encoder().stats()
    for _ in range(3):
        nn.conv2d(x, one, padding=1, groups=64)
        y = nn.conv2d(x, w, padding=1)
        nn.conv_input_vjp(y, w, x.shape, padding=1)
        nn.conv_weight_vjp(y, x, w.shape, padding=1)
        gc.collect()
        cyrt.synchronize()
    after = cyrt.current_encoder().stats()
    assert after["opaque_captures"] == before["opaque_captures"]
    assert after["repoints"] == before["repoints"] + 12


@pytest.mark.gpu
def test_a_chain_on_a_gpu(library, rng):
    """A graph is patched with other addresses, and computes what fresh ones do."""
    _, _, a, b = arrays(rng, "float16", (2, 28, 28, 64), (64, 3, 3, 64))
    b = b / cyrt.asarray(np.float16(24))

    def chain():
        y = a
        for _ in range(20):
            y = nn.conv2d(y, b, padding=1)
        return y.numpy().tobytes()

    assert len({chain() for _ in range(4)}) == 1


@pytest.mark.gpu
def test_the_fastest_plan_on_a_gpu(library, rng, setting, monkeypatch, tmp_path):
    setting(CYRT_CONV_AUTOTUNE="1")
    library_conv.decide(0, None, 1)
    store = cache.Cache(tmp_path / "cache", 1 << 20)
    monkeypatch.setattr(cache, "current", lambda: store)
    template.forget()
    x, w, a, b = arrays(rng, "float16", (2, 28, 28, 64), (64, 3, 3, 64))
    found = nn.conv2d(a, b, padding=1)
    wanted = convolve(x, w, padding=1)
    np.testing.assert_allclose(exact(found), wanted, rtol=3e-3, atol=0.1)
    facts = store.load(store.entries()[0])[0]
    assert facts["microseconds"] > 0
    template.forget()
    assert nn.conv2d(a, b, padding=1).numpy().tobytes() == found.numpy().tobytes()
    told = explain("conv", "float16", (2, 28, 28, 64), (64, 3, 3, 64), padding=1)
    assert told.origin.startswith("cuDNN")
