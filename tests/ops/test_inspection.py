"""Limits of types, and what the namespace says of itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cyrt
from cyrt.dtypes import DTYPES
from cyrt.ops import inspection


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.kind in "fc"], ids=str)
def test_finfo(dtype):
    found = inspection.finfo(dtype)
    wanted = (ml_dtypes if dtype.name == "bfloat16" else np).finfo(dtype.numpy)
    assert found.dtype.name == dtype.real
    assert found.bits == 8 * found.dtype.itemsize
    for name in ("eps", "max", "min", "smallest_normal"):
        value = getattr(found, name)
        assert type(value) is float
        assert value == float(getattr(wanted, name))
    assert inspection.finfo(cyrt.zeros(1, dtype=dtype)) == found == inspection.finfo(dtype.name)


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.kind in "iu"], ids=str)
def test_iinfo(dtype):
    found = inspection.iinfo(dtype)
    wanted = np.iinfo(dtype.numpy)
    assert (found.bits, found.max, found.min, found.dtype) == (
        wanted.bits,
        wanted.max,
        wanted.min,
        dtype,
    )
    assert type(found.max) is int
    assert inspection.iinfo(cyrt.zeros(1, dtype=dtype)) == found


def test_limits_of_other_kinds_are_refused():
    with pytest.raises(TypeError, match=r"got int32; iinfo\(\) is for integers"):
        inspection.finfo(cyrt.int32)
    with pytest.raises(TypeError, match="got bool"):
        inspection.iinfo(cyrt.bool)


def test_namespace_info():
    info = inspection.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    # A list: SciPy's tests add one to it.
    assert info.devices() == [cyrt.Device(i) for i in range(cyrt.Device.count())]
    assert info.default_device() == cyrt.Device.current() == cyrt.zeros(1).device
    defaults = info.default_dtypes(device=info.devices()[0])
    assert defaults == {
        "real floating": cyrt.float32,
        "complex floating": cyrt.complex64,
        "integral": cyrt.int64,
        "indexing": cyrt.int64,
    }
    assert cyrt.zeros(1).dtype == defaults["real floating"]
    everything = info.dtypes()
    assert len(everything) == 13
    assert all(each.name == name for name, each in everything.items())
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert list(info.dtypes(kind=("bool", "complex floating"))) == [
        "bool",
        "complex64",
        "complex128",
    ]
    with pytest.raises(ValueError, match="'reals'"):
        info.dtypes(kind="reals")


def test_array_namespace():
    x = cyrt.zeros(1)
    assert x.__array_namespace__() is cyrt
    assert x.__array_namespace__(api_version="2021.12") is cyrt
    assert x.__array_namespace__(api_version=inspection.__array_api_version__) is cyrt
    for wrong in ("2021.11", "2099.12", 2025.12):
        with pytest.raises(ValueError, match="expected a version of 2021.12"):
            x.__array_namespace__(api_version=wrong)


def test_most_dimensions():
    assert cyrt.zeros((1,) * 64).ndim == 64
    with pytest.raises(ValueError, match="at most 64 dimensions"):
        cyrt.zeros((1,) * 65)
