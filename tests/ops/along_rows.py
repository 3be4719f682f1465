"""Arrays for tests of what works along rows: types, lengths about the kernels' limits, layouts."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import cyrt
from cyrt.dtypes import DTYPES, dtype

REAL = [each.name for each in DTYPES if each.kind != "c"]
# About the sizes of warps, of what a thread, a block and a tile take.
EDGES = [
    1,
    2,
    31,
    32,
    33,
    127,
    128,
    129,
    255,
    256,
    257,
    1023,
    1024,
    1025,
    4095,
    4096,
    4097,
    8191,
    8192,
    8193,
    16385,
]


def lengths(most):
    edges = [each for each in EDGES if each <= most]
    return st.one_of(st.sampled_from(edges), st.integers(0, min(most, 300)))


def shapes(most):
    """A long axis among short ones: (shape, axis)."""

    @st.composite
    def of(draw):
        others = draw(st.lists(st.integers(0, 3), max_size=2))
        axis = draw(st.integers(0, len(others)))
        return (*others[:axis], draw(lengths(most)), *others[axis:]), axis

    return of()


def values(name, shape, rng, distinct=None):
    """Random elements, many of them equal: NaN of both signs, signed zeros and infinities, too."""
    each = dtype(name)
    if each.kind == "b":
        return rng.random(shape) < 0.5
    if each.kind in "iu":
        limits = np.iinfo(each.numpy)
        found = rng.integers(limits.min, limits.max, shape, each.numpy, endpoint=True)
        found[rng.random(shape) < 0.2] = limits.min
    else:
        found = np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape))
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan])
        chosen = rng.random(shape) < 0.4
        found[chosen] = special[rng.integers(0, 6, chosen.sum())]
        with np.errstate(all="ignore"):
            found = found.astype(each.numpy)
    few = rng.random(shape) < 0.5
    found[few] = np.asarray(rng.integers(0, 4, few.sum())).astype(each.numpy)
    return found


def laid_out(x, how):
    """An Array of x's values: dense, or a view with steps or against the order."""
    if how == "dense" or x.ndim == 0:
        return cyrt.asarray(x)
    if how == "reversed":
        return cyrt.asarray(np.ascontiguousarray(x[::-1]))[::-1]
    if how == "shifted":  # no vector is aligned
        padded = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
        padded[..., 1:] = x
        return cyrt.asarray(padded)[..., 1:]
    spread = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    spread[..., ::2] = x
    return cyrt.asarray(spread)[..., ::2]


LAYOUTS = st.sampled_from(["dense", "reversed", "shifted", "spread"])


def wide(x):
    """The same order in a type that NumPy sorts and counts in."""
    return x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def bools_of(values):
    """A bool Array of such bytes, as others' memory may have them."""
    buffer = cyrt.Buffer(len(values))
    buffer.copy_from(np.array(values, np.uint8))
    return cyrt.asarray(_Bools(buffer))


class _Bools:
    def __init__(self, buffer):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (buffer.nbytes,),
            "typestr": "|b1",
            "data": (buffer.ptr, False),
            "version": 3,
            "stream": None,
        }
