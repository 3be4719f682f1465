"""NumPy's functions that get an Array."""

from __future__ import annotations

import operator

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


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda x: np.exp(x), "numpy.exp computes .* call cyrt.exp, or convert"),
        (lambda x: np.add(x, 1), "numpy.add computes .* call cyrt.add, or convert"),
        (lambda x: np.add(1, x), "call cyrt.add, or"),
        (lambda x: np.add(x, x), "call cyrt.add, or"),
        (lambda x: np.add(x, x.numpy()), "call cyrt.add, or"),
        (lambda x: np.add(x.numpy(), x, dtype="float32"), "call cyrt.add, or"),
        (lambda x: np.sqrt(x.numpy(), out=x), "call cyrt.sqrt, or"),
        (lambda x: np.matmul(x, x), "call cyrt.matmul, or"),
        (lambda x: np.multiply.reduce(x), "numpy.multiply.reduce .* call cyrt.multiply.reduce, or"),
        (lambda x: np.subtract.reduce(x), "cyrt has no subtract.reduce: convert"),
        (lambda x: np.gcd(x, x), r"; cyrt has no gcd: convert the Array by x.numpy\(\)"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), r"abs \(vectorized\) .* device: convert"),
        (lambda x: np.ptp(x), "numpy.ptp computes .* call cyrt.ptp, or"),
        (lambda x: np.fft.fft(x), "numpy.fft.fft .* device: convert"),
    ],
)
def test_elementwise_functions_name_cyrts(x, call, advice):
    with pytest.raises(TypeError, match=advice):
        call(x)


@pytest.mark.parametrize("function", [operator.iadd, operator.imul, operator.imatmul])
def test_an_array_is_not_written_into_numpys(x, function):
    host = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="writes into a NumPy array and got .*cyrt.asarray"):
        function(host, x)
    assert host.tolist() == [1, 1, 1]


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    divmod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
OF_BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("function", OPERATORS + OF_BITS, ids=lambda each: each.__name__)
def test_numpys_operand_on_the_left(function):
    """A NumPy number is a number; a NumPy array is refused by the operator's own name."""
    whole = cyrt.asarray([3, 1, 2], dtype="int32")
    for x, number in (
        (whole, np.int64(2)),
        (whole, np.uint8(2)),
        (whole, np.bool_(True)),
        *((cyrt.astype(whole, "float32"), kind(2)) for kind in (np.float32, np.float64, np.int8)),
    ):
        if function in OF_BITS and x.dtype != whole.dtype:
            continue
        found, expected = function(number, x), function(number.item(), x)
        for one, other in zip(
            found if isinstance(found, tuple) else [found],
            expected if isinstance(expected, tuple) else [expected],
            strict=True,
        ):
            assert isinstance(one, cyrt.Array)
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
    with pytest.raises(TypeError, match=r"\w+: expected an Array, got numpy.ndarray; cyrt.asarray"):
        function(whole.numpy(), whole)


def test_a_matrix_product_with_numpys_array_on_the_left(x):
    with pytest.raises(TypeError, match=r"matmul: x1: expected an Array, got numpy.ndarray; cyrt"):
        x.numpy() @ x
    assert np.multiply(np.float32(2), x).tolist() == [6, 2, 4]  # as the operator does
