"""The functions behind the methods of arrays."""

from __future__ import annotations

import functools

import pytest

import cyrt
from cyrt.operators import bind, functions


def test_every_function_is_bound_or_none():
    before = functions.sort
    with pytest.raises(TypeError, match=r"bind: missing \['Flags', .*\]"):
        bind({"sort": sorted})
    assert functions.sort is before


@pytest.mark.parametrize("name", ["all", "max", "mean", "squeeze", "std", "sum", "take"])
def test_a_function_that_takes_what_its_method_takes_is_the_method(name):
    assert getattr(cyrt.Array, name) is getattr(cyrt, name)
    with pytest.raises(TypeError):
        getattr(cyrt.Array, name)(x=cyrt.zeros(3))


def test_transpose_takes_each_axis_once():
    x = cyrt.zeros((2, 3))
    for axes in ((), [], (0,), [1]):
        for call in (x.transpose, functools.partial(cyrt.transpose, x)):
            with pytest.raises(ValueError, match="transpose: axes: expected each of 2 axes once"):
                call(axes)
    with pytest.raises(TypeError, match="transpose: axes: expected a tuple of ints, got int"):
        cyrt.transpose(x, 1)
    with pytest.raises(ValueError, match=r"got \(-2, -1\); swapaxes\(-2, -1\) exchanges two$"):
        cyrt.zeros((2, 3, 4)).transpose(-2, -1)
    assert (
        x.transpose(range(1, -1, -1)).shape == cyrt.transpose(x, range(1, -1, -1)).shape == (3, 2)
    )
    for found in (x.transpose(), x.transpose(None), x.transpose([1, 0]), x.transpose(1, 0)):
        assert found.shape == (3, 2)
    assert cyrt.zeros(()).transpose(()).shape == ()


def test_errors_begin_with_the_name_that_was_called():
    x = cyrt.zeros((2, 3))
    for name, call in (
        ("ravel", x.ravel),
        ("ravel", functools.partial(cyrt.ravel, x)),
        ("flatten", x.flatten),
    ):
        with pytest.raises(ValueError, match=f"^{name}: order: expected .*, got 'B'"):
            call("B")
        with pytest.raises(ValueError, match=r"got 1; reshape\(\) joins some of the axes$"):
            call(1)
