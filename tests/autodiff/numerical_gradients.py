"""Gradients by numerical differentiation, in float64."""

from __future__ import annotations

import numpy as np

import cyrt

STEP = 1e-6


def random_like(rng, x):
    values = rng.standard_normal(x.shape)
    if np.iscomplexobj(x):
        values = values + 1j * rng.standard_normal(x.shape)
    return values.astype(x.dtype)


def flat(result):
    """The floating-point arrays of a result."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [each for each in results if each.dtype.kind in "fc"]


def check(function, *arrays, seed=0, tolerance=1e-6, second=True):
    """Compare the products of a random vector with the function's Jacobian with differences along
    a random direction; if `second`, also those of that product's own Jacobian."""
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(each) for each in arrays]
    outputs, pull = cyrt.vjp(lambda *args: tuple(flat(function(*args))), *map(cyrt.asarray, arrays))
    weights = [random_like(rng, each.numpy()) for each in outputs]
    gradients = [each.numpy() for each in pull(tuple(map(cyrt.asarray, weights)))]
    for gradient, array in zip(gradients, arrays, strict=True):
        assert gradient.shape == array.shape
        assert gradient.dtype == array.dtype
    directions = [random_like(rng, each) for each in arrays]

    def evaluate(step):
        moved = [each + step * v for each, v in zip(arrays, directions, strict=True)]
        found = flat(function(*map(cyrt.asarray, moved)))
        return sum(
            float(np.sum(weight * each.numpy()).real)
            for weight, each in zip(weights, found, strict=True)
        )

    expected = (evaluate(STEP) - evaluate(-STEP)) / (2 * STEP)
    found = sum(float(np.sum(g * v).real) for g, v in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * 10)
    if second:
        cotangents = tuple(map(cyrt.asarray, weights))

        def product(*args):
            return cyrt.vjp(lambda *own: tuple(flat(function(*own))), *args)[1](cotangents)

        check(product, *arrays, seed=seed + 1, tolerance=tolerance * 10, second=False)
