"""Kernels of one's own: forces between bodies; shared memory, a template, a module's variable."""

from __future__ import annotations

import argparse
import time

import numpy as np

import cyrt

SOURCE = r"""
__constant__ float softening = 0.01f;

// The acceleration of each body: x, y, z are its place, w is its mass.
template <int TILE>
__global__ void accelerate(const float4* bodies, float4* out, int n) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += TILE) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = tile[k].w * r * r * r;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    if (i < n) out[i] = make_float4(ax, ay, az, 0);
}

extern "C" __global__ void move(float4* bodies, float4* speeds, const float4* forces,
                                float seconds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = speeds[i], a = forces[i];
    v.x += seconds * a.x;
    v.y += seconds * a.y;
    v.z += seconds * a.z;
    speeds[i] = v;
    bodies[i].x += seconds * v.x;
    bodies[i].y += seconds * v.y;
    bodies[i].z += seconds * v.z;
}
"""
TILE = 64


def accelerations(bodies: np.ndarray, softening: float) -> np.ndarray:
    """The same in NumPy, with all pairs at once."""
    distance = bodies[None, :, :3] - bodies[:, None, :3]
    square = (distance**2).sum(-1) + softening
    return (bodies[None, :, 3:] * distance / square[..., None] ** 1.5).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256, help="bodies")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    if options.size < 1:
        parser.error(f"--size: expected 1 or more, got {options.size}")
    n = options.size

    # A template's instances are named when the module is made; extern "C" kernels need no names.
    module = cyrt.Module(SOURCE, [f"accelerate<{TILE}>"])
    accelerate, move = module[f"accelerate<{TILE}>"], module["move"]
    print(f"compiled {accelerate.signature}")
    print(f"{accelerate.registers} registers a thread, {accelerate.shared_bytes} shared bytes")

    # A variable of the module is memory like any other.
    softening = module.get_global("softening")
    softening.copy_from(np.float32([0.05]))

    rng = np.random.default_rng(0)
    start = rng.random((n, 4), dtype=np.float32)
    bodies = cyrt.asarray(start)  # a float4* takes float32 whose last dimension is of 4
    speeds, forces = cyrt.zeros((n, 4)), cyrt.empty((n, 4))

    grid = -(-n // TILE)
    accelerate[grid, TILE](bodies, forces, n)
    np.testing.assert_allclose(
        forces.numpy()[:, :3], accelerations(start, 0.05), rtol=1e-3, atol=1e-3
    )
    print("the accelerations agree with NumPy")

    begin = time.perf_counter()
    for _ in range(options.steps):
        accelerate[grid, TILE](bodies, forces, n)  # move waits for it: it reads forces
        move.for_each(n, bodies, speeds, forces, 1e-3, n)
    centre = (bodies[:, :3] * bodies[:, 3:]).sum(axis=0) / bodies[:, 3].sum()
    cyrt.synchronize()
    seconds = time.perf_counter() - begin
    print(f"{options.steps} steps of {n} bodies in {1e3 * seconds:.1f} ms")

    # Nothing pulls from outside, so the centre of mass stays where it was.
    expected = np.average(start[:, :3], axis=0, weights=start[:, 3])
    np.testing.assert_allclose(centre.numpy(), expected, atol=1e-4)
    print(f"the centre of mass stays at {np.round(expected, 3)}")


if __name__ == "__main__":
    main()
