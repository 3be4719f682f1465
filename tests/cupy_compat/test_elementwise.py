"""Kernels that run an operation for each element: CuPy's `ElementwiseKernel`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cyrt
from cyrt.cupy_compat import ElementwiseKernel

TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


@pytest.fixture(scope="module")
def add():
    return ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


@pytest.fixture(scope="module")
def squared_difference():
    return ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)")


def ramp(*shape, dtype="float32"):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


@pytest.mark.parametrize(
    "shapes", [((2, 5), (5,)), ((2, 1), (1, 5)), ((), (3,)), ((4, 1, 3), (2, 1))]
)
def test_arguments_are_broadcast(squared_difference, shapes):
    x, y = (ramp(*shape) for shape in shapes)
    found = squared_difference(cyrt.asarray(x), cyrt.asarray(y))
    np.testing.assert_array_equal(found.numpy(), (x - y) ** 2)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, 1:, ::3],
        lambda x: x[::-1, :, ::-1],
        lambda x: x[1],
        lambda x: x[:1, :, :1],
    ],
)
def test_views(add, view):
    x = ramp(4, 5, 6)
    device = cyrt.asarray(x)
    np.testing.assert_array_equal(add(view(device), 1).numpy(), view(x) + 1)
    both = add(view(device), cyrt.ascontiguousarray(view(device)))
    np.testing.assert_array_equal(both.numpy(), 2 * view(x))
    target = cyrt.zeros((4, 5, 6))
    add(view(device), 1, view(target))
    expected = np.zeros((4, 5, 6), np.float32)
    view(expected)[...] = view(x) + 1
    np.testing.assert_array_equal(target.numpy(), expected)


def test_a_view_with_its_axes_kept():
    x = ramp(2, 3, 4)
    kernel = ElementwiseKernel(
        "T x", "T z", "z = x + _ind.get()[0] * 100 + _ind.ndim * 1000", reduce_dims=False
    )
    expected = x.T + 100 * np.arange(4).reshape(4, 1, 1) + 3000
    np.testing.assert_array_equal(kernel(cyrt.asarray(x).T).numpy(), expected)


@pytest.mark.parametrize("name", TYPES)
def test_types(add, name):
    x = cyrt.asarray([[0, 1, 2], [3, 4, 5]]).astype(name)
    for other in (x, 1, np.asarray(1).astype(x.dtype.numpy)[()]):
        got = add(x, other)
        assert got.dtype is x.dtype
        value = x.numpy() if other is x else np.asarray(1).astype(x.dtype.numpy)
        np.testing.assert_array_equal(got.numpy(), x.numpy() + value)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("value", [-1, 2**32, 2**63 - 1, -(2**63), True, 2.75])
def test_numbers_are_converted_as_c_does(name, value):
    first = ElementwiseKernel("T x, T y", "T z", "z = y")
    target = cyrt.zeros(1, dtype=name).dtype.numpy
    if isinstance(value, float) and target.kind in "iu":
        expected = np.asarray(2, target)
    else:
        with np.errstate(all="ignore"):
            expected = np.asarray(value).astype(target)
    np.testing.assert_array_equal(first(cyrt.zeros(1, dtype=name), value).numpy()[0], expected)


def test_complex_numbers():
    z = (ramp(6) + 1 + 1j * ramp(6)[::-1]).astype("complex64")
    for name, text in (("complex64", "T"), ("complex128", "T"), ("complex64", "complex<float>")):
        x = cyrt.asarray(z.astype(name))
        kernel = ElementwiseKernel(
            f"{text} x, {text} y",
            f"{text} z",
            f"{'' if text == 'T' else 'typedef complex<float> T; '}"
            "z = exp(x / T(4)) * conj(y) + sqrt(x) / y - T(x.imag(), abs(x)) * 2.0f",
        )
        y = 2 - 3j
        expected = (
            np.exp(x.numpy() / 4) * np.conj(y)
            + np.sqrt(x.numpy()) / y
            - (x.numpy().imag + 1j * np.abs(x.numpy())) * 2
        )
        np.testing.assert_allclose(kernel(x, y).numpy(), expected, rtol=1e-5)


def test_raw_arguments():
    x, y = cyrt.arange(6, dtype="int32"), cyrt.asarray(ramp(2, 3, dtype="int32"))
    reverse = ElementwiseKernel("T x, raw T y", "T z", "z = x + y[n - i - 1] + (n - _ind.size())")
    np.testing.assert_array_equal(reverse(x, y).numpy(), [5] * 6)
    # Element i of a view in C order, whatever its strides are.
    pick = ElementwiseKernel("raw T y", "T z", "z = y[i]")
    np.testing.assert_array_equal(pick(y.T, size=6).numpy(), [0, 3, 1, 4, 2, 5])
    by_axes = ElementwiseKernel(
        "raw T y", "T z", "ptrdiff_t at[] = {i % y.shape()[0], i / y.shape()[0]}; z = y[at]"
    )
    np.testing.assert_array_equal(by_axes(y, size=6).numpy(), [0, 3, 1, 4, 2, 5])
    facts = ElementwiseKernel(
        "raw T y",
        "int64 z",
        "const ptrdiff_t all[] = {y.size(), y.shape()[0], y.shape()[1], y.strides()[0], "
        "y.strides()[1], y.ndim}; z = all[i]",
    )
    assert facts(y.T, size=6).tolist() == [6, 3, 2, 4, 12, 2]
    assert facts(y[:, ::2], size=6).tolist() == [4, 2, 2, 12, 8, 2]
    scalar = ElementwiseKernel("raw T y", "T z", "z = y[0] + y.ndim")
    assert scalar(cyrt.asarray(np.float32(3)), size=2).tolist() == [3, 3]


def test_raw_outputs():
    scatter = ElementwiseKernel("int32 at, T x", "raw T z", "atomicAdd(&z[at], x)")
    out = cyrt.zeros(3)
    index = cyrt.asarray([0, 2, 2, 0, 1], dtype="int32")
    assert scatter(index, cyrt.ones(5), out) is out
    np.testing.assert_array_equal(out.numpy(), [2, 1, 2])
    both = ElementwiseKernel("raw T x", "raw T z", "z[i] = 2 * x[i]")
    np.testing.assert_array_equal(both(out, size=3).numpy(), [4, 2, 4])
    with pytest.raises(ValueError, match="argument z is raw; pass it, or size="):
        scatter(index, cyrt.ones(5))


def test_outputs():
    parts = ElementwiseKernel("T x", "T whole, int32 sign", "whole = floor(x); sign = x < 0")
    x = cyrt.asarray([-1.5, 2.5])
    whole, sign = parts(x)
    assert whole.tolist() == [-2, 2]
    assert sign.tolist() == [1, 0]
    given = cyrt.empty(2), cyrt.empty(2, dtype="int32")
    found = parts(x, *given)
    assert found[0] is given[0]
    assert given[1].tolist() == [1, 0]
    one = ElementwiseKernel("T x", "T z", "z = x", return_tuple=True)
    assert isinstance(one(x), tuple)
    assert len(one(x)) == 1
    assert ElementwiseKernel("T x", "T z", "z = x", no_return=True)(x) is None


def test_code_around_the_loop():
    kernel = ElementwiseKernel(
        "T x, int32 n",
        "T z",
        "z = twice(x) + start; ++seen",
        preamble="template <class T> __device__ T twice(T x) { return 2 * x; }\n"
        "__device__ int total;",
        loop_prep="const int start = 100 * n; int seen = 0",
        after_loop="if (seen) atomicAdd(&total, seen)",
        options=("-DUNUSED",),
    )
    np.testing.assert_array_equal(
        kernel(cyrt.arange(300, dtype="int32"), 3).numpy()[:2], [300, 302]
    )


def test_a_type_of_numbers_alone(add):
    scale = ElementwiseKernel("T x, S by", "T z", "z = x * by")
    x = cyrt.asarray([1, 2, 3], dtype="int32")
    assert scale(x, 1.5).tolist() == [1, 3, 4]
    size = ElementwiseKernel("S value, raw T x", "int32 z", "z = sizeof(S)")
    sizes = [size(value, x, size=1).item() for value in (True, 1, 1.5, 2j, np.int16(1))]
    assert sizes == [1, 8, 8, 16, 2]


def test_sizes_and_blocks(add):
    empty = add(cyrt.zeros((0, 3)), 1)
    assert empty.shape == (0, 3)
    assert ElementwiseKernel("raw T x", "T z", "z = 1")(cyrt.zeros(1), size=0).shape == (0,)
    x = cyrt.arange(1000)
    for block in (1, 96, 1024):
        np.testing.assert_array_equal(add(x, 1, block_size=block).numpy(), x.numpy() + 1)
    with pytest.raises(ValueError, match="block_size must be greater than zero"):
        add(x, 1, block_size=0)
    with pytest.raises(ValueError, match="^Specified 'size' can be used only"):
        add(x, 1, size=3)
    raw = ElementwiseKernel("raw T x", "T z", "z = x[i]")
    with pytest.raises(ValueError, match=r"^Loop size is undecided\."):
        raw(x)
    with pytest.raises(ValueError, match="size: expected at least 0, got -2"):
        raw(x, size=-2)


def test_more_than_32_bits(add):
    """Sizes and strides have 64 bits where 32 do not hold them."""
    kernel = ElementwiseKernel("raw T x", "int64 z", "z = x.shape()[0] + i")
    x = cyrt.broadcast_to(cyrt.ones(1), (2**32 + 3,))
    assert kernel(x, size=2).tolist() == [2**32 + 3, 2**32 + 4]
    assert kernel(cyrt.ones(3), size=2).tolist() == [3, 4]
    assert ElementwiseKernel("", "", "")(size=1) == ()


def test_a_stream(add):
    stream = cyrt.Stream()
    x = cyrt.arange(4)
    np.testing.assert_array_equal(add(x, 1, stream=stream).numpy(), [1, 2, 3, 4])
    with pytest.raises(TypeError):
        add(x, 1, stream="main")


def test_kernels_are_kept_by_types_axes_and_layout(add):
    kernel = ElementwiseKernel("T x", "T z", "z = x")
    with pytest.warns(UserWarning, match="nothing is compiled"):
        assert kernel.cached_codes == {}
    for n in (3, 4, 500):
        kernel(cyrt.ones(n))
        kernel(cyrt.ones((2, n)))
    assert len(kernel._kernels) == 1
    kernel(cyrt.ones((4, 4)).T)
    kernel(cyrt.ones((6, 6))[::2, ::2])
    assert len(kernel._kernels) == 2
    kernel(cyrt.ones(3, dtype="int32"))
    assert len(kernel._kernels) == 3
    assert len(kernel.cached_codes) == 2
    with pytest.warns(UserWarning, match="several types"):
        assert "__global__ void kernel(" in kernel.cached_code


def test_launches_are_recorded_and_replayed(add, batched):
    """The memory is ordered by the arguments: a chain is right though nothing waits in between."""
    x, y = cyrt.zeros((64, 64)), cyrt.ones((64, 64))
    with cyrt.batch() as encoder:
        for _ in range(5):
            add(x, y.T, x)
            y += 1
        assert encoder.num_ops >= 10
    assert float(x.sum()) == 64 * 64 * 15


def test_other_libraries_arrays(add):
    class Foreign:
        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return self.array.__cuda_array_interface__

    x, out = cyrt.arange(4, dtype="float32"), cyrt.zeros(4)
    np.testing.assert_array_equal(add(Foreign(x), 1).numpy(), [1, 2, 3, 4])
    add(x, 1, Foreign(out))
    np.testing.assert_array_equal(out.numpy(), [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("T x", "T z", "z = x", "1"), ValueError, "Invalid kernel name: '1'"),
        (("T x", "T z", "z = x", 1), TypeError, "name: expected a str, got int"),
        (("T i", "T z", "z = i"), ValueError, "Can not use 'i' as a parameter name"),
        (("T x", "T x", "x = x"), ValueError, "two parameters have the name 'x'"),
        (
            ("floats x", "T z", ""),
            ValueError,
            "expected one letter or the name of a type.*'floats'",
        ),
        (("T", "T z", ""), ValueError, "parameter 'T': expected a type and a name"),
        (("T x,", "T z", ""), ValueError, "parameter '': expected a type and a name"),
        (("cooked T x", "T z", ""), ValueError, "unknown keyword 'cooked'"),
        ((1, "T z", ""), TypeError, "expected a list of parameters.*got int"),
    ],
)
def test_wrong_definitions(arguments, error, text):
    with pytest.raises(error, match=text):
        ElementwiseKernel(*arguments)


def test_wrong_calls(add, squared_difference):
    x = cyrt.ones((2, 3))
    for call, error, text in (
        (lambda: add(x), TypeError, "Wrong number of arguments for 'add': it takes 2, or 3"),
        (lambda: add(x, np.ones(3)), TypeError, "argument y: expected an array of the device"),
        (lambda: add(x, "1"), TypeError, "argument y: .* or a number, got str"),
        (lambda: add(x, 1, 2), TypeError, "argument z: expected an array of the device, got int"),
        (lambda: add(x, cyrt.ones(2)), ValueError, r"do not broadcast: x \(2, 3\), y \(2,\)"),
        (lambda: add(x, 1, cyrt.ones((4, 2, 3))), ValueError, None),
        (lambda: add(x, x, cyrt.ones(3)), ValueError, "Out shape is mismatched: argument z"),
        (lambda: add(x, x.astype("int32")), TypeError, "argument y: expected an array of float32"),
        (lambda: squared_difference(x, x.astype("int32")), TypeError, "argument y: .* float32"),
    ):
        if text is None:
            assert call().shape == (4, 2, 3)  # outputs take part in broadcasting, as in CuPy
            continue
        with pytest.raises(error, match=text):
            call()
    undecided = ElementwiseKernel("X x", "Z z", "z = x")
    with pytest.raises(TypeError, match="the type Z of z follows from no argument"):
        undecided(x)
    assert undecided(x, cyrt.empty((2, 3), dtype="int32")).dtype == "int32"
    with pytest.raises(cyrt.CompileError, match="nowhere"):
        ElementwiseKernel("T x", "T z", "z = nowhere")(x)


def test_unused_parameters_are_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ElementwiseKernel("T x, raw T y", "T z, raw T w", "")(
            cyrt.ones(2), cyrt.ones(2), *[cyrt.ones(2)] * 2
        )
