"""One program for NumPy and cyrt, on equal arrays: what both give is the same, or both refuse."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt

NUMBERS = ("uint8", "int32", "int64", "float32", "float64", "complex64")
REAL = NUMBERS[:5]
WIDE = REAL[1:]  # NumPy makes float16 of uint8
FLOATS = ("float32", "float64")
EVERY = ("bool", *NUMBERS)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def legacy(xp):
    """The names around arrays, which cyrt has in a module of their own."""
    return cyrt.numpy if xp is cyrt else xp


class Random(random.Random):
    """The same choices for both."""

    def axis(self, x, *, none=True, several=False):
        """An axis of x; one that it lacks, now and then."""
        if none and (x.ndim == 0 or self.random() < 0.3):
            return None
        if several and self.random() < 0.3:
            return tuple(self.sample(range(x.ndim), self.randint(0, x.ndim)))
        return self.randint(-x.ndim - (self.random() < 0.1), max(x.ndim - 1, 0))


def values(dtype, shape, rng, special=0.0):
    """Small numbers, many of them equal; a share of NaN, infinities and -0.0 where there are."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    found = rng.integers(0 if dtype == "uint8" else -9, 10, shape)
    if np.dtype(dtype).kind in "iu":
        return found.astype(dtype)
    found = np.asarray(found / 4, dtype)
    if found.dtype.kind == "c":
        found = np.asarray(found + 1j * values("float32", shape, rng, special), dtype)
    chosen = rng.random(shape) < special
    found[chosen] = rng.choice(SPECIAL, int(chosen.sum()))
    return found


def laid_out(host, how):
    """The Array of these values, dense or with other strides."""
    if how == "transposed" and host.ndim:
        return cyrt.asarray(np.ascontiguousarray(host.T)).T
    if how == "reversed" and host.ndim:
        return cyrt.asarray(np.ascontiguousarray(host[::-1]))[::-1]
    if how == "spread" and host.ndim:
        wide = np.zeros((*host.shape[:-1], 2 * host.shape[-1]), host.dtype)
        wide[..., ::2] = host
        return cyrt.asarray(wide)[..., ::2]
    return cyrt.asarray(host)


def compare(found, wanted, wide, tolerance=0.0):
    """Assert equal shapes, types and values; floats that NumPy made of integers are float32."""
    if isinstance(wanted, (tuple, list)):
        assert type(found) in (tuple, list)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            compare(one, other, wide, tolerance)
        return
    if not isinstance(found, cyrt.Array):
        assert found == wanted
        return
    wanted = np.asarray(wanted)
    dtype = wanted.dtype.name
    if not wide:
        dtype = {"float64": "float32", "complex128": "complex64"}.get(dtype, dtype)
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    if tolerance and wanted.dtype.kind in "fc":
        tolerance = tolerance if dtype in ("float32", "complex64") else tolerance * 1e-6
        np.testing.assert_allclose(
            found.numpy(), wanted.astype(dtype), rtol=tolerance, atol=tolerance
        )
    else:
        np.testing.assert_array_equal(found.numpy(), wanted.astype(dtype))


def run(program, seed, *operands):
    """A program's outcome: a result, or the error."""
    try:
        with np.errstate(all="ignore"):
            return program(*operands, Random(seed)), None
    except (ValueError, IndexError, TypeError) as error:
        return None, error


def beside(
    program,
    dtypes=NUMBERS,
    ndim=(0, 3),
    special=0.0,
    tolerance=0.0,
    examples=25,
    operands=1,
    size=4,
    least=0,
):
    """Holds ``program(xp, x, ..., random)`` against NumPy, over types, shapes and strides."""

    @settings(max_examples=examples, deadline=None)
    @given(
        dtype=st.sampled_from(dtypes),
        shape=st.lists(
            st.integers(least, size) | st.just(size), min_size=ndim[0], max_size=ndim[1]
        ).map(tuple),
        how=st.sampled_from(["dense", "transposed", "reversed", "spread"]),
        seed=st.integers(0, 2**32 - 1),
    )
    def check(dtype, shape, how, seed):
        rng = np.random.default_rng(seed)
        hosts = [values(dtype, shape, rng, special) for _ in range(operands)]
        arrays = [laid_out(host, how) for host in hosts]
        wanted, refused = run(program, seed, np, *(host.copy() for host in hosts))
        found, error = run(program, seed, cyrt, *arrays)
        if refused is not None:
            assert error is not None, (refused, found)
        elif error is not None:
            raise AssertionError(f"NumPy gives {wanted!r}") from error
        else:
            wide = dtype in ("float64", "complex128")
            compare(found, wanted, wide, tolerance)

    check()
