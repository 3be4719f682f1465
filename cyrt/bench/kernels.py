"""The kernels of the measured programs."""

from __future__ import annotations

from functools import cached_property

import cyrt

# Small grids gain most from a trigger before their work (measured). Compute capability below 9.0
# has no such instruction.
SOURCE = """
#if __CUDA_ARCH__ >= 900
#define EARLY asm volatile("griddepcontrol.wait;" ::: "memory"); \\
              asm volatile("griddepcontrol.launch_dependents;");
#else
#define EARLY
#endif
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x;
#define MEAN(p, q, r, s) (0.25f * ((p) + (q) + (r) + (s)))

extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    INDEX if (i < n) y[i] = x[i] + b[i];
}
extern "C" __global__ void plus(const float* x, const float* b, float* y, int n) {
    INDEX if (i < n) y[i] = b[i] + x[i];
}
extern "C" __global__ void join(const float* p, const float* q, const float* r, const float* s,
                                float* y, int n) {
    INDEX if (i < n) y[i] = MEAN(p[i], q[i], r[i], s[i]);
}
extern "C" __global__ void early_add(const float* x, const float* b, float* y, int n) {
    EARLY INDEX if (i < n) y[i] = x[i] + b[i];
}
extern "C" __global__ void early_join(const float* p, const float* q, const float* r,
                                      const float* s, float* y, int n) {
    EARLY INDEX if (i < n) y[i] = MEAN(p[i], q[i], r[i], s[i]);
}
"""


class Kernels:
    """The kernels, each compiled at its first use."""

    @cached_property
    def module(self) -> cyrt.Module:
        return cyrt.Module(SOURCE)

    @cached_property
    def add(self) -> cyrt.Kernel:
        """``y = x + b``."""
        return self.module["add"]

    @cached_property
    def plus(self) -> cyrt.Kernel:
        """``y = b + x``: another operation in a topology."""
        return self.module["plus"]

    @cached_property
    def join(self) -> cyrt.Kernel:
        """The mean of four buffers."""
        return self.module["join"]

    @cached_property
    def early_add(self) -> cyrt.Kernel:
        return cyrt.Kernel(SOURCE, "early_add", pdl=True)

    @cached_property
    def early_join(self) -> cyrt.Kernel:
        return cyrt.Kernel(SOURCE, "early_join", pdl=True)
