"""Launches that are planned once and found again: by all that their choice depends on."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

RNG = np.random.default_rng(7)
VALUES = RNG.standard_normal(5000).astype(np.float32)


def same(found, expected):
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("starts", [(0, 1, 2, 4, 0), (1, 0, 3, 8, 1)])
def test_the_address_within_a_vector_counts(starts):
    x = cyrt.asarray(VALUES)
    for start in starts:
        part, expected = x[start : start + 4096], VALUES[start : start + 4096]
        same(part.sum(), expected.sum())
        same(part.reshape(64, 64).max(axis=0), expected.reshape(64, 64).max(axis=0))
        a, b = part.reshape(64, 64), expected.reshape(64, 64)
        same(a @ x[:64], b @ VALUES[:64])
        same(x[:64] @ a, VALUES[:64] @ b)
        same(a @ a, b @ b)


def test_the_last_step_of_a_reduction_counts():
    x = VALUES[:1200].reshape(30, 40)
    y = cyrt.asarray(x)
    for _ in range(2):
        same(y.sum(axis=1), x.sum(axis=1))
        same(y.mean(axis=1), x.mean(axis=1))
        same(y.var(axis=1), x.var(axis=1))
        same(y.std(axis=1), x.std(axis=1))
        same(y.std(axis=1, correction=1), x.std(axis=1, ddof=1))
        same(y.sum(axis=1, keepdims=True), x.sum(axis=1, keepdims=True))
        same(y.sum(axis=0), x.sum(axis=0))


def test_strides_count():
    x = VALUES[:1600].reshape(40, 40)
    y = cyrt.asarray(x)
    for each in (np.s_[:], np.s_[::-1], np.s_[:, ::-1]):
        for _ in range(2):
            same(y[each].sum(axis=1), x[each].sum(axis=1))
            same(y[each].T.sum(axis=1), x[each].T.sum(axis=1))
            same(y[each] @ y, x[each] @ x)
            same(y[each].T @ y, x[each].T @ x)
            same(y @ y[each][0], x @ x[each][0])
    z = np.broadcast_to(x[0], (40, 40))
    same(cyrt.broadcast_to(y[0], (40, 40)).sum(axis=1), z.sum(axis=1))


def test_exchanged_factors_are_found():
    a, b = VALUES[:192].reshape(3, 64), VALUES[192:4288].reshape(64, 64)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    for _ in range(2):
        same(x[:1] @ y, a[:1] @ b)
        same(y @ x[:1].T, b @ a[:1].T)
        same(x @ y, a @ b)
        same(x[:, None] @ y, a[:, None] @ b)


def test_one_element_beside_many():
    a = VALUES[:640].reshape(2, 5, 64)
    x = cyrt.asarray(a)
    one = x[1, 2, 3:4]
    for _ in range(2):
        same(x - one, a - a[1, 2, 3])
        same(one - x, a[1, 2, 3] - a)
        same(x[0, 0] / x[:1, :1, :1], a[:1, :1] / a[0, 0, 0])
        same(cyrt.where(x > one, x, one), np.maximum(a, a[1, 2, 3]))
        same(one * one, a[1, 2, 3:4] ** 2)
    x[...] = one
    same(x, np.full_like(a, a[1, 2, 3]))


def test_sums_in_parts_at_other_addresses():
    """Their plans have two launches, and the memory between these is another one each time."""
    values = RNG.standard_normal((2, 2048, 8)).astype(np.float32)
    x, held = cyrt.asarray(values), []
    for i in (0, 1, 0):
        same(x[i].sum(axis=0), values[i].sum(axis=0))
        same(x[i].sum(), values[i].sum())
        same(x[i].argmax(axis=0), values[i].argmax(axis=0))
        same(x[i].var(axis=0), values[i].var(axis=0))
        same(x[i][::-1].argmin(axis=0), values[i][::-1].argmin(axis=0))
        same(x[i].T @ x[1 - i], values[i].T @ values[1 - i])
        same(x[i, :, 0] @ x[1 - i], values[i, :, 0] @ values[1 - i])
        held.append(cyrt.zeros(64 * 8))
