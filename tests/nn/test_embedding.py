"""Rows of a table, their gradients, and numbers as rows."""

from __future__ import annotations

import numpy as np
import pytest
from rows_of_numbers import TYPES, assert_close, exact, numbers

import cyrt
from cyrt import nn


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (9,), (4, 50), (0, 3)], ids=str)
@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
def test_embedding(name, shape, kind, rng):
    weight, g = numbers(rng, name, 11, 6), numbers(rng, name, *shape, 6)
    x = rng.integers(0, 11, shape).astype(kind)
    found = nn.embedding(cyrt.asarray(x), cyrt.asarray(weight))
    np.testing.assert_array_equal(exact(found), exact(weight)[x])
    wanted = np.zeros((11, 6))
    np.add.at(wanted, x, exact(g))
    found = nn.embedding_vjp(cyrt.asarray(g), cyrt.asarray(x), cyrt.asarray(weight))
    assert_close(found, wanted, name, max(np.abs(wanted).max(), 4))


def test_many_of_one_row():
    """Their sum is no float16's: 1, added 4096 times, would stay at 2048."""
    g, x = cyrt.ones((4096, 3), dtype="float16"), cyrt.zeros(4096, dtype="int32")
    found = nn.embedding_vjp(g, x, cyrt.zeros((2, 3), dtype="float16"))
    np.testing.assert_array_equal(exact(found), [[4096] * 3, [0] * 3])


def test_the_numbers_of_rows_are_sorted_and_not_those_of_elements(unchecked):
    def sorts(features):
        g, x = cyrt.ones((3000, features)), cyrt.zeros(3000, dtype="int32")
        found = cyrt.explain(nn.embedding_vjp, g, x, cyrt.zeros((5, features)))
        assert any("add_at" in name and "rows" in name for name, _, _ in found.kernels)
        return [(name, grid) for name, grid, _ in found.kernels if "sort" in name]

    assert sorts(64) == sorts(512) != []


def test_views(rng):
    weight, x = rng.normal(size=(6, 9)), rng.integers(0, 9, (5, 4))
    found = nn.embedding(cyrt.asarray(x).T, cyrt.asarray(weight).T)
    np.testing.assert_array_equal(found.numpy(), weight.T[x.T])
    g = rng.normal(size=(6, 4, 5))
    found = nn.embedding_vjp(cyrt.asarray(g).T, cyrt.asarray(x), cyrt.asarray(weight).T)
    wanted = np.zeros((9, 6))
    np.add.at(wanted, x, g.T)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(shape, axis, rng):
    if axis > len(shape):
        return
    x = rng.integers(0, 7, shape)
    wanted = np.moveaxis(np.eye(7)[x], -1, axis)
    found = nn.one_hot(cyrt.asarray(x), 7, axis=axis)
    assert found.dtype == cyrt.float32
    np.testing.assert_array_equal(found.numpy(), wanted)
    for kind in ("bool", "int64", "bfloat16"):
        found = nn.one_hot(cyrt.asarray(x.astype("int32")), 7, axis=axis, dtype=kind)
        assert found.dtype == kind
        np.testing.assert_array_equal(exact(found), wanted)


def test_one_hot_of_small_integers_and_none_that_are_places(setting):
    x = cyrt.asarray(np.array([0, 255, 3], np.uint8))
    found = nn.one_hot(x, 1000).numpy()
    np.testing.assert_array_equal(found.argmax(-1), [0, 255, 3])
    assert nn.one_hot(x[:0], 4).shape == (0, 4)
    setting(CYRT_CHECK="0")
    assert nn.one_hot(x, 0).shape == (3, 0)


@pytest.mark.gpu
def test_numbers_that_are_no_places_give_zeros_on_a_gpu(setting):
    setting(CYRT_CHECK="0")
    found = nn.one_hot(cyrt.asarray([-1, 4, 1]), 4)
    np.testing.assert_array_equal(found.numpy(), [[0] * 4, [0] * 4, [0, 1, 0, 0]])


@pytest.mark.parametrize(("number", "kind"), [(-1, "int8"), (-1, "int64"), (4, "uint8")])
def test_numbers_that_are_no_places_trap_on_the_emulated_device(
    number, kind, python, only_emulated
):
    done = python(
        f"""
        import cyrt
        x = cyrt.full((), {number}, dtype="{kind}")
        cyrt.synchronize()
        try:
            vector = cyrt.nn.one_hot(x, 4)
            cyrt.synchronize()
        except cyrt.CudaError as error:
            print(str(error).splitlines()[1])
            cyrt.Device().reset()
        """,
        CYRT_CHECK="0",
    )
    assert done.stdout.endswith(": trap: index_out_of_range\n"), done.stderr


def test_numbers_that_are_no_places_in_checking_mode(python):
    done = python(
        """
        import cyrt
        try:
            cyrt.nn.one_hot(cyrt.asarray([1, 4]), 4)
        except IndexError as error:
            print(error)
        """,
        CYRT_CHECK="1",
    )
    assert done.stdout == "one_hot: x: 4 is out of bounds for 4 classes\n"


X, W = cyrt.zeros(3, dtype="int32"), cyrt.ones((4, 2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.embedding(W, X), TypeError, "embedding: x: expected integers, got float32"),
        (
            lambda: nn.embedding(X, W[0]),
            ValueError,
            r"embedding: weight: expected shape \(rows, features\), got \(2,\)",
        ),
        (lambda: nn.embedding([1], W), TypeError, "embedding: x: expected an Array, got list"),
        (
            lambda: nn.embedding_vjp(cyrt.ones((3, 2)), X, W.astype("int32")),
            TypeError,
            "embedding_vjp: weight: expected a real floating-point type, got int32",
        ),
        (lambda: nn.embedding_vjp(W, X, W), ValueError, r"g: expected shape \(3, 2\), that of the"),
        (lambda: nn.one_hot(W, 3), TypeError, "one_hot: x: expected integers, got float32"),
        (lambda: nn.one_hot(X, -1), ValueError, "num_classes: expected 0 or more, got -1"),
        (lambda: nn.one_hot(X, 2.0), TypeError, "num_classes: expected an int, got float"),
        (lambda: nn.one_hot(X, 2, axis=2), IndexError, "axis 2 is out of bounds"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
