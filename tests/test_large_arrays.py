"""Arrays of more than 2^32 elements: places, counts and offsets that 32 bits do not hold."""

from __future__ import annotations

import fcntl
import os

import numpy as np
import pytest

import cyrt

pytestmark = pytest.mark.gpu

N = (1 << 32) + 12_347
MARKS = {5: 1, (1 << 31) + 1: 2, (1 << 32) - 1: 3, (1 << 32) + 70: 4, N - 1: 5}


@pytest.fixture(autouse=True)
def room():
    """One test at a time has the memory, of all processes that run tests."""
    with open(os.path.join(os.environ["CYRT_TEST_CACHE"], "large_arrays"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        free, _ = cyrt.Device(0).memory_info()
        if free < 64 << 30:
            pytest.skip("needs 64 GiB of free device memory")
        yield
        cyrt.synchronize()
        cyrt.trim_memory()


def marked(dtype=cyrt.uint8):
    """Zeros, but for the marks."""
    x = cyrt.zeros(N, dtype=dtype)
    for place, value in MARKS.items():
        x[place] = value
    return x


def places(x):
    """Where it is not zero, and what is there."""
    (found,) = cyrt.nonzero(x)
    return dict(zip(found.tolist(), x[found].tolist(), strict=True))


def test_elementwise():
    x = marked()
    assert places(x) == MARKS
    assert places(x * 2) == {place: 2 * value for place, value in MARKS.items()}
    assert places(cyrt.where(x > 2, x, False)) == {k: v for k, v in MARKS.items() if v > 2}
    assert places(x.astype(cyrt.float16)) == MARKS


def test_views():
    x = marked()
    assert places(cyrt.flip(x)) == {N - 1 - place: value for place, value in MARKS.items()}
    assert places(x[1:]) == {place - 1: value for place, value in MARKS.items()}
    assert places(cyrt.concat([x[:70], x])) == {5: 1, **{k + 70: v for k, v in MARKS.items()}}
    wide = x[: N // 5 * 5].reshape((5, N // 5))
    assert places(cyrt.matrix_transpose(wide).ravel()) == {
        place % (N // 5) * 5 + place // (N // 5): value
        for place, value in MARKS.items()
        if place < N // 5 * 5
    }


def test_reductions():
    x = marked()
    assert x.sum().item() == sum(MARKS.values())
    assert x.max().item() == 5
    assert cyrt.argmax(x).item() == N - 1
    assert cyrt.count_nonzero(x).item() == len(MARKS)
    assert (x + 1).all().item()
    assert x.reshape((1, N)).sum(axis=1).tolist() == [sum(MARKS.values())]
    assert cyrt.argmax(x.reshape((N, 1)), axis=0).tolist() == [N - 1]


def test_masks():
    x = marked()
    mask = x > 2
    assert x[mask].tolist() == [3, 4, 5]
    x[mask] = 9
    assert x[x == 9].size == 3
    x[x == 0] = 7
    assert cyrt.count_nonzero(x).item() == N


def test_indices():
    x = marked()
    at = cyrt.asarray(list(MARKS))
    assert x[at].tolist() == list(MARKS.values())
    x[at] = cyrt.asarray([6, 7, 8, 9, 10], dtype=cyrt.uint8)
    assert places(x) == dict(zip(MARKS, (6, 7, 8, 9, 10), strict=True))
    every = cyrt.asarray(np.arange(256, dtype=np.uint8))[x]  # as many picks
    assert places(every) == places(x)


def test_scans():
    x = marked()
    sums = cyrt.cumulative_sum(x)
    for place in MARKS:
        assert sums[place].item() == sum(v for k, v in MARKS.items() if k <= place)
    del sums
    rows = cyrt.zeros((2, N), dtype=cyrt.float16)
    rows[:, N - 1] = 1
    rows[1, 70] = 2
    below = cyrt.cumulative_sum(rows, axis=0)
    assert places(below[1]) == {70: 2, N - 1: 2}


def test_searches():
    x = marked()
    assert places(cyrt.isin(x, cyrt.asarray([3, 5], dtype=cyrt.uint8))) == {
        k: True for k, v in MARKS.items() if v in (3, 5)
    }
    found = cyrt.searchsorted(cyrt.asarray([1, 4], dtype=cyrt.uint8), x)
    assert places(found) == {k: 1 + (v > 4) for k, v in MARKS.items() if v > 1}


def test_sort():
    x = cyrt.flip(cyrt.sort(marked()))
    assert x[:6].tolist() == [5, 4, 3, 2, 1, 0]
    assert x.max().item() == 5
    assert x.sum().item() == sum(MARKS.values())
    with pytest.raises(ValueError, match="argsort: expected rows of at most 4,294,967,295 elem"):
        cyrt.argsort(x)


def test_random():
    x = cyrt.random.randint(0, 256, (N,), dtype=cyrt.uint8, key=cyrt.random.key(3))
    for part in (x[: 1 << 31], x[1 << 31 : 1 << 32], x[1 << 32 :]):
        mean = part.sum().item() / part.size  # a mean of many is within five standard errors
        assert abs(mean - 127.5) < 5 * 73.9 / part.size**0.5
    again = x[1 << 32 :]
    assert not cyrt.all(x[: again.size] == again).item()


def test_convolutions():
    rows, channels = N // 64, 64
    x = marked(cyrt.float16)[: rows * channels].reshape((1, rows, channels))
    weight = cyrt.ones((1, 1, channels), dtype=cyrt.float16)
    inside = {place: value for place, value in MARKS.items() if place < rows * channels}
    found = cyrt.nn.conv1d(x, weight)
    assert places(found.ravel()) == {place // 64: value for place, value in inside.items()}
    found = cyrt.nn.conv_weight_vjp(cyrt.ones_like(found), x, weight.shape)
    sums = [sum(v for place, v in inside.items() if place % 64 == c) for c in range(channels)]
    assert found.ravel().tolist() == sums
    del found
    g = cyrt.max(x, axis=2, keepdims=True)
    found = cyrt.nn.conv_input_vjp(g, x.shape, weight)
    wanted = {place // 64 * 64 + c: v for place, v in inside.items() for c in range(channels)}
    assert places(found.ravel()) == wanted
    del found
    assert places(cyrt.nn.max_pool(x, 1).ravel()) == inside
    assert places(cyrt.nn.max_pool_vjp(x, x, 1).ravel()) == inside
