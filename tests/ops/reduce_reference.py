"""The results of reductions: the one table that all their tests and `test_refusals` share."""

from __future__ import annotations

import warnings

import numpy as np

from cyrt.dtypes import dtype
from cyrt.ops import reduce

EPSILON = {
    "float16": 2**-11,
    "bfloat16": 2**-8,
    "float32": 2**-24,
    "float64": 2**-53,
    "complex64": 2**-24,
    "complex128": 2**-53,
}
LARGEST_NUMBER = {"float16": 65504, "bfloat16": 3.3895e38, "float32": 3.4028e38}
SMALLEST = {"float16": 2**-24, "float64": 2**-1022, "complex128": 2**-1022}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def widened(x):
    """The same numbers in a type in which NumPy's roundings do not count."""
    kind = dtype(x.dtype.name).kind
    if kind not in "fc":
        return x
    if x.dtype.name in ("float64", "complex128"):
        return x.astype(np.clongdouble if kind == "c" else np.longdouble)
    return x.astype(np.complex128 if kind == "c" else np.float64)


def logsumexp(x, axis=None, keepdims=False):
    most = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    found = np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most
    return found if keepdims else found.reshape(np.sum(x, axis=axis).shape)


def whole(function):
    """Of integers and bool, in the widest type of their kind, modulo its range."""

    def reduced(x, **options):
        if x.dtype.kind in "biu":
            options["dtype"] = np.uint64 if x.dtype.kind == "u" else np.int64
        return function(x, **options)

    return reduced


# The kinds of types that each reduction takes, and its result for a NumPy array, `axis` and
# `keepdims`.
REFERENCES = {
    "sum": ("biufc", whole(np.sum)),
    "prod": ("biufc", whole(np.prod)),
    "max": ("biuf", np.max),
    "min": ("biuf", np.min),
    "argmax": ("biuf", np.argmax),
    "argmin": ("biuf", np.argmin),
    "any": ("biufc", lambda x, **options: np.any(x != 0, **options)),
    "all": ("biufc", lambda x, **options: np.all(x != 0, **options)),
    "count_nonzero": ("biufc", np.count_nonzero),
    "mean": ("fc", np.mean),
    "var": ("f", np.var),
    "std": ("f", np.std),
    "logsumexp": ("f", logsumexp),
}


def names(kind):
    """The reductions that take types of a kind."""
    return tuple(name for name, (kinds, _) in REFERENCES.items() if kind in kinds)


def wanted(op, x, axis, keepdims):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return REFERENCES[op][1](widened(x), axis=axis, keepdims=keepdims)


def tolerance(op, x, axis, keepdims, result, epsilon):
    """What roundings of a tree may add up to, beside those of the values themselves."""
    wide = widened(x)
    narrow = EPSILON[x.dtype.name]
    with np.errstate(all="ignore"):
        size = np.sum(np.abs(wide), axis=axis, keepdims=keepdims)
        count = max(1, x.size // max(1, result.size))
        if op == "sum":
            bound = 24 * epsilon * size
        elif op == "mean":
            bound = 24 * epsilon * size / count
        elif op == "prod":
            bound = (count + 1) * epsilon * np.abs(result)
        elif op in ("var", "std"):
            largest = np.max(np.abs(wide), axis=axis, keepdims=keepdims, initial=0)
            bound = (24 * epsilon) * np.abs(result) + (24 * epsilon * largest) ** 2
            if op == "std":
                bound = 24 * epsilon * (np.abs(result) + largest)
        else:
            bound = 32 * epsilon * (1 + np.abs(result))
        return bound + 2 * narrow * np.abs(result)


def compare(op, x, axis, keepdims, array, name=None):
    """Compare an array's reduction with NumPy's of x; its type is `name`, if that is given."""
    found = getattr(reduce, op)(array, axis=axis, keepdims=keepdims)
    assert name in (None, found.dtype.name)
    result = wanted(op, x, axis, keepdims)
    actual = found.numpy()
    assert actual.shape == result.shape
    kind = dtype(x.dtype.name).kind
    if kind in "biu" or op in ("max", "min", "argmax", "argmin", "any", "all", "count_nonzero"):
        np.testing.assert_array_equal(widened(actual), result)
        return
    actual = widened(actual)
    limit = LARGEST_NUMBER.get(found.dtype.name, np.inf)
    computed = 2**-53 if x.dtype.name in ("float64", "complex128") else 2**-24
    bound = tolerance(op, x, axis, keepdims, result, computed)
    with np.errstate(all="ignore"):
        # Below the normal numbers a product loses digits on its way.
        near = np.abs(actual - result) <= bound + SMALLEST.get(found.dtype.name, 2**-126)
        near |= actual == result
        near |= np.isnan(actual) & np.isnan(result)
        near |= (np.abs(result) + bound >= limit) & ~np.isfinite(actual)
        if op == "prod":  # part of it may leave the range, in an order that is not NumPy's
            wide = np.abs(widened(x))
            bits = np.sum(
                np.abs(np.log2(wide, where=wide > 0, out=np.zeros(x.shape))),
                axis=axis,
                keepdims=keepdims,
            )
            near |= bits > (900 if computed == 2**-53 else 100)
    assert near.all(), (op, x.dtype, x.shape, axis, actual[~near][:3], result[~near][:3])


def values(rng, name, shape, special):
    each = dtype(name)
    if each.kind == "b":
        return rng.random(shape) < rng.choice([0.01, 0.5, 0.99])
    if each.kind in "iu":
        limits = np.iinfo(each.numpy)
        low, high = (limits.min, limits.max) if special else (-3 if each.kind == "i" else 0, 4)
        return rng.integers(low, high, shape, each.numpy, endpoint=True)
    found = rng.normal(size=shape) + rng.choice([0.0, 3.0])
    if each.kind == "c":
        found = found + 1j * rng.normal(size=shape)
    found = np.asarray(found)
    if special and found.size:
        which = rng.choice(SPECIAL, 2)
        found.reshape(-1)[rng.integers(0, found.size, 2)] = which
    return found.astype(each.numpy)
