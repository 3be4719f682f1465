"""CuPy and cyrt on the same memory: no copies, and the order of work is kept by itself."""

from __future__ import annotations

import argparse

import cyrt

try:
    import cupy
except ImportError:
    raise SystemExit(
        "with_cupy.py needs CuPy: pip install cupy-cuda13x (or cupy-cuda12x)"
    ) from None

SOURCE = r"""
extern "C" __global__ void add_index(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += i;
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="elements")
    options = parser.parse_args()
    if options.size < 1:
        parser.error(f"--size: expected 1 or more, got {options.size}")
    if cyrt.Device().emulated:
        raise SystemExit("with_cupy.py needs a GPU: CuPy cannot use the emulated device")
    n = options.size

    # A CuPy array is an argument of a kernel as it is.
    theirs = cupy.zeros(n, dtype=cupy.float32)
    add_index = cyrt.Kernel(SOURCE, "add_index")
    add_index.for_each(n, theirs, n)
    cupy.testing.assert_array_equal(theirs, cupy.arange(n, dtype=cupy.float32))
    print("a kernel of cyrt's wrote a CuPy array")

    # Each is a view of the other's memory.
    ours = cyrt.asarray(theirs)
    ours *= 2
    cupy.testing.assert_array_equal(theirs, 2 * cupy.arange(n, dtype=cupy.float32))
    back = cupy.asarray(ours)
    assert back.data.ptr == theirs.data.ptr
    print("an Array and a CuPy array share their memory")


if __name__ == "__main__":
    main()
