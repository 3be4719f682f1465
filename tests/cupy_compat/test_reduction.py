"""Maps whose results are joined along axes: CuPy's `ReductionKernel`."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt.cupy_compat import ReductionKernel


@pytest.fixture(scope="module")
def total():
    return ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")


@pytest.fixture(scope="module")
def norm():
    return ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2), (1, 2), (0, 1), (2, 0), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(total, rng, axis, keepdims):
    x = rng.integers(-9, 9, (3, 5, 70)).astype("int64")
    device = cyrt.asarray(x)
    for host, given in (
        (x, device),
        (x.T, device.T),
        (x[::2, ::-1, 3::4], device[::2, ::-1, 3::4]),
    ):
        got = total(given, axis=axis, keepdims=keepdims).numpy()
        np.testing.assert_array_equal(got, host.sum(axis=axis, keepdims=keepdims), strict=True)


@pytest.mark.parametrize(
    "shape", [(1,), (31,), (257,), (100_000,), (40_000, 3), (3, 40_000), (1, 1)]
)
def test_sizes(norm, rng, shape):
    x = rng.random(shape)
    for axis in (None, 0, -1):
        got = norm(cyrt.asarray(x), axis=axis).numpy()
        np.testing.assert_allclose(got, np.sqrt((x * x).sum(axis=axis)), rtol=1e-12)


def test_rows_are_split_among_blocks(total):
    total(cyrt.ones(100_000, dtype="float64"))
    assert {"partial", "final"} <= {key[0] for key in total._kernels}


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint16", "float16", "bfloat16", "float32", "complex64", "complex128"]
)
def test_types(name):
    most = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    x = cyrt.asarray([[0, 1, 1], [2, 0, 1]]).astype(name)
    got = most(x, axis=0)
    assert got.dtype is x.dtype
    host = x.numpy()
    np.testing.assert_array_equal(got.numpy(), host[0] + host[1])


def test_several_inputs_are_broadcast(rng):
    dot = ReductionKernel("T x, T y, float64 scale", "T z", "x * y * scale", "a + b", "z = a", "0")
    x, y = rng.random((4, 1, 300)), rng.random((5, 1))
    got = dot(cyrt.asarray(x), cyrt.asarray(y), 2, axis=(0, 2)).numpy()
    np.testing.assert_allclose(got, (x * y * 2).sum((0, 2)))


def test_a_type_of_the_code_s_own():
    """An argument of the maximum: the pair is a struct, and identity None makes an empty one."""
    pair = """
struct Pair {
    float value; int index;
    __device__ Pair() : value(0), index(-1) {}
    __device__ Pair(float value, int index) : value(value), index(index) {}
};
__device__ Pair larger(const Pair& a, const Pair& b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    return a.value < b.value || (a.value == b.value && b.index < a.index) ? b : a;
}
"""
    argmax = ReductionKernel(
        *("float32 x", "int64 y", "Pair(x, _J)", "larger(a, b)", "y = a.index", None),
        name="argmax", reduce_type="Pair", preamble=pair,
    )  # fmt: skip
    x = np.sin(np.arange(30_000, dtype="float32")).reshape(100, 300)
    device = cyrt.asarray(x)
    np.testing.assert_array_equal(argmax(device, axis=0).numpy(), x.argmax(0))
    np.testing.assert_array_equal(argmax(device, axis=1).numpy(), x.argmax(1))
    assert argmax(device).item() == x.argmax()
    with pytest.raises(ValueError, match="zero-size array to reduction operation argmax"):
        argmax(cyrt.zeros((0, 3)), axis=0)
    assert argmax(cyrt.zeros((3, 0)), axis=0).shape == (0,)


def test_raw_inputs():
    weighted = ReductionKernel(
        "T x, raw T w, raw T table",
        "T y",
        "x * w[_J] + table[_in_ind.get()]",
        "a + b",
        "y = a",
        "0",
    )
    x = np.arange(6.0).reshape(2, 3)
    w, table = np.array([2.0, 3.0]), np.full((2, 3), 10.0)
    arrays = [cyrt.asarray(each) for each in (x, w, table)]
    got = ReductionKernel("T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a", "0")(
        arrays[0], arrays[1], axis=0
    )
    np.testing.assert_array_equal(got.numpy(), (x * w[:, None]).sum(0))
    kept = ReductionKernel(
        *("T x, raw T w, raw T table", "T y", "x * w[_J] + table[_in_ind.get()]"),
        *("a + b", "y = a", "0"), reduce_dims=False,
    )  # fmt: skip
    np.testing.assert_array_equal(kept(*arrays, axis=0).numpy(), (x * w[:, None] + table).sum(0))
    with pytest.raises(NotImplementedError, match="argument w is raw"):
        weighted(*arrays, axis=1)


def test_outputs(total):
    x, out = cyrt.ones((2, 3)), cyrt.zeros(3)
    assert total(x, axis=0, out=out) is out
    assert total(x, out, axis=0) is out
    assert out.tolist() == [2, 2, 2]
    view = cyrt.zeros((3, 2))
    total(x, axis=0, out=view[:, 1])
    assert view.tolist() == [[0, 2]] * 3
    both = ReductionKernel("T x", "T y, T z", "x", "a + b", "y = a; z = -a", "0")
    y, z = cyrt.zeros(3), cyrt.zeros(3)
    assert both(x, y, z, axis=0) is y
    assert z.tolist() == [-2, -2, -2]
    y, z = cyrt.zeros(3), cyrt.zeros(3)
    assert both(x, axis=0, out=(y, z)) is y
    assert (y.tolist(), z.tolist()) == ([2, 2, 2], [-2, -2, -2])
    with pytest.raises(TypeError, match="takes 1, or 3 with its outputs, got 2"):
        both(x, axis=0, out=y)
    assert total(cyrt.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]


def test_a_chain_in_one_batch(total, batched):
    x = cyrt.ones((300, 400))
    with cyrt.batch():
        for _ in range(3):
            x = x + total(x, axis=0) / 300
            x = x.T
    assert set(np.unique(x.numpy())) <= {
        np.float32(v) for v in (x.numpy()[0, 0], x.numpy()[-1, -1])
    }


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda k, x: k(x, axis=2), np.exceptions.AxisError, "axis 2 is out of bounds"),
        (lambda k, x: k(x, axis=(0, -2)), ValueError, "duplicate value in 'axis'"),
        (lambda k, x: k(x, axis=0, out=cyrt.ones(2)), ValueError, "Out shape is mismatched: .* y"),
        (lambda k, x: k(x, cyrt.ones(3), axis=0, out=cyrt.ones(3)), ValueError, "'out' as both"),
        (lambda k, x: k(), TypeError, "Wrong number of arguments for 'total'"),
        (lambda k, x: k(1.0), ValueError, "Loop size is undecided"),
        (lambda k, x: k(x.numpy()), TypeError, "argument x: expected an array of the device"),
        (lambda k, x: k(x, out=cyrt.ones((), dtype="int32")), TypeError, "argument x: .* int32"),
    ],
)
def test_wrong_calls(total, call, error, text):
    with pytest.raises(error, match=text):
        call(total, cyrt.ones((2, 3)))


def test_wrong_definitions():
    with pytest.raises(ValueError, match="Invalid kernel name"):
        ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name="1")
    with pytest.raises(ValueError, match="a reduction has an output"):
        ReductionKernel("T x", "", "x", "a + b", "", "0")
