"""Products of matrices and vectors: every kernel, on every type, around the edges of its tiles.

A GPU's library is left aside: see tests/libs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cyrt
from cyrt.builtin import library_product
from cyrt.dtypes import DTYPES, dtype
from cyrt.ops.matmul import matmul, matrix_transpose, vecdot

only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="looks at a plan; CYRT_GRAPHS=0 has none",
)
NUMERIC = [each.name for each in DTYPES if each.kind != "b"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "complex64": 1e-5}


@pytest.fixture(autouse=True, scope="module")
def own_kernels():
    library_product.decide(0, False)
    yield
    library_product.decide(0)


def filled(rng, name, *shape):
    """Numbers whose products and sums are exact in float32, as long as they are few."""
    each = dtype(name)
    if each.kind == "c":
        return (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(each.numpy)
    return rng.integers(*((0, 200) if each.kind == "u" else (-8, 9)), shape).astype(each.numpy)


def exact(a, b):
    """The product in a type that holds it; integers wrap as they do in theirs."""
    wide = {"c": np.complex128, "i": a.dtype, "u": a.dtype}.get(a.dtype.kind, np.float64)
    return np.matmul(a.astype(wide), b.astype(wide))


def check(name, a, b, product=matmul):
    result = product(cyrt.asarray(a), cyrt.asarray(b))
    found, wanted = result.numpy(), exact(a, b)
    assert str(result.dtype) == name
    np.testing.assert_allclose(
        found.astype(wanted.dtype),
        wanted,
        rtol=TOLERANCE.get(name, 0),
        atol=0,
        err_msg=f"{a.shape} {a.strides} {b.shape} {b.strides}",
    )


def kernels(work):
    """What of the products' kernels ran, by the ends of their names."""
    encoder = cyrt.current_encoder()
    cyrt.commit()
    result = work()
    cyrt.commit()
    names = [each.split("float32")[-1] for each in encoder.last_plan().names if "matmul" in each]
    return names, result


# The shapes of a and b, and the kernels that serve them on any device.
SERVED = [
    ((1000, 100), (100,), ["_rows"]),
    ((100,), (100, 1000), ["_columns"]),
    ((7,), (7,), ["_rows"]),
    ((1 << 17,), (1 << 17,), ["_rows", "_parts"]),
    ((40_000,), (40_000, 24), ["_columns", "_parts"]),
    ((32, 32), (32, 32), ["_small"]),
    ((33, 1100), (1100, 40), ["_small", "_parts"]),
    ((64, 256), (256, 10), ["_small", "_parts"]),
    ((64, 130), (130, 10), ["_small"]),
    ((1300, 20), (20, 1412), [""]),
    ((1700, 33, 40), (1700, 40, 33), ["_small"]),
]


@only_graphs
@pytest.mark.parametrize(("a", "b", "wanted"), SERVED)
def test_kernels_that_serve_a_shape(a, b, wanted, rng):
    a, b = filled(rng, "float32", *a), filled(rng, "float32", *b)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    found, result = kernels(lambda: matmul(x, y))
    assert found == wanted
    np.testing.assert_array_equal(result.numpy(), exact(a, b))


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((65, 100), (100,)),
        ((64, 1024), (1024,)),
        ((600, 1024), (1024,)),
        ((65, 37), (37,)),
        ((5,), (5, 300)),
        ((33,), (33, 24)),
        ((2, 3, 33), (33,)),
        ((33, 65), (65, 40)),
        ((3, 40, 24), (3, 24, 48)),
        ((9000,), (9000,)),
        ((12000,), (12000, 9)),
        ((1301, 9), (9, 1305)),
    ],
)
def test_every_type(name, a, b, rng):
    check(name, filled(rng, name, *a), filled(rng, name, *b))


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_long_columns_of_few_summed(name, k, rng):
    check(name, filled(rng, name, k), filled(rng, name, k, 4096))


@pytest.mark.parametrize("m", [1, 2, 31, 32, 33])
@pytest.mark.parametrize("n", [1, 2, 32, 33, 65])
@pytest.mark.parametrize("k", [1, 3, 32, 33, 64])
def test_edges_of_small_tiles(m, n, k, rng):
    check("float32", filled(rng, "float32", m, k), filled(rng, "float32", k, n))
    check("float64", filled(rng, "float64", k, m).T, filled(rng, "float64", n, k).T)


@pytest.mark.parametrize(("m", "n"), [(1281, 1408), (1408, 1279), (1284, 1284)])
@pytest.mark.parametrize("k", [1, 8, 23])
def test_edges_of_large_tiles(m, n, k, rng):
    check("float32", filled(rng, "float32", m, k), filled(rng, "float32", n, k).T)
    check("float32", filled(rng, "float32", k, m).T, filled(rng, "float32", k, n))


VIEWS = {
    "transposed": lambda x: matrix_transpose(x) if isinstance(x, cyrt.Array) else x.mT,
    "rows apart": lambda x: x[..., ::3, :],
    "columns apart": lambda x: x[..., ::2],
    "backwards": lambda x: x[..., ::-1, ::-1],
    "off by one": lambda x: x[..., 1:, 1:],
}


@pytest.mark.parametrize("name", ["float32", "float16", "complex64"])
@pytest.mark.parametrize("left", VIEWS)
@pytest.mark.parametrize("right", VIEWS)
def test_strides(name, left, right, rng):
    for batch, size in (((), 60), ((3,), 34), ((), 2)):
        a, b = (filled(rng, name, *batch, size, size) for _ in range(2))
        x, y = VIEWS[left](cyrt.asarray(a)), VIEWS[right](cyrt.asarray(b))
        a, b = VIEWS[left](a), VIEWS[right](b)
        k = min(a.shape[-1], b.shape[-2])
        for m, n in ((None, None), (1, None), (None, 1)):
            wanted = exact(a[..., :m, :k], b[..., :k, :n])
            found = matmul(x[..., :m, :k], y[..., :k, :n]).numpy()
            np.testing.assert_allclose(
                found.astype(wanted.dtype), wanted, rtol=TOLERANCE[name], atol=0
            )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 3, 4, 6), (3, 6, 7)),
        ((5, 1, 4, 6), (3, 6, 7)),
        ((4, 6), (5, 3, 6, 7)),
        ((5, 4, 6), (6,)),
        ((6,), (5, 6, 4)),
        ((3, 1, 6), (6, 7)),
        ((4, 6), (5, 6, 1)),
        ((2, 1) * 8 + (2, 3), (1, 2) * 8 + (3, 2)),
        ((2, 1) * 8 + (1, 3), (1, 2) * 8 + (3, 1)),
    ],
)
def test_batches(a, b, rng):
    check("float32", filled(rng, "float32", *a), filled(rng, "float32", *b))


@pytest.mark.parametrize(("m", "n"), [(4, 7), (1, 7), (4, 1)])
def test_matrices_that_are_no_rows_of_one(m, n, rng):
    a, b = filled(rng, "float32", 5, 9, 6), filled(rng, "float32", 6, n)
    x, y = cyrt.asarray(a)[:, 2 : 2 + m], cyrt.asarray(b)
    np.testing.assert_array_equal(matmul(x, y).numpy(), exact(a[:, 2 : 2 + m], b))
    np.testing.assert_array_equal(matmul(y.mT, x.mT).numpy(), exact(b.mT, a[:, 2 : 2 + m].mT))


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 0), (0, 4)), ((0,), (0,)), ((5, 0), (0,)), ((0, 3), (3, 4)), ((2, 0, 3), (3,))],
)
def test_nothing_to_sum_or_to_write(a, b):
    found = matmul(cyrt.asarray(np.ones(a, np.float32)), cyrt.asarray(np.ones(b, np.float32)))
    np.testing.assert_array_equal(found.numpy(), np.zeros(np.matmul(np.ones(a), np.ones(b)).shape))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((50, 90), (90,)),
        ((50, 89), (89,)),
        ((90,), (90, 50)),
        ((89,), (89, 45)),
        ((45, 37), (37, 41)),
        ((1300, 9), (9, 1289)),
    ],
)
def test_what_lies_around_the_operands_is_not_used(a, b, rng):
    """Not-a-numbers beside the operands, and numbers beside the result, which stay."""
    inside = []
    for shape in (a, b):
        base = np.full([size + 11 for size in shape], np.nan, np.float32)
        seen = base[tuple(slice(4, 4 + size) for size in shape)]
        seen[...] = filled(rng, "float32", *shape)
        inside.append((seen, cyrt.asarray(base)[tuple(slice(4, 4 + size) for size in shape)]))
    (left, x), (right, y) = inside
    wanted = exact(left, right)
    rows = cyrt.asarray(np.full((wanted.shape[0] + 2, *wanted.shape[1:]), 7, np.float32))
    assert matmul(x, y, out=rows[1:-1]).shape == wanted.shape
    found = rows.numpy()
    np.testing.assert_array_equal(found[1:-1], wanted)
    assert (found[0] == 7).all()
    assert (found[-1] == 7).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_floats_are_summed_in_float32(name):
    ones = np.ones((3, 4096), dtype(name).numpy)
    for a, b in ((ones, ones[0]), (ones, ones.T), (ones[0], ones.T.copy())):
        found = matmul(cyrt.asarray(a), cyrt.asarray(b)).numpy()
        np.testing.assert_array_equal(found.astype(np.float64), np.full(found.shape, 4096))


@pytest.mark.parametrize(
    ("a", "b"), [((1 << 17,), (1 << 17,)), ((20_000,), (20_000, 40)), ((40, 5000), (5000, 40))]
)
def test_split_sums_are_accurate_and_repeat(a, b, rng):
    a, b = rng.normal(size=a).astype(np.float32), rng.normal(size=b).astype(np.float32)
    x, y = cyrt.asarray(a), cyrt.asarray(b)
    found = matmul(x, y).numpy()
    size = np.sqrt(a.shape[-1])
    assert np.abs(found - exact(a, b)).max() < 2e-6 * size
    for _ in range(3):
        np.testing.assert_array_equal(matmul(x, y).numpy(), found)


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("shape", [(70, 40), (3, 33, 5), (2, 5000)])
def test_dot_products_conjugate_the_first(axis, shape, rng):
    a, b = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for _ in range(2))
    found = (
        vecdot(cyrt.asarray(a), cyrt.asarray(b[:1]), axis=axis)
        if axis == -1
        else vecdot(cyrt.asarray(a), cyrt.asarray(b), axis=axis)
    )
    wanted = (a.conj() * (b[:1] if axis == -1 else b)).sum(axis)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-11)


def test_more_rows_than_a_grid_holds_blocks_of(rng, emulated):
    """Over 65,535 products in one launch."""
    a, b = filled(rng, "int8", 70_000, 3), filled(rng, "int8", 70_000, 3)
    found = matmul(cyrt.asarray(a[:, None, :]), cyrt.asarray(b[:, :, None])).numpy()
    np.testing.assert_array_equal(found[:, 0, 0], (a * b).sum(1, dtype=np.int8))


def skinny_kernels(left, right):
    """The kernels of a product, by the ends of their names, and the result."""
    encoder = cyrt.current_encoder()
    cyrt.commit()
    result = matmul(left, right)
    cyrt.commit()
    names = encoder.last_plan().names if cyrt.settings.get("CYRT_GRAPHS") else []
    return [re.split(r"float\d\d", each)[-1] for each in names if "matmul" in each], result


FEW = [
    (name, m)
    for name, widest in (("float16", 64), ("bfloat16", 64), ("float32", 16))
    for m in (2, 8, 9, 16, 17, 33, 64)
    if m <= widest
]


@pytest.mark.parametrize(("name", "m"), FEW)
@pytest.mark.parametrize(("n", "k"), [(128, 8), (136, 40), (777, 64), (2000, 24), (144, 4096)])
def test_a_few_rows_and_a_matrix(name, m, n, k, rng):
    """The few rows first and second, the matrix along the summed dimension and across it."""
    a, w = filled(rng, name, m, k), filled(rng, name, n, k)
    wanted, few = exact(a, w.T), cyrt.asarray(a)
    width = next(each for each in (8, 16, 32, 64) if m <= each)
    along, across = cyrt.asarray(w).mT, cyrt.asarray(np.ascontiguousarray(w.T))
    for matrix, suffix in ((along, "_skinny"), (across, "_skinny_across")):
        for left, right, product in ((few, matrix, wanted), (matrix.mT, few.mT, wanted.T)):
            names, found = skinny_kernels(left, right)
            if names and (matrix is along or n % 8 == 0):
                assert re.sub("x\\d+$", "", names[0]) == f"{suffix}_{width}"
            np.testing.assert_allclose(
                found.numpy().astype(np.float64), product, rtol=TOLERANCE[name], atol=0
            )


def test_skinny_products_of_batches(rng):
    a, w = filled(rng, "bfloat16", 3, 1, 5, 64), filled(rng, "bfloat16", 2, 136, 64)
    x, y = cyrt.asarray(a), cyrt.asarray(w).mT
    for left, right, wanted in (
        (x, y, exact(a, w.mT)),
        (x[:, 0], y[0], exact(a[:, 0], w[0].T)),
        (y[:1].mT, x[:, 0].mT, exact(w[:1], a[:, 0].mT)),
    ):
        found = matmul(left, right).numpy().astype(np.float64)
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE["bfloat16"], atol=0)


def test_skinny_products_use_no_other_elements(rng):
    """Not-a-numbers beside the operands, and numbers beside the result, which stay."""
    a, w = (np.full((size + 16, 48 + 16), np.nan, np.float16) for size in (9, 200))
    a[8:17, 8:56], w[8:208, 8:56] = filled(rng, "float16", 9, 48), filled(rng, "float16", 200, 48)
    out = cyrt.full((11, 200), 7, dtype=cyrt.float16)
    x, y = cyrt.asarray(a)[8:17, 8:56], cyrt.asarray(w)[8:208, 8:56]
    assert matmul(x, y.mT, out=out[1:-1]).shape == (9, 200)
    found, wanted = out.numpy(), exact(a[8:17, 8:56], w[8:208, 8:56].T)
    np.testing.assert_allclose(found[1:-1].astype(np.float64), wanted, rtol=2e-3)
    assert (found[0] == 7).all()
    assert (found[-1] == 7).all()


@pytest.mark.parametrize("layout", ["along", "across"])
@pytest.mark.parametrize("m", [5, 12, 30])
def test_skinny_blocks_take_several_tiles(layout, m, rng):
    """More tiles than the device holds blocks, of steps that the warps share out unevenly; and few
    tiles, which are smaller."""
    for n, k in ((256 * cyrt.Device().multiprocessors + 40, 72), (160, 1000)):
        a, w = filled(rng, "bfloat16", m, k), filled(rng, "bfloat16", n, k)
        y = cyrt.asarray(w).mT if layout == "along" else cyrt.asarray(np.ascontiguousarray(w.T))
        found = matmul(cyrt.asarray(a), y).numpy().astype(np.float64)
        np.testing.assert_allclose(found, exact(a, w.T), rtol=TOLERANCE["bfloat16"], atol=0)


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
@pytest.mark.parametrize("layout", ["along", "across"])
def test_a_large_matrix_by_a_vector(name, layout, rng):
    """It is the product of a single row: by a layer's kernel, or, across the summed dimension, of
    16-bit floats, by a skinny one. Other vectors lie apart."""
    n, k = 8 * max(64, cyrt.Device().multiprocessors), 776
    w, x = filled(rng, name, n, k), filled(rng, name, k, 2)
    matrix = cyrt.asarray(w) if layout == "along" else cyrt.asarray(np.ascontiguousarray(w.T)).mT
    wanted, side_by_side = exact(w, x), cyrt.asarray(np.ascontiguousarray(x.T))
    kernel = {"along": "linear", "across": "skinny_across" if name == "bfloat16" else "columns"}
    for vector, usual in ((side_by_side[0], True), (cyrt.asarray(x)[:, 0], False)):
        for left, right in ((matrix, vector), (vector, matrix.mT)):
            cyrt.commit()
            found = matmul(left, right)
            cyrt.commit()
            if cyrt.settings.get("CYRT_GRAPHS"):
                names = " ".join(cyrt.current_encoder().last_plan().names)
                assert (kernel[layout] in names) == usual or kernel[layout] == "columns"
            np.testing.assert_allclose(
                found.numpy().astype(np.float64), wanted[:, 0], rtol=TOLERANCE[name], atol=0
            )


@pytest.mark.parametrize("offset", [1, 4, 7])
def test_unaligned_operands_are_not_skinny(offset, rng):
    a, w = filled(rng, "float16", 4, 72), filled(rng, "float16", 128, 72)
    x, y = cyrt.asarray(a)[:, offset : offset + 64], cyrt.asarray(w)[:, offset : offset + 64]
    names, found = skinny_kernels(x, y.mT)
    assert not any("skinny" in each for each in names)
    wanted = exact(a[:, offset : offset + 64], w[:, offset : offset + 64].T)
    np.testing.assert_allclose(found.numpy().astype(np.float64), wanted, rtol=2e-3)


@pytest.mark.parametrize("layout", ["along", "across"])
def test_skinny_sums_in_parts_are_accurate_and_repeat(layout, rng):
    a, w = (rng.normal(size=(size, 1 << 16)).astype(np.float16) for size in (3, 128))
    x = cyrt.asarray(a)
    y = cyrt.asarray(w).mT if layout == "along" else cyrt.asarray(np.ascontiguousarray(w.T))
    names, found = skinny_kernels(x, y)
    if names and cyrt.Device().multiprocessors > 8:
        assert len(names) == 2
    found, wanted = found.numpy().astype(np.float64), exact(a, w.T)
    assert np.abs(found - wanted).max() < 1e-3 * np.abs(wanted).max()
    for _ in range(3):
        np.testing.assert_array_equal(matmul(x, y).numpy(), found)
