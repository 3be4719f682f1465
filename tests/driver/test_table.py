"""The table of driver functions: one of them replaced for a while."""

from __future__ import annotations

from ctypes import c_int, c_size_t, c_void_p

import pytest

import cyrt
from cyrt.driver import table


def test_a_function_is_replaced_and_put_back(replaced):
    calls = []

    def create(original, event, flags):
        calls.append(flags)
        return original(event, flags)

    replaced("cuEventCreate", [c_void_p, c_int], create)
    mine = table.replace("cuEventCreate", 0)  # what is there is handed back
    assert table.replace("cuEventCreate", mine) == 0
    cyrt.Event().record().synchronize()
    assert calls


def test_versions_of_one_name_are_apart():
    cyrt.Device()
    plain, typed = (
        table.replace("cuGraphAddDependencies", 0, version) for version in (10000, 12030)
    )
    try:
        assert plain
        assert plain != typed
        assert table.replace("cuGraphAddDependencies", plain) == 0  # the oldest
    finally:
        table.replace("cuGraphAddDependencies", plain, 10000)
        table.replace("cuGraphAddDependencies", typed, 12030)


def test_a_function_that_the_driver_lacks():
    """Optional ones are NULL in the table."""
    module = cyrt.Module('extern "C" __global__ void k() {}')
    before = table.replace("cuFuncGetParamInfo", 0)
    try:
        module["k"][1, 1]()
        cyrt.synchronize()
    finally:
        table.replace("cuFuncGetParamInfo", before)


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("cuGraphLaunched", 0, "holds no cuGraphLaunched"),
        ("cuGraphLaunch", 1, "holds no cuGraphLaunch of version 1"),
    ],
)
def test_what_the_table_does_not_hold(name, version, words):
    with pytest.raises(KeyError, match=words):
        table.replace(name, 0, version)


def test_an_error_of_a_replaced_function(replaced):
    cyrt.synchronize()
    cyrt.trim_memory()
    replaced("cuMemAlloc", [c_void_p, c_size_t], lambda original, *arguments: 801)
    with pytest.raises(cyrt.CudaError, match="cuMemAlloc failed: CUDA_ERROR_NOT_SUPPORTED"):
        cyrt.Buffer(37 << 20)
