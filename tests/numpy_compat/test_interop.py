"""NumPy's functions that get an Array."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt


@pytest.fixture
def x():
    return cyrt.asarray([3.0, 1.0, 2.0])


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack"])
def test_arrays_are_not_joined_on_the_host(x, name):
    with pytest.raises(TypeError, match=f"call cyrt.{name}, or convert"):
        getattr(np, name)([x, x])
    assert getattr(cyrt, name)([x, x]).size == 6
    assert getattr(np, name)([x.numpy(), x.numpy()]).size == 6


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.where(x > 1, x, 0),
        lambda x: np.unique(x),
        lambda x: np.isclose(x, x),
        lambda x: np.zeros_like(x),
        lambda x: np.histogram(x),
        lambda x: np.concatenate([x.numpy(), x]),
        lambda x: np.zeros(3, like=x),
        lambda x: np.fft.fft(x),
    ],
)
def test_results_on_the_host_are_refused(x, call):
    with pytest.raises(TypeError, match="computes on the host and got an Array"):
        call(x)


def test_functions_that_call_methods_stay_on_the_device(x):
    for function in (np.sum, np.mean, np.cumsum, np.clip):
        arguments = (0, 1) if function is np.clip else ()
        assert isinstance(function(x, *arguments), cyrt.Array)
    assert np.reshape(x, (3, 1)).shape == (3, 1)


def test_functions_that_return_no_array(x):
    assert np.shape(x) == (3,)
    assert np.ndim(x) == 1
    assert np.allclose(x, [3, 1, 2])
    assert not np.iscomplexobj(x)
    np.testing.assert_allclose(x, [3, 1, 2])
    np.testing.assert_almost_equal(x, [3, 1, 2])
    np.testing.assert_array_less(x, x + 1)
    host = np.zeros(3, np.float32)
    np.copyto(host, x)
    assert host.tolist() == [3, 1, 2]
