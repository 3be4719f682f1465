"""Which type the operands of an operation promote to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cyrt
from cyrt.dtypes import DTYPES
from cyrt.ops.promotion import can_cast, isdtype, result_type

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
MIXED = {  # the standard's table of signed with unsigned integers
    ("int8", "uint8"): "int16",
    ("int8", "uint16"): "int32",
    ("int8", "uint32"): "int64",
    ("int16", "uint8"): "int16",
    ("int16", "uint16"): "int32",
    ("int16", "uint32"): "int64",
    ("int32", "uint8"): "int32",
    ("int32", "uint16"): "int32",
    ("int32", "uint32"): "int64",
    ("int64", "uint8"): "int64",
    ("int64", "uint16"): "int64",
    ("int64", "uint32"): "int64",
}
COMPLEX = {
    ("float32", "complex64"): "complex64",
    ("float32", "complex128"): "complex128",
    ("float64", "complex64"): "complex128",
    ("float64", "complex128"): "complex128",
    ("float16", "complex64"): "complex64",
    ("bfloat16", "complex64"): "complex64",
    ("float16", "complex128"): "complex128",
    ("bfloat16", "complex128"): "complex128",
    ("complex64", "complex128"): "complex128",
}
HALVES = {
    ("float16", "bfloat16"): "float32",
    ("bfloat16", "float32"): "float32",
    ("bfloat16", "float64"): "float64",
}


def table():
    found = {**MIXED, **COMPLEX, **HALVES}
    for names in (SIGNED, UNSIGNED, FLOATS):
        found |= {(a, b): b for a, b in itertools.combinations(names, 2)}
    found |= {(each.name, each.name): each.name for each in DTYPES}
    # Beyond the standard: an integer with a float is that float, bool gives way.
    for whole in SIGNED + UNSIGNED:
        found |= {(whole, name): name for name in (*FLOATS, "bfloat16", "complex64", "complex128")}
    found |= {("bool", each.name): each.name for each in DTYPES}
    return found


TABLE = table()


@pytest.mark.parametrize("a", [each.name for each in DTYPES])
def test_the_table(a):
    for b in (each.name for each in DTYPES):
        wanted = TABLE.get((a, b)) or TABLE.get((b, a))
        x, y = (cyrt.zeros(1, dtype=name) for name in (a, b))
        if wanted is None:
            assert "uint64" in (a, b)
            with pytest.raises(TypeError, match=f"{a} and {b} have no common type"):
                result_type(a, b)
            with pytest.raises(TypeError, match=f"{a} and {b} have no common type"):
                x + y
        else:
            assert result_type(a, b) == wanted, (a, b)
            assert (x + y).dtype == wanted, (a, b)
            assert result_type(x, b, x) == wanted


@pytest.mark.parametrize(
    ("dtype", "number", "wanted"),
    [
        ("int8", 1, "int8"),
        ("uint8", True, "uint8"),
        ("int8", 1.5, "float32"),
        ("int64", 1.5, "float32"),
        ("float16", 1, "float16"),
        ("bfloat16", 1.5, "bfloat16"),
        ("float16", 1j, "complex64"),
        ("float32", 1j, "complex64"),
        ("float64", 1j, "complex128"),
        ("complex64", 1.5, "complex64"),
        ("bool", True, "bool"),
        ("bool", 1, "int64"),
        ("bool", 1.5, "float32"),
        ("bool", 1j, "complex64"),
        ("float32", np.float64(1.5), "float32"),
        ("int8", np.int64(1), "int8"),
    ],
)
def test_numbers_are_weak(dtype, number, wanted):
    x = cyrt.zeros(2, dtype=dtype)
    for found in (
        result_type(x, number),
        result_type(number, x),
        (x + number).dtype,
        (number + x).dtype,
    ):
        assert found == wanted


def test_numbers_beyond_a_type():
    x = cyrt.zeros(1, dtype=cyrt.float16)
    assert (x + 1e6).tolist() == [np.inf]
    assert (x - 10**400).tolist() == [-np.inf]
    assert (cyrt.zeros(1, dtype=cyrt.bfloat16) + 3e38).item() == pytest.approx(3e38, rel=4e-3)
    with pytest.raises(OverflowError, match="-1 is out of range of uint8"):
        cyrt.zeros(1, dtype=cyrt.uint8) + -1


def test_result_type_wants_an_array_or_a_type():
    with pytest.raises(ValueError, match="at least one array or element type"):
        result_type(1, 2.0)
    with pytest.raises(TypeError, match="not an element type"):
        result_type("float7")


def test_kinds():
    for each in DTYPES:
        for kind, letters in (
            ("bool", "b"),
            ("signed integer", "i"),
            ("unsigned integer", "u"),
            ("integral", "iu"),
            ("real floating", "f"),
            ("complex floating", "c"),
            ("numeric", "iufc"),
        ):
            assert isdtype(each, kind) == (each.kind in letters)
    assert isdtype(cyrt.int8, ("bool", cyrt.int8))
    assert not isdtype(cyrt.int8, cyrt.int16)
    with pytest.raises(ValueError, match="'float'"):
        isdtype(cyrt.int8, "float")


def test_casts_that_keep_values():
    assert can_cast(cyrt.int8, cyrt.float16)
    assert can_cast(cyrt.zeros(1, dtype=cyrt.uint8), cyrt.int16)
    assert not can_cast(cyrt.int64, cyrt.int32)
    assert not can_cast(cyrt.float32, cyrt.bfloat16)


def test_a_type_is_compared_with_anything():
    for other in ("no type: at all", ("f4", 3, 2, 1), None, 3, object(), [], "float64", np.float64):
        assert cyrt.float32 != other
    for other in ("float32", np.float32, np.dtype("float32"), cyrt.float32):
        assert cyrt.float32 == other
