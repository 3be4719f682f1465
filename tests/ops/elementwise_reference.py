"""Elementwise operations that NumPy lacks: the one table of their results, for all tests."""

from __future__ import annotations

import math

import numpy as np


def each(function):
    return np.vectorize(function, otypes=[np.float64])


def erfinv(x):
    """By Newton's method on the C library's erf."""

    def of(x):
        if not -1 <= x <= 1:
            return math.nan
        if abs(x) == 1:
            return math.copysign(math.inf, x)
        y = 0.0
        for _ in range(100):
            y -= (math.erf(y) - x) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
            y = max(-6.0, min(6.0, y))
        return y if x else x

    return each(of)(x)


def lgamma(x):
    def of(x):
        if math.isinf(x) or x == 0 or (x < 0 and x == int(x)):
            return math.inf
        return math.lgamma(x)

    return each(of)(x)


# Results by NumPy.
NOT_NUMPYS = {
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "erfinv": erfinv,
    "lgamma": lgamma,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}

# Units of the type's epsilon that a result may be off, where that is more than 4.
LOOSE = {
    "lgamma": 40,
    "erfc": 12,
    "erfinv": 10,
    "tan": 6,
    "pow": 16,
    "logaddexp": 8,
    "rsqrt": 4,
    "sigmoid": 6,
}
