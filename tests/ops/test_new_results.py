"""New results are C-contiguous, so what is written through their reshapes is not lost."""

import numpy as np
import pytest

import cyrt

HOST = np.arange(24, dtype="float32").reshape(2, 3, 4)

FUNCTIONS = {
    "sort": cyrt.sort,
    "argsort": cyrt.argsort,
    "partition": lambda x, axis: cyrt.partition(x, 1, axis=axis),
    "argpartition": lambda x, axis: cyrt.argpartition(x, 1, axis=axis),
    "cumsum": cyrt.cumsum,
    "cumulative_prod": lambda x, axis: cyrt.cumulative_prod(x, axis=axis, include_initial=True),
    "accumulate": cyrt.add.accumulate,
    "reduceat": lambda x, axis: cyrt.add.reduceat(x, [0, 1], axis=axis),
    "softmax": cyrt.nn.softmax,
    "log_softmax": cyrt.nn.log_softmax,
    "softmax_vjp": lambda x, axis: cyrt.nn.softmax_vjp(x, x, axis=axis),
    "cross_entropy_vjp": lambda x, axis: cyrt.nn.cross_entropy_vjp(
        x.sum(axis), x, x.argmin(axis), axis
    ),
    "top_k": lambda x, axis: cyrt.top_k(x, 2, axis=axis)[0],
    "indices of top_k": lambda x, axis: cyrt.top_k(x, 2, axis=axis)[1],
    "unwrap": lambda x, axis: cyrt.unwrap(x, axis=axis),
    "unique": lambda x, axis: cyrt.unique(x, axis=axis),
    "nanquantile": lambda x, axis: cyrt.nanquantile(x, [0.5, 0.7], axis=axis),
    "packbits": lambda x, axis: cyrt.packbits(x > 3, axis=axis),
    "unpackbits": lambda x, axis: cyrt.unpackbits(x.astype("uint8"), axis=axis, count=2),
    "apply_along_axis": lambda x, axis: cyrt.apply_along_axis(cyrt.negative, axis, x),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_an_axis(axis, function):
    found = function(cyrt.asarray(HOST), axis=axis)
    assert found.flags.c_contiguous
    found.reshape(-1)[:] = 7
    assert (found == 7).all()


def test_the_rows_of_a_large_top_k():
    for found in cyrt.top_k(cyrt.zeros((3, 201)), 200):
        assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "subscripts",
    [
        "ij,kj->ki",
        "ij,kj->ik",
        "bij,bjk->kbi",
        "i,j->ji",
        "ij,jk,kl->li",
        "ijb,jkb->kbi",
        "bi,bi->ib",
    ],
)
def test_einsum_in_another_order(subscripts, rng):
    sizes = dict(zip("bijkl", (2, 3, 4, 5, 6), strict=True))
    shapes = [[sizes[each] for each in term] for term in subscripts.split("->")[0].split(",")]
    host = [rng.normal(size=shape) for shape in shapes]
    found = cyrt.einsum(subscripts, *map(cyrt.asarray, host))
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found.numpy(), np.einsum(subscripts, *host))


def test_einsum_of_one_operand():
    x = cyrt.asarray(HOST)
    found = cyrt.einsum("ijk->ki", x)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found.numpy(), HOST.sum(1).T)
    assert cyrt.einsum("ijk->kji", x).ptr == x.ptr  # a view, as NumPy's
