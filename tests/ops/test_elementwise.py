"""The functions element by element: names, types, shapes, ``out=``; against NumPy.

Values of every kernel have a test of their own, tests/builtin/test_catalogue.py.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
import pickle

import numpy as np
import pytest
from elementwise_reference import NOT_NUMPYS
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.nn import activations
from cyrt.ops import functions
from cyrt.ops.elementwise import Elementwise
from cyrt.ops.ternary import clip, where

# Names of one function, such as cyrt.mod and cyrt.remainder, are tested once.
ALL_NAMES = [name for name, each in vars(functions).items() if isinstance(each, Elementwise)]
NAMES = [name for name in ALL_NAMES if getattr(functions, name).__name__ == name]
IN_FLOATS = ("exp", "sqrt", "divide", "atan2", "erf", "logaddexp", "sigmoid")


def reference(name):
    return NOT_NUMPYS[name] if name in NOT_NUMPYS else getattr(np, name)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_operation_of_its_name(name):
    function = getattr(functions, name)
    count = len(inspect.signature(function).parameters) - 3  # out, where, dtype
    whole = name.startswith("bitwise") or name in ("gcd", "lcm")
    x = np.array([1, 2, 6], np.int32) if whole else np.array([0.25, 0.5, 0.75], np.float32)
    if name == "acosh":
        x += 1
    y = np.array([2, 1, 3], np.int32) if whole else np.array([0.5, -0.5, 0.25], np.float32)
    given = [x, y][:count]
    found = function(*map(cyrt.asarray, given)).numpy()
    wanted = reference(name)(*given)
    assert found.dtype == (np.float32 if wanted.dtype == np.float64 else wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_they_look_like_functions():
    further = "/, out=None, *, where=None, dtype=None)"
    assert str(inspect.signature(functions.exp)) == f"(x, {further}"
    assert str(inspect.signature(functions.add)) == f"(x1, x2, {further}"
    for name in ALL_NAMES:
        each = getattr(functions, name)
        assert (each.__module__, each.__qualname__) == ("cyrt", each.__name__)
        doc = inspect.getdoc(each)
        assert not doc.startswith("A function of"), name
        assert all(part in doc for part in ("Parameters", "Returns", "Raises", "Notes")), name
        # The public one, by its own name.
        assert hasattr(functions, each.__reduce__())
    with pytest.raises(AttributeError, match="no attribute 'reduce'"):
        functions.exp.reduce  # noqa: B018
    assert functions.mod is functions.remainder


@pytest.mark.parametrize(
    "function",
    [
        each
        for each in (*vars(functions).values(), *vars(activations).values())
        if isinstance(each, Elementwise) and not hasattr(np, each.__name__)
    ],
    ids=lambda each: each.__name__,
)
def test_numbers_alone_where_numpy_lacks_the_function(function):
    count = len(inspect.signature(function).parameters) - 3  # out, where, dtype
    for number, kind in (0.25, "float64"), (1, "float64"), (True, "float64"), (np.float32(3), "f4"):
        found = function(*[number] * count)
        wanted = function(*[cyrt.asarray(np.asarray(number, kind))] * count)
        assert type(found) is np.dtype(kind).type
        np.testing.assert_equal(found, wanted.numpy())
    found = function(*[0.25] * count, dtype=cyrt.float32)
    assert type(found) is np.float32


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(cyrt.exp)) is cyrt.exp


TYPES = [each.name for each in cyrt.dtypes.DTYPES if each.name != "bfloat16"]


@st.composite
def operands(draw):
    """Two arrays that broadcast: the shape, the step along each axis, and whether transposed."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    found = []
    for _ in range(2):
        own = [draw(st.sampled_from([size, size, 1])) for size in shape]
        own = own[draw(st.integers(0, len(shape))) :]
        steps = [draw(st.sampled_from([1, 2, -1])) for _ in own]
        found.append((tuple(own), steps, draw(st.booleans())))
    return found


def array(shape, steps, transposed, dtype, rng):
    """A NumPy array and the same on the device, of these strides."""
    x = rng.integers(0, 5, [size * abs(step) for size, step in zip(shape, steps, strict=True)])
    x = np.asarray(x, dtype)
    key = tuple(slice(None, None, step) for step in steps)
    y = cyrt.asarray(x.T.copy(order="C")).T if transposed else cyrt.asarray(x)
    return x[key], y[key]


@settings(max_examples=60, deadline=None)
@given(
    both=operands(),
    dtype=st.sampled_from(TYPES),
    seed=st.integers(0, 999),
    name=st.sampled_from(["add", "multiply", "not_equal", "logical_xor"]),
)
def test_shapes_and_strides(both, dtype, seed, name):
    rng = np.random.default_rng(seed)
    (x, a), (y, b) = (array(*each, dtype, rng) for each in both)
    found, wanted = getattr(functions, name)(a, b), getattr(np, name)(x, y)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(a.numpy(), x)
    mask = x == 1
    np.testing.assert_array_equal(where(cyrt.asarray(mask), a, b).numpy(), np.where(mask, x, y))


@settings(max_examples=60, deadline=None)
@given(both=operands(), dtype=st.sampled_from(TYPES), seed=st.integers(0, 999))
def test_shapes_and_strides_in_place(both, dtype, seed):
    rng = np.random.default_rng(seed)
    (x, a), (y, b) = (array(*each, dtype, rng) for each in both)
    if np.broadcast_shapes(x.shape, y.shape) == x.shape:
        x *= y
        a *= b
    else:
        with pytest.raises(ValueError, match="cannot be written into shape"):
            a *= b
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(b.numpy(), y)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64"])
@pytest.mark.parametrize("name", IN_FLOATS)
def test_integers_are_computed_in_float32(name, dtype):
    function = getattr(functions, name)
    count = len(inspect.signature(function).parameters) - 3  # out, where, dtype
    x = cyrt.asarray(np.array([0, 1, 1], dtype))
    found = function(*[x] * count)
    assert found.dtype == cyrt.float32
    single = cyrt.asarray(np.array([0, 1, 1], np.float32))
    np.testing.assert_array_equal(found.numpy(), function(*[single] * count).numpy())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_comparisons_with_ints_out_of_range(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, 0, 1, limits.max], dtype)
    a = cyrt.asarray(x)
    ints = [
        int(limits.min) - 1,
        int(limits.min),
        0,
        int(limits.max),
        int(limits.max) + 1,
        2**64,
        -(2**70),
        2**70,
        np.int64(2**62),
        True,
    ]
    for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        for number in ints:
            case = f"{op.__name__} {number}"
            np.testing.assert_array_equal(op(a, number).numpy(), op(x, number), case)
            np.testing.assert_array_equal(op(number, a).numpy(), op(number, x), case)
    for name in ("less", "greater_equal", "equal"):
        wanted = getattr(np, name)(2**70, x)
        np.testing.assert_array_equal(getattr(functions, name)(2**70, a).numpy(), wanted)
    out = cyrt.asarray(np.array([False] * 4))
    assert functions.less(a, 2**64, out=out) is out
    assert out.numpy().all()
    assert (a < 2**64).dtype == cyrt.bool


@pytest.mark.parametrize("number", [128, -129, 2**70])
def test_other_operations_refuse_ints_out_of_range(number):
    x = cyrt.asarray(np.array([1, 2], np.int8))
    with pytest.raises(OverflowError, match=f"{number} is out of range of int8"):
        x + number
    with pytest.raises(OverflowError, match=f"{number} is out of range of int8"):
        functions.bitwise_and(number, x)


def test_bool_arithmetic():
    x = cyrt.asarray(np.array([False, False, True, True]))
    y = cyrt.asarray(np.array([False, True, False, True]))
    assert (x + y).tolist() == [False, True, True, True]
    assert (x * y).tolist() == [False, False, False, True]
    assert (~x).tolist() == [True, True, False, False]
    assert functions.maximum(x, y).tolist() == [False, True, True, True]
    assert (x + 1).dtype == cyrt.int64
    with pytest.raises(TypeError, match="subtract: not for bool; it takes"):
        x - y
    with pytest.raises(TypeError, match="negative: not for bool"):
        _ = -x


def test_whole_numbers_of_operators():
    x = np.array([7, -7, 7, -7, 5, -128], np.int8)
    y = np.array([2, 2, -2, -2, 0, -1], np.int8)
    a, b = cyrt.asarray(x), cyrt.asarray(y)
    assert (a // b).tolist() == [3, -4, -4, 3, 0, -128]
    assert (a % b).tolist() == [1, 1, -1, -1, 0, 0]
    assert (cyrt.asarray(np.array([2, 2, -1, 0], np.int8)) ** 7).tolist() == [-128, -128, -1, 0]
    assert (a << 9).tolist() == [0] * 6
    assert (a >> 9).tolist() == [0, -1, 0, -1, 0, -1]


def test_halves_of_both_kinds():
    """16-bit floats compute in float32 and round once."""
    for name, largest in (("float16", 65504.0), ("bfloat16", 3.3895313892515355e38)):
        x = cyrt.asarray([largest, 1.0, -0.0], dtype=getattr(cyrt, name))
        assert functions.hypot(x, x).tolist()[0] == math.inf
        assert functions.multiply(x, 0.5).tolist()[0] == largest / 2
        assert functions.signbit(x).tolist() == [False, False, True]
        beyond, above, _ = functions.nextafter(x, math.inf).tolist()
        assert beyond == math.inf
        assert 1 < above < 1.01
        assert functions.sigmoid(x).tolist()[:1] == [1.0]
    x = cyrt.asarray([1.0], dtype=cyrt.float16)
    assert (x + cyrt.asarray([1.0], dtype=cyrt.bfloat16)).dtype == cyrt.float32


# -- out= ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uint8", "int32", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [0, 61, 64])  # whole vectors of some types, of all
def test_numbers_beside_arrays(name, n, rng):
    number = 3 - 2j if name == "complex128" else 3
    x = rng.integers(1, 60, n + 1).astype(name)
    for first in (0, 1):  # aligned, and not
        view, wanted = cyrt.asarray(x)[first:], x[first:]
        np.testing.assert_array_equal((view - number).numpy(), wanted - number)
        np.testing.assert_array_equal((number - view).numpy(), number - wanted)
        np.testing.assert_array_equal((view != number).numpy(), wanted != number)
        view -= number
        np.testing.assert_array_equal(view.numpy(), wanted - number)


def test_out_takes_the_result(rng):
    x, y = (rng.normal(size=(4, 6)).astype(np.float32) for _ in range(2))
    a, b = cyrt.asarray(x), cyrt.asarray(y)
    for out in (
        cyrt.zeros((4, 6)),
        cyrt.zeros((6, 4)).T,
        cyrt.zeros((8, 6))[::2],
        cyrt.zeros((4, 6), dtype=cyrt.float64),
        cyrt.zeros((4, 6), dtype=cyrt.complex64),
    ):
        assert functions.multiply(a, b, out=out) is out
        np.testing.assert_array_equal(out.numpy(), x * y)
        assert functions.negative(a, out=out) is out
        np.testing.assert_array_equal(out.numpy(), -x)
    out = cyrt.zeros((4, 6), dtype=cyrt.float64)
    clip(a, -0.5, 0.5, out=out)
    np.testing.assert_array_equal(out.numpy(), np.clip(x, -0.5, 0.5))


@pytest.mark.parametrize(
    ("operands", "out"),
    [
        (lambda x: (x[:-1], x[:-1]), lambda x: x[1:]),
        (lambda x: (x[1:], x[:-1]), lambda x: x[:-1]),
        (lambda x: (x[::-1], x), lambda x: x),
        (lambda x: (x, x[:1]), lambda x: x),
    ],
)
def test_out_that_overlaps_an_operand(operands, out):
    x = np.arange(5000, dtype=np.int32)  # several blocks compute it
    a = cyrt.asarray(x)
    functions.add(*operands(a), out=out(a))
    np.add(*operands(x), out=out(x))
    np.testing.assert_array_equal(a.numpy(), x)


def test_out_that_is_an_operand_transposed():
    x = np.arange(4900, dtype=np.int32).reshape(70, 70)
    a = cyrt.asarray(x)
    functions.add(a.T, a, out=a)
    np.testing.assert_array_equal(a.numpy(), x.T + x)
    a = cyrt.asarray(x)
    a -= a.T
    np.testing.assert_array_equal(a.numpy(), x - x.T)


def test_in_place():
    x = cyrt.asarray(np.arange(6, dtype=np.float32))
    same, y = x, x[::2]
    x += 1
    x *= y[:1]
    y -= 1
    assert same is x
    assert x.tolist() == [0, 2, 2, 4, 4, 6]
    whole = cyrt.asarray([1, 2])
    with pytest.raises(TypeError, match="result of float32 cannot be written into int64"):
        whole += 0.5
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*shape \(2,\)"):
        whole += cyrt.asarray([[1, 2], [3, 4]])
    assert whole.tolist() == [1, 2]
    rows = cyrt.asarray([[1, 2], [3, 4]])
    rows += whole
    rows[:, ::-1] -= rows[:1]  # overlaps what is written
    assert rows.tolist() == [[-2, 2], [0, 4]]
    repeated = cyrt.broadcast_to(whole, (3, 2))
    for other in (whole, repeated, cyrt.zeros((3, 2), dtype=cyrt.int64)):
        with pytest.raises(ValueError, match="share memory"):
            repeated += other
    assert whole.tolist() == [1, 2]


def test_operands_stay_as_they_are():
    x = np.arange(5, dtype=np.float32)
    a = cyrt.asarray(x)
    for function in (functions.exp, functions.negative, lambda v: functions.add(v, v)):
        function(a)
        function(a + 0)
    np.testing.assert_array_equal(a.numpy(), x)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: functions.exp(), TypeError, r"exp\(x, /.* takes 1 or 2 positional .* got 0"),
        (lambda x: functions.add(x), TypeError, "takes 2 or 3 positional arguments, got 1"),
        (lambda x: functions.exp(x, x, x), TypeError, "takes 1 or 2 positional arguments, got 3"),
        (
            lambda x: functions.exp(x, x, out=x),
            TypeError,
            "takes 1 or 2 positional arguments, got 2",
        ),
        (
            lambda x: functions.exp(x, casting=None),
            TypeError,
            "unexpected keyword argument 'casting'",
        ),
        (
            lambda x: functions.exp(*[x], **{"casting": 3}),
            TypeError,
            "unexpected keyword .*'casting'",
        ),
        (
            lambda x: functions.erf(2.0, out=x),
            TypeError,
            "erf: expected an Array, got only numbers: 2.0",
        ),
        (lambda x: functions.erf(2j), TypeError, "erf: not for complex128; it takes float16"),
        (
            lambda x: functions.add(1, 2, x),
            TypeError,
            "add: expected an Array, got only numbers: 1",
        ),
        (lambda x: functions.exp(x, where=x), TypeError, "where: .* an Array of bool, got float32"),
        (lambda x: functions.exp(2.0, where=x > 1, out=x), TypeError, "only numbers: .*7.38"),
        (lambda x: functions.exp(x, where=x > 1, out=cyrt.zeros(2)), ValueError, r"shape \(2,\)"),
        (lambda x: x - [1, 2], ValueError, r"subtract: shapes \(3,\) and \(2,\) do not broadcast"),
        (lambda x: x * ["1", 2, 3], TypeError, "expected numbers, got str"),
        (lambda x: functions.add(1, "2"), TypeError, "add: expected an Array, got str"),
        (lambda x: functions.add(np.ones(3), x), TypeError, r"numpy.ndarray; cyrt.asarray\(\)"),
        (lambda x: x + np.ones(3), TypeError, r"add: .*numpy.ndarray; cyrt.asarray\(\)"),
        (lambda x: np.ones(3) + x, TypeError, r"add: .*numpy.ndarray; cyrt.asarray\(\)"),
        (lambda x: functions.add(x, "1"), TypeError, "add: expected an Array, got str"),
        (lambda x: x + "1", TypeError, "unsupported operand"),
        (lambda x: functions.bitwise_and(x, x), TypeError, "not for float32; it takes bool, int8"),
        (lambda x: functions.less(x, 1j), TypeError, "less: not for complex64"),
        (
            lambda x: functions.add(x, cyrt.zeros(2)),
            ValueError,
            r"add: shapes \(3,\) and \(2,\) do not broadcast",
        ),
        (
            lambda x: functions.add(cyrt.asarray([1]), cyrt.asarray([1], dtype="uint64")),
            TypeError,
            "int64 and uint64 have no common type",
        ),
        (
            lambda x: functions.exp(x, out=np.zeros(3)),
            TypeError,
            "out: expected an Array, got numpy.ndarray",
        ),
        (lambda x: functions.exp(x, out=cyrt.zeros(2)), ValueError, r"shape \(3,\).*shape \(2,\)"),
        (
            lambda x: functions.exp(x, out=cyrt.zeros(3, dtype="int32")),
            TypeError,
            "result of float32 cannot be written into int32",
        ),
        (
            lambda x: functions.exp(cyrt.zeros((2, 3)), out=x[None].T[:, :0].T),
            ValueError,
            r"shape \(2, 3\)",
        ),
        (lambda x: where(x, x), TypeError, "where: expected x1 and x2, or neither"),
        (lambda x: clip(x, 1, a_min=2), ValueError, "expected one of them"),
        (lambda x: where("a", x, x), TypeError, "condition: expected an Array, got str"),
        (lambda x: where(True, 1, 2), TypeError, "condition: expected an Array, got bool"),
        (lambda x: where(np.ones(3, bool), x, x), TypeError, r"got numpy\.ndarray"),
        (lambda x: clip(x, "a"), TypeError, "clip: expected an Array, got str"),
        (lambda x: clip(x, 1j), TypeError, "complex"),
        (lambda x: clip(x, cyrt.ones(3, dtype="complex64")), TypeError, "clip: not for complex64"),
        (
            lambda x: clip(x, 1, out=np.zeros(3)),
            TypeError,
            "clip: out: expected an Array, got numpy.ndarray",
        ),
    ],
)
def test_refused(call, error, message):
    x = cyrt.asarray(np.array([1, 2, 3], np.float32))
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == [1, 2, 3]


def test_clip():
    x = np.array([-5, 0, 5, 100], np.int8)
    a = cyrt.asarray(x)
    assert clip(a).tolist() == x.tolist()
    assert clip(a, 0).tolist() == [0, 0, 5, 100]
    assert clip(a, max=3).tolist() == [-5, 0, 3, 3]
    assert clip(a, 4, 2).tolist() == [2, 2, 2, 2]
    low = cyrt.asarray(np.array([[-3], [3]], np.int8))
    assert clip(a, low, 50).tolist() == np.clip(x, low.numpy(), 50).tolist()
    assert clip(a, low).dtype == cyrt.int8
    nan = cyrt.asarray(np.array([np.nan, 1], np.float32))
    np.testing.assert_array_equal(clip(nan, 0, 0.5).numpy(), [np.nan, 0.5])


def test_where_and_numbers():
    mask = cyrt.asarray(np.array([True, False]))
    x = cyrt.asarray(np.array([1, 2], np.int16))
    assert where(mask, x, 7).tolist() == [1, 7]
    assert where(mask, x, 7).dtype == cyrt.int16
    assert where(mask, 0.5, x).dtype == cyrt.float32
    assert where(mask, 1, 2).dtype == cyrt.int64
    assert where(mask, cyrt.asarray([[1], [2]]), x).tolist() == [[1, 2], [2, 2]]


# Views of one 8 x 8 matrix, all of shape 4 x 4.
VIEWS = {
    "contiguous": lambda x: x.reshape(4, 4, 4)[1],
    "inner": lambda x: x[2:6, 1:5],
    "stepped": lambda x: x[::2, ::-2],
    "turned": lambda x: x.T[3:7, :4],
    "one row": lambda x: x[:1, 4:],
    "one column": lambda x: x[4:, 7:],
}


@pytest.mark.parametrize(
    ("first", "second"),
    [*itertools.product(VIEWS, [*VIEWS, 2.0]), *itertools.product([3.0], VIEWS)],
)
def test_operands_keep_their_sides(first, second):
    host = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
    x = cyrt.asarray(host)
    for array, results in ((host, wanted := []), (x, found := [])):
        a, b = (VIEWS[each](array) if isinstance(each, str) else each for each in (first, second))
        results += [a - b, b / a, a < b]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


def floats(name, rng):
    """Special numbers, and others of all sizes."""
    special = [0.0, -0.0, 1.0, -1.0, 19.0, -19.0, np.inf, -np.inf, np.nan, 2.5, -2.5]
    found = rng.normal(size=4000) * 2.0 ** rng.integers(-12, 12, 4000)
    found[: len(special)] = special
    if np.dtype(name).kind == "c":
        parts, found = found, np.empty(4000, np.complex128)
        found.real, found.imag = parts, np.roll(parts, 5)
    return found.astype(name)


def check_equal(found, wanted):
    """Equal, zeros in their signs as well; any NaN equals another."""
    real = {"complex64": np.float32, "complex128": np.float64}.get(found.dtype.name, found.dtype)
    found, wanted = found.view(real), wanted.view(real)
    np.testing.assert_array_equal(found, wanted)
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


POWERS = {1: lambda x: x, 2: lambda x: x * x, 0.5: functions.sqrt, -1: functions.reciprocal}
BY = {
    "x ** n": lambda x, n: x**n,
    "power": cyrt.power,
    "out": lambda x, n: functions.pow(x, n, out=cyrt.empty_like(x)),
    "dtype": lambda x, n: functions.pow(x, n, dtype=x.dtype),
    "where": lambda x, n: functions.pow(x, n, where=True),
}


@pytest.mark.parametrize("how", BY)
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_powers_by_numbers_that_have_an_operation(name, how, rng):
    """Bit for bit, for any kind of number."""
    x = cyrt.asarray(floats(name, rng))
    for n, same in POWERS.items():
        wanted = same(x)
        for each in (n, float(n), np.float32(n), *((np.int8(n),) if n == int(n) else ())):
            found = BY[how](x, each)
            assert found.dtype == x.dtype
            assert found is not x
            check_equal(found.numpy(), wanted.numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_powers_by_numbers_are_numpys(name, rng):
    host = floats(name, rng)
    for n in (-1, 0, 0.5, 1, 2):
        check_equal((cyrt.asarray(host) ** n).numpy(), host**n)
        x = cyrt.asarray(host)
        x **= n
        np.testing.assert_array_equal(x.numpy(), host**n)
    part = cyrt.asarray(host)[::-3]
    part **= 2
    np.testing.assert_array_equal(part.numpy(), host[::-3] ** 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_small_whole_powers_are_rounded_once(name, rng):
    """Wherever the exponent comes from; all but one in some hundred are the nearest number."""
    host = floats(name, rng)
    for n in (2, 3, 4):
        wanted = (host.astype(np.longdouble) ** n).astype(name)
        x = cyrt.asarray(host)
        for found in (x**n, x ** cyrt.full(x.shape, n, dtype=name), n * 0 + x**n):
            found = found.numpy()
            whole = host == np.round(host)
            np.testing.assert_array_equal(found[whole], wanted[whole])
            off = (found != wanted) & (wanted == wanted)
            assert off.mean() < 0.01
            np.testing.assert_allclose(found, wanted, 2 * np.finfo(name).eps, np.finfo(name).tiny)
    assert (cyrt.asarray([3e102, -1e308, 1e-120, -2e-108], dtype="float64") ** 3).tolist() == [
        pytest.approx(2.7e307), -np.inf, 0, pytest.approx(-8e-324, abs=5e-324)
    ]  # fmt: skip


def test_powers_of_integers_by_numbers():
    x = cyrt.asarray([-3, 0, 2, 46341], dtype="int32")
    host = x.numpy()
    for n in (1, 2, 3, np.int64(2)):
        assert (x**n).dtype == "int32"
        np.testing.assert_array_equal((x**n).numpy(), host ** np.int32(n))
    assert (x**-1).tolist() == [0, 0, 0, 0]
    for n in (2.0, 0.5, -1.0):
        found = x**n
        assert found.dtype == "float32"
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found.numpy(), host.astype(np.float32) ** np.float32(n))
    with pytest.raises(TypeError, match="pow: a result of float32 cannot be written into int32"):
        x **= 0.5
    assert x.tolist() == host.tolist()
    assert (x ** (2 + 0j)).dtype == "complex64"
    assert cyrt.float_power(x, 0.5)[2].item() == math.sqrt(2)
    assert (cyrt.asarray([True, False]) ** 2).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"pow: the result has shape \(4,\)"):
        functions.pow(cyrt.ones(4), 2, out=cyrt.ones(3))


COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64"])
def test_integers_are_compared_exactly_with_floats(dtype):
    limits = np.iinfo(dtype)
    values = [limits.min, limits.max, limits.max - 1, 0, 30, 31, 100]
    host = np.array([*values, 1_700_000_060 % limits.max], dtype)
    x = cyrt.asarray(host)
    numbers = [0.0, -0.5, 30.5, 30.0, 2.0**31, float(2**63), -(2.0**63), 1e300, 1_700_000_000.0]
    for number in (*numbers, np.float32(30.5), np.inf, -np.inf, np.nan):
        real = float(number)
        for name, compare in COMPARISONS.items():
            wanted = [compare(each, real) for each in host.tolist()]  # Python's are exact
            assert compare(x, number).tolist() == wanted, (name, number)
            wanted = [compare(real, each) for each in host.tolist()]
            assert getattr(functions, name)(number, x).tolist() == wanted, (name, number)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_by_an_array_take_no_square_roots(dtype):
    """As NumPy's, and as those of float_power: those of -0 and minus infinity differ from roots."""
    host = np.array([-np.inf, -0.0, 0.0, 2, np.inf, np.nan, -1], dtype)
    x = cyrt.asarray(host)
    wanted = np.array([np.inf, 0, 0, 2**0.5, np.inf, np.nan, np.nan], dtype)
    check_equal((x ** cyrt.full(7, 0.5, dtype=dtype)).numpy(), wanted)
    for exponent in (0.5, [0.5]):
        found = cyrt.float_power(x, exponent).numpy()
        with np.errstate(all="ignore"):
            check_equal(found, np.float_power(host, 0.5))


def test_a_number_of_a_logical_operation_is_true_or_false():
    """It may be one that the array's type cannot hold."""
    x = cyrt.asarray([0, 1, 7], dtype="uint8")
    for number in (-1, 300, 0.5, 0, True, np.int64(-1), 1j):
        for name in ("logical_and", "logical_or", "logical_xor"):
            wanted = getattr(np, name)(x.numpy(), bool(number))
            assert getattr(functions, name)(x, number).tolist() == wanted.tolist()
            assert getattr(functions, name)(number, x).tolist() == wanted.tolist()
