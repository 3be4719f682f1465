"""Strided launches that were planned before: the plan is used with other addresses and numbers."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_addresses_that_are_aligned_and_not(dtype):
    """Equal shapes and strides at other addresses: some allow vectors, some do not."""
    host = np.arange(40 * 64).reshape(40, 64).astype(dtype)
    x = cyrt.asarray(host)
    for start in (0, 1, 0, 2, 16, 3, 16):
        part = slice(start, start + 32)
        assert np.array_equal((x[:, part] + x[:, part]).numpy(), host[:, part] + host[:, part])
        assert np.array_equal((x[:, part] + x[0, :32]).numpy(), host[:, part] + host[0, :32])


def test_offsets_of_views_that_are_reversed():
    host = np.arange(12 * 10, dtype=np.int32).reshape(12, 10)
    x = cyrt.asarray(host)
    for start in (4, 0, 5):
        view = host[start : start + 6, 1:5]
        found = x[start : start + 6, 1:5][::-1, ::-1] - x[:6, 1:5]
        assert np.array_equal(found.numpy(), view[::-1, ::-1] - host[:6, 1:5])


def test_numbers_and_arrays_in_the_same_places():
    host = np.arange(6 * 5, dtype=np.float32).reshape(6, 5)
    x = cyrt.asarray(host)[:, 1:]
    mask = cyrt.asarray(host % 2 == 0)[:, 1:]
    y, even = host[:, 1:], host[:, 1:] % 2 == 0
    for number in (7.0, -1.0):
        for _ in range(2):
            assert np.array_equal(cyrt.where(mask, x, number).numpy(), np.where(even, y, number))
            assert np.array_equal(cyrt.where(mask, number, x).numpy(), np.where(even, number, y))
            assert np.array_equal((x - number).numpy(), y - number)
            assert np.array_equal((number - x).numpy(), number - y)


def test_more_shapes_than_plans_are_stored():
    host = np.arange(30 * 40, dtype=np.float32).reshape(30, 40)
    x = cyrt.asarray(host)
    for _ in range(2):
        found = {(n, m): x[:n, :m] * x[0, :m] for n in range(2, 30, 2) for m in range(3, 40, 3)}
        for (n, m), each in found.items():
            assert np.array_equal(each.numpy(), host[:n, :m] * host[0, :m])


def test_many_dimensions():
    """More than a plan's key has."""
    host = np.arange(3**8, dtype=np.int32).reshape((3,) * 8)
    x = cyrt.asarray(host)
    for _ in range(2):
        assert np.array_equal((x.T + x).numpy(), host.T + host)
