"""NumPy's functions of choosing, sampled lines, grids and subscripts: run on cyrt and on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from beside_numpy import EVERY, NUMBERS, WIDE, beside

import cyrt
from cyrt.numpy import einstein_sum

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own


def shuffled(xp, x, r):
    """Integers for each element of x, some of them negative."""
    n = x.shape[0]
    return xp.asarray(
        [r.randrange(-n, n) for _ in range(int(np.prod(x.shape)))], dtype="int64"
    ).reshape(x.shape)


# -- choosing --------------------------------------------------------------------------------------

CHOSEN = {
    "argwhere": lambda xp, x, r: xp.argwhere(x),
    "extract": lambda xp, x, r: xp.extract(x > 0, x),
    "compress": lambda xp, x, r: xp.compress([True, False, True][: r.randint(0, 3)], x, r.axis(x)),
    "choose": lambda xp, x, r: xp.choose(x > 0, [x, 5 * x + 1]),
    "choose among numbers": lambda xp, x, r: xp.choose(
        xp.asarray([0, 4, -1, 2]), [1, 2, xp.asarray([7, 8, 9, 6])], mode=r.choice(["wrap", "clip"])
    ),
    "select": lambda xp, x, r: xp.select([x > 1, x > -1, x == -3], [x, -x, 7], r.choice([0, 3])),
    "piecewise": lambda xp, x, r: (
        xp.piecewise(x, [x < 0, x > r.choice([-3, 3])], [lambda v: -v, 5]),
        xp.piecewise(x, [x < 0], [2, lambda v, by: v * by], 2),
        xp.piecewise(x, x > 1, [lambda v, by=1: v + by], by=3),
    ),
    "put_along_axis": lambda xp, x, r: put(xp, x, r),
    "unravel_index": lambda xp, x, r: xp.unravel_index(
        xp.asarray([0, 5, 23]), (2, 3, 4), order=r.choice("CF")
    ),
    "ravel_multi_index": lambda xp, x, r: xp.ravel_multi_index(
        (xp.asarray([0, 5, -1]), xp.asarray([[7], [1]])),
        (3, 4),
        mode=r.choice(["wrap", "clip", ("wrap", "clip")]),
        order=r.choice("CF"),
    ),
    "fill_diagonal": lambda xp, x, r: filled(xp, x, r.choice([5, [1, 2, 3]]), r.random() < 0.5),
}
RANKS = {"choose": (0, 3), "argwhere": (0, 3), "fill_diagonal": (0, 2), "piecewise": (1, 1)}


def put(xp, x, r):
    axis = r.choice([0, -1])
    xp.put_along_axis(x, xp.argsort(x, axis=axis, stable=True)[:1], 3, axis)
    return x


def filled(xp, x, value, wrap):
    xp.fill_diagonal(x, value, wrap)
    return x


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen(name):
    beside(
        CHOSEN[name],
        EVERY if name == "argwhere" else WIDE,
        RANKS.get(name, (1, 3)),
        least=name in ("compress", "piecewise"),
    )


def test_fill_diagonal_of_a_cube():
    x, host = cyrt.zeros((3, 3, 3)), np.zeros((3, 3, 3), np.float32)
    np.fill_diagonal(host, [1, 2])
    cyrt.fill_diagonal(x, [1, 2])
    np.testing.assert_array_equal(x.numpy(), host)


# -- along lines -----------------------------------------------------------------------------------

LINES = {
    "ediff1d": lambda xp, x, r: xp.ediff1d(x, to_begin=r.choice([None, x[:2]]), to_end=x[:0]),
    "trapezoid": lambda xp, x, r: xp.trapezoid(
        x, dx=r.choice([1.0, 0.5]), axis=r.axis(x, none=False)
    ),
    "trapezoid of places": lambda xp, x, r: xp.trapezoid(x[0], xp.cumsum(x[0] + 10)),
    "gradient": lambda xp, x, r: xp.gradient(x, r.choice([1.0, 0.5]), edge_order=r.choice([1, 2])),
    "gradient at places": lambda xp, x, r: xp.gradient(
        x,
        xp.asarray([0.0, 1.0, 1.5, 4.0, 4.5], dtype="float64"),
        axis=-1,
        edge_order=r.choice([1, 2]),
    ),
    "gradient along one": lambda xp, x, r: xp.gradient(x, axis=r.axis(x, several=True)),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name):
    beside(
        LINES[name],
        WIDE,
        (2, 3) if name == "trapezoid of places" else (1, 3),
        size=5,
        tolerance=1e-5,
        examples=40,
        least=name == "trapezoid of places",
    )


@pytest.mark.parametrize("options", [{}, {"left": -1, "right": 9.5}, {"period": 3.5}], ids=str)
@pytest.mark.parametrize("size", [1, 2, 30])
def test_interp(options, size, rng):
    xp = np.sort(rng.random(size)).astype(np.float32) * 8
    fp = rng.normal(size=size).astype(np.float32)
    x = np.concatenate([rng.random(60) * 12 - 2, xp, [np.nan]]).astype(np.float32)
    for y in x, x.reshape(-1, 1)[::2], x.astype(np.float64):
        found = cyrt.interp(cyrt.asarray(y), cyrt.asarray(xp), cyrt.asarray(fp), **options)
        assert found.dtype == y.dtype
        np.testing.assert_allclose(
            found.numpy(), np.interp(y, xp, fp, **options), rtol=1e-4, atol=2e-4
        )
    assert cyrt.interp(2.0, cyrt.asarray([1, 3]), cyrt.asarray([10, 20])).item() == 15


def test_interp_beside_infinities():
    xp, fp = np.array([0.0, 1, 2, 3]), np.array([1, np.inf, np.inf, -2])
    x = np.array([0, 0.5, 1, 1.5, 2, 2.5, 3])
    np.testing.assert_array_equal(
        cyrt.interp(*map(cyrt.asarray, (x, xp, fp))).numpy(), np.interp(x, xp, fp)
    )


CONVOLVED = {
    "convolve": lambda xp, x, y, r: xp.convolve(
        x, y[: r.randint(0, 8)], r.choice(["full", "same", "valid"])
    ),
    "correlate": lambda xp, x, y, r: xp.correlate(
        x[: r.randint(0, 8)], y, r.choice(["full", "same", "valid"])
    ),
}


@pytest.mark.parametrize("name", CONVOLVED)
def test_convolved(name):
    beside(CONVOLVED[name], NUMBERS, (1, 1), size=8, tolerance=1e-5, operands=2, examples=60)


# -- grids -----------------------------------------------------------------------------------------

GRIDS = {
    "vander": lambda xp, x, r: xp.vander(x, r.choice([None, 0, 3]), increasing=r.random() < 0.5),
    "tri": lambda xp, x, r: xp.tri(
        r.randint(0, 4), r.choice([None, 3]), r.randint(-6, 6), dtype=r.choice(["int32", "bool"])
    ),
    "identity": lambda xp, x, r: xp.identity(r.randint(0, 3), dtype="float32"),
    "indices": lambda xp, x, r: xp.indices(
        r.choice([(2, 3), (4,), (2, 0, 1)]), sparse=r.random() < 0.5
    ),
    "logspace": lambda xp, x, r: xp.logspace(
        -2,
        r.choice([3, 2.5]),
        r.choice([0, 1, 7]),
        r.random() < 0.5,
        r.choice([2.0, 10]),
        dtype=r.choice(["float32", "int32"]),
    ),
    "geomspace": lambda xp, x, r: xp.geomspace(
        *r.choice([(1, 1000), (-8, -0.5)]),
        r.choice([0, 1, 4, 9]),
        r.random() < 0.5,
        dtype="float32",
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_grids(name):
    beside(GRIDS[name], NUMBERS, (1, 1), tolerance=1e-5)


def test_the_ends_of_geomspace_are_exact():
    found = cyrt.geomspace(3, 700, 9, dtype="float64")
    assert (found[0].item(), found[-1].item()) == (3, 700)


# -- products --------------------------------------------------------------------------------------

SUBSCRIPTS = [
    "ij->ji",
    "ij",
    "ba",
    "ii",
    "ii->i",
    "iij->j",
    "...i->...",
    "i...->...i",
    "ij->",
    "...",
    "ij,ij->ij",
    "ij,ij",
    "ij,ji->i",
    "ij,jk",
    "ij,kj->ik",
    "ij,jk->",
    "i,j",
    "i,i",
    "ij,j->i",
    "bij,bjk->bik",
    "bij,bkj",
    "...ij,...jk->...ik",
    "...j,j->...",
    "ij,kl->ikjl",
    "abc,cd->bad",
    "ii,i->",
    "bij,b->bij",
    "i,ij,j->",
    "ij,jk,kl",
    "ij,ij,ij->i",
    "abc,abc->b",
    ",ij->ij",
]


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum(subscripts, dtype, rng):
    for sizes in ({}, {"j": 1}, {"j": 0}):
        operands = []
        for part in subscripts.split("->")[0].split(","):
            letters = part.replace("...", "xy" if not operands else "y")
            operands.append(
                rng.integers(
                    -4, 5, [sizes.get(each, 3 if each in "ijb" else 2) for each in letters]
                ).astype(dtype)
            )
        wanted = np.einsum(subscripts, *operands)
        for optimize in (False, True):
            found = cyrt.einsum(subscripts, *map(cyrt.asarray, operands), optimize=optimize)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize(
    "optimize", [True, "greedy", "optimal", ("greedy", 10**6), ["einsum_path", (1, 2), (0, 1)]]
)
def test_einsum_in_the_order_of_numpys_path(optimize, monkeypatch):
    shapes = []

    def recorded(a, b):
        shapes.append((a.shape, b.shape))
        return cyrt.matmul(a, b)

    monkeypatch.setattr(einstein_sum, "matmul", recorded)
    einstein_sum._plan.cache_clear()
    operands = [np.ones(shape) for shape in ((50, 4), (4, 30), (30, 2))]
    found = cyrt.einsum("ij,jk,kl", *map(cyrt.asarray, operands), optimize=optimize)
    np.testing.assert_array_equal(found.numpy(), np.full((50, 2), 120.0))
    assert shapes == [((4, 30), (30, 2)), ((50, 4), (4, 2))]
    einstein_sum._plan.cache_clear()


@pytest.mark.parametrize("optimize", ["best", 3, ["einsum_path", (5, 6)], ["einsum_path", (0, 1)]])
def test_einsum_refuses_another_order(optimize):
    x = cyrt.ones((2, 2))
    with pytest.raises(ValueError, match="einsum: optimize: "):
        cyrt.einsum("ij,jk,kl", x, x, x, optimize=optimize)


def test_einsum_of_dimensions_of_one():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0).reshape(1, 3)
    for subscripts in ("ij,ij->ij", "ij,ij->i", "ij,ij->", "ji,ki->jk"):
        np.testing.assert_array_equal(
            cyrt.einsum(subscripts, cyrt.asarray(x), cyrt.asarray(y)).numpy(),
            np.einsum(subscripts, x, y),
        )
    z = cyrt.zeros((3, 3))
    cyrt.einsum("ii->i", z)[:] = 1
    assert z.tolist() == cyrt.eye(3).tolist()


@pytest.mark.parametrize(
    ("subscripts", "wrong"),
    [
        ("ij", "for 1 operands, got 2"),
        ("ij,jk", "does not fit"),
        ("ij,i1", "subscripts are letters"),
        ("ij,jk->iz", "letters of the operands"),
        ("ij,jk->ii", "each once"),
        ("ii,ij", "the sizes 2 and 3"),
        ("ij,ij", "the sizes 3 and 2"),
        ("i...,ij->i", "lacks"),
    ],
)
def test_einsum_refused(subscripts, wrong):
    x, y = cyrt.zeros((2, 3)), cyrt.zeros((2, 2, 2) if wrong == "does not fit" else (2, 2))
    with pytest.raises(ValueError, match=wrong):
        cyrt.einsum(subscripts, x, y)
    with pytest.raises(TypeError, match="subscripts: expected a str"):
        cyrt.einsum([0, 1], x)


PRODUCTS = {
    "vdot": (2, lambda xp, x, y, r: xp.vdot(x, y.T)),
    "kron": (3, lambda xp, x, y, r: (xp.kron(x, y), xp.kron(x, y[..., :1, 0]))),
    "cross": (2, lambda xp, x, y, r: xp.cross(x, y[:1], axis=r.choice([-1, None]))),
    "cross along": (
        2,
        lambda xp, x, y, r: xp.cross(x, y, axisa=0, axisb=0, axisc=r.choice([0, -1])),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    most, program = PRODUCTS[name]
    beside(
        program,
        NUMBERS,
        (2, most),
        operands=2,
        tolerance=1e-5,
        size=3,
        least=3 if "cross" in name else 0,
    )
