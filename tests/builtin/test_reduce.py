"""Which kernels a reduction gets, and every row of the family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from explaining import explain
from reduce_reference import REFERENCES, SPECIAL, compare

import cyrt
from cyrt.builtin import catalogue
from cyrt.builtin.rows import reduce as rows
from cyrt.dtypes import DTYPES, dtype

LIMIT = 2**31
# These are to others what int8 is to int16.
SAME = ("int16", "int64", "uint8", "uint16", "uint32")


def launches(op, name, shape, axes, strides=None):
    """The kernel, grid and block of each launch."""
    explained = explain(op, name, shape, axis=axes, strides=strides)
    return [] if explained is None else list(explained.kernels)


def kernels(*arguments):
    return [name.rsplit("_", 1)[1] for name, _, _ in launches(*arguments)]


def test_small_reductions_are_one_launch():
    for shape, axes in (
        ((1_000,), (0,)),
        ((10_000,), (0,)),
        ((100, 100), (0,)),
        ((64, 64), (1,)),
        ((), ()),
        ((5, 1, 3), (1,)),
        ((32, 10), (0, 1)),
        ((0, 3), (0,)),
    ):
        assert len(launches("sum", "float32", shape, axes)) == 1, (shape, axes)
    assert launches("sum", "float32", (4, 0), (0,)) == []


@pytest.mark.parametrize(
    ("shape", "axes", "strides", "expected"),
    [
        ((8192, 8192), (1,), None, ["rows"]),
        ((8192, 8192), (0,), None, ["columns", "parts"]),
        ((8192, 8192), (0, 1), None, ["rows", "parts"]),
        ((8192, 8192), (0,), (1, 8192), ["rows"]),  # the order in memory decides
        ((8192, 8192), (1,), (1, 8192), ["columns", "parts"]),
        ((32, 64, 56, 56), (0, 2, 3), None, ["rows", "parts"]),
        ((32, 56, 56, 64), (0, 1, 2), None, ["columns", "parts"]),
        ((1_000_000, 3), (1,), None, ["rows"]),
        ((1_000_000, 3), (0,), None, ["columns", "parts"]),
        ((1_000, 1_000, 2), (0, 2), None, ["columns", "parts"]),  # pairs are too short for rows
        ((64, 1_000_000), (0,), None, ["columns"]),
        ((1_000_000, 64), (), None, ["columns"]),
    ],
)
def test_kernels_by_shape(shape, axes, strides, expected):
    assert kernels("sum", "float32", shape, axes, strides) == expected


def test_grids_fill_a_device():
    """Enough blocks where there is work, and no more than there is."""
    for shape, axes in (
        ((8192, 8192), (0,)),
        ((8192, 8192), (0, 1)),
        ((4, 10_000_000), (1,)),
        ((10_000_000, 4), (0,)),
        ((16, 3, 1_000_000), (0, 2)),
    ):
        _, grid, block = launches("sum", "bfloat16", shape, axes)[0]
        assert 1 << 17 <= grid * math.prod(block) <= 1 << 21, (shape, axes)
    for name in "float32", "bfloat16":  # columns: once, more parts only cost
        _, grid, block = launches("sum", name, (8192, 8192), (0,))[0]
        assert grid * math.prod(block) == 132 * 1024 // (32 * 256) * (32 * 256)
    for op in "argmax", "var", "logsumexp":  # so do whole arrays with long states
        _, grid, block = launches(op, "float32", (8192, 8192), (0, 1))[0]
        assert (grid, block[0]) == (256, 512)
    _, grid, block = launches("sum", "float32", (1_000,), (0,))[0]
    assert grid == 1
    assert block[0] <= 256


def test_more_results_than_a_grid_covers():
    many = launches("sum", "int8", (3, LIMIT * 1024, 2), (2,))
    assert len(many) > 1
    assert all(grid < LIMIT for _, grid, _ in many)
    tall = launches("sum", "int8", (LIMIT * 4, 2), (0,))
    assert [name for name, _, _ in tall] == ["cyrt_sum_int8_columns", "cyrt_sum_int8_parts"]


def test_too_many_reduced_dimensions_are_copied_first():
    shape = (2,) * 20
    *copies, (last, _, _) = launches("max", "float32", shape, tuple(range(0, 20, 2)))
    assert last == "cyrt_max_float32_rows"
    assert {name for name, _, _ in copies} == {"cyrt_copy_uint32_strided"}
    merged = launches("max", "float32", shape, tuple(range(10)))
    assert all(name.startswith("cyrt_max") for name, _, _ in merged)


@pytest.mark.usefixtures("compiled_at_once")
@pytest.mark.parametrize("name", [each.name for each in DTYPES if each.name not in SAME])
def test_every_row(name, rng):
    """By rows, by columns and in parts, of few numbers and with NaN, infinities and -0.0."""
    for row in catalogue.modules()[f"reduce_{name}"]:
        for shape, axis in ((37, 70), 1), ((37, 70), 0), ((6_007, 8), 0):
            x = rng.integers(0, 3, shape)
            if row.op == "prod":
                x = np.where(rng.random(shape) < 0.001, 2, 1)
            x = x.astype(dtype(name).numpy)
            compare(row.op, x, axis, False, cyrt.asarray(x), row.output)
            if dtype(name).kind in "fc":
                for each in SPECIAL:
                    x[tuple(map(rng.integers, shape))] = each
                compare(row.op, x, axis, False, cyrt.asarray(x), row.output)
                x[:] = -0.0
                compare(row.op, x, axis, False, cyrt.asarray(x), row.output)


def test_every_reduction_has_a_reference():
    assert {row.op for row in catalogue.ROWS if row.template == "reduce"} <= REFERENCES.keys()
    for op, each in rows.OPS.items():
        assert set(each.kinds) == set(REFERENCES[op][0])
