"""How errors show an argument."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt.error_text import show

BIG = cyrt.ones((30, 20))


def test_an_array_is_shown_by_its_type_and_shape():
    assert show(BIG) == "an Array of float32, shape (30, 20)"
    assert show(np.ones(300, "int8")) == "a numpy.ndarray of int8, shape (300,)"
    assert show([BIG, 2]) == "[an Array of float32, shape (30, 20), 2]"
    assert show(np.float32(2)) == "np.float32(2.0)"


def test_other_values_are_cut():
    assert show("nearest-exact") == "'nearest-exact'"
    assert len(show("x" * 1000)) <= 80
    assert len(show(list(range(1000)))) <= 80


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cyrt.nn.conv_input_vjp(cyrt.ones((1, 6, 6, 4)), x, cyrt.ones((4, 3, 3, 3))),
        lambda x: cyrt.nn.max_pool(cyrt.ones((1, 4, 4, 1)), x),
        lambda x: cyrt.nn.conv2d(cyrt.ones((1, 4, 4, 1)), cyrt.ones((1, 3, 3, 1)), x),
        lambda x: cyrt.arange(3, dtype=x),
        lambda x: cyrt.pad(x, x),
        lambda x: cyrt.sort(x, kind=x),
        lambda x: cyrt.searchsorted(cyrt.ones(3), x, side=x),
        lambda x: cyrt.nn.mse_loss(x, x, reduction=x),
        lambda x: cyrt.linalg.qr(x, mode=x),
        lambda x: cyrt.fft.fft(x, norm=x),
    ],
)
def test_messages_are_short_whatever_is_given(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(BIG)
    assert len(str(caught.value)) < 260
    assert "an Array of" in str(caught.value)
