"""Values combined at indices, beside NumPy's ``ufunc.at`` in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.dtypes import DTYPES, dtype
from cyrt.ops.scatter import combine_by_key

NUMBERS = [each.name for each in DTYPES if each.kind in "iufc"]
REAL = [each.name for each in DTYPES if each.kind in "biuf"]
# Half a unit in the last place of a result, and what the sums of its values are computed in.
EPSILONS = {
    "float16": (2**-11, 2**-24),
    "bfloat16": (2**-8, 2**-24),
    "float32": (2**-24, 2**-53),
    "float64": (0, 2**-53),
    "complex64": (2**-24, 2**-53),
    "complex128": (0, 2**-53),
}
TILE = 1792  # values of a block of scatter.cu


def values(name, shape, rng):
    each = dtype(name)
    if each.kind == "b":
        return rng.random(shape) < 0.3
    if each.kind in "iu":
        limits = np.iinfo(each.numpy)
        return rng.integers(limits.min, limits.max, shape, each.numpy, endpoint=True)
    spread = 10.0 ** rng.integers(-3, 3, shape)
    found = rng.normal(size=shape) * spread
    if each.kind == "c":
        found = found + 1j * rng.normal(size=shape) * spread
    return found.astype(each.numpy)


def wide(x):
    if x.dtype.kind == "c":
        return x.astype(np.clongdouble)
    return x.astype(np.longdouble) if x.dtype.name in EPSILONS else x


def check_sums(name, x, key, added, found, sign=1):
    """Compare sums; each one's rounding error is relative to the numbers of its own element."""
    wanted, sizes = wide(x), np.abs(wide(x))
    added = np.broadcast_to(wide(added), wanted[key].shape)
    np.add.at(wanted, key, added if sign > 0 else -added)
    if name not in EPSILONS:
        np.testing.assert_array_equal(found, wanted)
        return
    np.add.at(sizes, key, np.abs(added))
    rounding, computing = EPSILONS[name]
    count = max(1, added.size)
    bound = 2 * rounding * np.abs(wanted) + 4 * np.log2(count + 1) * computing * sizes
    bound = bound + (2**-24 if name == "float16" else 0)  # subnormal numbers
    off = ~(np.abs(wide(found) - wanted) <= bound)
    assert not off.any(), (wide(found)[off][:5], wanted[off][:5])


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(NUMBERS),
    size=st.sampled_from([1, 2, 30, 5000]),
    count=st.sampled_from([0, 1, 3, 129, TILE, TILE + 1, 5 * TILE]),
    least=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_as_numpy(name, size, count, least, seed):
    rng = np.random.default_rng(seed)
    x = values(name, size, rng)
    # Negative indices, and some that are frequent.
    key = rng.integers(-size, size, count)
    key[rng.random(count) < 0.5] = rng.integers(0, size) if count else 0
    added = values(name, () if least else count, rng)
    for function, sign in ((cyrt.add, 1), (cyrt.subtract, -1)):
        found = cyrt.asarray(x)
        function.at(found, cyrt.asarray(key), cyrt.asarray(added))
        check_sums(name, x, key, added, found.numpy(), sign)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NUMBERS),
    rows=st.sampled_from([1, 2, 40]),
    shape=st.sampled_from([(31,), (32,), (129,), (3, 50)]),
    count=st.sampled_from([0, 1, 32, 33, 700]),
    least=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_sums_of_rows_as_numpy(name, rows, shape, count, least, seed):
    """Of 32 elements and more they are combined as rows, 32 by a block."""
    rng = np.random.default_rng(seed)
    x = values(name, (rows, *shape), rng)
    key = rng.integers(-rows, rows, count)
    key[rng.random(count) < 0.5] = rng.integers(0, rows) if count else 0
    added = values(name, () if least else (count, *shape), rng)
    for index in (cyrt.asarray(key), (cyrt.asarray(key),)):
        found = cyrt.asarray(x)
        cyrt.add.at(found, index, cyrt.asarray(added))
        check_sums(name, x, key, added, found.numpy())


def test_rows_at_indices_of_two_dimensions(rng):
    x, key = rng.integers(-9, 9, (7, 40)), rng.integers(-7, 7, (50, 3))
    for added in (rng.integers(0, 9, (50, 3, 40)), rng.integers(0, 9, (3, 1)), np.arange(40)):
        found, wanted = cyrt.asarray(x), x.copy()
        cyrt.maximum.at(found, cyrt.asarray(key), cyrt.asarray(added))
        np.maximum.at(wanted, key, added)
        np.testing.assert_array_equal(found.numpy(), wanted)
    with pytest.raises(ValueError, match=r"\(5,\) does not broadcast to \(50, 3, 40\)"):
        cyrt.add.at(found, cyrt.asarray(key), cyrt.ones(5, dtype="int64"))
    with pytest.raises(TypeError, match="expected a real type, got complex64"):
        cyrt.minimum.at(cyrt.zeros((2, 40), dtype="complex64"), cyrt.asarray([0]), cyrt.ones(()))
    x = cyrt.ones((3, 40))
    cyrt.add.at(x, cyrt.asarray([2, 2]), x[:2])  # memory of the result itself
    assert x[:, 0].tolist() == [1, 1, 3]


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(REAL),
    function=st.sampled_from(["maximum", "minimum"]),
    count=st.sampled_from([1, 100, 3 * TILE]),
    seed=st.integers(0, 2**32 - 1),
)
def test_extremes_as_numpy(name, function, count, seed):
    rng = np.random.default_rng(seed)
    x, key = values(name, 50, rng), rng.integers(0, 50, count)
    added = values(name, count, rng)
    if dtype(name).kind == "f":
        added[rng.random(count) < 0.01] = rng.choice([np.nan, np.inf, -np.inf])
    found, wanted = cyrt.asarray(x), wide(x)
    getattr(cyrt, function).at(found, cyrt.asarray(key), cyrt.asarray(added))
    with np.errstate(invalid="ignore"):
        getattr(np, function).at(wanted, key, wide(added))
    np.testing.assert_array_equal(wide(found.numpy()), wanted)


def test_bools_are_true_where_any_is():
    x = cyrt.asarray([False, False, True, False])
    cyrt.add.at(x, cyrt.asarray([0, 1, 1, 2]), cyrt.asarray([False, True, False, False]))
    assert x.tolist() == [False, True, True, False]
    cyrt.minimum.at(x, [1, 2], cyrt.asarray([False, True]))
    assert x.tolist() == [False, False, True, False]


KEYS = {
    "rows": lambda rng: np.array([1, 0, 1]),
    "pairs": lambda rng: (rng.integers(0, 4, 30), rng.integers(0, 5, 30)),
    "broadcast": lambda rng: (np.array([[0], [2], [0]]), np.array([1, 1, 4])),
    "mask": lambda rng: rng.random((4, 5, 6)) < 0.5,
    "mask of rows": lambda rng: np.array([True, False, True, True]),
    "mask of pairs": lambda rng: rng.random((4, 5)) < 0.5,
    "column": lambda rng: (slice(None), np.array([4, 4, 0])),
    "apart": lambda rng: (np.array([3, 3]), slice(1, 4), np.array([0, 5])),
    "new axis": lambda rng: (None, np.array([[1, 1], [0, 1]])),
    "all three": lambda rng: tuple(rng.integers(-n, n, (7, 9)) for n in (4, 5, 6)),
    "none": lambda rng: np.array([], np.int64),
    "slice": lambda rng: (slice(1, 3), 2),
    "ellipsis": lambda rng: ...,
    "int": lambda rng: 2,
}
LAYOUTS = {
    "dense": lambda x: cyrt.asarray(x),
    "transposed": lambda x: cyrt.asarray(np.ascontiguousarray(x.T)).T,
    "reversed": lambda x: cyrt.asarray(np.ascontiguousarray(x[::-1, :, ::-1]))[::-1, :, ::-1],
    "part": lambda x: cyrt.asarray(np.pad(x, ((1, 0), (2, 1), (0, 3))))[1:, 2:-1, :6],
}


@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("name", KEYS)
def test_keys(name, how, rng):
    host = rng.integers(-9, 9, (4, 5, 6)).astype(np.float64)
    key = KEYS[name](rng)
    on_device = tuple(
        cyrt.asarray(each) if isinstance(each, np.ndarray) else each
        for each in (key if type(key) is tuple else (key,))
    )
    shape = host[key].shape
    for theirs in (key, on_device):
        for added in (np.float64(3), rng.integers(0, 9, shape), rng.integers(0, 9, shape[-1:])):
            x, wanted = LAYOUTS[how](host), host.copy()
            cyrt.add.at(x, theirs, cyrt.asarray(np.asarray(added, np.float64)))
            np.add.at(wanted, key, added)
            np.testing.assert_array_equal(x.numpy(), wanted)


def test_memory_around_a_part_stays_as_it_is():
    whole = cyrt.full((6, 6), 7.0)
    part = whole[1:5:2, 4:0:-1]
    cyrt.add.at(part, (cyrt.asarray([0, 1, 1]), cyrt.asarray([0, 3, 3])), 1.0)
    wanted = np.full((6, 6), 7.0)
    wanted[1, 4], wanted[3, 1] = 8, 9
    np.testing.assert_array_equal(whole.numpy(), wanted)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_a_large_sum_does_not_change_another(name):
    key, added = np.array([0, 1, 2]), np.array([1e12, 1e-6, 3e-7], name)
    for function, sign in ((cyrt.add, 1), (cyrt.subtract, -1)):
        x = cyrt.zeros(3, dtype=name)
        function.at(x, cyrt.asarray(key), cyrt.asarray(added))
        assert x.tolist() == (sign * added).tolist()
    x = cyrt.bincount(cyrt.asarray(key), cyrt.asarray(added))
    assert x.tolist() == added.tolist()
    x, _ = cyrt.histogram(cyrt.asarray(key), 3, (0, 3), weights=cyrt.asarray(added))
    assert x.tolist() == added.tolist()


def test_positive_numbers_have_positive_sums(rng):
    for _ in range(5):
        key = rng.integers(0, 500, 3000)
        added = 10.0 ** rng.uniform(-9, 9, 3000)
        x, wanted = cyrt.zeros(500, dtype="float64"), np.zeros(500)
        cyrt.add.at(x, cyrt.asarray(key), cyrt.asarray(added))
        np.add.at(wanted, key, added)
        np.testing.assert_allclose(x.numpy(), wanted, 1e-14)


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
def test_zeros_keep_their_signs(name):
    """Those that no index names, and those to which -0.0 is added, in one tile and in several."""
    x = cyrt.full(5, -0.0, dtype=name)
    cyrt.add.at(x, cyrt.asarray([1]), 2.0)
    cyrt.add.at(x, cyrt.full(3 * TILE, 2), cyrt.asarray(-0.0, dtype=name))
    cyrt.subtract.at(x, cyrt.asarray([3, 3]), 0.0)
    cyrt.add.at(x, cyrt.full(3 * TILE, 4), 0.0)
    assert np.signbit(x.numpy().real).tolist() == [True, False, True, True, False]


def test_nan_and_infinity_stay_at_their_index():
    x = cyrt.zeros(5)
    added = np.array([np.nan, 1, np.inf, np.inf, -np.inf, 5, -np.inf], np.float32)
    cyrt.add.at(x, cyrt.asarray([0, 1, 2, 2, 3, 4, 4]), cyrt.asarray(added))
    np.testing.assert_array_equal(x.numpy(), [np.nan, 1, np.inf, -np.inf, -np.inf])


def test_sixteen_bits_are_summed_in_float32():
    """4,096 times 1 in float16 stops at 2,048; ones beside 256 in bfloat16 vanish."""
    for name, count in (("float16", 4096), ("bfloat16", 512)):
        x = cyrt.zeros(2, dtype=name)
        cyrt.add.at(x, cyrt.ones(count, dtype="int64"), cyrt.asarray(1.0, dtype=name))
        assert x.tolist() == [0, count]


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint64"])
def test_integers_wrap(name):
    limits = np.iinfo(name)
    host = np.array([limits.max, limits.min, 5], name)
    x = cyrt.asarray(host)
    cyrt.add.at(x, [0, 1, 0], 1)
    cyrt.subtract.at(x, [1, 1], 1)
    wanted = host.copy()
    np.add.at(wanted, [0, 1, 0], np.array(1, name))
    np.subtract.at(wanted, [1, 1], np.array(1, name))
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_equal_calls_give_equal_bits(rng):
    """Whatever else runs: the order of additions follows from the indices alone."""
    key, added = rng.integers(0, 3, 9 * TILE), rng.normal(size=9 * TILE).astype(np.float32)
    key, added = cyrt.asarray(key), cyrt.asarray(added)
    results = set()
    for _ in range(5):
        x = cyrt.zeros(3)
        cyrt.add.at(x, key, added)
        results.add(x.numpy().tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("runs", ["one", "every second tile", "at the edges"])
def test_runs_across_tiles(runs):
    """Runs that begin or end with a tile, cover several, and are combined in three launches."""
    count = 600 * TILE if runs == "one" else 5 * TILE
    key = {
        "one": np.zeros(count, np.int64),
        "every second tile": np.arange(count) // (2 * TILE),
        "at the edges": np.repeat([0, 1, 2, 3], [TILE, TILE - 1, 2 * TILE + 1, TILE]),
    }[runs]
    x = cyrt.zeros(7, dtype="int64")
    cyrt.add.at(x, cyrt.asarray(key), cyrt.asarray(1))
    assert x.tolist() == np.bincount(key, minlength=7).tolist()


def test_indices_out_of_range():
    x = cyrt.zeros(3)
    for key in ([0, 3], np.array([-4])):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
            cyrt.add.at(x, key, 1.0)
    assert x.tolist() == [0, 0, 0]


def test_indices_on_the_device_out_of_range(python):
    program = """
        import cyrt
        from cyrt.driver import table
        table.replace("cyrtEmuGuard", 0)        # as on a GPU
        x = cyrt.zeros(3)
        try:
            cyrt.add.at(x, cyrt.asarray([0, 7, -9, 2]), 1.0)
        except IndexError as error:
            print(error)
        print(x.tolist())
    """
    assert python(program, CYRT_CHECK="0").stdout.split("\n")[0] == "[2.0, 0.0, 2.0]"
    checked = python(program, CYRT_CHECK="1").stdout
    assert "out of bounds for axis 0 with size 3" in checked
    assert checked.endswith("[0.0, 0.0, 0.0]\n")


def test_values_that_share_memory():
    x = cyrt.arange(6, dtype="float32")
    cyrt.add.at(x, cyrt.asarray([0, 0, 1]), x[:3])
    assert x.tolist() == [1, 3, 2, 3, 4, 5]
    x = cyrt.asarray([0, 1, 1, 2])
    cyrt.add.at(x, x, 10)
    assert x.tolist() == [10, 21, 11, 2]


@pytest.mark.parametrize(
    ("error", "text", "program"),
    [
        (ValueError, r"add.at: b: shape \(2,\) does not broadcast to \(3,\)",
         lambda x: cyrt.add.at(x, [0, 1, 2], cyrt.ones(2))),
        (TypeError, "add.at: a: expected an Array, got list",
         lambda x: cyrt.add.at([1, 2], [0], 1)),
        (TypeError, r"add.at: b: expected an Array, got numpy.ndarray",
         lambda x: cyrt.add.at(x, [0], np.ones(1))),
        (TypeError, "add.at: b: .*1j.* cannot be cast to float32",
         lambda x: cyrt.add.at(x, [0], 1j)),
        (TypeError, "add.at: b: 1.5 cannot be cast to int64",
         lambda x: cyrt.add.at(cyrt.zeros(3, dtype="int64"), [0], 1.5)),
        (TypeError, "subtract.at: a: expected numbers, got bool",
         lambda x: cyrt.subtract.at(x > 0, [0], True)),
        (TypeError, "maximum.at: a: expected a real type, got complex64",
         lambda x: cyrt.maximum.at(cyrt.zeros(3, dtype="complex64"), [0], 1)),
        (IndexError, "integers or booleans", lambda x: cyrt.add.at(x, cyrt.ones(2), 1)),
        (ValueError, "share memory",
         lambda x: cyrt.add.at(cyrt.broadcast_to(x[:1], (3,)), [0], 1)),
    ],
)  # fmt: skip
def test_refused(error, text, program):
    x = cyrt.asarray(np.array([1, 2, 3], np.float32))
    with pytest.raises(error, match=text):
        program(x)
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("put", ["add.at: b", "copyto: src"])
def test_numbers_of_more_than_64_bits(put):
    """Floats take them as the assignment does; what is no number is refused by name."""
    x, n = cyrt.zeros(3), cyrt.zeros(3, dtype="int64")
    call = {
        "add.at: b": lambda x, value: cyrt.add.at(x, [0, 1, 2], value),
        "copyto: src": lambda x, value: cyrt.copyto(x, value),
    }[put]
    call(x, 2**70)
    assert x.tolist() == [2.0**70] * 3
    for value in (2**70, [1, 2, 2**64]):
        with pytest.raises(OverflowError, match="out of range of int64"):
            call(n, value)
    for value in ("a", None, {}):
        with pytest.raises(TypeError, match=f"{put}: expected numbers, got {type(value).__name__}"):
            call(x, value)
    assert (x.tolist(), n.tolist()) == ([2.0**70] * 3, [0] * 3)


def test_memory_follows_the_indices(python):
    """Not the array: it has 16 MB of int8 here, and as many indices took 8 times as much."""
    done = python(
        """
        import cyrt
        x = cyrt.zeros(16 << 20, dtype="int8")
        before = cyrt.memory_stats()["peak"]
        for function in (cyrt.add, cyrt.subtract, cyrt.maximum):
            function.at(x, cyrt.asarray([1, 1, -1]), 1)
        assert cyrt.memory_stats()["peak"] - before < 8 << 20, cyrt.memory_stats()
        print(x[:3].tolist(), x[-1].item())
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0, 1, 0] 1\n"


def test_keys_of_64_bits():
    """Which arrays of more than 2**32 elements need."""
    x = cyrt.zeros(5)
    keys = cyrt.asarray(np.array([4, 0, 4, 1], np.uint64))
    combine_by_key("add", x, keys, cyrt.asarray([1.0, 2, 3, 4]))
    assert x.tolist() == [2, 4, 0, 0, 4]
    many = cyrt.asarray(np.arange(3 * TILE).astype(np.uint64) % 5)
    combine_by_key("add", x, many, cyrt.ones(3 * TILE))
    counts = np.bincount(np.arange(3 * TILE) % 5)
    assert x.tolist() == (counts + np.array([2, 4, 0, 0, 4])).tolist()


@pytest.mark.parametrize("function", ["add.at", "bincount"])
def test_memory_that_runs_out_leaves_nothing_half_done(python, function):
    """Each allocation fails once. There are so many values that what is left of their tiles fills
    several, and what is left of these, too."""
    done = python(
        f"""
        import ctypes, itertools
        import numpy as np
        import cyrt
        from cyrt.driver import table

        def compute():
            if {function!r} == "bincount":
                return cyrt.bincount(key, added)
            cyrt.add.at(x, key, added)

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
        def allocate(*arguments):
            global left
            left -= 1
            return 2 if left < 0 else original(*arguments)

        n, left = {TILE**2 // 2 + TILE}, 1 << 30
        x, key, added = cyrt.zeros(5), cyrt.asarray(np.arange(n) % 5), cyrt.ones(n)
        wanted = np.bincount(np.arange(n) % 5)
        address = table.replace("cuMemAlloc", ctypes.cast(allocate, ctypes.c_void_p).value)
        original = allocate.__class__(address)
        before = cyrt.memory_stats()["in_use"]
        for failing in itertools.count():
            left, failed = failing, False
            try:
                found = compute()
            except cyrt.OutOfMemoryError:
                failed = True
            left = 1 << 30
            if not failed:
                break
            assert (x.numpy() == 0).all(), failing
            assert cyrt.memory_stats()["in_use"] == before
        assert failing > 2
        assert ((x if found is None else found).numpy() == wanted).all()
        """,
        CYRT_POOL="0",
    )
    assert done.returncode == 0, done.stderr
