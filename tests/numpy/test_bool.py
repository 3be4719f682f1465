"""Bool in arithmetic and products: NumPy's types and values."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import cyrt

A, B = np.array([True, False, True, True]), np.array([True, True, False, True])
MATRIX = np.array([A, B, ~A])
NAMES = ["floor_divide", "remainder", "power", "left_shift", "right_shift", "fmod"]
OTHERS = [B, True, False, *(np.array([2, 1, 0, 3], d) for d in ("int8", "uint8", "int32", "int64"))]


def check(found, wanted):
    for each, expected in zip(
        found if isinstance(found, tuple) else (found,),
        wanted if isinstance(wanted, tuple) else (wanted,),
        strict=True,
    ):
        assert (each.dtype, each.shape) == (str(expected.dtype), expected.shape)
        np.testing.assert_array_equal(each.numpy(), expected)


def own(x):
    return cyrt.asarray(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", OTHERS, ids=str)
@np.errstate(all="ignore")
def test_functions(name, other):
    check(getattr(cyrt, name)(own(A), own(other)), getattr(np, name)(A, other))
    check(getattr(cyrt, name)(own(other), own(A)), getattr(np, name)(other, A))


@pytest.mark.parametrize("name", ["floordiv", "mod", "pow", "lshift", "rshift", "matmul"])
@pytest.mark.parametrize("other", [B, A[::2].repeat(2)[::-1]], ids=["dense", "a view"])
@np.errstate(all="ignore")
def test_operators(name, other):
    function = getattr(operator, name)
    if name == "matmul":
        check(own(MATRIX) @ own(other), MATRIX @ other)
    else:
        check(function(own(A), own(other)), function(A, other))
        with pytest.raises(TypeError, match="int8 cannot be written into bool"):
            getattr(operator, f"i{name}")(own(A), own(other))


@np.errstate(all="ignore")
def test_powers_by_ints_have_the_promoted_type():
    x = np.array([True, False])
    for exponent in (0, 1, 2, 3):
        found = cyrt.asarray(x) ** exponent
        assert found.dtype == cyrt.int64 == cyrt.dtype(np.power(x, exponent).dtype.name)
        np.testing.assert_array_equal(found.numpy(), np.power(x, exponent))


def test_divmod():
    check(divmod(own(A), own(B)), divmod(A, B))
    check(divmod(own(A), True), divmod(A, True))


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, a, b, m: xp.dot(a, b),
        lambda xp, a, b, m: xp.inner(m, m),
        lambda xp, a, b, m: xp.vdot(a, b),
        lambda xp, a, b, m: xp.vecdot(m, m),
        lambda xp, a, b, m: xp.outer(a, b),
        lambda xp, a, b, m: xp.kron(a, m),
        lambda xp, a, b, m: xp.matmul(m, m.T),
        lambda xp, a, b, m: xp.matmul(m, m.T, dtype="int32"),
        lambda xp, a, b, m: xp.tensordot(m, m, axes=2),
        lambda xp, a, b, m: xp.tensordot(m, b, axes=[[1], [0]]),
        lambda xp, a, b, m: xp.einsum("ij,kj->ik", m, m),
        lambda xp, a, b, m: xp.einsum("ij,kj,k->i", m, m, m[:, 0]),
        lambda xp, a, b, m: xp.einsum("ij->j", m),
        lambda xp, a, b, m: xp.einsum("ij->ji", m),
        lambda xp, a, b, m: xp.convolve(a, b),
        lambda xp, a, b, m: xp.correlate(a, b[:2], "same"),
        lambda xp, a, b, m: xp.clip(a, False, True),
        lambda xp, a, b, m: xp.clip(a, True, None),
        lambda xp, a, b, m: xp.clip(a, None, b),
        lambda xp, a, b, m: xp.clip(a, b, False),
        lambda xp, a, b, m: xp.clip(m, a, b),
        lambda xp, a, b, m: xp.clip(a, -1, 2),
        lambda xp, a, b, m: a.clip(0, 300),
        lambda xp, a, b, m: xp.clip(a, xp.asarray([2, 0, 1, -1], dtype="int8"), True),
    ],
)
def test_products_and_bounds(call):
    check(call(cyrt, own(A), own(B), own(MATRIX)), np.asarray(call(np, A, B, MATRIX)))


def test_a_product_of_many_is_true():
    """A sum of so many ones is 0 in 8 bits."""
    x = cyrt.ones((2, 256), dtype="bool")
    assert (x @ x.T).numpy().all()
    assert cyrt.einsum("ij->i", x).numpy().all()


def test_results_in_arrays_of_the_callers():
    out = cyrt.zeros(3, dtype="bool")
    assert cyrt.matmul(own(MATRIX), own(B), out) is out
    check(out, MATRIX @ B)
    assert cyrt.einsum("ij->i", own(MATRIX), out=out) is out
    check(out, MATRIX.any(axis=1))
    x = own(A)
    assert cyrt.clip(x, False, own(B), out=x) is x
    check(x, A & B)
    with pytest.raises(ValueError, match="matmul: the result has shape"):
        cyrt.matmul(own(MATRIX), own(B), cyrt.zeros(4, dtype="bool"))


def test_what_bool_is_not_for():
    x = own(A)
    with pytest.raises(TypeError, match="addmm: expected numeric types, got bool and bool"):
        cyrt.addmm(cyrt.ones(1), own(MATRIX), own(MATRIX.T))
    with pytest.raises(TypeError, match="clip: not for bool"):
        cyrt.clip(x)
    with pytest.raises(TypeError, match="subtract: not for bool"):
        x - x
