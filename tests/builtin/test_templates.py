"""Headers of kernels_cu that kernels build on."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt import jit
from cyrt.builtin import loading

REDUCE = """
#include "reduce.cuh"
extern "C" __global__ void sums(const TYPE* in, TYPE* out) {
    auto add = [](TYPE a, TYPE b) { return a + b; };
    auto larger = [](TYPE a, TYPE b) { return a > b ? a : b; };
    TYPE value = in[blockIdx.x * blockDim.x + threadIdx.x];
    TYPE sum = cyrt::block_reduce(value, add, TYPE(0));
    TYPE again = cyrt::block_reduce(TYPE(value * 2), add, TYPE(0));
    TYPE most = cyrt::block_reduce(value, larger, value);
    TYPE* row = out + 3 * (blockIdx.x * blockDim.x + threadIdx.x);
    row[0] = sum;
    row[1] = most;
    row[2] = again;
}
"""


@pytest.mark.parametrize("name", ["int", "double"])
@pytest.mark.parametrize("block", [32, 64, 1024])
def test_block_reductions_one_after_another(name, block, rng):
    device = cyrt.Device()
    image = jit.compiler.compile(
        REDUCE,
        define={"TYPE": name},
        options=[f"-I{loading.TEMPLATES / 'include'}"],
        arch=jit.compiler.architecture(device.compute_capability, device.emulated),
    )
    kernel = cyrt.Kernel(image.code, "sums", signature=f"void sums(const {name}*, {name}*)")
    x = rng.integers(-50, 50, (3, block)).astype({"int": np.int32, "double": np.float64}[name])
    source, out = cyrt.Buffer(x.nbytes), cyrt.Buffer(3 * x.nbytes)
    source.copy_from(x)
    kernel[3, block](source, out)
    found = np.zeros((3, block, 3), x.dtype)
    out.copy_to(found)
    wanted = np.stack([x.sum(1), x.max(1), 2 * x.sum(1)], 1)[:, None, :]
    np.testing.assert_array_equal(found, np.broadcast_to(wanted, found.shape))
