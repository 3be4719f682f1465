"""Indexing and assignment by arrays and masks, and take, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cyrt
from cyrt.ops.gather import get_by_arrays, set_by_arrays, take, take_along_axis

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES = ["bool", "uint8", "int16", "float16", "float32", "int64", "complex64", "complex128"]


def layouts(draw, x):
    """An Array of x's values in memory of some layout."""
    how = draw(st.sampled_from(["dense", "reversed", "spread", "transposed", "shifted"]))
    if how == "dense" or x.ndim == 0:
        return cyrt.asarray(x)
    if how == "transposed":
        return cyrt.asarray(np.ascontiguousarray(x.T)).T
    if how == "reversed":
        turned = (slice(None, None, -1),) * x.ndim
        return cyrt.asarray(np.ascontiguousarray(x[turned]))[turned]
    if how == "shifted":  # no vector is aligned
        wide = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
        wide[..., 1:] = x
        return cyrt.asarray(wide)[..., 1:]
    spread = np.zeros(tuple(2 * size for size in x.shape), x.dtype)
    every = (slice(None, None, 2),) * x.ndim
    spread[every] = x
    return cyrt.asarray(spread)[every]


def numbers(shape, dtype):
    count = int(np.prod(shape, dtype=np.int64))
    values = np.arange(1, count + 1)
    return (values % 7 < 3 if dtype == "bool" else values.astype(dtype)).reshape(shape)


@st.composite
def arrays(draw, max_dims=4, max_side=5):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=max_dims, min_side=0, max_side=max_side))
    x = numbers(shape, draw(st.sampled_from(TYPES)))
    return x, layouts(draw, x)


@st.composite
def keys(draw, shape):
    """A key with arrays for a shape, for NumPy and for cyrt."""
    host, device = [], []
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    rest = list(shape)
    ellipsis = draw(st.booleans())
    used = draw(st.integers(1, len(shape)))
    if ellipsis and draw(st.booleans()):
        host.append(Ellipsis)
        device.append(Ellipsis)
        rest = rest[len(rest) - used :]
    else:
        rest = rest[:used]
    while rest:
        size = rest.pop(0)
        if draw(st.integers(0, 4)) == 0:
            host.append(None)
            device.append(None)
        kind = draw(st.sampled_from(["slice", "int", "array", "array", "mask", "list"]))
        if kind == "int" and size:
            part = other = draw(st.integers(-size, size - 1))
        elif kind == "mask":
            sizes = (size, rest.pop(0)) if rest and draw(st.booleans()) else (size,)
            part = draw(hnp.arrays(bool, sizes))
            if not draw(st.booleans()):  # else masks seldom broadcast
                part[...] = False
                part.flat[:1] = True
            other = cyrt.asarray(part) if draw(st.booleans()) else part
        elif kind in ("array", "list") and size:
            own = tuple(draw(st.sampled_from([1, n])) for n in common[draw(st.integers(0, 2)) :])
            dtype = draw(st.sampled_from(INTEGERS))
            low = 0 if dtype[0] == "u" else -size
            part = draw(hnp.arrays(dtype, own, elements=st.integers(low, size - 1)))
            if kind == "list" and part.size:
                part = other = part.tolist()
            else:
                other = layouts(draw, part)
        else:
            start, stop = draw(st.integers(-6, 6)), draw(st.integers(-6, 6))
            part = other = slice(start, stop, draw(st.sampled_from([1, 2, -1, None])))
        host.append(part)
        device.append(other)
    return tuple(host), tuple(device)


def same(found, wanted):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype.name
    np.testing.assert_array_equal(found.numpy(), wanted)


def indexed(x, key):
    """NumPy's answer, or its IndexError."""
    try:
        return x[key]
    except IndexError as error:
        return error


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_get_is_numpys(data):
    x, array = data.draw(arrays())
    host, device = data.draw(keys(x.shape))
    wanted = indexed(x, host)
    if isinstance(wanted, IndexError):
        with pytest.raises(IndexError):
            array[device]
    else:
        same(array[device], wanted)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_set_is_numpys(data):
    x, array = data.draw(arrays())
    host, device = data.draw(keys(x.shape))
    wanted = indexed(x, host)
    if isinstance(wanted, IndexError):
        with pytest.raises(IndexError):
            array[device] = 1
        return
    # Where an element is put twice, which value wins is not specified: put equal ones there.
    places = np.arange(x.size).reshape(x.shape)[host]
    if data.draw(st.booleans()) or np.unique(places).size < places.size:
        value = other = data.draw(st.sampled_from([0, 1, True]))
    else:
        value = numbers(wanted.shape, data.draw(st.sampled_from(["float32", x.dtype.name])))
        value = (
            value[(slice(0, 1),) * data.draw(st.integers(0, wanted.ndim))] if value.size else value
        )
        other = layouts(data.draw, value)
    x = x.copy()
    x[host] = value
    array[device] = other
    same(array, x)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_take_and_take_along_axis_are_numpys(data):
    x, array = data.draw(arrays())
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = max(x.shape[axis], 1)
    dtype = data.draw(st.sampled_from(INTEGERS))
    elements = st.integers(0 if dtype[0] == "u" else -size, size - 1)
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
    if x.shape[axis] == 0:
        shape = (0,)
    index = data.draw(hnp.arrays(dtype, shape, elements=elements))
    same(take(array, layouts(data.draw, index), axis=axis), np.take(x, index.astype(int), axis))
    shape = [data.draw(st.sampled_from([1, n])) for n in x.shape]
    shape[axis] = data.draw(st.integers(0, 4)) if x.shape[axis] else 0
    index = data.draw(hnp.arrays(dtype, tuple(shape), elements=elements))
    same(
        take_along_axis(array, layouts(data.draw, index), axis=axis),
        np.take_along_axis(x, index.astype(int), axis),
    )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_masks_of_leading_dimensions(data):
    """With values that are known not to depend on how many are true, and with others."""
    x, array = data.draw(arrays())
    mask = data.draw(hnp.arrays(bool, x.shape[: data.draw(st.integers(1, x.ndim))]))
    on_device = layouts(data.draw, mask)
    same(get_by_arrays(array, on_device), x[mask])
    x = x.copy()
    for shape in (x.shape[mask.ndim :], (1,) * (x.ndim - mask.ndim + 1), x[mask].shape):
        value = numbers(shape, x.dtype.name)
        x[mask] = value
        set_by_arrays(array, on_device, cyrt.asarray(value))
        same(array, x)
    x[mask] = 0
    set_by_arrays(array, (on_device, ...), 0)
    same(array, x)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("row", [1, 2, 3, 4, 6, 8, 12, 16, 64, 129])
def test_rows_of_every_width(dtype, row, rng):
    """Words of 1 to 16 bytes, whole rows and parts of rows, taken and put."""
    x = rng.integers(0, 200, (37, 3, row)).astype(dtype)
    index = rng.integers(-37, 37, 50)
    array = cyrt.asarray(x)
    same(array[cyrt.asarray(index)], x[index])
    same(array[:, 1:][cyrt.asarray(index)], x[:, 1:][index])
    same(array[cyrt.asarray(index), 2, ::-1], x[index, 2, ::-1])
    same(array[:, :, 1:][cyrt.asarray(index), 1], x[:, :, 1:][index, 1])
    places = rng.permutation(37)[:20]
    value = rng.integers(0, 200, (20, 3, row)).astype(dtype)
    array[cyrt.asarray(places)] = cyrt.asarray(value)
    x[places] = value
    same(array, x)
    array[cyrt.asarray(places), 1:] = 7
    x[places, 1:] = 7
    same(array, x)
    # Strides that whole words fit, and an address that they do not.
    wide = rng.integers(0, 200, (37, row + 16)).astype(dtype)
    array = cyrt.asarray(wide)
    within, part = array[:, 1 : row + 1], wide[:, 1 : row + 1]
    same(within[cyrt.asarray(index)], part[index])
    within[cyrt.asarray(places)] = cyrt.asarray(value[:, 0])
    part[places] = value[:, 0]
    same(array, wide)
    same(cyrt.asarray(x[:, 0])[cyrt.asarray(index)], x[:, 0][index])
    aligned = cyrt.asarray(x[:, 0].copy())
    aligned[cyrt.asarray(places)] = within[cyrt.asarray(np.arange(20))]
    x[places, 0] = part[:20]
    same(aligned, x[:, 0])
    aligned[cyrt.asarray(places)] = within[:20]
    same(aligned, x[:, 0])
    # Rows that they fit, but not from one to the next.
    four = rng.integers(0, 200, (37, 4, row + 1)).astype(dtype)
    same(cyrt.asarray(four)[cyrt.asarray(index), :, :row], four[index, :, :row])
    # Each element of a row by an index of its own.
    along = rng.integers(0, 37, (5, 4, row + 1))
    same(
        take_along_axis(cyrt.asarray(four), cyrt.asarray(along), axis=0),
        np.take_along_axis(four, along, 0),
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_every_type(dtype):
    """With and without a sign, of all bits."""
    x = np.arange(70_000)
    limits = np.iinfo(dtype)
    index = np.clip(
        np.array([0, -1, 1, limits.min, limits.max, limits.max // 2 + 1], object),
        max(limits.min, -70_000),
        min(limits.max, 69_999),
    ).astype(dtype)
    array, two = cyrt.asarray(x), cyrt.asarray(x[:, None])
    same(array[cyrt.asarray(index)], x[index])
    same(two[cyrt.asarray(index), cyrt.asarray(np.zeros(6, dtype))], x[index])


def test_more_dimensions_than_a_kernel_takes(rng):
    """No two of 13 dimensions can be one: parts are launched one after the other."""
    shape = (2,) * 13
    x = rng.integers(0, 1000, shape)
    key = (slice(None, None, -1), [1, 0, 1]) + (slice(None, None, -1), slice(None)) * 5
    same(cyrt.asarray(x)[key], x[key])
    array, y = cyrt.asarray(x), x.copy()
    places = np.array([1, 0])
    value = rng.integers(0, 1000, y[:, :, places].shape)
    transposed = np.ascontiguousarray(value.transpose()).transpose()
    array[:, :, cyrt.asarray(places)] = cyrt.asarray(value.T.copy()).T
    y[:, :, places] = transposed
    same(array, y)


def test_as_many_arrays_as_there_may_be(rng):
    x = rng.integers(0, 1000, (3, 2, 3, 2, 3, 2, 3))
    index = [rng.integers(0, n, 5) for n in x.shape]
    key = tuple(index[:6])
    same(cyrt.asarray(x)[tuple(map(cyrt.asarray, key))], x[key])
    key = (*tuple(np.ix_(*index[:3])), slice(None), *index[4:5])
    same(cyrt.asarray(x)[key], x[key])
    with pytest.raises(IndexError, match="at most 6 arrays of indices, got 7"):
        cyrt.asarray(x)[tuple(index)]


def test_bools_and_masks_without_dimensions(rng):
    x = rng.integers(0, 1000, (3, 4))
    array = cyrt.asarray(x)
    for key in (
        True,
        False,
        (True, [0, 2]),
        (slice(None), True, [0, 2]),
        np.True_,
        np.array(True),
        (None, True),
        (..., False),
    ):
        same(get_by_arrays(array, key), x[key])
    same(get_by_arrays(array, cyrt.asarray(np.array(True))), x[np.array(True)])
    array[True] = 5
    array[False] = 6
    same(array, np.full((3, 4), 5))


def test_assignment_reads_before_it_writes(rng):
    n = 20_000  # several blocks: a later one would read what one wrote
    x = rng.integers(0, n, n)
    array, places = cyrt.asarray(x), cyrt.asarray(np.arange(n)[::-1].copy())
    array[places] = array
    same(array, x[::-1])
    y = rng.permutation(n)
    array = cyrt.asarray(y)
    array[array] = cyrt.asarray(np.arange(n))
    wanted = y.copy()
    wanted[y] = np.arange(n)
    same(array, wanted)
    for every in (slice(None, None, -1), slice(None, None, 3)):
        array, wanted = cyrt.asarray(y), y.copy()
        array[array[every]] = 0
        wanted[y[every]] = 0
        same(array, wanted)
    flags = rng.random(n) < 0.5
    array, wanted = cyrt.asarray(flags), flags.copy()
    array[array[::-1]] = False
    wanted[flags[::-1]] = False
    same(array, wanted)
    array = cyrt.asarray(flags)
    array[cyrt.asarray(np.ones(n, bool))] = array[::-1]
    same(array, flags[::-1])
    array, wide = cyrt.asarray(y), cyrt.asarray(np.ones((2, n), bool))
    pair = cyrt.asarray(np.stack([y, y]))
    pair[wide[:, 0]] = pair[1, ::-1]
    same(pair, np.stack([y, y])[:, ::-1])
    flags = np.array([True, False, True])
    array = cyrt.asarray(flags)
    array[array] = cyrt.asarray(np.array([False, False]))
    same(array, np.zeros(3, bool))
    x = rng.integers(0, 100, (4, 4))
    array = cyrt.asarray(x)
    array[cyrt.asarray(x > 50)] = array[0, 0]
    same(array, np.where(x > 50, x[0, 0], x))


def test_values_are_cast_as_in_other_assignments(rng):
    array = cyrt.asarray(np.arange(5, dtype=np.int32))
    array[[0, 1]] = 2.9
    array[cyrt.asarray(np.array([False, False, True, True, False]))] = 7.9
    same(array, np.array([2, 2, 7, 7, 4], np.int32))
    with pytest.raises(OverflowError):
        array[[0]] = 1 << 40
    array[[0, 4]] = np.array([5, 6])
    array[[1]] = [9]
    same(array, np.array([5, 9, 7, 7, 6], np.int32))


def test_numbers_in_lists_have_no_type_of_their_own():
    array = cyrt.asarray(np.zeros(4))
    array[[0, 2]] = [0.1, 1e-300]
    array[cyrt.asarray(np.array([False, True, False, True]))] = [1e300, 0.2]
    same(array, np.array([0.1, 1e300, 1e-300, 0.2]))
    small = cyrt.asarray(np.zeros(3, np.int8))
    for key in ([0, 1], np.array([True, True, False])):
        with pytest.raises(OverflowError, match="out of range of int8"):
            small[key] = [1, 300]
    same(small, np.zeros(3, np.int8))


def test_what_a_mask_leaves_is_not_read(python, only_emulated):
    done = python(
        """
        import numpy as np, cyrt
        x, mask = cyrt.empty((4, 2)), cyrt.asarray(np.array([True, False, True, False]))
        x[mask], x[~mask] = 1, cyrt.asarray(np.array([[2.0, 3.0]]))
        print(x.tolist())
    """,
        CYRT_CHECK="1",
    )
    assert done.stdout.strip() == "[[1.0, 1.0], [2.0, 3.0], [1.0, 1.0], [2.0, 3.0]]", done.stderr


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [[0, 3], [-4], np.array([[7]], np.uint8)])
def test_host_indices_out_of_range(index):
    array = cyrt.asarray(np.arange(6).reshape(2, 3))
    with pytest.raises(IndexError, match=r"index -?\d is out of bounds for axis 1 with size 3"):
        array[:, index]
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 3"):
        array[:, index] = 0
    same(array, np.arange(6).reshape(2, 3))


OUT_OF_RANGE = """
    import numpy as np, cyrt
    from cyrt.ops.gather import take, take_along_axis
    x = cyrt.asarray(np.arange(5, dtype=np.float32))
    index = cyrt.asarray(np.array([7, -9, 2, -1]))
    def attempt(what):
        try:
            print(what().numpy().tolist())
        except IndexError as error:
            print(error)
    attempt(lambda: x[index])
    attempt(lambda: take(x, index))
    attempt(lambda: take_along_axis(x, index))
    attempt(lambda: x[cyrt.asarray(np.array([1 << 63], np.uint64))])
    def put():
        x[index] = 0
        return x
    attempt(put)
"""


def test_indices_out_of_range_are_clamped_on_a_gpu(python):
    program = (
        """
    import cyrt
    from cyrt.driver import table
    table.replace("cyrtEmuGuard", 0)        # as on a GPU
    """
        + OUT_OF_RANGE
    )
    done = python(program, CYRT_CHECK="0")
    assert done.stdout.splitlines() == ["[4.0, 0.0, 2.0, 4.0]"] * 3 + [
        "[4.0]",
        "[0.0, 1.0, 0.0, 3.0, 0.0]",
    ], done.stderr


OUT_OF_RANGE_TRAPS = """
    import numpy as np, cyrt
    x = cyrt.asarray(np.arange(20, dtype=np.float32).reshape(5, 4))
    low, high = (cyrt.asarray(np.array([0, i])) for i in (-5, 5))
    print(x[low].sum(), x[low, low[:, None] + 1].sum())     # negative ones count from the end
    cyrt.synchronize()

    def take(x, i): return x[i]
    def rows(x, i): return cyrt.take(x, i, axis=0)
    def below(x, i): return x[-i - 1]
    def along(x, i): return cyrt.take_along_axis(x, i[:, None], axis=0)
    def unsigned(x, i): return x[i.astype("uint8")]
    def several(x, i): return x[i - i, i]
    def put(x, i): x[i] = 0
    def put_several(x, i): x[i - i, i] = 0
    def add_at(x, i): cyrt.add.at(x, i, 1)
    def choose(x, i): return cyrt.choose(i, [row[:2] for row in x])
    def negative(x, i): return cyrt.choose(-i, [row[:2] for row in x])

    for each in (take, rows, below, along, unsigned, several, put, put_several, add_at, choose,
                 negative):
        x, i = cyrt.asarray(np.ones((5, 4), np.float32)), cyrt.asarray(np.array([0, 5]))
        cyrt.synchronize()
        try:
            # Nothing waits for the result. Without graphs the call itself may raise the error: its
            # first kernel may have failed before it loads the module of the next.
            kept = each(x, i)
            cyrt.synchronize()
        except cyrt.CudaError as error:
            text = str(error)
            assert "IndexError" in text, text
            print(each.__name__, error.name, text.splitlines()[1])
            cyrt.Device().reset()
"""


def test_indices_out_of_range_trap_on_the_emulated_device(python, only_emulated):
    done = python(OUT_OF_RANGE_TRAPS, CYRT_CHECK="0")
    first, *lines = done.stdout.splitlines()
    assert first == "12.0 2.0", done.stderr
    names = " ".join(line.split()[0] for line in lines)
    assert names == (
        "take rows below along unsigned several put put_several add_at choose negative"
    ), done.stderr
    for line in lines:
        assert "CUDA_ERROR_LAUNCH_FAILED kernel cyrt_" in line
        assert line.endswith(": trap: index_out_of_range")


def test_indices_out_of_range_are_errors_in_checking_mode(python, only_emulated):
    done = python(OUT_OF_RANGE, CYRT_CHECK="1")
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr
    for line in lines:
        assert "is out of bounds for axis 0 with size 5" in line


def test_keys_that_do_not_fit():
    array = cyrt.asarray(np.zeros((3, 4), np.float32))
    mask = cyrt.asarray(np.ones((3, 3), bool))
    index = cyrt.asarray(np.arange(2))
    for key, text in [
        (
            mask,
            "boolean index did not match indexed array along axis 1; size of axis is 4 but size "
            "of corresponding boolean axis is 3",
        ),
        (
            cyrt.asarray(np.zeros(3, np.float32)),
            r"integers or booleans as an index, got float32 of shape \(3,",
        ),
        ([1.0], "integers or booleans as an index, got float64"),
        ("a", "got str"),
        (1.5, "got float"),
        ((index, index, index), "array is 2-dimensional, but 3 were indexed"),
        ((index, cyrt.asarray(np.arange(3))), r"broadcast together with shapes \(2,\) \(3,\)"),
        ((..., index, ...), "single ellipsis"),
    ]:
        with pytest.raises(IndexError, match=text):
            get_by_arrays(array, key)
        with pytest.raises(IndexError, match=text):
            set_by_arrays(array, key, 0)
    for shape, key in (((0, 2), index), ((0, 0), index), ((2, 0), (cyrt.asarray([]) > 0, index))):
        with pytest.raises(IndexError, match="out of bounds for .* size 0|shape mismatch"):
            get_by_arrays(cyrt.asarray(np.zeros(shape)), key)
    for key in (index, cyrt.asarray(np.array([True, True, False]))):
        with pytest.raises(
            ValueError,
            match=r"value array of shape \(3, 4\) could not be broadcast"
            r" to indexing result of shape \(2, 4\)",
        ):
            set_by_arrays(array, key, cyrt.asarray(np.zeros((3, 4), np.float32)))
    same(array, np.zeros((3, 4), np.float32))


def test_take_of_numbers_and_of_all():
    host = np.arange(12).reshape(3, 4)
    x = cyrt.asarray(host)
    for index in (2, -1, [0, 2], (1, -3), [], [[0, 1], [2, 0]]):
        wanted = np.array(index, int)
        same(take(x, index, 1), np.take(host, wanted, 1))
        same(take(x.T, index), np.take(host.T, wanted))
    same(take(x.T, cyrt.asarray([11, 0, -2])), np.take(host.T, [11, 0, -2]))


def test_take_refuses():
    x, index = cyrt.asarray(np.zeros((3, 4))), cyrt.asarray(np.arange(2))
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1 with size 4"):
        take(x, [0, 4], 1)
    for each in (True, [True, False, True, False], [0.5]):
        with pytest.raises(TypeError, match="take: indices: expected integers, got (bool|float64)"):
            take(x, each, 1)
    with pytest.raises(TypeError, match="expected an array of integers, got float64"):
        take(x, x, axis=0)
    with pytest.raises(np.exceptions.AxisError):
        take(x, index, axis=2)
    with pytest.raises(ValueError, match="expected 2 dimensions as the array has"):
        take_along_axis(x, index)
    with pytest.raises(
        ValueError, match=r"broadcasts to \(3, 4\) except along axis 1, got \(2, 1\)"
    ):
        take_along_axis(x, cyrt.asarray(np.zeros((2, 1), int)))
    with pytest.raises(TypeError, match="indices"):
        take(x, np.arange(2), axis=0)


@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ((1,), (0,)),
        ((3,), (0,)),
        ((2, 3), (0,)),
        ((2, 3), (2, 0)),
        ((2, 3), (0, 3)),
        ((2, 3), (0, 0)),
    ],
)
def test_masks_of_nothing_select_nothing(shape, mask):
    host = np.arange(6)[: int(np.prod(shape))].reshape(shape)
    x, none = cyrt.asarray(host), np.zeros(mask, bool)
    for each in (none, cyrt.asarray(none)):
        assert x[each].shape == host[none].shape
        x[each] = 7
        np.testing.assert_array_equal(x.numpy(), host)


def test_too_many_arrays_on_the_device():
    x, i = cyrt.zeros((2,) * 7), cyrt.asarray([0, 1])
    with pytest.raises(IndexError, match="at most 6 arrays of indices, got 7"):
        x[(i,) * 7]
    with pytest.raises(IndexError, match="at most 6 arrays of indices, got 7"):
        x[(i,) * 7] = 0
    with pytest.raises(IndexError, match="too many indices for array: array is 1-dimensional"):
        x[0, 0, 0, 0, 0, 0][i, i]


def test_each_axis_is_checked(python, only_emulated):
    done = python(
        """
        import cyrt
        x, i, bad = cyrt.zeros((2, 5)), cyrt.asarray([1, 0]), cyrt.asarray([4, -5])
        print(x[i, bad].tolist())
        for program in (lambda: x[i, bad + 1], lambda: x[bad, i], lambda: cyrt.take(x, bad + 1, 1)):
            try:
                program()
            except IndexError as error:
                print(error)
    """,
        CYRT_CHECK="1",
    )
    first, *others = done.stdout.splitlines()
    assert first == "[0.0, 0.0]", done.stderr
    assert [each[-18:] for each in others] == [
        "axis 1 with size 5",
        "axis 0 with size 2",
        "axis 1 with size 5",
    ]


def test_a_mask_of_more_dimensions():
    x, mask = cyrt.ones(3), cyrt.ones((3, 1), dtype="bool")
    with pytest.raises(IndexError, match="array is 1-dimensional, but 2 were indexed"):
        x[mask]
    with pytest.raises(IndexError, match="array is 1-dimensional, but 2 were indexed"):
        x[mask] = 0
