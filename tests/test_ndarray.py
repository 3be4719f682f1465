"""The Array as NumPy users meet it: indexing, assignment, aliasing, numbers, making."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cyrt
from cyrt.ops.broadcasting import broadcast_to

quick = settings(max_examples=60, deadline=None)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
# Sources of an assignment, as NumPy and as cyrt see them.
VALUES = (
    1,
    1.5,
    True,
    1j,
    -1,
    300,
    float("nan"),
    2**70,
    np.float16(2),
    [1, 2, 3, 4],
    [[1.5, 2, 3, 4]],
    [1, 2, 3],
    [],
    [300, 1, 2, 3],
    [1j, 2, 3, 4],
    np.arange(4),
    np.arange(3)[:, None],
    np.arange(12.0).reshape(3, 4),
    np.arange(24).reshape(2, 3, 4),
    np.ones((1, 1, 3, 4)),
)


def numbered(shape, dtype=np.float32):
    return np.arange(1, np.prod(shape, dtype=int) + 1).astype(dtype).reshape(shape)


def outcome(function, *args):
    """What it gives, or the type of its error."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return type(error)


# -- indexing --------------------------------------------------------------------------------------


@quick
@given(
    SHAPES.flatmap(
        lambda shape: st.tuples(
            st.just(shape), hnp.basic_indices(shape, allow_newaxis=True, max_dims=6)
        )
    )
)
def test_views_by_ints_and_slices(case):
    shape, key = case
    host = numbered(shape)
    x = cyrt.asarray(host)
    wanted = np.asarray(host[key])
    found = x[key]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.numpy(), wanted)
    # Written through the view, the array is changed, and nowhere else.
    x[key] = -1
    host[key] = -1
    np.testing.assert_array_equal(x.numpy(), host)


class Place:
    """An int by its __index__ alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


BOUNDS = st.one_of(
    st.none(),
    st.integers(-9, 9),
    st.sampled_from([2**31, -(2**31), 2**62, 2**63, -(2**70)]),
    st.integers(-9, 9).map(np.int64),
    st.integers(-9, 9).map(Place),
    st.booleans(),
)


@quick
@given(st.integers(0, 6), st.builds(slice, BOUNDS, BOUNDS, BOUNDS))
def test_slices_by_any_bounds(size, key):
    host = np.arange(1, size + 1)
    x = cyrt.asarray(host)
    wanted, found = outcome(host.__getitem__, key), outcome(x.__getitem__, key)
    if isinstance(wanted, type):
        assert found is wanted
    else:
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("key", [(0, Place(1)), (np.int8(-1), ..., Place(-2)), Place(0)])
def test_what_stands_for_an_int_is_one(key):
    host = numbered((2, 3, 4))
    np.testing.assert_array_equal(cyrt.asarray(host)[key].numpy(), host[key])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((0, 5), "index 5 is out of bounds for axis 1 with size 3"),
        (-3, "index -3 is out of bounds for axis 0 with size 2"),
        (2**70, f"index {2**70} is out of bounds for axis 0 with size 2"),
        ((0, 0, 0, 0), "array is 3-dimensional, but 4 were indexed"),
        ((..., 0, ...), "a single ellipsis"),
        ((None,) * 62, "more than 64 dimensions"),
    ],
)
def test_a_refused_index_is_named(key, message):
    x = cyrt.zeros((2, 3, 4))
    with pytest.raises(IndexError, match=re.escape(message)):
        x[key]


def test_an_error_of_an_index_is_raised():
    class Failing:
        def __index__(self):
            raise ZeroDivisionError

    x = cyrt.zeros(4)
    for key in (Failing(), slice(Failing()), slice(None, None, Failing()), (..., Failing())):
        with pytest.raises(ZeroDivisionError):
            x[key]


@pytest.mark.parametrize("shape", [(4, 3), (2,) * 9])
def test_dropped_views_leave_nothing(shape):
    x = cyrt.ones(shape)
    weak = []
    before = sys.getrefcount(x)
    for _ in range(300):
        view = x[1:, ..., :1][..., None].T
        weak.append(weakref.ref(view))
        with pytest.raises(IndexError):
            x[1:, 7]
    assert sys.getrefcount(x) == before + 1  # what the last view is of
    assert all(each() is None for each in weak[:-1])
    assert weak[-1]() is view
    del view
    assert sys.getrefcount(x) == before
    assert weak[-1]() is None


@pytest.mark.parametrize(
    "key",
    [
        2,
        -3,
        (0, 1, 2, 3),
        (..., 0, ...),
        slice(None, None, 0),
        slice(1.5),
        slice("a"),
        (0, 3),
        (slice(0, 0), 5),
        (None,) * 62,
        (None,) * 1000,
        1 << 70,
        slice(1 << 70, -(1 << 70), 1 << 70),
        slice(None, None, -(1 << 70)),
        (None,) * 61,
        (0, 0, 0) + (None,) * 64,
    ],
)
def test_odd_indices_are_numpys(key):
    host = numbered((2, 3, 4))
    wanted = outcome(host.__getitem__, key)
    found = outcome(cyrt.asarray(host).__getitem__, key)
    if isinstance(wanted, type):
        assert issubclass(found, IndexError) if wanted is IndexError else found is wanted
    else:
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_no_dimensions():
    x = cyrt.asarray(5.0)
    x[...] = 6
    assert x[()].item() == x[None][0].item() == 6
    for call in (lambda: x[0], lambda: x[:]):
        with pytest.raises(IndexError, match="0-dimensional, but 1 were indexed"):
            call()
    for call in (len, iter):
        with pytest.raises(TypeError, match="no dimensions"):
            call(x)


def test_iteration_makes_views_as_they_are_asked_for():
    x = cyrt.asarray(numbered((3, 2)))
    for row in x:
        row += 1
    np.testing.assert_array_equal(x.numpy(), numbered((3, 2)) + 1)
    assert [each.item() for each in reversed(x[:, 0])] == [6, 4, 2]
    assert next(iter(cyrt.empty((1 << 40, 0)))).shape == (0,)


def test_membership():
    x = cyrt.asarray([1, 2, 3])
    assert 2 in x
    assert 2.5 not in x
    assert cyrt.asarray(3) in x
    assert "a" not in x
    assert None not in x


# -- assignment ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v).replace("\n", "")[:20])
def test_assigned_values_are_cast_as_numpys(dtype, value):
    host = numbered((2, 3, 4), dtype)
    x = cyrt.asarray(host)
    refused = outcome(host.__setitem__, 1, value)
    if refused:
        with pytest.raises(refused):
            x[1] = value
    else:
        x[1] = value
    np.testing.assert_array_equal(x.numpy(), host)


def test_a_list_is_assigned_exactly():
    x = cyrt.zeros(2, dtype="float64")
    x[:] = [0.1, 1e-300]
    assert x.tolist() == [0.1, 1e-300]
    y = cyrt.zeros(1, dtype="uint64")
    y[:] = [2**64 - 1]
    assert y.tolist() == [2**64 - 1]


def test_what_is_no_number_is_not_assigned():
    x = cyrt.zeros(2)
    for value in ("a", ["a"], None, [None, 1], {}, object(), np.array(["a"])):
        with pytest.raises(TypeError, match="expected numbers, got"):
            x[:] = value
    with pytest.raises(ValueError, match="share memory"):
        broadcast_to(x, (3, 2))[1:] = 1
    np.testing.assert_array_equal(x.numpy(), [0, 0])


def slices(size):
    """Two slices of an axis that are equally long."""

    def pair(length):
        def one():
            if length < 2:
                return st.integers(0, size - length).map(lambda a: slice(a, a + length))
            return st.integers(1, (size - 1) // (length - 1)).flatmap(
                lambda step: st.tuples(
                    st.integers(0, size - 1 - (length - 1) * step), st.booleans()
                ).map(
                    lambda at: (
                        slice(at[0], at[0] + (length - 1) * step + 1, step)
                        if at[1]
                        else slice(at[0] + (length - 1) * step, at[0] - 1 if at[0] else None, -step)
                    )
                )
            )

        return st.tuples(one(), one())

    return st.integers(0, size).flatmap(pair)


@quick
@given(
    st.tuples(slices(24), slices(24)),
    st.booleans(),
    st.sampled_from(["assign", "add", "subtract"]),
    st.sampled_from(["float32", "int8"]),
)
def test_overlapping_operands(pairs, turned, what, dtype):
    (a, b), (c, d) = pairs
    host = numbered((24, 24), dtype)  # more than run at once
    x = cyrt.asarray(host)
    for array in (host, x):
        other = array.T[d, b].T if turned else array[b, d]
        if what == "assign":
            array[a, c] = other
        elif what == "add":
            array[a, c] += other
        else:
            part = array[a, c]
            part -= other
    np.testing.assert_array_equal(x.numpy(), host)


def test_parts_of_complex_numbers_overlap():
    host = np.array([1 + 2j, 3 - 4j, -5j], np.complex64)
    x = cyrt.asarray(host)
    for array in (x, host):
        array.real[...] = array.imag
        array.imag[1:] += array.real[:-1]
    np.testing.assert_array_equal(x.numpy(), host)


# -- as Python's values ----------------------------------------------------------------------------


def test_numbers():
    for value in (3, 2.5, True, 1 + 2j):
        x = cyrt.asarray(value)
        assert x.item() == value
        assert type(x.item()) is type(x.tolist()) is type(value)
        assert bool(x) is bool(value)
        assert complex(x) == value
    assert cyrt.full(1, -(10**400), dtype="complex64").item() == -np.inf
    assert (int(cyrt.asarray(2.5)), float(cyrt.asarray([3]))) == (2, 3.0)
    assert list(range(3))[cyrt.asarray(1)] == 1
    x = cyrt.asarray(numbered((2, 3)))
    assert (x.item(4), x.item(-1), x.item(1, 0), x.item((0, 2))) == (5, 6, 4, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: bool(x), ValueError, r"shape \(2, 3\) is ambiguous"),
        (lambda x: bool(x[:0]), ValueError, r"shape \(0, 3\) is ambiguous"),
        (lambda x: int(x), TypeError, r"one element .* got shape \(2, 3\)"),
        (lambda x: [1][x[0, 0]], TypeError, "got float32"),
        (lambda x: [1][cyrt.asarray([0])], TypeError, r"shape \(1,\)"),
        (lambda x: float(cyrt.asarray(1j)), TypeError, "complex"),
        (lambda x: x.item(), ValueError, "one element"),
        (lambda x: x.item(6), IndexError, "6 is out of bounds"),
        (lambda x: x.item(0, 1, 2), IndexError, "expected 2 indices, got 3"),
        (lambda x: hash(x), TypeError, "unhashable"),
        (lambda x: cyrt.Array(), TypeError, "made by cyrt.asarray"),
        (lambda x: np.asarray(x, copy=False), ValueError, "lies on a device"),
        (lambda x: x + x.numpy(), TypeError, r"got numpy\.ndarray; cyrt\.asarray"),
        (lambda x: x.numpy() + x, TypeError, r"got numpy\.ndarray; cyrt\.asarray"),
        (lambda x: x @ x.numpy().T, TypeError, r"got numpy\.ndarray; cyrt\.asarray"),
        (lambda x: x + "a", TypeError, "unsupported operand"),
        (lambda x: x.astype("float8"), TypeError, "'float8' is not an element type"),
        (lambda x: cyrt.astype(None, "int8"), TypeError, "astype: x: expected .*NoneType"),
        (lambda x: cyrt.copy(None), TypeError, "copy: x: expected .*NoneType"),
        (lambda x: cyrt.to_device(None, 0), TypeError, "to_device: x: expected .*NoneType"),
        (lambda x: x.fill(np.datetime64("2020-01-01")), TypeError, "expected a number, got date"),
        (lambda x: (x > 0).fill(np.str_("a")), TypeError, "expected a number, got str"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(cyrt.zeros((2, 3)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_pickles_and_copies_are_of_their_own(dtype, shape):
    host = numbered(shape)
    x = cyrt.asarray(host, dtype=dtype).T
    for twin in (
        pickle.loads(pickle.dumps(x)),
        copy.copy(x),
        copy.deepcopy(x),
        x.copy(),
        cyrt.asarray(x, copy=True),
    ):
        assert (twin.dtype, twin.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(twin.numpy(), x.numpy())
        twin.fill(0)
        np.testing.assert_array_equal(x.numpy(), host.T.astype(x.dtype.numpy))
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1]


# -- asarray ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (True, "bool"),
        (1, "int64"),
        (1.5, "float32"),
        (1j, "complex64"),
        ([], "float32"),
        ([[], []], "float32"),
        ([True, 2], "int64"),
        ([1, 2.5], "float32"),
        ([1, 1j], "complex64"),
        (range(3), "int64"),
        ([range(2), (1, 2)], "int64"),
        ((1, (2)), "int64"),
        (np.float64(1), "float64"),
        ([np.float64(1), 2], "float32"),
        ([np.int8(1)], "int64"),
        (np.arange(3, dtype=np.uint8), "uint8"),
        (np.arange(3)[::-1], "int64"),
        (np.array([1, 2], ">i4"), "int32"),
        ([np.zeros(2), np.ones(2)], "float64"),
        (memoryview(b"abc"), "uint8"),
        (np.ones((2, 3), order="F"), "float64"),
        ([2**63 - 1, -(2**63)], "int64"),
        (np.zeros((0, 3), bool), "bool"),
    ],
)
def test_types_of_what_is_given(given, dtype):
    x = cyrt.asarray(given)
    assert x.dtype == dtype
    np.testing.assert_array_equal(x.numpy(), np.asarray(given).astype(dtype))


def test_lists_of_arrays():
    a, b = cyrt.asarray([1, 2], dtype="int8"), cyrt.asarray([3, 4], dtype="int8")
    x = cyrt.asarray([a, b])
    assert x.dtype == "int8"
    assert x.tolist() == [[1, 2], [3, 4]]
    assert cyrt.asarray([a[0], 2.5]).tolist() == [1, 2.5]
    assert cyrt.asarray([cyrt.asarray(1.5, dtype="bfloat16"), 2]).dtype == "bfloat16"


@pytest.mark.parametrize(
    ("given", "dtype", "wanted"),
    [
        ([1.5, -2.5], "int32", [1, -2]),
        ([2**64 - 1], "uint64", [2**64 - 1]),
        ([2**70], "float32", [2.0**70]),
        ([2**70, 1], "bfloat16", [2.0**70, 1]),
        ([0, 2], "bool", [False, True]),
        ([1e300], "float32", [np.inf]),
        ([1, 2], "complex64", [1, 2]),
        ([0.1], "float64", [0.1]),
    ],
)
def test_types_asked_for(given, dtype, wanted):
    x = cyrt.asarray(given, dtype=dtype)
    assert x.dtype == dtype
    assert x.tolist() == wanted


@pytest.mark.parametrize(
    ("given", "dtype", "error", "text"),
    [
        ([[1, 2], [3]], None, ValueError, "rows of different lengths"),
        ([1, [2]], None, ValueError, "rows of different lengths"),
        ("abc", None, TypeError, "got str"),
        (["1"], "float32", TypeError, "got str"),
        ([None], "float32", TypeError, "got NoneType"),
        ([1, object()], None, TypeError, "got object"),
        (None, None, TypeError, "NoneType"),
        ({1: 2}, None, TypeError, "got dict"),
        (np.array([1], object), None, TypeError, "dtype object"),
        (np.array([1], "M8[s]"), None, TypeError, "datetime64"),
        (2**63, None, OverflowError, "out of range of int64"),
        ([1, 2**63], None, OverflowError, "out of range of int64"),
        ([-1, 2**63], "uint64", OverflowError, "out of range of uint64"),
        ([300], "uint8", OverflowError, "out of range of uint8"),
        ([float("nan")], "int32", ValueError, "NaN to integer"),
        ([1j], "float32", TypeError, "complex"),
        ([1], "float8", TypeError, "'float8' is not an element type"),
        ([1], "float", TypeError, "'float' is ambiguous.*write 'float32' or 'float64'"),
        ([1], "complex", TypeError, "'complex' is ambiguous.*'complex64' or 'complex128'"),
    ],
)
def test_asarray_refuses(given, dtype, error, text):
    with pytest.raises(error, match=text):
        cyrt.asarray(given, dtype=dtype)


def test_a_list_of_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        cyrt.asarray(endless)


def test_copies_only_where_asked_or_needed():
    x = cyrt.asarray([1, 2])
    assert cyrt.asarray(x) is x
    assert cyrt.asarray(x, dtype="int64", device=x.device, copy=False) is x
    assert cyrt.asarray(x, copy=True) is not x
    for each, dtype in (([1], None), (np.ones(2), None), (x, "float32")):
        with pytest.raises(ValueError, match="copy=False was given"):
            cyrt.asarray(each, dtype=dtype, copy=False)


# -- creation --------------------------------------------------------------------------------------


def test_full_takes_its_type_from_the_number():
    for value, dtype in (
        (True, "bool"),
        (1, "int64"),
        (1.5, "float32"),
        (1j, "complex64"),
        (cyrt.asarray(3, dtype="int8"), "int8"),
    ):
        assert cyrt.full(2, value).dtype == dtype
    assert cyrt.full(2, 2**70, dtype="float32").tolist() == [2.0**70] * 2


@pytest.mark.parametrize(
    ("args", "dtype", "wanted"),
    [
        ((2**64 - 3, 2**64 - 1), "uint64", [2**64 - 3, 2**64 - 2]),
        ((3, 0, -1), "uint8", [3, 2, 1]),
        ((-(2**63), 2**63 - 1, 2**63), None, [-(2**63), 0]),
        ((0.5, 3), "int32", [0, 1, 2]),
        ((0, 5, 2**70), None, [0]),
        ((np.int8(2),), None, [0, 1]),
        ((-3,), None, []),
    ],
)
def test_arange_at_the_edges(args, dtype, wanted):
    assert cyrt.arange(*args, dtype=dtype).tolist() == wanted


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cyrt.arange(0, 5, 0), ValueError, "step is 0"),
        (lambda: cyrt.arange(0, float("nan")), ValueError, "from 0 to nan by 1"),
        (lambda: cyrt.arange(float("inf")), ValueError, "to inf"),
        (lambda: cyrt.arange(2**70), ValueError, "more elements than memory can hold"),
        (
            lambda: cyrt.arange(2**63, 2**63 + 3),
            OverflowError,
            "9223372036854775808 is out of range",
        ),
        (lambda: cyrt.arange(300, dtype="uint8"), OverflowError, "299 is out of range of uint8"),
        (lambda: cyrt.arange(-5, 0, dtype="uint8"), OverflowError, "-5 is out of range of uint8"),
        (lambda: cyrt.arange("3"), TypeError, "stop: expected a number, got str"),
        (lambda: cyrt.arange(np.datetime64("2020-01-01")), TypeError, "a number, got datetime64"),
        (lambda: cyrt.arange(np.complex64(1)), TypeError, "expected real numbers"),
        (lambda: cyrt.arange(2, dtype=bool), TypeError, "bool"),
        (lambda: cyrt.full(2, "a"), TypeError, "fill_value: expected a number, got str"),
        (lambda: cyrt.full_like(cyrt.zeros(2), [1]), TypeError, "fill_value: expected a number"),
        (lambda: cyrt.full(2, 300, dtype="uint8"), OverflowError, "300 is out of range of uint8"),
        (lambda: cyrt.zeros(-1), ValueError, r"0 or more, got \(-1,\)"),
        (lambda: cyrt.zeros((2, -(1 << 70))), ValueError, "0 or more"),
        (lambda: cyrt.zeros(2.0), TypeError, "got float"),
        (lambda: cyrt.zeros((1 << 40, 1 << 40)), ValueError, "more elements than memory can hold"),
        (lambda: cyrt.zeros(1 << 70), ValueError, "more elements than memory can hold"),
        (lambda: cyrt.zeros(1 << 50), cyrt.OutOfMemoryError, "bytes wanted"),
        (lambda: cyrt.zeros_like(np.ones(2)), TypeError, r"numpy\.ndarray"),
    ],
)
def test_creation_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_shapes_as_arrays():
    assert cyrt.zeros(np.array([2, 3])).shape == (2, 3)
    assert cyrt.zeros(np.int64(2)).shape == (2,)


def test_the_base_of_a_view():
    x = cyrt.zeros((2, 3))
    assert x.base is None
    assert (x + 1).base is None
    for view in (x[1:], x.T, x[0][1:], x.reshape(6), x[...], cyrt.asarray(x).view()):
        assert view.base is x
    with pytest.raises(AttributeError):
        x.base = x
    assert "memory" in inspect.getdoc(cyrt.Array.base)


def test_the_types_of_python():
    x = cyrt.asarray(np.array([0.1]))
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float32"), (complex, "complex64")):
        assert x.astype(kind).dtype == name
        assert cyrt.zeros(1, dtype=kind).dtype == kind
    assert x.dtype != float
    assert x.astype("int").dtype == "int64"
    assert x.astype(np.dtype("float")).dtype == "float64"


def test_an_array_of_freed_memory_is_shown():
    buffer = cyrt.Buffer(400)
    x = cyrt.asarray(buffer, dtype="float32")
    buffer.free()
    assert repr(x) == "<cyrt.Array of freed memory, shape=(100,), dtype=float32>"
