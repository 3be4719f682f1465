"""Calls that newcomers write: each error says what was given, and what to write instead."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from reduce_reference import REFERENCES

import cyrt

SOURCE = 'extern "C" __global__ void k(float* x, int n) {}'
NO_ARRAY = "x: expected an Array, got list; cyrt.asarray() copies it to the device"


@pytest.fixture
def x():
    return cyrt.zeros((2, 3))


@pytest.fixture(scope="module")
def k():
    return cyrt.Kernel(SOURCE, "k")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: cyrt.reshape(x, 3, 2),
            "reshape: order: expected 'C', 'F' or 'A', got 2; a shape is one argument, such as (3, "
            "2)",
        ),
        (
            lambda x: x.reshape((3, 2), "F"),
            "shape: expected ints, got tuple in ((3, 2), 'F'); the order goes by name, order='F'",
        ),
        (lambda x: x.reshape(), "reshape: expected a shape, a tuple or several ints"),
        (lambda x: x.reshape(None), "shape: expected an int or a tuple of ints, got NoneType"),
        (
            lambda x: cyrt.random.normal((3, 4)),
            "normal: loc: expected a number or an Array, got (3, 4); "
            "the result's shape goes by name",
        ),
        (
            lambda x: cyrt.random.randint((3,)),
            "randint: high: expected an int, got (3,); the result's shape goes by name",
        ),
        (lambda x: cyrt.Stream(priority="a"), "Stream: priority: expected an int, got str"),
    ],
)
def test_arguments(x, call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(x)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "name",
    [
        *REFERENCES,
        "squeeze",
        "flip",
        "swapaxes",
        "moveaxis",
        "expand_dims",
        "permute_dims",
        "reshape",
        "ravel",
        "broadcast_to",
        "roll",
        "tile",
        "repeat",
        "unstack",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "diagonal",
    ],
)
def test_a_list_in_the_place_of_an_array(name):
    more = {"swapaxes": (0, 1), "moveaxis": (0, 1), "expand_dims": (0,), "permute_dims": ((0,),)}
    more |= {
        "reshape": ((2,),),
        "broadcast_to": ((2,),),
        "roll": (1,),
        "tile": (2,),
        "repeat": (2,),
    }
    with pytest.raises(TypeError) as caught:
        getattr(cyrt, name)([1, 2], *more.get(name, ()))
    assert str(caught.value) == f"{name}: {NO_ARRAY}"


def test_a_shape_is_any_iterable_of_ints(x):
    assert x.reshape(np.array([3, 2])).shape == (3, 2)
    assert cyrt.reshape(x, range(3, 1, -1)).shape == (3, 2)
    assert x.reshape(np.int64(6)).shape == x.reshape([-1]).shape == (6,)
    assert cyrt.zeros(range(3, 1, -1)).shape == (3, 2)


def test_classes_that_are_not_called(k, x):
    with pytest.raises(TypeError, match=r"an Array is made by cyrt.asarray\(\), cyrt.zeros\(\)"):
        cyrt.Array([1, 2])
    with pytest.raises(TypeError, match=r"a launch is made by kernel\[grid, block\]"):
        type(k[1, 1])(k)


def test_a_kernel_without_a_name():
    with pytest.raises(TypeError, match=r"Kernel\(code, name\): name: expected a str, .*NoneType"):
        cyrt.Kernel(SOURCE)


def test_arguments_of_launches_in_another_order(k, x):
    with pytest.raises(
        TypeError,
        match=r"k: n: expected a .* before the kernel's arguments, got an Array of.*\(2, 3",
    ):
        k.for_each(x, 6)
    with pytest.raises(TypeError, match=r"k: args: expected a tuple of .* arguments, got Array$"):
        k.tune(6, x, 6)
    with pytest.raises(TypeError, match="blocks: expected numbers of threads, got 64"):
        k.tune(6, (x, 6), 64)


def test_a_stream_in_the_brackets_of_a_launch(k):
    stream = cyrt.Stream()
    for config in ((1, 32, stream), (1, 32, stream, 0)):
        with pytest.raises(TypeError, match="got .*; work goes to the stream of `with stream:`$"):
            k[config]


@pytest.mark.parametrize("make", [cyrt.zeros, np.zeros])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, x: k[x, 1], "grid: expected an int or a tuple of one to three ints, got {}"),
        (lambda k, x: k[1, x], "block: expected an int or a tuple of one to three ints, got {}"),
        (lambda k, x: k[1, 1, x], "smem: expected a number of bytes, got {}"),
        (
            lambda k, x: k.for_each(x, x, 2),
            "k: n: expected a number of elements, before the kernel's arguments, got {}",
        ),
        (lambda k, x: k[1, 1](None, x), "k: argument 2 (int n): expected an int, got {}"),
    ],
)
def test_an_array_in_the_place_of_a_number(k, make, call, message):
    x = make(4)
    with pytest.raises(TypeError) as caught:
        call(k, x)
    shown = f"{'an Array' if make is cyrt.zeros else 'a numpy.ndarray'} of {x.dtype}, shape (4,)"
    assert str(caught.value).partition("\n")[0] == message.format(shown)


@pytest.mark.parametrize("make", [cyrt.asarray, np.asarray])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (cyrt.Buffer, "nbytes: expected a number of bytes as an int"),
        (cyrt.PinnedBuffer, "nbytes: expected a number of bytes as an int"),
        (cyrt.ManagedBuffer, "nbytes: expected a number of bytes as an int"),
        (lambda x: cyrt.pointer(x, 24), "address: expected a number of bytes as an int"),
        (cyrt.Device, "device: expected a cyrt.Device, an int or None"),
        (lambda x: cyrt.CommandEncoder(max_ops=x), "max_ops: expected an int"),
    ],
)
def test_an_array_in_the_place_of_a_size(make, call, message):
    for values in ([1.0, 2.0], 1.0):
        x = make(values)
        with pytest.raises(TypeError) as caught:
            call(x)
        assert str(caught.value).endswith(f"{message}, got {type(x).__name__}")


def test_arguments_of_an_encoder_that_are_no_tuple(k, x):
    encoder = cyrt.current_encoder()
    for args, name in ((x, "Array"), (5, "int"), (np.zeros(2), "ndarray")):
        with pytest.raises(TypeError) as caught:
            encoder.add_kernel(k, 1, 1, args)
        assert (
            str(caught.value) == f"k: args: expected a tuple of the kernel's arguments, got {name}"
        )
    encoder.add_kernel(k, 1, 1, [x, 6])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cyrt.where(x > 0, x), TypeError, "expected x1 and x2, or neither, got one"),
        (lambda x: x.view(-1), TypeError, r"view: expected an element type, got -1; reshape\(-1\)"),
        (
            lambda x: x.view(3, 2),
            TypeError,
            r"an element type, got \(3, 2\); reshape\(\(3, 2\)\) v",
        ),
        (lambda x: cyrt.zeros(3, "cuda:0"), TypeError, "'cuda:0' is not .*; a device goes by name"),
        (lambda x: x.mean(-1, True), TypeError, "True is not an element type; a flag goes by name"),
        (lambda x: cyrt.exp([1, 2]), TypeError, "exp: .* got list; cyrt.asarray"),
        (lambda x: cyrt.nn.relu([1]), TypeError, "relu: .* got list; cyrt.asarray"),
        (lambda x: cyrt.fix(x > 0), TypeError, "fix: x: expected numbers, got bool"),
        (lambda x: x.sort(axis=None), TypeError, r"axis: .* got None; cyrt.sort\(x, None\)"),
        (lambda x: -(x > 0), TypeError, "negative: not for bool; .* for bool there is ~x"),
        (lambda x: (x > 0) - True, TypeError, r"subtract: not for bool; .* there is x \^ y"),
        (lambda x: operator.iadd(cyrt.arange(3), 0.5), TypeError, r"x = x \+ y instead of x \+="),
        (lambda x: operator.itruediv(cyrt.arange(3), 2), TypeError, "new array, and //= divides"),
        (lambda x: cyrt.array({1, 2}), TypeError, "got set of dtype object; list"),
        (lambda x: cyrt.array(each for each in "ab"), TypeError, "got generator of .*; list"),
        (lambda x: cyrt.add(x, x, out=np.ones(3)), TypeError, "add: out: .*host; out= takes"),
        (lambda x: cyrt.sum(x, out=np.ones(())), TypeError, "sum: out: .*host; out= takes"),
        (
            lambda x: cyrt.nanstd(x + 1j),
            TypeError,
            "nanstd: x: expected a real type, got complex64",
        ),
        (
            lambda x: cyrt.nanvar(x + 1j),
            TypeError,
            "nanvar: x: expected a real type, got complex64",
        ),
        (lambda x: cyrt.ptp(x + 1j), TypeError, "ptp: a: expected a real type, got complex64"),
        (lambda x: cyrt.fmin(x + 1j, x), TypeError, "fmin: x1 or x2: expected a real type"),
        (lambda x: cyrt.fmax(x + 1j, x), TypeError, "fmax: x1 or x2: expected a real type"),
        (
            lambda x: cyrt.concat(x, x),
            TypeError,
            r"the arrays are one argument.*concat\(\[x, y\]\)",
        ),
        (lambda x: cyrt.stack(x, x), TypeError, r"the arrays are one argument.*stack\(\[x, y\]\)"),
        (lambda x: cyrt.nn.softmax(x, axis=(0, 1)), TypeError, "softmax: axis: .* got tuple"),
        (
            lambda x: cyrt.asarray([-1.5], dtype="uint8"),
            OverflowError,
            r"out of range of uint8, got \[-1\.5\]",
        ),
        (
            lambda x: cyrt.nn.conv2d(cyrt.ones((3, 8, 8, 1)), cyrt.ones((8, 3, 3, 8))),
            ValueError,
            r"with groups=1; the channels of weight|with groups=1$",
        ),
        (
            lambda x: cyrt.random.choice(3, 9, p=[0.5, 0.25]),
            ValueError,
            r"choice: p: expected shape \(3,\), got \(2,\)",
        ),
        (
            lambda x: cyrt.random.choice(2, 2, False, p=[1.0, 0.0]),
            ValueError,
            "choice: p: 2 elements cannot be chosen with replace=False from 1 ",
        ),
        (lambda x: cyrt.einsum("ij,jk->il", x, x.T), ValueError, "got 'l' that no operand has"),
        (lambda x: cyrt.einsum("ij,jk->ii", x, x.T), ValueError, "got 'i' twice"),
        (
            lambda x: cyrt.savez("w.npz", {"w": x}),
            TypeError,
            r"savez: expected arrays, got dict; write savez\(file, \*\*arrays\)",
        ),
    ],
)
def test_what_to_write_instead(call, error, message, x):
    with pytest.raises(error, match=message):
        call(x)


def test_an_array_shares_no_memory_with_the_host(x):
    for function in (np.may_share_memory, np.shares_memory):
        assert function(np.ones(3), x) is False
        assert function(x, np.ones(3)) is False
    with pytest.raises(TypeError, match="expected an Array, got numpy.ndarray"):
        cyrt.shares_memory(np.ones(3), np.ones(3))
