"""Gradients beside central differences, in float64."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt


def check_gradient(function, gradient, x, rng, g=None, rel=1e-6):
    """Compare the gradient of ``function`` at x, along a random direction, with a difference.

    ``function(x)`` returns an Array, and ``gradient(g, x)`` its input's gradient; x is of NumPy's
    float64.
    """
    shape = function(cyrt.asarray(x)).shape
    g = rng.normal(size=shape) if g is None else g
    found = gradient(cyrt.asarray(g), cyrt.asarray(x))
    assert found.shape == x.shape
    assert found.dtype == cyrt.float64
    direction, step = rng.normal(size=x.shape), 1e-6
    high, low = (
        (function(cyrt.asarray(x + each * direction)).numpy() * g).sum() for each in (step, -step)
    )
    size = np.abs(found.numpy() * direction).sum()
    assert (found.numpy() * direction).sum() == pytest.approx(
        (high - low) / (2 * step), rel=rel, abs=rel * size
    )
