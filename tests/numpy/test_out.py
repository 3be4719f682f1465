"""Functions that write their result into an array of the caller's, as NumPy's do."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 7
CALLS = {
    "concat": lambda xp, x, out: xp.concat([x, x], axis=1, out=out),
    "concatenate": lambda xp, x, out: xp.concatenate((x, x), 0, out),
    "median": lambda xp, x, out: xp.median(x, axis=0, out=out),
    "outer": lambda xp, x, out: xp.outer(x[0], x[1], out),
    "percentile": lambda xp, x, out: xp.percentile(x, [25, 50], axis=1, out=out),
    "ptp": lambda xp, x, out: xp.ptp(x, axis=1, out=out),
    "quantile": lambda xp, x, out: xp.quantile(x, 0.5, axis=1, keepdims=True, out=out),
    "stack": lambda xp, x, out: xp.stack([x, x, x], 1, out),
    "take": lambda xp, x, out: xp.take(x, xp.asarray([2, 0]), 1, out),
    "take_host": lambda xp, x, out: xp.take(x, [2, 0], 1, out),
    "trace": lambda xp, x, out: xp.trace(x, 1, out=out),
}


@pytest.mark.parametrize("name", CALLS)
def test_result_is_written_into_out(name):
    call = CALLS[name]
    expected = call(np, X, None)
    x = cyrt.asarray(X)
    np.testing.assert_allclose(call(cyrt, x, None).numpy(), expected, rtol=1e-6)
    out = cyrt.full(np.shape(expected), 9, "float64")
    assert call(cyrt, x, out) is out
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="shape"):
        call(cyrt, x, cyrt.zeros((*np.shape(expected), 2)))
    with pytest.raises(TypeError, match="cannot be written into int32"):
        call(cyrt, x, cyrt.zeros(np.shape(expected), dtype="int32"))
    with pytest.raises(ValueError, match="read-only"):
        call(cyrt, x, cyrt.broadcast_to(cyrt.zeros(1), (2, *np.shape(expected), 1))[0, ..., 0])


def test_out_may_be_an_operand():
    x = cyrt.asarray(X)
    cyrt.take(x, cyrt.asarray([2, 1, 0]), 0, x)
    assert (x.numpy() == X[::-1]).all()
