"""A program whose round is known: its batches end with an operation, not before the next one."""

from __future__ import annotations

import numpy as np

import cyrt

ROUND = 40
SOURCE = r"""
extern "C" {
__global__ void increase(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ++x[i];
}
__global__ void copy(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
}
"""


class Round:
    """A stream whose program repeats itself, so that batches end with a known operation."""

    def __init__(self):
        self.encoder = cyrt.CommandEncoder(max_ops=64)
        self.stream = self.encoder.stream
        with self.stream:
            self.kept = []
            self.kernels = cyrt.Module(SOURCE)  # its batches are nobody else's
            self.arrays = [cyrt.zeros(64 + i, dtype="int32") for i in range(ROUND)]
            self.counts, self.step = np.zeros(ROUND, int), 0
            ends, length = [], 2 * ROUND
            while len(ends) < 20 or not {end - length for end in ends[-4:]}.issubset(ends):
                self.run(1)
                if self.encoder.num_ops == 0:
                    ends.append(self.step)
                assert self.step < 300 * length, "no batch ends with the program's round"
        self.ends = {end % length for end in ends[-4:]}

    def run(self, steps):
        for _ in range(steps):
            step, self.step = self.step, self.step + 1
            i = step // 2 % ROUND
            if step % 2:
                self.kernels["increase"][2, 64](self.arrays[i], 64 + i)
                self.counts[i] += 1
            else:
                # Results outlive their batch for different times: nodes are patched.
                self.kept.append(cyrt.empty(64 + i, dtype="int32"))
                self.kernels["copy"][2, 64](self.arrays[i], self.kept[-1], 64 + i)
                del self.kept[: -11 - step * 7919 % 29]

    def run_to_end(self, but=0):
        """Run all operations of this batch, or all but the last ones."""
        self.run(min((end - but - self.step) % (2 * ROUND) for end in self.ends))

    def check(self, *, but=None):
        for i in range(ROUND):
            if i != but:
                assert (self.arrays[i].numpy() == self.counts[i]).all()
