"""What programs for NumPy have around their arrays: types, printing, files, subscripts, NaN."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import FLOATS, NUMBERS, WIDE, beside, legacy

import cyrt

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own

# -- types, printing -------------------------------------------------------------------------------

KINDS = (
    "generic",
    "number",
    "integer",
    "signedinteger",
    "unsignedinteger",
    "inexact",
    "floating",
    "complexfloating",
)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_types(kind):
    for each in ("bool", "int8", "uint64", "float16", "float32", "complex128"):
        wanted = np.issubdtype(each, getattr(np, kind))
        for given in (getattr(cyrt, each), cyrt.zeros(1, dtype=each).dtype, each):
            assert cyrt.numpy.issubdtype(given, getattr(cyrt.numpy, kind)) is wanted
    assert isinstance(cyrt.float32(1), getattr(cyrt.numpy, kind)) == isinstance(
        np.float32(1), getattr(np, kind)
    )


def test_bfloat16_is_floating():
    assert cyrt.numpy.issubdtype(cyrt.bfloat16, cyrt.numpy.floating)
    assert cyrt.numpy.issubdtype(cyrt.bfloat16, cyrt.numpy.number)
    assert not cyrt.numpy.issubdtype(cyrt.bfloat16, cyrt.numpy.integer)
    assert not cyrt.numpy.issubdtype(cyrt.bfloat16, cyrt.float16)
    assert cyrt.numpy.issubdtype(cyrt.bfloat16, cyrt.bfloat16)


def test_scalars():
    assert cyrt.numpy.isscalar(2.0)
    assert cyrt.numpy.isscalar(cyrt.float32(2))
    assert not cyrt.numpy.isscalar(cyrt.asarray(2.0))


def test_printing():
    host = np.array([[1.23456789, 1e-9], [3, 4]], np.float32)
    x = cyrt.asarray(host)
    with cyrt.numpy.printoptions(precision=2, suppress=True):
        assert str(x) == str(host)
    assert cyrt.numpy.array_str(x, precision=3, suppress_small=True) == np.array_str(
        host, precision=3, suppress_small=True
    )
    assert cyrt.numpy.array_repr(x, precision=1).startswith("Array([[1.2e+00, 1.0e-09],\n")
    assert cyrt.numpy.array2string(x, separator=";") == np.array2string(host, separator=";")
    with cyrt.numpy.errstate(divide="ignore"):
        assert cyrt.isinf(x / 0).all()


# -- grids and subscripts --------------------------------------------------------------------------

MADE = {
    "mgrid": lambda xp, x, r: (
        legacy(xp).mgrid[0:3, -2:4:2],
        legacy(xp).mgrid[0:1:5j],
        legacy(xp).mgrid[0:1:3j, 1:3],
        legacy(xp).mgrid[1:2:0.25],
    ),
    "ogrid": lambda xp, x, r: (legacy(xp).ogrid[0:3, 0:1:5j], legacy(xp).ogrid[2:7:2]),
    "r_": lambda xp, x, r: (
        legacy(xp).r_[x, x],
        legacy(xp).r_[x[:, 0], 1, x[0, 0], [2, 3]],
        legacy(xp).r_[0:4, 7],
        legacy(xp).r_[-1:1:5j, x[0]],
    ),
    "c_": lambda xp, x, r: (
        legacy(xp).c_[x, x[:, 0]],
        legacy(xp).c_[x[:, 0], x[:, 1]],
        legacy(xp).c_[[1, 2], [3, 4]],
    ),
    "ix_": lambda xp, x, r: (
        x[xp.ix_([0, 2], [2, 1, 1])],
        x[xp.ix_(x[:, 0] > 0, [True] * 3)],
        xp.ix_([0, 1]),
    ),
    "s_": lambda xp, x, r: (x[legacy(xp).s_[1:, ::-1]], x[legacy(xp).index_exp[0]]),
    "fromfunction": lambda xp, x, r: (
        xp.fromfunction(lambda i, j: i + 2 * j, (2, 3)),
        xp.fromfunction(lambda i: i == 1, (3,), dtype=int),
    ),
    "triangles": lambda xp, x, r: (x[xp.tril_indices_from(x, 1)], x[xp.triu_indices_from(x)]),
    "diag_indices": lambda xp, x, r: (
        x[xp.diag_indices(3)],
        xp.diag_indices(2, 3),
        xp.diag_indices_from(xp.zeros((2, 2, 2))),
    ),
    "eye": lambda xp, x, r: xp.eye(N=2, M=3, k=1, dtype="float32"),
    "ndindex": lambda xp, x, r: [x[each].item() for each in legacy(xp).ndindex(x.shape)],
    "ndenumerate": lambda xp, x, r: [(key, v.item()) for key, v in legacy(xp).ndenumerate(x)],
    "apply_along_axis": lambda xp, x, r: (
        xp.apply_along_axis(lambda row: row[::-1] * 2, r.axis(x, none=False), x),
        xp.apply_along_axis(lambda row, k: row[k], 0, x, k=1),
        xp.apply_along_axis(lambda row: xp.stack([row, row], axis=1), 0, x),
    ),
    "polyval": lambda xp, x, r: (
        xp.polyval([2, 0, 1], x),
        xp.polyval(x[0], 3),
        xp.polyval(x[0], x),
    ),
    "lexsort": lambda xp, x, r: (
        xp.lexsort((x[0], x[1] > 0)),
        xp.lexsort(x),
        xp.lexsort([x, x[::-1]], axis=0),
    ),
}


OF_DEFAULT_TYPE = ("mgrid", "ogrid", "r_", "fromfunction", "eye")


@pytest.mark.parametrize("name", MADE)
def test_made(name):
    beside(
        MADE[name],
        WIDE[1:3] if name in OF_DEFAULT_TYPE else FLOATS if name == "polyval" else WIDE,
        (2, 2),
        size=5,
        least=3,
        examples=10,
        tolerance=1e-6,
    )


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_tapers(n):
    for name, more in (
        ("bartlett", ()),
        ("blackman", ()),
        ("hamming", ()),
        ("hanning", ()),
        ("kaiser", (8.6,)),
    ):
        found = getattr(cyrt, name)(n, *more)
        assert found.dtype == cyrt.float32
        np.testing.assert_allclose(found.numpy(), getattr(np, name)(n, *more), rtol=1e-6, atol=1e-7)


# -- element by element, NaN -----------------------------------------------------------------------


def numbered(xp, x):
    """NumPy refuses rows of nothing but NaN."""
    return xp.concatenate([x, xp.zeros_like(x[..., :1])], axis=-1)


ONE = {
    "fabs": (WIDE, lambda xp, x, r: xp.fabs(x)),
    "modf": (WIDE, lambda xp, x, r: (xp.modf(x)[0], xp.modf(x)[1], xp.signbit(xp.modf(x)[0]))),
    "ldexp": (FLOATS, lambda xp, x, r: xp.ldexp(x, r.choice([0, 3, -2, 2000, -1060, -140, 126]))),
    "ldexp of arrays": (FLOATS[:1], lambda xp, x, r: xp.ldexp(1.5, xp.asarray([3, -1, 9000]))),
    "nanargmax": (
        ("int32", *FLOATS),
        lambda xp, x, r: (
            xp.nanargmax(numbered(xp, x), r.choice([None, -1])),
            xp.nanargmin(numbered(xp, x), -1),
        ),
    ),
    "nancumsum": (WIDE, lambda xp, x, r: (xp.nancumsum(x, r.axis(x)), xp.nancumprod(x, -1))),
    "nanmedian": (
        WIDE,
        lambda xp, x, r: xp.nanmedian(x, r.axis(x, several=True), keepdims=r.random() < 0.3),
    ),
    "nanquantile": (
        WIDE,
        lambda xp, x, r: (
            xp.nanquantile(
                x,
                r.choice([0.3, [0.0, 0.5, 1.0]]),
                r.axis(x, several=True) or None,
                keepdims=r.random() < 0.3,
            ),
            xp.nanpercentile(x, 80, axis=-1),
        ),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_elementwise(name):
    dtypes, program = ONE[name]
    beside(
        finite(program) if name == "nanquantile" else program,
        dtypes,
        (1, 3),
        special=0.25,
        least=1,
        tolerance=1e-5,
        examples=60,
    )


def finite(program):
    """NumPy's own interpolation makes a NaN of two infinities."""
    return lambda xp, x, r: program(xp, xp.where(xp.isinf(x), xp.nan, x), r)


def at(xp, x, name, *args):
    getattr(xp, name).at(x, *args)
    return x


METHODS = {
    "reduce": lambda xp, x, r: (
        xp.add.reduce(x),
        xp.multiply.reduce(x, 1),
        xp.maximum.reduce([x, x[::-1]]),
        xp.minimum.reduce(x, None),
        xp.add.reduce(x, -1, dtype="float32", keepdims=True),
    ),
    "reduce conditions": lambda xp, x, r: (
        xp.logical_and.reduce([x > 0, x < 2, x != 1]),
        xp.logical_or.reduce((x > 1, x < -1)),
    ),
    "accumulate": lambda xp, x, r: (
        xp.maximum.accumulate(x, r.axis(x, none=False)),
        xp.minimum.accumulate(x),
        xp.add.accumulate(x),
        xp.multiply.accumulate(x, 1),
    ),
    "outer": lambda xp, x, r: (xp.subtract.outer(x, x[0]), xp.greater.outer(x[0], x)),
    "at": lambda xp, x, r: at(xp, x, r.choice(["add", "subtract"]), xp.asarray([0, 2, 0, 0]), 2),
    "at of values": lambda xp, x, r: at(
        xp, x, "add", (xp.asarray([1, 1, 0]), xp.asarray([0, 0, 2])), x[0, :3] * 3
    ),
    "at a mask": lambda xp, x, r: at(xp, x, "subtract", x > 0, 1),
    "extremes at": lambda xp, x, r: at(
        xp,
        x,
        r.choice(["maximum", "minimum"]),
        (xp.asarray([1, 1, 0, 1, 1]), xp.asarray([0, 2, 2, 0, 0])),
        xp.asarray([3, -7, 5, -8, 1]),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_functions(name):
    beside(
        METHODS[name],
        NUMBERS if name in ("at", "at of values") else WIDE,
        (2, 2),
        size=6,
        least=3,
        examples=20,
        tolerance=1e-5,
    )


def test_powers_in_double_precision():
    x = cyrt.asarray(np.array([1, 3, 7], np.float32))
    assert cyrt.float_power(x, 0.1).dtype == cyrt.float64
    np.testing.assert_allclose(cyrt.float_power(x, 0.1).numpy(), [1, 3**0.1, 7**0.1], rtol=1e-15)
    assert cyrt.float_power(cyrt.asarray([2]), 100).item() == 2.0**100


def test_real_where_nearly():
    near = cyrt.asarray(np.array([1 + 1e-7j, 2], np.complex64))
    assert cyrt.real_if_close(near).tolist() == [1, 2]
    assert cyrt.real_if_close(near, tol=1e-8) is near
    assert cyrt.real_if_close(near.real).dtype == cyrt.float32


@pytest.mark.parametrize(
    ("error", "text", "program"),
    [
        (ValueError, "lexsort: expected at least one key", lambda x: cyrt.lexsort([])),
        (
            ValueError,
            "r_: expected arrays, numbers and ranges, got 'r'",
            lambda x: cyrt.numpy.r_["r", x],
        ),
        (
            TypeError,
            r"r_: expected an Array, got numpy\.ndarray",
            lambda x: cyrt.numpy.r_[np.ones(2), x],
        ),
        (ValueError, r"ix_: expected one dimension, got shape \(3, 3\)", lambda x: cyrt.ix_(x)),
        (ValueError, "there is no row", lambda x: cyrt.apply_along_axis(cyrt.sum, 1, x[:0])),
        (TypeError, "ldexp: x2: expected integers, got float32", lambda x: cyrt.ldexp(x, x)),
        (TypeError, r"got numpy\.ndarray", lambda x: cyrt.nanmedian(np.ones(2))),
        (TypeError, r"got numpy\.ndarray", lambda x: cyrt.numpy.array_str(np.ones(2))),
    ],
    ids=lambda each: None,
)
def test_refused(error, text, program):
    with pytest.raises(error, match=text):
        program(cyrt.ones((3, 3)))


def test_promoted_types():
    assert cyrt.numpy.promote_types("int8", np.float16) is cyrt.float16
    assert cyrt.numpy.promote_types(int, cyrt.uint8) is cyrt.int64
    with pytest.raises(TypeError, match="int64 and uint64"):
        cyrt.numpy.promote_types("int64", "uint64")


def test_integral_of_many_lines():
    beside(
        lambda xp, x, r: (
            xp.trapezoid(xp.asarray(np.array([1.0, 2, 4])), x),
            xp.trapezoid(xp.asarray(np.arange(6.0).reshape(2, 3)), x, axis=-1),
        ),
        ("float64",),
        (3, 3),
        least=3,
        size=3,
        tolerance=1e-5,
        examples=10,
    )
    beside(
        lambda xp, x, r: (
            xp.trapezoid(xp.asarray(np.array([1.0, 2, 4])), x),
            xp.trapezoid(xp.ones((2, 3)), x.reshape(3, 3, 3)[:, :2]),
        ),
        ("float64",),
        (3, 3),
        least=3,
        size=3,
        tolerance=1e-5,
        examples=10,
    )
    y = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_allclose(
        cyrt.trapezoid(cyrt.asarray(y), axis=1).numpy(), np.trapezoid(y, axis=1)
    )


def test_differences_keep_their_type():
    found = cyrt.setdiff1d(cyrt.asarray([16777217, 5, 2]), cyrt.asarray([2.0, 5.0]))
    assert (found.dtype, found.tolist()) == ("int64", [16777217])


def test_infinities_stay_where_they_are():
    host = np.array([1, np.inf, 3, 4, 5])
    for places in ([0.0, 1, 2, 3, 4], [0.0, 1, 3, 4, 5]):
        np.testing.assert_array_equal(
            cyrt.gradient(cyrt.asarray(host), cyrt.asarray(places)).numpy()[3:],
            np.gradient(host, places)[3:],
        )
    np.testing.assert_array_equal(
        cyrt.gradient(cyrt.asarray(host), [0.0, 1, 2, 3, 4]).numpy(),
        np.gradient(host, [0.0, 1, 2, 3, 4]),
    )


def test_nothing_is_counted_between_edges_that_are_not_finite():
    for value in (np.nan, np.inf, -np.inf):
        counts, _ = cyrt.histogram(cyrt.asarray([1, value, 3]), 3)
        assert counts.tolist() == [0, 0, 0]
    assert cyrt.histogram(cyrt.asarray([1, 2.0, 3]), 2)[0].tolist() == [1, 2]


def test_texts_as_bfloat16():
    assert float(cyrt.bfloat16("1.5")) == 1.5
    with pytest.raises(ValueError, match="could not convert"):
        cyrt.bfloat16("C")


def test_diagonals_are_numbered_by_ints():
    for program in (cyrt.diagonal, cyrt.trace):
        with pytest.raises(TypeError, match="float"):
            program(cyrt.ones((3, 3)), 0.9)


@pytest.mark.parametrize("given", [3, "out.json"])
def test_a_trace_is_of_an_array(given):
    with pytest.raises(TypeError, match=f"trace: a: expected .* got .*{type(given).__name__}"):
        cyrt.trace(given)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_among_values_at_one_place(name):
    host = np.zeros(4, np.float32)
    x = cyrt.asarray(host)
    places, values = np.array([2, 0, 2, 1, 0]), np.array([5, -3, np.nan, np.inf, 4], np.float32)
    getattr(np, name).at(host, places, values)
    getattr(cyrt, name).at(x, cyrt.asarray(places), cyrt.asarray(values))
    np.testing.assert_array_equal(x.numpy(), host)
    getattr(cyrt, name).at(x, cyrt.asarray(places[:0]), 9)
    np.testing.assert_array_equal(x.numpy(), host)
