"""Fused chains on large arrays, beside what memory and the multiprocessors allow.

A chain adds an array again and again: its fused kernel reads two arrays and writes one, however
long it is. "by hand" is a kernel of the user's, which rounds the result of each operation as the
chain does. Each row is the time of a chain on the device, in µs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from common import Row, Session, main, settle_fusion, unfused

import cyrt
from cyrt import settings

LENGTHS = 1, 16, 64, 100
ELEMENTS, SMALL = 1 << 24, 1 << 14
HALVES = 32 << 20  # 64 MB of bfloat16
LANES = 128  # float32 results of a multiprocessor in a cycle, of compute capability 8.6 and later

BY_HAND = r"""
#include <cuda_bf16.h>
__device__ float rounded(float x) { return __bfloat162float(__float2bfloat16_rn(x)); }

// Each thread has eight elements, 16 bytes.
extern "C" __global__ void gelu(const uint4* x, uint4* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 in = x[i], out;
    const __nv_bfloat16* from = reinterpret_cast<const __nv_bfloat16*>(&in);
    __nv_bfloat16* to = reinterpret_cast<__nv_bfloat16*>(&out);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float v = __bfloat162float(from[k]);
        float cube = rounded(rounded(rounded(rounded(0.044715f) * v) * v) * v);
        float inner = rounded(rounded(0.7978845608f) * rounded(v + cube));
        float outer = rounded(1.0f + rounded(tanhf(inner)));
        to[k] = __float2bfloat16_rn(rounded(0.5f * v) * outer);
    }
    y[i] = out;
}
"""


def _gelu(x: cyrt.Array) -> cyrt.Array:
    return 0.5 * x * (1 + cyrt.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _chain(x: cyrt.Array, b: cyrt.Array, length: int) -> cyrt.Array:
    for _ in range(length):
        x = x + b
    return x


def _fuse(value: bool) -> None:
    os.environ["CYRT_FUSE"] = str(int(value))
    settings.get.cache_clear()


def _time(session: Session, work: Callable[[], object]) -> tuple[float | None, str]:
    """Return the µs of a call in a loop that has settled, and which batches are not fused."""

    def run() -> None:
        for _ in range(20):
            work()
            cyrt.commit()
        cyrt.synchronize()

    if session.small:
        return None, ""
    settle_fusion(run)

    def batch(_: int) -> None:
        work()
        cyrt.commit()

    encoder = cyrt.current_encoder()
    before = encoder.stats()
    took = session.device_time(session.libraries[0], batch, 20)
    return took, unfused(before, encoder.stats()) if settings.get("CYRT_FUSE") else ""


def _chains(session: Session) -> Iterator[Row]:
    size = SMALL if session.small else ELEMENTS
    rng = np.random.default_rng(0)
    x, b = (rng.integers(-8, 8, size).astype(np.float32) for _ in range(2))
    device_x, device_b = cyrt.asarray(x), cyrt.asarray(b)
    for length in LENGTHS:
        found = _chain(device_x, device_b, length).numpy()
        np.testing.assert_array_equal(found, x + length * b)
        took, plain = _time(session, partial(_chain, device_x, device_b, length))
        note = session.copy_note(took, 3 * x.nbytes)
        if took is not None:
            issued = length * size / (LANES * cyrt.Device().multiprocessors)
            note += f"; {issued / took / 1e3:.2f} GHz if each addition takes a lane a cycle {plain}"
        yield Row(f"{length} additions, {size:,} floats", "cyrt, fused", device=took, note=note)


def _gelus(session: Session) -> Iterator[Row]:
    size = SMALL if session.small else HALVES
    x = cyrt.asarray(np.random.default_rng(1).standard_normal(size).astype(np.float32))
    x = x.astype("bfloat16")
    kernel = cyrt.Kernel(BY_HAND, "gelu")
    out = cyrt.empty_like(x)
    threads = size // 8

    words, written = x.view("uint32"), out.view("uint32")

    def by_hand() -> None:
        kernel[-(-threads // 256), 256](words, written, threads)

    by_hand()
    np.testing.assert_array_equal(out.numpy(), _gelu(x).numpy())
    case = f"GELU, {x.nbytes:,} bytes of bfloat16"
    for fuse, what in ((True, "cyrt, fused"), (False, "cyrt")):
        _fuse(fuse)
        with cyrt.Stream():
            took, plain = _time(session, lambda: _gelu(x))
        yield Row(case, what, device=took, note=plain)
    yield Row(case, "by hand", device=_time(session, by_hand)[0])


def measure(session: Session) -> Iterator[Row]:
    """Yield the rows of chains, and of a GELU of 16-bit floats."""
    _fuse(True)
    with cyrt.Stream():
        yield from _chains(session)
    yield from _gelus(session)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", measure))
