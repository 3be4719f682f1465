"""Attention of many rows by the library: the stand-in's on the emulated device."""

from __future__ import annotations

import numpy as np
import pytest
from attention_reference import on_device, operands, reference
from explaining import explain
from rows_of_numbers import assert_close, exact, numbers
from standin_cudnn import Alignment, Note

import cyrt
from cyrt import nn
from cyrt.builtin import library_attention
from cyrt.graph import template
from cyrt.libs import cudnn

SHAPE = 1, 2, 1, 20, 24, 16  # batches, heads, heads of keys, rows, keys, features


def check(rng, name, shape, mask=None, scale=None):
    q, k, v = operands(rng, name, *shape)
    found = nn.attention(*on_device(q, k, v), scale, mask)
    assert_close(found, reference(q, k, v, scale=scale, mask=mask), name)


# -- what the library computes ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("keys", [20, 33])
def test_results(standin, rng, name, mask, keys):
    check(rng, name, (2, 4, 2, 20, keys, 24), mask)
    assert (standin.asked, standin.launched) == (1, 3), "it is captured three times"
    explained = standin.graphs[0]
    square = Alignment.TOP_LEFT if keys == 20 else Alignment.BOTTOM_RIGHT
    assert explained.causal == (square.value if mask else 0)
    assert explained.scale == 24**-0.5
    assert explained.barred == [Note.NONDETERMINISTIC]


def test_views_of_one_matrix(standin, rng):
    """Rows (B, T, heads * D) of queries, keys and values are read where they are."""
    whole = numbers(rng, "float16", 2, 20, (4 + 2 + 2) * 16)
    array = cyrt.asarray(whole)
    q, k, v = (
        array[..., 16 * a : 16 * b].reshape(2, 20, b - a, 16).swapaxes(1, 2)
        for a, b in ((0, 4), (4, 6), (6, 8))
    )
    wanted = reference(*(each.numpy() for each in (q, k, v)), mask="causal")
    assert_close(nn.attention(q, k, v, mask="causal"), wanted, "float16")
    out, *given = (each.stride for each in standin.graphs[0].tensors)
    assert given == [[20 * 128, 16, 128, 1]] * 3
    assert out == [4 * 20 * 16, 20 * 16, 16, 1]


def test_parts_of_a_cache(standin, rng):
    q, k, v = operands(rng, "bfloat16", 2, 4, 2, 20, 40, 16)
    arrays = on_device(q, k, v)
    found = nn.attention(arrays[0], arrays[1][:, :, :33], arrays[2][:, :, 7:], mask="causal")
    wanted = reference(q, k[:, :, :33], v[:, :, 7:], mask="causal")
    assert_close(found, wanted, "bfloat16")
    _, _, *given = (each.stride for each in standin.graphs[0].tensors)
    assert given == [[2 * 40 * 16, 40 * 16, 16, 1]] * 2
    assert standin.graphs[0].tensors[2].dim == [2, 2, 33, 16]


def test_it_is_learned_once_for_a_shape_strides_and_scale(standin, rng):
    for _ in range(3):
        check(rng, "float16", SHAPE, "causal")
    assert standin.asked == 1
    others = [
        {"mask": None},
        {"scale": 0.5},
        {"name": "bfloat16"},
        {"shape": (2, 2, 1, 20, 24, 16)},
        {"shape": (1, 4, 1, 20, 24, 16)},
        {"shape": (1, 2, 2, 20, 24, 16)},
        {"shape": (1, 2, 1, 21, 24, 16)},
        {"shape": (1, 2, 1, 20, 25, 16)},
        {"shape": (1, 2, 1, 20, 24, 24)},
    ]
    for count, other in enumerate(others, 2):
        check(rng, **{"name": "float16", "shape": SHAPE, "mask": "causal", **other})
        assert standin.asked == count, other


def test_each_operand_has_strides_of_its_own(standin, rng):
    q, k, v = operands(rng, "float16", 2, 2, 2, 20, 24, 16)
    wanted = reference(q, k, v)
    dense = on_device(q, k, v)
    apart = on_device(*(np.repeat(each, 2, axis=2) for each in (q, k, v)))
    for chosen in range(8):
        arrays = [apart[i][:, :, ::2] if chosen >> i & 1 else each for i, each in enumerate(dense)]
        assert_close(nn.attention(*arrays), wanted, "float16")
        assert standin.asked == chosen + 1


def test_patched_graphs_are_as_launches_without_graphs(standin, rng):
    """A graph whose call is patched with other addresses computes what its kernels do alone."""
    inputs = [on_device(*operands(rng, "float16", *SHAPE)) for _ in range(4)]

    def rounds():
        found = []
        for arrays in inputs:
            found.append(nn.attention(*arrays, mask="causal"))
            cyrt.commit()
        return [each.numpy().tobytes() for each in found]

    patched = rounds()
    assert rounds() == patched
    with cyrt.CommandEncoder(graphs=False) as encoder, encoder.stream:
        assert rounds() == patched
    assert standin.launched == 3


def test_workspaces(standin, rng):
    standin.plans = [(1, 4096)]
    for _ in range(3):
        check(rng, "float16", SHAPE)
    q, k, v = operands(rng, "float16", *SHAPE)
    arrays, found = on_device(q, k, v), []
    for stream in [cyrt.Stream() for _ in range(3)]:
        with stream:
            found.extend(nn.attention(*arrays) for _ in range(3))
    for each in found:
        assert_close(each, reference(q, k, v), "float16")


def test_calls_that_are_captured_each_time(standin, rng):
    """A copy of memory among them is no kernel."""
    standin.copies = True
    for _ in range(3):
        check(rng, "float16", SHAPE, "causal")
    assert standin.asked == 1
    assert standin.launched == 1 + 3


def test_explain_tells_the_library(standin):
    explained = explain("flash_attention", "bfloat16", (1, 4, 100, 64), (1, 2, 130, 64))
    assert (explained.origin, explained.kernel) == ("cuDNN 9.19.0", "sdpa_BFLOAT16")
    assert (explained.grid, explained.block) == (4, (128, 1))
    assert standin.graphs[0].tensors[2].stride == [2 * 130 * 64, 130 * 64, 64, 1]
    library_attention.decide(0, False)
    explained = explain("flash_attention", "bfloat16", (1, 4, 100, 64), (1, 2, 130, 64))
    assert explained.kernel == "cyrt_flash_attention_bfloat16"


# -- what cyrt's own kernels compute ---------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"mask": np.tri(20, 24, dtype=bool), "sinks": np.ones(2, np.float32)},
        {"sinks": np.ones(2, np.float32)},
        {"scale": -0.5},
        {"scale": 0.0},
    ],
)
def test_what_the_library_is_not_asked(standin, rng, options):
    q, k, v = operands(rng, "float16", *SHAPE)
    given = {
        name: cyrt.asarray(each) if isinstance(each, np.ndarray) else each
        for name, each in options.items()
    }
    found = nn.attention(*on_device(q, k, v), **given)
    assert standin.asked == 0
    assert_close(found, reference(q, k, v, **options), "float16")


def test_rows_that_see_no_key(standin, rng):
    q, k, v = operands(rng, "float16", 1, 2, 1, 30, 24, 16)
    found = nn.attention(*on_device(q, k, v), mask="causal")
    assert_close(found, reference(q, k, v, mask="causal"), "float16")
    assert (exact(found)[:, :, :6] == 0).all()
    assert standin.asked == 0
    empty = cyrt.ones((1, 1, 0, 16), dtype="float16")
    assert (exact(nn.attention(cyrt.asarray(q), empty, empty)) == 0).all()
    assert standin.asked == 0


def test_strides_and_features_that_the_library_does_not_read(standin, rng):
    q, k, v = operands(rng, "float16", 1, 2, 2, 20, 24, 16)
    arrays = on_device(q, k, v)
    for given, wanted in (
        (cyrt.broadcast_to(arrays[1][:, :1], k.shape), np.broadcast_to(k[:, :1], k.shape)),
        (arrays[1][:, :, ::-1], k[:, :, ::-1]),
    ):
        found = nn.attention(arrays[0], given, arrays[2])
        assert_close(found, reference(q, wanted, v), "float16")
    check(rng, "float16", (1, 2, 1, 20, 24, 12))
    assert standin.asked == 0


def test_tensors_that_are_too_large(standin, rng, monkeypatch):
    monkeypatch.setattr(library_attention, "MOST_SPAN", 2 * 20 * 16)
    check(rng, "float16", SHAPE)
    assert standin.asked == 0
    monkeypatch.setattr(library_attention, "MOST_SPAN", 2 * 20 * 16 + 1)
    template.forget()
    check(rng, "float16", SHAPE)
    assert standin.asked == 1


def test_small_ones(standin, rng):
    multiplications = 2 * 20 * 24 * 16
    library_attention.decide(0, True, from_=multiplications + 1, behind=0)
    check(rng, "float16", SHAPE)
    assert standin.asked == 0
    library_attention.decide(0, True, from_=multiplications, behind=0)
    check(rng, "float16", SHAPE)
    assert standin.asked == 1


def test_a_shape_that_comes_seldom_costs_no_plan(standin, rng):
    """The multiplications of a key are counted, and four times those with a mask."""
    once = 2 * 20 * 24 * 16
    library_attention.decide(0, True, from_=1, behind=3 * once)
    for _ in range(3):
        check(rng, "float16", SHAPE)
        check(rng, "float16", (1, 2, 1, 20, 32, 16))
    assert standin.asked == 1, "the larger one, by its third call"
    check(rng, "float16", SHAPE)
    assert standin.asked == 2
    q, k, v = operands(rng, "float16", *SHAPE)
    mask = rng.random((20, 24)) < 0.5
    found = nn.attention(*on_device(q, k, v), mask=cyrt.asarray(mask))
    assert_close(found, reference(q, k, v, mask=mask), "float16")
    assert standin.asked == 3


@pytest.mark.parametrize("fewer", [1, 0])
def test_shapes_that_came_long_ago_are_forgotten(standin, rng, monkeypatch, fewer):
    monkeypatch.setattr(library_attention, "COUNTED", 4)
    library_attention.decide(0, True, from_=1, behind=1.5 * 2 * 20 * 24 * 16)
    q, k, v = on_device(*operands(rng, "float16", *SHAPE))
    for i in range(4 + 1 - fewer):
        nn.attention(q, k, v, 0.1 + i)
    nn.attention(q, k, v, 0.1)
    assert standin.asked == fewer


def test_explain_asks_at_once(standin, rng):
    library_attention.decide(0, True, from_=1)
    for _ in range(2):
        check(rng, "float16", SHAPE)
    assert standin.asked == 0
    for _ in range(2):
        explained = explain("flash_attention", "float16", (1, 2, 20, 16), (1, 1, 24, 16))
        assert explained.origin == "cuDNN 9.19.0"
    check(rng, "float16", SHAPE)
    assert standin.asked == 1


def test_what_the_library_does_not_provide_is_remembered(standin, rng):
    standin.plans = [None, (1, library_attention.MOST_WORKSPACE + 1)]
    for _ in range(3):
        check(rng, "float16", SHAPE)
    standin.status = "NOT_SUPPORTED_SHAPE"
    check(rng, "bfloat16", SHAPE)
    assert standin.asked == 1
    assert standin.launched == 0


def test_no_memory_for_the_workspace(standin, rng, monkeypatch):
    monkeypatch.setattr(library_attention, "MOST_WORKSPACE", 1 << 40)
    standin.plans = [(1, 1 << 38)]
    check(rng, "float16", SHAPE)
    assert standin.asked == 1


def test_a_library_that_is_too_old_is_not_used(standin, rng, monkeypatch):
    standin.version = 80907
    opened = cudnn.open_frontend(standin)
    monkeypatch.setattr(cudnn, "find", lambda: opened)
    library_attention.decide(0, None, from_=1, behind=0)
    check(rng, "float16", SHAPE)
    assert standin.asked == 0


def test_statuses_are_errors_with_shapes_and_types(standin, rng):
    arrays = on_device(*operands(rng, "float16", *SHAPE))
    standin.failure = "EXECUTION_FAILED_CUDART"
    with pytest.raises(cyrt.CudaError) as caught:
        nn.attention(*arrays, mask="causal")
    assert (caught.value.call, caught.value.code) == ("cudnnBackendExecute", 5000)
    assert "float16 causal attention, queries (1, 2, 20, 16), keys and values (1, 1, 24, 16)" in (
        str(caught.value)
    )
    standin.failure, standin.status = None, "INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
    with pytest.raises(cyrt.OutOfMemoryError, match="HOST_ALLOCATION_FAILED"):
        nn.attention(*arrays)


# -- masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((20, 24), [1, 1, 20, 24]),
        ((24,), [1, 1, 20, 24]),
        ((2, 1, 1, 24), [2, 1, 20, 24]),
        ((2, 1, 20), [2, 1, 20, 27]),
        ((2, 2, 20, 27), [2, 2, 20, 27]),
        ((1, 2, 20, 27), [1, 2, 20, 27]),
    ],
)
def test_masks_of_bool(standin, rng, name, shape, dims):
    """They become numbers that are added, in rows that begin at vectors."""
    keys = dims[3]
    q, k, v = operands(rng, name, 2, 2, 1, 20, keys, 16)
    mask = rng.random(shape if shape[-1] == keys else (*shape, keys)) < 0.5
    mask[..., 3:5] = False
    if mask.ndim > 1 and mask.shape[-2] > 1:
        mask[..., 7, :] = False
    arrays = on_device(q, k, v)
    found = nn.attention(*arrays, mask=cyrt.asarray(mask))
    assert_close(found, reference(q, k, v, mask=mask), name)
    assert (standin.asked, standin.launched) == (1, 3)
    given = standin.graphs[0].tensors[4]
    assert given.dim == dims
    assert given.stride[2:] == [-(-keys // 8) * 8, 1]
    assert standin.graphs[0].causal == 0


def test_masks_are_part_of_the_key(standin, rng):
    q, k, v = operands(rng, "float16", 2, 2, 1, 20, 24, 16)
    arrays = on_device(q, k, v)
    for count, shape in enumerate([(20, 24), (2, 1, 20, 24), (1, 2, 20, 24), None], 1):
        mask = None if shape is None else rng.random(shape) < 0.5
        given = None if shape is None else cyrt.asarray(mask)
        assert_close(nn.attention(*arrays, mask=given), reference(q, k, v, mask=mask), "float16")
        assert standin.asked == count


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_masks_of_numbers_are_not_the_librarys(standin, rng, kind):
    """The lowest number is no infinity: in a row of them, all keys count as much."""
    q, k, v = operands(rng, "bfloat16", 1, 1, 1, 20, 24, 16)
    mask = np.full((20, 24), float(cyrt.finfo(kind).min)).astype(cyrt.dtype(kind).numpy)
    found = nn.attention(*on_device(q, k, v), mask=cyrt.asarray(mask))
    assert_close(found, reference(q, k, v, mask=mask), "bfloat16")
    assert standin.asked == 0


def test_no_memory_for_a_mask_of_numbers(standin, rng, monkeypatch):
    def fail(*_, **__):
        raise cyrt.OutOfMemoryError("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")

    q, k, v = operands(rng, "float16", *SHAPE)
    mask = rng.random((20, 24)) < 0.5
    arrays, given = on_device(q, k, v), cyrt.asarray(mask)
    monkeypatch.setattr("cyrt.nn.flash_attention.where", fail)
    assert_close(nn.attention(*arrays, mask=given), reference(q, k, v, mask=mask), "float16")
    assert standin.asked == 0
