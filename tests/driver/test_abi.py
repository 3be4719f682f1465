"""Our enum values and struct sizes against cuda-python's."""

from __future__ import annotations

import ctypes

import pytest
from cuda.bindings import driver

from cyrt.driver import abi
from cyrt.driver.attributes import DEVICE_ATTRIBUTES

CONSTANTS = {enum: members for enum, members in abi.CONSTANTS.items() if enum != "sizeof"}
SIZES = abi.CONSTANTS["sizeof"]


@pytest.mark.parametrize(
    ("enum", "name", "value"),
    [(enum, name, value) for enum, members in CONSTANTS.items() for name, value in members.items()],
)
def test_enum_values_are_cuda_pythons(enum, name, value):
    assert int(getattr(getattr(driver, enum), name)) == value


def test_device_attributes_are_cuda_pythons():
    theirs = driver.CUdevice_attribute.__members__
    shared = {n: v for n, v in DEVICE_ATTRIBUTES.items() if f"CU_DEVICE_ATTRIBUTE_{n}" in theirs}
    assert len(shared) > 100
    for name, value in shared.items():
        assert int(theirs[f"CU_DEVICE_ATTRIBUTE_{name}"]) == value, name


def test_handles_are_pointers_and_addresses_64_bits():
    assert SIZES["CUdevice"] == ctypes.sizeof(ctypes.c_int)
    assert SIZES["CUdeviceptr"] == 8
    assert SIZES["CUstream"] == ctypes.sizeof(ctypes.c_void_p)
    assert SIZES["CUuuid"] == len(driver.CUuuid().bytes or bytes(16))
