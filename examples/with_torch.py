"""PyTorch and cyrt on the same memory: no copies, and the order of work is kept by itself."""

from __future__ import annotations

import argparse

import cyrt

try:
    import torch
except ImportError:
    raise SystemExit("with_torch.py needs PyTorch: pip install torch") from None

SOURCE = r"""
extern "C" __global__ void scale_rows(float* x, const float* factor, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) x[i] *= factor[i / columns];
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256, help="rows and columns")
    options = parser.parse_args()
    if options.size < 1:
        parser.error(f"--size: expected 1 or more, got {options.size}")
    if cyrt.Device().emulated or not torch.cuda.is_available():
        raise SystemExit("with_torch.py needs a GPU: PyTorch cannot use the emulated device")
    n = options.size

    # A tensor is an argument of a kernel as it is. cyrt's work waits for the tensor's stream, and
    # PyTorch's later work waits for cyrt's.
    tensor = torch.ones(n, n, device="cuda")
    factor = torch.arange(n, dtype=torch.float32, device="cuda")
    scale_rows = cyrt.Kernel(SOURCE, "scale_rows")
    scale_rows.for_each(n * n, tensor, factor, n, n)
    assert torch.equal(tensor.sum(dim=1), n * factor)
    print("a kernel of cyrt's wrote a tensor, and PyTorch read it")

    # A tensor becomes an Array, which is a view of its memory.
    array = cyrt.asarray(tensor)
    array += 1
    assert torch.equal(tensor[0], torch.ones(n, device="cuda"))
    print("an Array is a view of the tensor")

    # And the other way round.
    made = cyrt.random.normal(shape=(n, n))
    view = torch.from_dlpack(made)
    assert view.data_ptr() == made.ptr
    torch.testing.assert_close(view.sum().item(), made.sum().item(), rtol=1e-3, atol=1e-2)
    print("a tensor is a view of an Array")

    # Each operation on another library's memory is launched at once. Inside batch() they are
    # launched together at its end.
    with cyrt.batch():
        for _ in range(10):
            scale_rows.for_each(n * n, tensor, factor, n, n)
    torch.cuda.synchronize()
    print("ten launches on a tensor in one batch")


if __name__ == "__main__":
    main()
