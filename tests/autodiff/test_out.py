"""Gradients through the array that a function writes its result into."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import cyrt
from cyrt.tape import kind_of_rule

# What a call needs besides arrays, by function; a square matrix is the array.
CALLS = {
    "clip": lambda x, **more: cyrt.clip(x, 0.4, 0.8, **more),
    "concat": lambda x, **more: cyrt.concat([x, x * x], **more),
    "concatenate": lambda x, **more: cyrt.concatenate([x, x * x], **more),
    "einsum": lambda x, **more: cyrt.einsum("ij,jk->ki", x, x, **more),
    "nn.rope": lambda x, **more: cyrt.nn.rope(x[None], 2, **more),
    "percentile": lambda x, **more: cyrt.percentile(x, 30, axis=0, **more),
    "quantile": lambda x, **more: cyrt.quantile(x, 0.3, axis=0, **more),
    "stack": lambda x, **more: cyrt.stack([x, x * x], **more),
    "take": lambda x, **more: cyrt.take(x, cyrt.asarray([1, 0, 1]), axis=0, **more),
}
X = np.array([[0.3, 0.55], [0.7, 0.9]])


def functions():
    for module, prefix in ((cyrt, ""), (cyrt.nn, "nn.")):
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, type) or not callable(function):
                continue
            try:
                signature = inspect.signature(function)
            except (TypeError, ValueError):
                continue
            if "out" not in signature.parameters or name.endswith("_vjp"):
                continue
            if kind_of_rule(function) not in (None, "constant", "gradient"):
                continue  # its gradient is refused
            empty = inspect.Parameter.empty
            count = sum(p.default is empty for p in signature.parameters.values())
            yield (
                prefix + name,
                CALLS.get(
                    prefix + name,
                    lambda x, *, f=function, n=count, **more: f(*[x, x + 0.25][:n], **more),
                ),
            )


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_pass_through_out(name):
    """A function that writes its result into an array has the gradient that it has without."""
    function, x = FUNCTIONS[name], cyrt.asarray(X)
    try:
        result = function(x)
    except TypeError:
        pytest.skip("the function is of integers")
    if not cyrt.isdtype(result.dtype, "real floating"):
        pytest.skip("the result is no float")
    weights = cyrt.asarray(np.cos(np.arange(result.size)).reshape(result.shape))

    def directly(x):
        return (function(x) * weights).sum()

    def by_out(x):
        out = cyrt.full_like(result, 7.0)
        assert function(x, out=out) is out
        return (out * weights).sum()

    wanted = cyrt.grad(directly)(x).numpy()
    np.testing.assert_array_equal(cyrt.grad(by_out)(x).numpy(), wanted)
