"""The enumerators of cuda.pxd and the sizes of handles, as the C compiler has them, against
cuda-python's."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cuda.bindings import driver

from cyrt.driver.attributes import DEVICE_ATTRIBUTES

ROOT = Path(__file__).resolve().parents[2]
ENUMS = {
    name: members.split()
    for name, members in re.findall(
        r"^    ctypedef enum (\w+)[^\n]*:\n((?: {8}\w+\n)+)",
        (ROOT / "cyrt" / "driver" / "cuda.pxd").read_text(),
        re.MULTILINE,
    )
}
HANDLES = ("CUdevice", "CUdeviceptr", "CUstream", "CUuuid")


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """The value of each enumerator, and the size of each handle."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    tool = [sys.executable, ROOT / "tools" / "cuda_headers.py"]
    headers = subprocess.run(tool, check=True, capture_output=True, text=True).stdout.strip()
    expressions = {name: name for members in ENUMS.values() for name in members}
    expressions |= {name: f"sizeof({name})" for name in HANDLES}
    lines = [f'printf("{name} %lld\\n", (long long){text});' for name, text in expressions.items()]
    program = tmp_path_factory.mktemp("abi") / "values"
    subprocess.run(
        [compiler, "-x", "c", f"-I{headers}", "-o", program, "-"],
        check=True,
        text=True,
        input="\n".join(["#include <stdio.h>", "#include <cuda.h>", "int main() {", *lines, "}"]),
    )
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in map(str.split, printed.splitlines())}


@pytest.mark.parametrize("enum", ENUMS)
def test_enumerators_are_cuda_pythons(values, enum):
    for name in ENUMS[enum]:
        assert int(getattr(getattr(driver, enum), name)) == values[name], name


def test_device_attributes_are_cuda_pythons():
    theirs = driver.CUdevice_attribute.__members__
    shared = {n: v for n, v in DEVICE_ATTRIBUTES.items() if f"CU_DEVICE_ATTRIBUTE_{n}" in theirs}
    assert len(shared) > 100
    for name, value in shared.items():
        assert int(theirs[f"CU_DEVICE_ATTRIBUTE_{name}"]) == value, name


def test_handles_are_pointers_and_addresses_64_bits(values):
    assert values["CUdevice"] == ctypes.sizeof(ctypes.c_int)
    assert values["CUdeviceptr"] == 8
    assert values["CUstream"] == ctypes.sizeof(ctypes.c_void_p)
    assert values["CUuuid"] == len(driver.CUuuid().bytes or bytes(16))
