"""Calls of convolutions that follow each other: what was kept of one holds for no other."""

from __future__ import annotations

import numpy as np
import pytest
from conv_reference import compare, convolve, exact
from rows_of_numbers import numbers

import cyrt
from cyrt import nn


def test_calls_that_differ_in_one_thing(rng):
    """Steps, an address' alignment, a bias, its step, an activation and the function: each of them
    selects another launch, though all else is the same."""
    x, w, b = (numbers(rng, "float16", *shape) for shape in ((2, 7, 14, 16), (4, 3, 3, 8), (8,)))
    image, filters, bias = (cyrt.asarray(each) for each in (x, w, b))
    part = np.ascontiguousarray(x[:, :, 7:, :8])
    dense = cyrt.asarray(part)
    plain, turned = convolve(part, w), convolve(part, w, flip=True)
    transposed = convolve(part, w, padding=2, flip=True)
    for _ in range(2):
        for key in (np.s_[:, :, :7, :8], np.s_[:, :, ::2, :8], np.s_[:, :, ::2, 1:9]):
            compare(nn.conv2d(image[key], filters), convolve(x[key], w), "float16")
        compare(nn.conv2d(dense, filters), plain, "float16")
        compare(nn.conv2d(dense, filters, activation="relu"), np.maximum(plain, 0), "float16")
        for key in (np.s_[:4], np.s_[::2]):
            found = nn.conv2d(dense, filters, bias=bias[key])
            compare(found, plain + exact(bias[key]), "float16")
        compare(nn.conv_general(dense, filters), plain, "float16")
        compare(nn.conv_general(dense, filters, flip=True), turned, "float16")
        compare(nn.conv_transpose2d(dense, filters), transposed, "float16")


def test_arguments_that_change(rng):
    """A list is the same object after its numbers have changed."""
    x, w = numbers(rng, "float32", 1, 6, 6, 4), numbers(rng, "float32", 4, 3, 3, 4)
    padding = [0, 0]
    for padding[:] in ([0, 0], [1, 1], [2, 0]):
        found = nn.conv2d(cyrt.asarray(x), cyrt.asarray(w), padding=padding)
        compare(found, convolve(x, w, padding=tuple(padding)), "float32")


def test_arguments_count_by_their_values(rng):
    """Programs build such tuples anew for each call; equal numbers in another place, or in pairs,
    are other arguments."""
    x, w = numbers(rng, "float32", 1, 7, 9, 4), numbers(rng, "float32", 4, 3, 3, 4)
    image, filters = cyrt.asarray(x), cyrt.asarray(w)
    for _ in range(2):
        for stride, padding in (
            ((1, 2), (2, 1)),
            ((2, 1), (2, 1)),
            ((1, 2), (1, 2)),
            ((1, 1), ((1, 2), (0, 1))),
            ((1, 1), ((1, 0), (2, 1))),
            ([1, 1], [[1, 0], [2, 1]]),
            ((1, 1), (-1, 1)),
        ):
            found = nn.conv2d(image, filters, tuple(stride), tuple(padding))
            compare(found, convolve(x, w, stride=stride, padding=padding), "float32")
        with pytest.raises(ValueError, match="stride"):
            nn.conv2d(image, filters, (1, 2, 1))
        with pytest.raises(TypeError, match="stride"):
            nn.conv2d(image, filters, ((1, 2), (1, 2)))


def test_many_shapes_take_turns(rng):
    """More of them than the table of answers holds; each call has its own result."""
    w = numbers(rng, "float32", 2, 1, 1, 3)
    filters = cyrt.asarray(w)
    images = [numbers(rng, "float32", 1, 1 + i % 37, 1 + i // 37, 3) for i in range(1200)]
    for _ in range(2):
        found = [nn.conv2d(cyrt.asarray(x), filters) for x in images]
        for x, y in zip(images, found, strict=True):
            compare(y, convolve(x, w), "float32")


class Emptying:
    """An int that empties the list it is an item of."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 1


@pytest.mark.parametrize("argument", ["stride", "padding", "dilation", "input_dilation"])
@pytest.mark.parametrize("paired", [False, True])
def test_lists_that_change_while_they_are_read(rng, argument, paired):
    """They count as they were before."""
    x, w = (cyrt.asarray(numbers(rng, "float32", *shape)) for shape in ((1, 4, 4, 2), (3, 2, 2, 2)))
    items = []
    items += [Emptying(items), 1]
    if paired and argument == "padding":
        items[:] = [items[:], (1, 1)]
        items[0][0].items = items[0]
    result = nn.conv_general(x, w, **{argument: items})
    assert result.shape == nn.conv_general(x, w, **{argument: (1, 1)}).shape
