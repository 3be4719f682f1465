"""Elementwise operations: the results of those that NumPy lacks, and where they have gradients."""

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

# Between which numbers the gradients of functions are tested, for each of two operands. Others, and
# operands with None, are tested at numbers from a normal distribution.
DOMAINS = {
    **dict.fromkeys(("sqrt", "rsqrt", "cbrt", "reciprocal"), (0.5, 2.0)),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), (0.5, 2.0)),
    **dict.fromkeys(("tan", "asin", "acos", "atanh", "erfinv"), (-0.8, 0.8)),
    "acosh": (2.0, 3.5),
    **dict.fromkeys(("divide", "atan2", "remainder"), (None, (0.5, 2.0))),
    **dict.fromkeys(("pow", "copysign"), ((0.5, 2.0), None)),
    "hypot": ((0.5, 2.0), (0.5, 2.0)),
}
