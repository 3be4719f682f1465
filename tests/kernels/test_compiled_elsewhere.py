"""Kernels that Numba and CuPy compiled: PTX and cubins, with a signature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler
from cyrt.runtime import image

# What numba.cuda.compile(axpy, "void(float32, CPointer(float32), CPointer(float32), int32)",
# device=False, abi="numba", output="ptx", cc=(8, 0)) returns, with an older .version.
NUMBA = Path(__file__).parent / "numba_axpy.ptx"
SIGNATURE = "void axpy(float a, const float* x, float* y, int n)"
# What CuPy gives to NVRTC.
SOURCE = """extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""


def check(kernel):
    x, y = cyrt.arange(1000, dtype=cyrt.float32), cyrt.ones(1000)
    kernel[4, 256](2, x, y, 1000)
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(1000, dtype=np.float32) + 1)
    with pytest.raises(
        TypeError, match=r"argument 2 \(const float\* x\): expected an array of flo"
    ):
        kernel[4, 256](2, cyrt.zeros(1000, dtype=cyrt.int32), y, 1000)


def test_ptx_of_numba_runs_with_a_signature():
    [name] = cyrt.Module(NUMBA).names
    assert name.startswith("__main__::axpy")
    check(cyrt.Kernel(NUMBA, name, signature=SIGNATURE))
    check(cyrt.Module(NUMBA, signatures={name: SIGNATURE})[name])


def test_what_numba_looks_up_on_the_host_is_no_variable_of_the_kernels():
    """Else all launches of the module would be ordered by it."""
    assert b".common .global" in NUMBA.read_bytes()
    assert image.variables(NUMBA.read_bytes()) == {}


@pytest.mark.parametrize("binary", [False, True])
def test_code_of_cupy_s_raw_kernels_runs_with_a_signature(emulated, binary):
    if binary and emulated:
        pytest.skip("the emulated device runs PTX, no cubin")
    capability = "{}{}".format(*cyrt.Device.current().compute_capability)
    arch = f"sm_{capability}" if binary else "compute_75"
    code = compiler.compile(SOURCE, arch=arch).code
    assert image.kind(code) == ("cubin" if binary else "ptx")
    check(cyrt.Kernel(code, "axpy", signature=SIGNATURE))
