"""Convolutions by cuDNN on a GPU, against cyrt's own kernels."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conv_reference import ACTIVATIONS, TYPES, arrays, convolve, exact
from explaining import explain
from rows_of_numbers import numbers

import cyrt
from cyrt import nn
from cyrt.builtin import library_conv
from cyrt.graph import template
from cyrt.jit import cache
from cyrt.libs import cudnn

pytestmark = pytest.mark.gpu


@pytest.fixture
def library():
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
    ((2, 14, 14, 32), (32, 3, 3, 32), {"dilation": 2, "padding": 2}),
    ((2, 14, 14, 32), (64, 3, 3, 8), {"groups": 4, "padding": 1}),
    ((2, 14, 14, 32), (32, 5, 5, 1), {"groups": 32, "padding": 2}),
    ((4, 100, 32), (48, 5, 32), {"padding": 2}),
    ((1, 6, 10, 10, 16), (16, 3, 3, 3, 16), {"padding": 1}),
    ((2, 9, 8, 16), (24, 3, 3, 16), {"padding": 1, "input_dilation": 2, "flip": True}),
    ((2, 9, 8, 16), (16, 3, 3, 1), {"input_dilation": 2, "flip": True, "groups": 16}),
    ((2, 9, 8, 16), (24, 3, 3, 16), {"input_dilation": 2}),
]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_against_own_kernels(library, rng, case, name):
    """The library present and absent: equal within the type's tolerance, and from run to run."""
    x_shape, w_shape, options = CASES[case]
    _, _, x, w = arrays(rng, name, x_shape, w_shape)

    def results():
        y = nn.conv_general(x, w, **options)
        given = nn.conv_input_vjp(y, x_shape, w, **options)
        return y, given, nn.conv_weight_vjp(y, x, w_shape, **options)

    first, second = results(), results()
    library_conv.decide(0, False)
    for found, again, wanted in zip(first, second, results(), strict=True):
        assert found.numpy().tobytes() == again.numpy().tobytes()
        scale = np.abs(exact(wanted)).max()
        np.testing.assert_allclose(
            exact(found) / scale, exact(wanted) / scale, rtol=0, atol=TOLERANCES[name]
        )


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_and_activation_on_a_gpu(library, rng, activation, name):
    x, w, a, b = arrays(rng, name, (2, 14, 14, 32), (64, 3, 3, 32))
    bias = numbers(rng, name, 64)
    wanted = ACTIVATIONS.get(activation, lambda y: y)(convolve(x, w) + exact(bias))
    found = nn.conv2d(a, b, bias=cyrt.asarray(bias), activation=activation)
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(exact(found) / scale, wanted / scale, rtol=0, atol=TOLERANCES[name])


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
            found.append(nn.conv_input_vjp(g, image.shape, filters, **options))
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


@pytest.mark.parametrize("name", TYPES)
def test_calls_are_templates_and_outlive_what_learned_them(library, rng, name):
    """One channel a group is compiled at run time, and float32 leaves traces in padding."""
    template.forget()
    _, _, x, w = arrays(rng, name, (8, 28, 28, 64), (64, 3, 3, 64))
    one = cyrt.asarray(numbers(rng, name, 64, 5, 5, 1))
    before = cyrt.current_encoder().stats()
    for _ in range(3):
        nn.conv2d(x, one, padding=2, groups=64)
        y = nn.conv2d(x, w, padding=1)
        nn.conv_input_vjp(y, x.shape, w, padding=1)
        nn.conv_weight_vjp(y, x, w.shape, padding=1)
        gc.collect()
        cyrt.synchronize()
    after = cyrt.current_encoder().stats()
    assert after["opaque_captures"] == before["opaque_captures"]
    assert after["repoints"] == before["repoints"] + 12


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


@pytest.mark.parametrize(("groups", "size"), [(1, 3), (64, 5)])
def test_the_fastest_plan_on_a_gpu(library, rng, setting, folder, groups, size):
    """Filters of one channel are templates, too: cuDNN compiles them, and unloads the plan."""
    setting(CYRT_CONV_AUTOTUNE="1")
    library_conv.decide(0, None, 1)
    template.forget()
    shapes = (2, 28, 28, 64), (64, size, size, 64 // groups)
    x, w, a, b = arrays(rng, "float16", *shapes)
    options = {"padding": size // 2, "groups": groups}
    found = nn.conv2d(a, b, **options)
    template.forget()  # before it is launched
    gc.collect()
    np.testing.assert_allclose(exact(found), convolve(x, w, **options), rtol=3e-3, atol=0.1)
    store = cache.current()
    facts = [store.load(entry)[0] for entry in store.entries()]
    assert [each["microseconds"] > 0 for each in facts if each.get("kind") == "convolution"] == [
        True
    ]
    assert nn.conv2d(a, b, **options).numpy().tobytes() == found.numpy().tobytes()
    explained = explain("conv", "float16", *shapes, **options)
    assert explained.origin.startswith("cuDNN")
