"""Random programs of arrays, run on cyrt and on NumPy side by side; every value is compared.

Values are small integers, in float32 too: every result is exact, and the two agree in each bit.
"""

from __future__ import annotations

import random

import numpy as np

import cyrt

DTYPES = ("float32", "int32", "int64", "float64")


class Pair:
    """One array in both libraries; views of it share its memory in both."""

    def __init__(self, host: np.ndarray, own: cyrt.Array):
        self.host, self.own = np.asarray(host), own

    def check(self, what: str) -> None:
        found = self.own.numpy()
        assert found.shape == self.host.shape, (what, found.shape, self.host.shape)
        assert found.dtype == self.host.dtype, (what, found.dtype, self.host.dtype)
        np.testing.assert_array_equal(found, self.host, err_msg=what)


def fresh(rng: random.Random) -> Pair:
    shape = tuple(rng.choice((0, 1, 2, 3, 5, 8)) for _ in range(rng.randint(0, 3)))
    host = np.array(
        [rng.randint(-9, 9) for _ in range(int(np.prod(shape)))], rng.choice(DTYPES)
    ).reshape(shape)
    return Pair(host, cyrt.asarray(host))


def view(rng: random.Random, pair: Pair) -> Pair:
    """A slice, a transpose, a broadcast or an index of it."""
    way = rng.randint(0, 3)
    if way == 0 or pair.host.ndim == 0:
        return Pair(pair.host.T, pair.own.T)
    if way == 1:
        key = tuple(
            rng.choice(
                (
                    slice(None),
                    slice(1, None),
                    slice(None, None, 2),
                    slice(None, None, -1),
                    slice(-2, None),
                )
            )
            for _ in range(pair.host.ndim)
        )
        return Pair(pair.host[key], pair.own[key])
    if way == 2 and pair.host.shape[0]:
        i = rng.randrange(pair.host.shape[0])
        return Pair(pair.host[i, ...], pair.own[i, ...])  # a view in NumPy, too
    return Pair(pair.host[None], pair.own[None])


def fits(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.broadcast_shapes(a.shape, b.shape) == a.shape
    except ValueError:
        return False


def held(pair: Pair) -> Pair:
    """Numbers stay small: exact in float32, and far from the integers' limits."""
    if pair.host.size and np.abs(pair.host).max() > 1000:
        return Pair(np.remainder(pair.host, 7).astype(pair.host.dtype), pair.own % 7)
    return pair


def step(rng: random.Random, pairs: list[Pair]) -> str:
    a, b = rng.choice(pairs), rng.choice(pairs)
    way = rng.randint(0, 8)
    if way == 0:
        pairs.append(fresh(rng))
        return "fresh"
    if way == 1:
        pairs.append(view(rng, a))
        return f"view of {a.host.shape}"
    if way in (2, 3) and fits(a.host, b.host) and a.host.dtype == b.host.dtype:
        name = rng.choice(("add", "subtract", "maximum", "multiply"))
        pairs.append(
            held(Pair(getattr(np, name)(a.host, b.host), getattr(cyrt, name)(a.own, b.own)))
        )
        return f"{name} of {a.host.shape} and {b.host.shape}"
    if way == 4 and fits(a.host, b.host) and a.host.dtype == b.host.dtype:
        a.host[...] = b.host  # they may overlap
        a.own[...] = b.own
        return f"{b.host.shape} into {a.host.shape}"
    if (
        way == 5
        and fits(a.host, b.host)
        and a.host.dtype == b.host.dtype
        and np.abs(a.host).max(initial=0) < 1000 > np.abs(b.host).max(initial=0)
    ):
        np.add(a.host, b.host, out=a.host)
        a.own += b.own
        return f"{a.host.shape} += {b.host.shape}"
    if way == 6:
        number = rng.randint(-3, 3)
        pairs.append(held(Pair(a.host * number + 1, a.own * number + 1)))
        return f"{a.host.shape} * {number} + 1"
    if way == 7 and a.host.ndim and a.host.size:
        axis = rng.randrange(a.host.ndim)
        pairs.append(
            held(
                Pair(a.host.sum(axis, dtype=a.host.dtype), a.own.sum(axis, dtype=a.host.dtype.name))
            )
        )
        return f"sum of {a.host.shape} along {axis}"
    if way == 8 and len(pairs) > 3:
        pairs.remove(a)
        return "dropped"
    return "nothing"


def run(seed: int, steps: int = 60) -> None:
    """One program; AssertionError names the seed and the last step."""
    rng = random.Random(seed)
    pairs = [fresh(rng) for _ in range(4)]
    done = "start"
    for i in range(steps):
        done = f"seed {seed}, step {i}: {step(rng, pairs)}"
        if rng.random() < 0.05:
            rng.choice(pairs).check(done)
    for pair in pairs:
        pair.check(done)
