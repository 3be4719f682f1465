"""Every row of the catalogue against NumPy: in float64 where it computes in less."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from applying import apply
from elementwise_reference import LOOSE, NOT_NUMPYS

import cyrt
from cyrt.builtin import catalogue
from cyrt.builtin.rows import elementwise
from cyrt.dtypes import DTYPES, dtype

pytestmark = pytest.mark.usefixtures("compiled_at_once")


def floor_divide(a, b):
    """The standard's: floor(a / b), of the exact quotient; NumPy has NaN for infinite a."""
    special = ~np.isfinite(a) | ~np.isfinite(b) | (a == 0) | (b == 0)
    return np.where(special, np.copysign(a / b, a / b), np.floor_divide(a, b))


def integer(op):
    def of(a, b):
        result = op(a, np.where(b == 0, 1, b).astype(b.dtype))
        return np.where(b == 0, 0, result).astype(a.dtype)

    return of


def power(a, b):
    """Powers of integers, modulo 2 to their bits; negative exponents round the reciprocal to 0."""
    bits = 8 * a.itemsize
    values = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        value = pow(x, y, 1 << bits) if y >= 0 else {1: 1, -1: -1 if y & 1 else 1}.get(x, 0)
        value %= 1 << bits
        values.append(value - (1 << bits) if a.dtype.kind == "i" and value >> bits - 1 else value)
    return np.array(values, a.dtype)


def joined(re, im):
    result = np.empty(np.shape(re), np.clongdouble)
    result.real, result.imag = re, im
    return result


# Where NumPy's complex functions are not the standard's.
def complex_round(x):
    return joined(np.round(x.real), np.round(x.imag))


def complex_sign(x):
    return np.where(np.isnan(x), complex(np.nan, np.nan), np.sign(x))


def complex_expm1(x):
    found = np.expm1(x)
    found = np.where(x.imag == 0, joined(np.expm1(x.real), x.imag), found)
    found = np.where((x.real == -np.inf) & ~np.isfinite(x.imag), -1, found)
    return np.where((x.real == np.inf) & ~np.isfinite(x.imag), complex(np.inf, np.nan), found)


COMPLEX = {"round": complex_round, "sign": complex_sign, "expm1": complex_expm1}


REFERENCE = {
    **NOT_NUMPYS,
    "abs": np.abs,
    "positive": np.positive,
    "negative": np.negative,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": lambda x: 1 / x,
    "round": np.round,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "logical_not": np.logical_not,
    "bitwise_invert": np.invert,
    "cbrt": np.cbrt,
    "exp2": np.exp2,
    "floor_divide": floor_divide,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "where": np.where,
    "copy": np.copy,
    "clip": np.clip,
    # NumPy's is NaN at infinities.
    "i0": lambda x: np.where(np.isinf(x), np.inf, np.i0(x)),
    # One rounding: the sum may cancel.
    "multiply_add": lambda a, b, c: a.astype(np.longdouble) * b + c,
    "scale_centered": lambda a, b, c: (a - b) * c,
}

# In units of the type's epsilon: what CUDA's functions allow, and a rounding of the reference.
EPSILONS = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "float32": 2**-23,
    "float64": 2**-52,
    "complex64": 2**-23,
    "complex128": 2**-52,
}


def values(name, rng, count):
    """Special values and random ones, of an element type."""
    each = dtype(name)
    if each.kind == "b":
        return rng.random(count) < 0.5
    if each.kind in "iu":
        limits = np.iinfo(each.numpy)
        special = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max - 1], each.numpy)
        spread = rng.integers(limits.min, limits.max, count, each.numpy, endpoint=True)
        small = rng.integers(-20 if each.kind == "i" else 0, 20, count).astype(each.numpy)
        found = np.where(rng.random(count) < 0.4, spread, small)
    elif each.kind == "f":
        special = np.array(
            [
                0.0,
                -0.0,
                1,
                -1,
                0.5,
                -0.5,
                1.5,
                2.5,
                -2.5,
                3,
                np.inf,
                -np.inf,
                np.nan,
                1e-3,
                88,
                -88,
                7,
            ]
        )
        found = rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, count)
        found, special = found.astype(each.numpy), special.astype(each.numpy)
    else:
        parts = np.array([0.0, -0.0, 1, -1, 0.5, 2, np.inf, -np.inf, np.nan])
        special = np.empty(81, np.complex128)
        special.real, special.imag = (p.ravel() for p in np.meshgrid(parts, parts))
        size = 10.0 ** rng.integers(-2, 2, count)
        found = (rng.normal(size=count) + 1j * rng.normal(size=count)) * size
        found, special = found.astype(each.numpy), special.astype(each.numpy)
    found[: len(special)] = special[:count]
    return found


def operands(row, rng):
    """Inputs where each special value of one meets each of the other."""
    count = 517
    found = [values(name, rng, count) for name in row.inputs]
    if row.op == "pow" and dtype(row.dtype).kind == "c":
        # NumPy goes through the reciprocal, the standard through exp and log.
        found[0] = np.where(np.isfinite(found[0]), found[0], 1).astype(found[0].dtype)
    for i in range(1, len(found)):
        # Another order, so that special values meet special values and random ones.
        found[i] = np.concatenate(
            [np.roll(found[i][:20], i * shift) for shift in range(20)] + [found[i][400:]]
        )
        found[0][:400] = np.tile(found[0][:20], 20)
    return found


def put(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(np.ascontiguousarray(array).view(np.uint8))
    return buffer


def get(buffer, name):
    out = np.zeros(buffer.nbytes, np.uint8)
    buffer.copy_to(out)
    return out.view(dtype(name).numpy)


def run(row, arrays):
    buffers = [put(a) for a in arrays]
    out = cyrt.Buffer(len(arrays[0]) * dtype(row.output).itemsize)
    apply(row.op, buffers, out, row.dtype, len(arrays[0]))
    return get(out, row.output)


def widened(array):
    """What the reference computes in."""
    kind = array.dtype.kind
    if kind == "c":
        return array.astype(np.clongdouble)
    return array.astype(np.float64) if kind in "fV" else array


def expected(row, arrays):
    kind = dtype(row.inputs[-1]).kind
    function = REFERENCE.get(row.op) or getattr(np, row.op)
    if kind in "iu":
        if row.op in ("floor_divide", "remainder"):
            function = integer(getattr(np, row.op))
        elif row.op == "pow":
            function = power
        elif row.op == "imag":
            function = np.zeros_like
    if row.op == "nextafter":
        if row.inputs[0] == "bfloat16":
            import ml_dtypes  # noqa: F401  its ufunc is registered with NumPy
        return np.where(arrays[0] == arrays[1], arrays[1], np.nextafter(*arrays))
    if kind == "c":
        function = COMPLEX.get(row.op, function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = function(*map(widened, arrays))
        return result.astype(dtype(row.output).numpy)


def compare(row, arrays, actual, wanted, ulps):
    """Equal, or close: NaN where NaN is, and infinities and zeros of the same sign."""
    kind = dtype(row.output).kind
    if kind == "c":
        actual, wanted = widened(actual), widened(wanted)
        size = np.abs(wanted)
        if row.op == "pow":  # errors of the logarithm grow by the exponent
            with np.errstate(invalid="ignore"):
                size = size * (1 + np.abs(arrays[1]))
        # The sign of an infinity beside a NaN is not specified.
        free = np.isnan(wanted.real) | np.isnan(wanted.imag)
        off = differ(row, actual.real, wanted.real, ulps, size, free)
        off |= differ(row, actual.imag, wanted.imag, ulps, size, free)
    elif kind == "f":
        size = 1 if row.op == "lgamma" else 0
        off = differ(row, widened(actual), widened(wanted), ulps, size, False)
        off |= (wanted == 0) & (actual == 0) & (np.signbit(wanted) != np.signbit(actual))
    else:
        off = actual != wanted
    i = np.flatnonzero(off)[:8]
    assert not len(i), (
        f"{row.kernels[0]}: of {[a[i].tolist() for a in arrays]} got "
        f"{actual[i].tolist()}, expected {wanted[i].tolist()}"
    )


def differ(row, actual, wanted, ulps, size, free):
    actual, wanted = np.where(free, np.abs(actual), actual), np.where(free, np.abs(wanted), wanted)
    epsilon = EPSILONS[row.output]
    least = {"float16": 2**-24, "float64": 0, "complex128": 0}.get(row.output, 1e-40)
    with np.errstate(all="ignore"):
        near = np.abs(actual - wanted) <= ulps * epsilon * np.maximum(np.abs(wanted), size) + least
    return ~(near | (actual == wanted) | (np.isnan(actual) & np.isnan(wanted)))


ELEMENTWISE = {
    name: rows
    for name, rows in catalogue.modules().items()
    if rows[0].template in ("unary", "binary", "ternary")
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_rows(name, rng):
    failures = []
    for row in ELEMENTWISE[name]:
        arrays = operands(row, rng)
        try:
            compare(row, arrays, run(row, arrays), expected(row, arrays), LOOSE.get(row.op, 4))
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("source", [each.name for each in DTYPES])
def test_casts(source, rng):
    """Between all pairs; of floats only what the integer type holds, as NumPy leaves it there."""
    for target in DTYPES:
        if target.name == source:
            continue
        x = values(source, rng, 517)
        if dtype(source).kind in "fc" and target.kind in "iu":
            low, high = (0, 120) if target.kind == "u" else (-120, 120)
            real = widened(x).real
            x = np.where((real >= low) & (real <= high), x, 7).astype(x.dtype)
        row = catalogue.row(f"to_{target}", source)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = x.astype(target.numpy)
        np.testing.assert_array_equal(widened(run(row, [x])), widened(wanted), row.kernels[0])


@pytest.mark.parametrize(
    ("source", "target", "x", "wanted"),
    [
        ("float32", "uint8", [-1.0, 300.0, 255.9], [255, 44, 255]),
        ("float32", "int16", [40000.0, -1.5], [-25536, -1]),
        (
            "float64",
            "uint64",
            [2.0**63, 1.8446744073709550e19, 7.9],
            [2**63, 18446744073709549568, 7],
        ),
        ("int64", "float16", [65519, 65520, -(2**40)], [65504, np.inf, -np.inf]),
        ("float64", "float16", [2049.0, 2051.0, 1 + 2**-11 + 2**-30], [2048, 2052, 1 + 2**-10]),
        ("float32", "bfloat16", [1.00390625, 1.01171875, 3.4e38], [1.0, 1.015625, np.inf]),
        ("float32", "bool", [0.0, -0.0, 1e-45, np.nan], [False, False, True, True]),
        ("complex64", "bool", [0j, 1j, 1 + 0j], [False, True, True]),
    ],
)
def test_casts_at_the_edges(source, target, x, wanted):
    row = catalogue.row(f"to_{target}", source)
    np.testing.assert_array_equal(
        run(row, [np.array(x, dtype(source).numpy)]), np.array(wanted, dtype(target).numpy)
    )


@pytest.mark.parametrize("name", [each.name for each in DTYPES if each.kind in "iufc"])
def test_arange(name):
    each = dtype(name)
    count = 40 if each.itemsize == 1 else 517
    out = cyrt.Buffer(count * each.itemsize)
    start, step = (100, -3 if each.kind == "i" else 3) if each.kind in "iu" else (-2.5, 0.25)
    apply("arange", [start, step], out, name, count)
    wanted = (np.arange(count) * step + start).astype(each.numpy)
    np.testing.assert_array_equal(get(out, name), wanted)


def test_any_byte_but_zero_is_true():
    raw, out = put(np.array([0, 1, 2, 255], np.uint8)), cyrt.Buffer(4)
    apply("logical_or", [raw, False], out, "bool", 4)
    assert get(out, "uint8").tolist() == [0, 1, 1, 1]


def test_rows_are_plain_and_unique():
    assert len({(row.op, row.dtype) for row in catalogue.ROWS}) == len(catalogue.ROWS)
    names = [name for row in catalogue.ROWS for name in row.kernels]
    assert len(set(names)) == len(names)
    for row in catalogue.ROWS:
        assert row.expression
        if row.template in elementwise.TEMPLATES:
            assert row.expression in catalogue.source([row])


def test_kernel_files_define_no_two_classes_of_one_name():
    folder = Path(__file__).resolve().parents[2] / "kernels_cu"
    defined = {}
    for file in folder.rglob("*.cu*"):
        for name in re.findall(
            r"^(?:template <.*> )?struct (?:alignas\(.*?\) )?(\w+)", file.read_text(), re.MULTILINE
        ):
            defined.setdefault(name, set()).add(file.name)
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}
