"""NumPy's functions that get an Array."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import cyrt


@pytest.fixture
def x():
    return cyrt.asarray([3.0, 1.0, 2.0])


def check(found, expected):
    """Arrays on the device beside NumPy's; what is no array is equal."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
    elif isinstance(expected, np.ndarray) or isinstance(found, cyrt.Array):
        assert isinstance(found, cyrt.Array)
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.exp(x),
        lambda x: np.add(x, 1),
        lambda x: np.add(1, x),
        lambda x: np.add(x, x),
        lambda x: np.add(x, x, dtype="float64"),
        lambda x: np.hypot(np.float32(2), x),
        lambda x: np.divmod(x, 2),
        lambda x: np.modf(x / 2),
        lambda x: np.matmul(x, x),
        lambda x: np.absolute(x),
        lambda x: np.conjugate(x),
        lambda x: np.exp(x, order="C"),
        lambda x: np.add(x, x, casting="same_kind", subok=True),
        lambda x: np.add.reduce(x),
        lambda x: np.maximum.reduce(x, axis=0, keepdims=True),
        lambda x: np.multiply.accumulate(x),
        lambda x: np.subtract.outer(x, x),
        lambda x: np.sum(x),
        lambda x: np.mean(x, 0),
        lambda x: np.cumsum(x),
        lambda x: np.clip(x, 1, 2),
        lambda x: np.reshape(x, (3, 1)),
        lambda x: np.ptp(x),
        lambda x: np.where(x > 1, x, 0),
        lambda x: np.unique(x),
        lambda x: np.unique(x, return_counts=True),
        lambda x: np.average(x),
        lambda x: np.average(x, weights=x),
        lambda x: np.median(x),
        lambda x: np.percentile(x, 30),
        lambda x: np.isclose(x, x),
        lambda x: np.zeros_like(x),
        lambda x: np.full_like(x, 7),
        lambda x: np.histogram(x, bins=3),
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x], axis=1),
        lambda x: np.vstack((x, x)),
        lambda x: np.einsum("i,i->", x, x),
        lambda x: np.dot(x, x),
        lambda x: np.sort(x),
        lambda x: np.argsort(x),
        lambda x: np.nonzero(x > 1),
        lambda x: np.diff(x),
        lambda x: np.pad(x, 1),
        lambda x: np.nan_to_num(x),
        lambda x: np.array_equal(x, x),
        lambda x: np.allclose(x, [3, 1, 2]),
        lambda x: np.iscomplexobj(x),
        lambda x: np.array_str(x),
        lambda x: np.shape(x),
        lambda x: np.ndim(x),
    ],
)
def test_numpys_functions_are_computed_on_the_device(x, call):
    check(call(x), call(x.numpy()))


@pytest.mark.parametrize(
    "like",
    [
        lambda x: np.zeros(3, like=x),
        lambda x: np.ones(3, like=x),
        lambda x: np.full((2, 3), 7, like=x),
        lambda x: np.eye(3, like=x),
        lambda x: np.asarray(1.0, like=x),
    ],
)
def test_numpys_creation_beside_an_array(x, like):
    assert isinstance(like(x), cyrt.Array)


def test_numpys_functions_write_into_an_array(x):
    out = cyrt.empty_like(x)
    assert np.sqrt(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.sqrt(x.numpy()), rtol=1e-6)
    total = cyrt.empty(())
    assert np.add.reduce(x, out=total) is total
    assert total.item() == 6
    assert np.cumsum(x, out=out) is out
    assert out.tolist() == [3, 4, 6]
    np.add.at(x, cyrt.asarray([0, 0, 2]), 1)
    assert x.tolist() == [5, 1, 3]


def test_functions_that_copy_to_the_host(x):
    np.testing.assert_allclose(x, [3, 1, 2])
    np.testing.assert_almost_equal(x, [3, 1, 2])
    np.testing.assert_array_less(x, x + 1)


NO_ARGUMENT = r"has no such argument: convert the Array by x.numpy\(\)"
NO_FUNCTION = r"and cyrt has no such function: convert the Array by x.numpy\(\)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.busday_count(x, x), f"numpy.busday_count got an Array.*{NO_FUNCTION}"),
        (lambda x: np.spacing(x), f"numpy.spacing got an Array.*{NO_FUNCTION}"),
        (lambda x: np.subtract.reduce(x), f"numpy.subtract.reduce got an Array.*{NO_FUNCTION}"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), rf"abs \(vectorized\) got an .*{NO_FUNCTION}"),
        (lambda x: np.lib.scimath.sqrt(x) and np.spacing(x), NO_FUNCTION),
        (lambda x: np.sqrt(x, out=np.empty(3)), "writes into a NumPy array.*cyrt.asarray"),
        (lambda x: np.modf(x, out=(x, x)), "numpy.modf: out: cyrt.modf has no such argument"),
        (lambda x: np.exp(x, casting="safe"), f"numpy.exp: casting: cyrt.exp {NO_ARGUMENT}"),
        (lambda x: np.add(x, x, order="F"), f"numpy.add: order: cyrt.add {NO_ARGUMENT}"),
        (lambda x: np.cov(x, aweights=x), f"numpy.cov: aweights: cyrt.cov {NO_ARGUMENT}"),
        (lambda x: np.fft.fft(x, out=x), f"numpy.fft.fft: out: cyrt.fft.fft {NO_ARGUMENT}"),
        (lambda x: np.add(x, x.numpy()), "add: expected an Array, got numpy.ndarray; cyrt.asarray"),
        (lambda x: np.add(x.numpy(), x, dtype="float32"), "expected an Array, got numpy.ndarray"),
        (lambda x: np.concatenate([x.numpy(), x]), "numpy.ndarray"),
        (lambda x: np.where(x.numpy() > 1, x, x), "numpy.ndarray"),
        (lambda x: np.sum(x.numpy(), out=x), "numpy.ndarray"),
        (lambda x: np.copyto(np.zeros(3), x), "numpy.ndarray"),
    ],
)
def test_what_cyrt_does_not_compute_is_refused(x, call, message):
    with pytest.raises(TypeError, match=message):
        call(x)


def test_arguments_are_passed_by_numpys_names(x):
    assert np.squeeze(a=x[None]).shape == (3,)
    assert np.argmax(a=x, axis=0) == cyrt.argmax(x)
    assert np.transpose(a=x[None]).shape == (3, 1)


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


@pytest.mark.parametrize("name", ["degrees", "rint", "fabs", "fmax", "float_power"])
@pytest.mark.parametrize("module", [np, cyrt], ids=["numpy", "cyrt"])
def test_numbers_beside_arrays_that_are_keywords(module, name, x):
    """NumPy's function calls cyrt's for an Array, which does not call NumPy's again."""
    operands = [2.0] * getattr(np, name).nin
    for keywords in ({"out": x}, {"where": x > 1}):
        with pytest.raises(TypeError, match=r"unexpected keyword argument|no such argument"):
            getattr(module, name)(*operands, **keywords)


def test_numpys_functions_of_polynomials_are_those_of_cyrts_linear_algebra():
    p = cyrt.asarray([2.0, -6.0, 4.0])
    found = np.roots(p)
    assert isinstance(found, cyrt.Array)
    assert sorted(found.real.tolist()) == pytest.approx([1, 2])
    x = cyrt.arange(5.0)
    found = np.polyfit(x, 3 * x + 1, 1)
    assert isinstance(found, cyrt.Array)
    assert found.tolist() == pytest.approx([3, 1], rel=1e-5)
