"""Other shapes and arrangements, against NumPy: over types, shapes and strides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.exceptions import AxisError

import cyrt
from cyrt.ops import manipulation as copies
from cyrt.ops import shapes

quick = settings(max_examples=50, deadline=None)
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")


@st.composite
def pairs(draw, shape=None, max_ndim=4):
    """A NumPy array, contiguous or not, and the Array made by the same steps on the device."""
    dtype = draw(st.sampled_from(DTYPES))
    if shape is None:
        shape = draw(st.lists(st.integers(0, 4) | st.just(1), max_size=max_ndim).map(tuple))
    order = draw(st.permutations(range(len(shape))))
    steps = draw(
        st.lists(st.sampled_from([1, 1, 2, -1, -2, 0]), min_size=len(shape), max_size=len(shape))
    )
    # A larger one, of which the wanted one is a part: every |step|-th element, or one spread.
    whole = [1 if step == 0 else size * abs(step) for size, step in zip(shape, steps, strict=True)]
    host = np.arange(np.prod(whole, dtype=int)).reshape([whole[i] for i in order]) + 1
    host = (host % 2 if dtype == "bool" else host).astype(dtype)
    x = cyrt.asarray(host)
    back = tuple(int(i) for i in np.argsort(order))
    cut = tuple(slice(None, None, step or 1) for step in steps)
    host = np.broadcast_to(np.transpose(host, back)[cut], shape)
    return host, cyrt.broadcast_to(shapes.permute_dims(x, back)[cut], shape)


def same(found, wanted):
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


def check(function, reference, pair, *args, **kwargs):
    """Equal results, or refused where NumPy refuses."""
    host, x = pair
    try:
        wanted = reference(host, *args, **kwargs)
    except (ValueError, IndexError):
        with pytest.raises((ValueError, IndexError)):
            function(x, *args, **kwargs)
        return None
    found = function(x, *args, **kwargs)
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for each, other in zip(found, wanted, strict=True):
            same(each, other)
    else:
        same(found, wanted)
    return found


def launches(function):
    before = cyrt.current_encoder().stats()["operations"]
    function()
    return cyrt.current_encoder().stats()["operations"] - before


def shares(view, x):
    """Written through the view, x is changed."""
    before = x.numpy()
    view.fill(7)
    return not np.array_equal(before, x.numpy())


# -- views -----------------------------------------------------------------------------------------


@quick
@given(pairs(), st.data())
def test_order_of_dimensions(pair, data):
    ndim = pair[0].ndim
    axes = data.draw(st.permutations(range(ndim)))
    axes = tuple(a - ndim if data.draw(st.booleans()) else a for a in axes)
    check(shapes.permute_dims, np.transpose, pair, axes)
    some = st.lists(st.integers(-ndim - 1, ndim), max_size=ndim).map(tuple) | st.integers(-5, 5)
    check(shapes.moveaxis, np.moveaxis, pair, data.draw(some), data.draw(some))
    moved = data.draw(st.integers(0, ndim))
    places = tuple(data.draw(st.permutations(range(ndim)))[:moved])
    check(shapes.moveaxis, np.moveaxis, pair, axes[:moved], places)
    check(shapes.swapaxes, np.swapaxes, pair, *data.draw(st.tuples(*2 * [st.integers(-4, 3)])))
    axis = data.draw(st.none() | some)
    check(lambda x, axis: shapes.flip(x, axis=axis), np.flip, pair, axis)


@quick
@given(pairs(), st.data())
def test_new_and_dropped_dimensions(pair, data):
    ndim = pair[0].ndim
    axis = data.draw(
        st.integers(-ndim - 3, ndim + 2)
        | st.lists(st.integers(-ndim - 3, ndim + 2), max_size=3).map(tuple)
    )
    check(shapes.expand_dims, np.expand_dims, pair, axis)
    # NumPy lets axis 0 of no axes pass.
    check(
        shapes.squeeze,
        np.squeeze,
        pair,
        data.draw(
            st.none()
            | (
                st.integers(-ndim - 1, ndim) | st.lists(st.integers(-ndim, ndim)).map(tuple)
                if ndim
                else st.just(1)
            )
        ),
    )
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        check(getattr(shapes, name), getattr(np, name), pair)


@quick
@given(pairs(), st.data())
def test_broadcast(pair, data):
    host = pair[0]
    shape = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2))) + tuple(
        size if size != 1 or data.draw(st.booleans()) else data.draw(st.integers(0, 3))
        for size in host.shape
    )
    check(cyrt.broadcast_to, np.broadcast_to, pair, shape)
    other = data.draw(st.lists(st.integers(0, 2), max_size=3).map(tuple))
    check(
        lambda x, other: cyrt.broadcast_arrays(x, cyrt.zeros(other)),
        lambda x, other: np.broadcast_arrays(x, np.zeros(other, np.float32)),
        pair,
        other,
    )
    try:
        wanted = np.broadcast_shapes(host.shape, other, (1,))
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            cyrt.broadcast_shapes(host.shape, other, (1,))
    else:
        assert cyrt.broadcast_shapes(host.shape, other, (1,)) == wanted


@quick
@given(pairs(), st.data())
def test_reshape_is_a_view_wherever_strides_allow(pair, data):
    host, x = pair
    factors = [2] * host.size.bit_length() if host.size == 0 else []
    left = host.size
    for prime in (2, 3):
        while left and left % prime == 0:
            factors.append(prime)
            left //= prime
    shape = data.draw(st.permutations([*factors, left, 1]))
    cut = data.draw(st.integers(0, len(shape)))
    shape = [int(np.prod(shape[:cut])), *shape[cut:]]
    if data.draw(st.booleans()) and host.size:
        shape[data.draw(st.integers(0, len(shape) - 1))] = -1
    shape = tuple(shape)
    wanted = host.reshape(shape)
    same(shapes.reshape(x, shape), wanted)
    same(shapes.reshape(x, shape, copy=True), wanted)
    if np.shares_memory(host, wanted) or not host.size:
        same(shapes.reshape(x, shape, copy=False), wanted)
    else:
        with pytest.raises(ValueError, match="copy=False was given"):
            shapes.reshape(x, shape, copy=False)
    check(shapes.ravel, np.ravel, pair)


def test_views_share_memory_and_launch_nothing():
    x = cyrt.asarray(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4))
    views = []
    assert (
        launches(
            lambda: views.extend(
                (
                    shapes.permute_dims(x, (2, 0, 1)),
                    shapes.moveaxis(x, 0, -1),
                    shapes.flip(x),
                    shapes.swapaxes(x, 0, 2),
                    shapes.expand_dims(x, (0, -1)),
                    shapes.ravel(x),
                    shapes.squeeze(x[:1]),
                    shapes.reshape(x[:, :, 1:3], (2, 3, 2, 1)),
                    shapes.unstack(x, axis=1)[2],
                    shapes.split(x, 2, axis=2)[1],
                    shapes.atleast_3d(x[0, 0]),
                )
            )
        )
        == 0
    )
    for view in views:
        x.fill(0)
        assert shares(view, x)
    for each in (cyrt.broadcast_to(x, (5, 2, 3, 4)), cyrt.broadcast_arrays(x[:1], x)[0]):
        with pytest.raises(ValueError, match="share memory"):
            each.fill(1)
    y = shapes.reshape(x, (24,), copy=True)
    assert not shares(y, x)
    with pytest.raises(ValueError, match="copy=False was given"):
        shapes.reshape(x.T, (24,), copy=False)


@quick
@given(pairs(), st.data())
def test_parts(pair, data):
    ndim = pair[0].ndim
    axis = data.draw(st.integers(-ndim - 1, ndim))
    check(
        lambda x, axis: shapes.unstack(x, axis=axis),
        lambda x, axis: np.unstack(x, axis=axis),
        pair,
        axis,
    )
    parts = data.draw(st.integers(1, 4) | st.lists(st.integers(-5, 5), max_size=4))
    check(shapes.split, np.split, pair, parts, axis)


# -- copies ----------------------------------------------------------------------------------------


@quick
@given(st.data())
def test_concat(data):
    shape = list(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    axis = data.draw(st.none() | st.integers(-len(shape) - 1, len(shape)))
    parts = []
    for _ in range(data.draw(st.integers(1, 3))):
        each = list(shape)
        if axis is not None and -len(shape) <= axis < len(shape):
            each[axis] = data.draw(st.integers(0, 3))
        parts.append(data.draw(pairs(tuple(each))))
    hosts, arrays = ([part[i] for part in parts] for i in (0, 1))
    code = cyrt.result_type(*arrays).numpy

    def reference(hosts, **kwargs):
        return np.concatenate([each.astype(code) for each in hosts], **kwargs)

    check(copies.concat, reference, (hosts, arrays), axis=axis)
    check(copies.concatenate, reference, (hosts, arrays), axis=axis)


@quick
@given(st.data())
def test_stack(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    parts = data.draw(st.lists(pairs(shape), min_size=1, max_size=3))
    hosts, arrays = ([part[i] for part in parts] for i in (0, 1))
    code = cyrt.result_type(*arrays).numpy
    hosts = [each.astype(code) for each in hosts]
    axis = data.draw(st.integers(-len(shape) - 2, len(shape) + 1))
    check(copies.stack, np.stack, (hosts, arrays), axis=axis)
    check(copies.hstack, np.hstack, (hosts, arrays))
    check(copies.vstack, np.vstack, (hosts, arrays))


@quick
@given(pairs(), st.data())
def test_roll(pair, data):
    ndim = pair[0].ndim
    by = st.integers(-9, 9)
    axis = None
    if ndim:
        axis = data.draw(
            st.none()
            | st.integers(-ndim - 1, ndim)
            | st.lists(st.integers(-ndim, ndim - 1), min_size=1, max_size=5).map(tuple)
        )
    if isinstance(axis, tuple):
        by = by | st.lists(by, min_size=len(axis), max_size=len(axis)).map(tuple)
    check(copies.roll, np.roll, pair, data.draw(by), axis=axis)


@quick
@given(pairs(), st.data())
def test_tile(pair, data):
    check(
        copies.tile,
        np.tile,
        pair,
        data.draw(st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=5).map(tuple)),
    )


@quick
@given(pairs(), st.data())
def test_repeat(pair, data):
    ndim = pair[0].ndim
    axis = data.draw(st.none() | (st.integers(-ndim - 1, ndim) if ndim else st.just(1)))
    check(copies.repeat, np.repeat, pair, data.draw(st.integers(0, 3)), axis=axis)
    host = pair[0]
    size = host.size if axis is None else host.shape[axis] if -ndim <= axis < ndim else 0
    counts = data.draw(
        st.lists(st.integers(0, 3), min_size=size, max_size=size)
        | st.lists(st.integers(0, 3), min_size=1, max_size=2)
    )
    check(
        lambda x, counts: copies.repeat(x, cyrt.asarray(counts, dtype="int32"), axis=axis),
        lambda host, counts: np.repeat(host, np.array(counts, int), axis=axis),
        pair,
        counts,
    )


def test_one_launch_an_input_and_two_an_axis():
    x = cyrt.asarray(np.arange(60.0, dtype=np.float32).reshape(3, 4, 5))
    assert launches(lambda: copies.concat([x] * 10)) == 10
    assert launches(lambda: copies.stack([x.T] * 10)) == 10
    assert launches(lambda: copies.roll(x, 2)) == 2
    assert launches(lambda: copies.roll(x, 1, axis=(0, 1, 2))) == 6
    assert launches(lambda: copies.roll(x, 5, axis=2)) == 1
    assert launches(lambda: copies.tile(x, (2, 3, 4, 5))) == 1
    assert launches(lambda: copies.repeat(x, 3, axis=1)) == 1


def test_rolled_along_no_axes():
    x = np.arange(6).reshape(2, 3)
    for shift, axis in ((1, ()), ((), 0), ((), ())):
        same(copies.roll(cyrt.asarray(x), shift, axis=axis), np.roll(x, shift, axis))


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: shapes.reshape(x, (4, 2)),
            ValueError,
            r"6 elements, shape \(2, 3\), into shape",
        ),
        (lambda x: shapes.reshape(x, (-1, -1)), ValueError, "only one size may be -1"),
        (lambda x: shapes.reshape(x, (-1, 0)), ValueError, "cannot reshape"),
        (lambda x: shapes.reshape(x[:0], (1 << 32, 1 << 32)), ValueError, "cannot reshape"),
        (lambda x: shapes.reshape(x, (-2, 3)), ValueError, "0 or more"),
        (lambda x: shapes.reshape(x, 2.0), TypeError, "float"),
        (lambda x: shapes.permute_dims(x, (0, 0)), ValueError, "twice"),
        (lambda x: shapes.permute_dims(x, (0,)), ValueError, "each of 2 axes once"),
        (lambda x: shapes.permute_dims(x, 1), TypeError, "tuple of ints"),
        (lambda x: shapes.moveaxis(x, 2, 0), AxisError, "axis 2 is out of bounds"),
        (
            lambda x: shapes.moveaxis(x, (0, 1), 0),
            ValueError,
            "expected as many destinations as sources",
        ),
        (lambda x: shapes.flip(x, axis=1.0), TypeError, "expected an int, got float"),
        (lambda x: shapes.flip(x, axis=1 << 70), AxisError, "out of bounds"),
        (lambda x: shapes.expand_dims(x, 3), AxisError, "axis 3"),
        (lambda x: shapes.expand_dims(x, (1,) * 63), ValueError, "at most 64 dimensions"),
        (lambda x: shapes.squeeze(x, 1), ValueError, r"axis 1 of shape \(2, 3\)"),
        (lambda x: cyrt.broadcast_to(x, (3, 3)), ValueError, "does not broadcast"),
        (lambda x: cyrt.broadcast_to(x[:1], (3,)), ValueError, "more dimensions"),
        (lambda x: cyrt.broadcast_to(x, (1 << 40, 1 << 40, 2, 3)), ValueError, "memory can hold"),
        (lambda x: cyrt.broadcast_arrays(x, x.T), ValueError, r"\(2, 3\) and \(3, 2\)"),
        (lambda x: cyrt.broadcast_arrays(x, x.T, 5), TypeError, "got int"),
        (lambda x: cyrt.broadcast_shapes((2, 3), (None,)), TypeError, "NoneType"),
        (lambda x: shapes.split(x, 1.5), TypeError, "int or a sequence of int, got float"),
        (lambda x: shapes.split(x, 4, axis=1), ValueError, "cannot be split into 4 equal parts"),
        (lambda x: shapes.flip(x.numpy()), TypeError, r"got numpy\.ndarray; cyrt\.asarray"),
        (lambda x: copies.concat([]), ValueError, "at least one array"),
        (lambda x: copies.concat(None), TypeError, "concat: expected a sequence .* got NoneType"),
        (lambda x: copies.hstack(3), TypeError, "hstack: expected a sequence of arrays, got int"),
        (lambda x: copies.vstack([]), ValueError, "vstack: expected at least one array"),
        (lambda x: copies.concat([x, x.T]), ValueError, r"\(2, 3\) and \(3, 2\)"),
        (lambda x: copies.concat([x, 1.0]), TypeError, "float"),
        (
            lambda x: copies.concat([x.astype("int64"), x.astype("uint64")]),
            TypeError,
            "common type",
        ),
        (lambda x: copies.stack([x, x[0]]), ValueError, "one shape"),
        (lambda x: copies.roll(x, (1, 2)), ValueError, "axis: expected an axis for each shift"),
        (lambda x: copies.roll(x, 1.5), TypeError, "float"),
        (lambda x: copies.roll(x, (1, 2, 3), axis=(0, 1)), ValueError, "3 shifts"),
        (lambda x: copies.tile(x, (2, -1)), ValueError, "0 or more"),
        (lambda x: copies.tile(x, 1 << 60), ValueError, "memory can hold"),
        (
            lambda x: copies.tile(x, 1 << 70),
            ValueError,
            "memory can hold, got 1180591620717411303424",
        ),
        (lambda x: copies.repeat(x, 1 << 70), ValueError, "memory can hold"),
        (lambda x: copies.repeat(x, -1), ValueError, "0 or more"),
        (
            lambda x: copies.repeat(x, [1, 2, 3], axis=0),
            ValueError,
            r"one for each of 2 elements, got shape \(3,\)",
        ),
        (lambda x: copies.repeat(x, [1.0, 2], axis=0), TypeError, "expected ints, got float64"),
        (lambda x: copies.repeat(x, [1, -2], axis=0), ValueError, "got -2"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(cyrt.zeros((2, 3)))


# -- as it lies in memory --------------------------------------------------------------------------

STRIDED = {
    "every second": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "a column": lambda x: x[:, 1],
    "broadcast": lambda x: cyrt.broadcast_to(x[:1, :1], (3, 4)),
    "transposed": lambda x: x.T,
    "real parts": lambda x: (x + 1j).real,
    "a diagonal": lambda x: cyrt.diagonal(x),
}


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("order", ["C", "F"])
def test_ravel_is_contiguous(name, order):
    x = STRIDED[name](cyrt.asarray(np.arange(12, dtype=np.float32).reshape(3, 4)))
    for found in (x.ravel(order), cyrt.ravel(x, order), x.flatten(order)):
        assert found.strides == (found.itemsize,)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found.numpy(), x.numpy().ravel(order))


def test_ravel_of_a_strided_view_as_a_kernel_reads_it():
    kernel = cyrt.Kernel(
        """extern "C" __global__ void copy(const float* x, float* y) {
        y[threadIdx.x] = x[threadIdx.x];
    }""",
        "copy",
    )
    x, y = cyrt.asarray(np.arange(8, dtype=np.float32)), cyrt.zeros(4)
    kernel[1, 4](x[::2].ravel(), y)
    assert y.tolist() == [0, 2, 4, 6]


def test_views_are_kept_where_numpy_keeps_them():
    x = cyrt.zeros((3, 4))
    x.ravel()[5] = 1
    x[1:].ravel()[0] = 2
    x[:, ::2].reshape(3, 2)[2, 1] = 3
    x[::2, 0].reshape(-1)[1] = 4  # a view, of steps, as NumPy's
    assert x.tolist() == [[0, 0, 0, 0], [2, 1, 0, 0], [4, 0, 3, 0]]
    x[:, 1].flat[1:] = 7
    assert x[:, 1].flat[2].item() == 7
    assert x[:, 1].tolist() == [0, 7, 7]


# -- more elements than 64 bits count --------------------------------------------------------------

HALF = 1 << 29


def spread_out():
    """2**58 elements over the memory of one."""
    return cyrt.broadcast_to(cyrt.ones((1, 1), dtype="uint8"), (HALF, HALF))


def test_as_many_elements_as_there_may_be():
    x = spread_out()
    assert (x.size, x.nbytes) == (1 << 58, 1 << 58)
    for view in (x.T, x[::-1], x[None], x.reshape(-1), x[1:, :5], cyrt.flip(x)):
        assert view.size in (1 << 58, (HALF - 1) * 5)
    wide = cyrt.broadcast_to(cyrt.ones((), dtype="complex128"), (1 << 58,))
    assert wide.nbytes == 1 << 62
    assert wide.real.size == 1 << 58


class Foreign:
    """Another library's view, whose elements share memory."""

    def __init__(self, shape):
        self.memory = cyrt.ones(1)
        self.__cuda_array_interface__ = self.memory.__cuda_array_interface__ | {
            "shape": shape,
            "strides": (0,) * len(shape),
        }


TOO_MANY = {
    "broadcast_to": lambda x: cyrt.broadcast_to(x, (2, HALF, HALF)),
    "broadcast_to, wrapped": lambda x: cyrt.broadcast_to(x[:1, :1], (1 << 32, 1 << 32)),
    "broadcast_to, wrapped twice": lambda x: cyrt.broadcast_to(x[0, 0], (1 << 57, 64, 2)),
    "broadcast_arrays": lambda x: cyrt.broadcast_arrays(x, cyrt.ones((2, 1, 1))),
    "an operator": lambda x: x[:, None] + x[:, :, None],
    "meshgrid": lambda x: cyrt.meshgrid(*[cyrt.broadcast_to(cyrt.ones(1), (1 << 30,))] * 3),
    "tile": lambda x: cyrt.tile(x, 2),
    "tile, wrapped": lambda x: cyrt.tile(x, (1 << 6, 1)),
    "repeat": lambda x: cyrt.repeat(x, 64, axis=0),
    "repeat all": lambda x: cyrt.repeat(x, 2),
    "concat": lambda x: cyrt.concat([x, x]),
    "concat, wrapped": lambda x: cyrt.concat([x.reshape(-1)] * 64),
    "concat, flattened": lambda x: cyrt.concat([x] * 64, axis=None),
    "stack": lambda x: cyrt.stack([x] * 64),
    "append to diff": lambda x: cyrt.diff(x.reshape(-1), prepend=x.reshape(-1)),
    "kron": lambda x: cyrt.kron(x, x),
    "pad": lambda x: cyrt.pad(x, 1),
    "sliding_window_view": lambda x: cyrt.sliding_window_view(x[0], (1 << 20,) * 4, (0,) * 4),
    "view": lambda x: cyrt.broadcast_to(cyrt.ones((), dtype="complex64"), (1 << 29, 1 << 29, 1))[
        ..., :
    ].view("uint8"),
    "zeros": lambda x: cyrt.zeros((1 << 32, 1 << 32)),
    "full": lambda x: cyrt.full((1 << 31, 1 << 31, 4), 1),
    "empty": lambda x: cyrt.empty((1 << 57, 64, 2)),
    "empty beside a size of 0": lambda x: cyrt.empty((0, 1 << 40, 1 << 40)),
    "empty before a size of 0": lambda x: cyrt.empty((1 << 40, 1 << 40, 0)),
    "eye": lambda x: cyrt.eye(1 << 40),
    "indices": lambda x: cyrt.indices((1 << 20, 1 << 20, 1 << 20)),
    "random": lambda x: cyrt.random.uniform(shape=(1 << 32, 1 << 32)),
    "another library's": lambda x: cyrt.asarray(Foreign((1 << 32, 1 << 32))),
    "another library's, more than 2**64": lambda x: cyrt.asarray(Foreign((1 << 40,) * 3)),
    "einsum": lambda x: cyrt.einsum("i,j->ij", x[0], x.reshape(-1)),
    "add.outer": lambda x: cyrt.add.outer(x, x),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_more_elements_than_memory_can_hold(name):
    with pytest.raises(ValueError, match="memory can hold"):
        TOO_MANY[name](spread_out())


def test_more_memory_than_there_is():
    for program in (
        lambda: cyrt.empty(1 << 50),
        lambda: cyrt.zeros(1 << 57, dtype="complex128"),
        lambda: cyrt.astype(spread_out(), "complex128"),
        lambda: spread_out() + 1,
    ):
        with pytest.raises(cyrt.OutOfMemoryError):
            program()


def test_a_list_of_axes_that_changes_while_it_is_read():
    class Emptying:
        def __index__(self):
            axes.clear()
            return 0

    axes = []
    axes += [Emptying(), 2]
    assert cyrt.expand_dims(cyrt.ones((3, 4)), axes).shape == (1, 3, 1, 4)
