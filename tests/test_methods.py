"""The functions behind the methods of arrays."""

from __future__ import annotations

import pytest

import cyrt
from cyrt.operators import bind


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"sort": sorted}, r"bind: missing \['Flags', .*\], unknown \[\]"),
        ({"sums": sum}, r"unknown \['sums'\]"),
    ],
)
def test_every_function_is_bound_and_no_other(bound, message):
    with pytest.raises(TypeError, match=message):
        bind(**bound)


@pytest.mark.parametrize("name", ["all", "max", "mean", "squeeze", "std", "sum", "take"])
def test_a_function_that_takes_what_its_method_takes_is_the_method(name):
    assert getattr(cyrt.Array, name) is getattr(cyrt, name)
    with pytest.raises(TypeError):
        getattr(cyrt.Array, name)(x=cyrt.zeros(3))
