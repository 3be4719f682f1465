"""Products as NumPy and the array API standard have them: shapes, types, errors, ``out=``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cyrt
from cyrt.ops.matmul import dot, inner, matmul, matrix_transpose, outer, tensordot, vecdot

only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="looks at a plan; CYRT_GRAPHS=0 has none",
)
NUMBERS = st.sampled_from(["int8", "uint16", "int32", "int64", "float32", "float64", "complex64"])


def drawn(data, dtype, shape):
    """Small whole numbers: every sum of products is exact."""
    dtype = np.dtype(dtype)
    return data.draw(
        arrays.arrays(
            dtype,
            shape,
            elements={
                "c": st.builds(complex, st.integers(-3, 3), st.integers(-3, 3)),
                "u": st.integers(0, 5),
            }.get(dtype.kind, st.integers(-5, 5)),
        )
    )


def same(found, wanted):
    assert found.shape == wanted.shape
    assert found.dtype.numpy == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    NUMBERS,
    arrays.mutually_broadcastable_shapes(
        signature="(m?,n),(n,p?)->(m?,p?)", max_dims=3, min_side=0, max_side=5
    ),
)
def test_matmul_of_any_shapes(data, dtype, shapes):
    a, b = (drawn(data, dtype, shape) for shape in shapes.input_shapes)
    same(matmul(cyrt.asarray(a), cyrt.asarray(b)), np.matmul(a, b))


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    NUMBERS,
    arrays.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=3, max_side=4),
    st.integers(0, 4),
)
def test_vecdot_along_any_axis(data, dtype, shapes, size):
    least = min(map(len, shapes.input_shapes))
    axis = data.draw(st.integers(-least, -1))
    a, b = (
        drawn(
            data, dtype, [size if d == len(shape) + axis else each for d, each in enumerate(shape)]
        )
        for shape in shapes.input_shapes
    )
    same(vecdot(cyrt.asarray(a), cyrt.asarray(b), axis=axis), np.vecdot(a, b, axis=axis))


@settings(max_examples=60, deadline=None)
@given(st.data(), NUMBERS, st.integers(0, 3))
def test_tensordot_over_any_axes(data, dtype, count):
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    ndims = [data.draw(st.integers(count, 4)) for _ in range(2)]
    axes = [data.draw(st.permutations(range(ndim)))[:count] for ndim in ndims]
    operands = []
    for ndim, own in zip(ndims, axes, strict=True):
        shape = data.draw(st.lists(st.integers(0, 3), min_size=ndim, max_size=ndim))
        for axis, size in zip(own, sizes, strict=True):
            shape[axis] = size
        operands.append(drawn(data, dtype, shape))
    axes = tuple(
        [axis - data.draw(st.sampled_from([0, ndim])) for axis in own]
        for own, ndim in zip(axes, ndims, strict=True)
    )
    same(tensordot(*map(cyrt.asarray, operands), axes=axes), np.tensordot(*operands, axes=axes))


@pytest.mark.parametrize(
    ("a", "b", "axes"),
    [
        ((3, 4, 5), (4, 5, 2), 2),
        ((3, 4), (4, 2), 1),
        ((3, 4), (2,), 0),
        ((), (3,), 0),
        ((2, 3), (2, 3), 2),
        ((4, 3, 2), (2, 3, 4, 5), 3),
    ],
)
def test_tensordot_over_so_many_axes(a, b, axes, rng):
    a, b = (rng.integers(-5, 5, shape).astype(np.float32) for shape in (a, b))
    if axes == 3:
        a = a.transpose(2, 1, 0)
    same(tensordot(cyrt.asarray(a), cyrt.asarray(b), axes=axes), np.tensordot(a, b, axes=axes))


@only_graphs
def test_tensordot_reads_axes_that_make_one_without_a_copy(rng):
    a, b = rng.integers(-5, 5, (3, 4, 5)), rng.integers(-5, 5, (4, 5, 6))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    cyrt.commit()
    result = tensordot(x, y)
    cyrt.commit()
    assert [each for each in cyrt.current_encoder().last_plan().names if "matmul" not in each] == []
    same(result, np.tensordot(a, b))
    same(tensordot(x, y, axes=((2, 1), (1, 0))), np.tensordot(a, b, axes=((2, 1), (1, 0))))


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("dot", (3,), (3,)),
        ("dot", (2, 3), (3,)),
        ("dot", (3,), (3, 2)),
        ("dot", (2, 3), (3, 4)),
        ("dot", (4, 2, 3), (5, 3, 6)),
        ("dot", (), (3,)),
        ("dot", (2, 3), ()),
        ("inner", (3,), (3,)),
        ("inner", (2, 3), (4, 3)),
        ("inner", (2, 4, 3), (3,)),
        ("inner", (), (2,)),
        ("outer", (2, 3), (4,)),
        ("outer", (), (3,)),
        ("outer", (0,), (3,)),
    ],
)
def test_of_numpy(name, a, b, rng):
    a, b = (np.asarray(rng.integers(-5, 5, shape), np.float64) for shape in (a, b))
    found = {"dot": dot, "inner": inner, "outer": outer}[name](cyrt.asarray(a), cyrt.asarray(b))
    same(found, np.asarray(getattr(np, name)(a, b)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("float32", "float64"),
        ("int8", "int32"),
        ("float16", "float32"),
        ("float32", "complex128"),
        ("uint8", "int8"),
    ],
)
def test_types_promote(a, b, rng):
    x, y = rng.integers(0, 5, (3, 4)).astype(a), rng.integers(0, 5, (4, 2)).astype(b)
    same(matmul(cyrt.asarray(x), cyrt.asarray(y)), x @ y)
    same(tensordot(cyrt.asarray(x), cyrt.asarray(y), axes=1), x @ y)
    same(vecdot(cyrt.asarray(x[:, 0]), cyrt.asarray(y[:3, 0])), np.vecdot(x[:, 0], y[:3, 0]))


def test_transposed_view_shares_memory(rng):
    a = rng.random((2, 3, 4))
    x = cyrt.asarray(a)
    turned = matrix_transpose(x)
    same(turned, a.swapaxes(1, 2))
    x[0, 1, 2] = 7
    assert turned[0, 2, 1].item() == 7


def test_out_takes_the_result(rng):
    a, b = rng.random((5, 6)), rng.random((6, 4))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    for whole in (np.zeros((5, 4)), np.zeros((5, 8)), np.zeros((5, 4), np.complex128)):
        out = cyrt.asarray(whole)[:, :4]
        assert matmul(x, y, out=out) is out
        np.testing.assert_allclose(out.numpy(), a @ b)


def test_out_may_be_an_operand(rng):
    a, b = rng.random((100, 100)), rng.random((100, 100))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    matmul(x, y, out=x)
    np.testing.assert_allclose(x.numpy(), a @ b)
    x = cyrt.asarray(a)
    matmul(x[::-1], y, out=x)
    np.testing.assert_allclose(x.numpy(), a[::-1] @ b)
    matmul(y, matrix_transpose(y), out=matrix_transpose(y))
    np.testing.assert_allclose(y.numpy(), (b @ b.T).T)


FLOATS = {
    "(2, 3)": np.zeros((2, 3), np.float32),
    "()": np.float32(1).reshape(()),
    "(3,)": np.zeros(3, np.float32),
    "(4, 2, 2)": np.zeros((4, 2, 2), np.float32),
    "(3, 3, 2)": np.zeros((3, 3, 2), np.float32),
}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: matmul(x["(2, 3)"], x["(2, 3)"]),
            ValueError,
            r"\(2, 3\) and \(2, 3\).*last size of x1, 3, and the last but one size of x2, 2, must",
        ),
        (lambda x: matmul(x["(3,)"], x["(4, 2, 2)"]), ValueError, r"\(3,\) and \(4, 2, 2\)"),
        (
            lambda x: matmul(x["(4, 2, 2)"], matrix_transpose(x["(3, 3, 2)"])),
            ValueError,
            r"\(4, 2, 2\) and \(3, 2, 3\).*broadcast",
        ),
        (lambda x: matmul(x["()"], x["(3,)"]), ValueError, r"\(\) and \(3,\).*0-d"),
        (lambda x: matmul(x["(2, 3)"], FLOATS["(3,)"]), TypeError, "x2.*numpy.ndarray.*asarray"),
        (lambda x: matmul(2.0, x["(3,)"]), TypeError, "x1.*float"),
        (lambda x: matmul(x["(2, 3)"], x["(3,)"], out=x["(3,)"]), ValueError, r"\(2,\).*\(3,\)"),
        (lambda x: matmul(x["(2, 3)"], x["(3,)"], out=np.zeros(2)), TypeError, "out.*ndarray"),
        (
            lambda x: matmul(x["(2, 3)"], x["(3,)"], out=cyrt.asarray(np.zeros(2, np.int32))),
            TypeError,
            "float32.*int32",
        ),
        (lambda x: vecdot(x["(2, 3)"], x["(3,)"], axis=0), IndexError, "-1 to -1.*got 0"),
        (lambda x: vecdot(x["(2, 3)"], x["(3,)"], axis=-2), IndexError, "got -2"),
        (lambda x: vecdot(x["(2, 3)"], x["(3,)"], axis=1.5), TypeError, "axis.*float"),
        (lambda x: vecdot(x["(2, 3)"], x["(3, 3, 2)"]), ValueError, r"\(2, 3\) and \(3, 3, 2\)"),
        (lambda x: vecdot(x["()"], x["(3,)"]), IndexError, r"\(\) and \(3,\)"),
        (lambda x: tensordot(x["(2, 3)"], x["(3,)"], axes=2), ValueError, "0 to 1.*got 2"),
        (lambda x: tensordot(x["(2, 3)"], x["(3,)"], axes=-1), ValueError, "got -1"),
        (
            lambda x: tensordot(x["(2, 3)"], x["(2, 3)"], axes=1),
            ValueError,
            r"\(1,\) of x1 and \(0,",
        ),
        (lambda x: tensordot(x["(2, 3)"], x["(3,)"], axes=([0, 1], [0])), ValueError, "sizes"),
        (
            lambda x: tensordot(x["(3, 3, 2)"], x["(3, 3, 2)"], axes=([0, 0], [0, 1])),
            ValueError,
            "twice",
        ),
        (lambda x: tensordot(x["(2, 3)"], x["(3,)"], axes=([4], [0])), IndexError, "4"),
        (lambda x: tensordot(x["(2, 3)"], x["(3,)"], axes="ab"), TypeError, "axes.*'ab'"),
        (lambda x: dot(x["(2, 3)"], x["(2, 3)"]), ValueError, "x2 along axis ., 2"),
        (lambda x: inner(x["(2, 3)"], x["(4, 2, 2)"]), ValueError, "x2 along axis ., 2"),
        (lambda x: matrix_transpose(x["(3,)"]), ValueError, r"\(3,\)"),
    ],
)
def test_what_does_not_multiply_is_refused(call, error, message):
    operands = {name: cyrt.asarray(value) for name, value in FLOATS.items()}
    with pytest.raises(error, match=message):
        call(operands)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 2), (-1, 0), (0, 1), (2, -0.25)])
@pytest.mark.parametrize("shape", [(4, 7), (7,), (4, 1), ()])
def test_addmm(alpha, beta, shape, rng):
    c, a, b = (rng.normal(size=each).astype(np.float32) for each in (shape, (4, 5), (5, 7)))
    found = cyrt.addmm(*map(cyrt.asarray, (c, a, b)), alpha=alpha, beta=beta)
    wanted = alpha * (a.astype(np.float64) @ b) + beta * c.astype(np.float64)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [4, 70])
def test_addmm_rounds_once(rows):
    """The product alone, 102,400, is beyond the range of float16."""
    a = cyrt.full((rows, 512), 2.0, dtype=cyrt.float16)
    b = cyrt.full((512, 25), 100.0, dtype=cyrt.float16)
    found = cyrt.addmm(cyrt.ones((rows, 25), dtype=cyrt.float16), a, b, alpha=0.125, beta=-8)
    assert found.dtype == cyrt.float16
    assert (found.numpy() == 12800 - 8).all()


def test_addmm_without_a_beta_does_not_read_c():
    c = cyrt.full((2, 2), float("nan"))
    ones = cyrt.ones((2, 2))
    assert (cyrt.addmm(c, ones, ones, beta=0).numpy() == 2).all()


def test_addmm_refuses_what_does_not_fit():
    ones = cyrt.ones((2, 3))
    with pytest.raises(ValueError, match=r"c: expected a shape that broadcasts to \(2, 2\)"):
        cyrt.addmm(cyrt.ones((3, 2, 2)), ones, ones.mT)
    with pytest.raises(ValueError, match="addmm|matmul"):
        cyrt.addmm(ones, ones, ones)
    with pytest.raises(TypeError, match="addmm: c"):
        cyrt.addmm(1.0, ones, ones.mT)


def test_matmul_in_a_wider_type(rng):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 40), (40, 6)))
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    narrow, wide = cyrt.matmul(x, y), cyrt.matmul(x, y, dtype=cyrt.int32)
    assert str(narrow.dtype) == "int8"
    np.testing.assert_array_equal(narrow.numpy(), a @ b)
    assert str(wide.dtype) == "int32"
    np.testing.assert_array_equal(wide.numpy(), a.astype(np.int32) @ b.astype(np.int32))
    with pytest.raises(TypeError, match="dtype: int8 operands do not promote to uint8"):
        cyrt.matmul(x, y, dtype=cyrt.uint8)
