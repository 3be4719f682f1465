"""The kernels of the measured programs."""

from __future__ import annotations

import cyrt

# `plus` is another operation than `add` in a topology. Small grids gain most from a trigger before
# their work (measured). Compute capability below 9.0 has no such instruction.
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
    """The kernels by name, each compiled at its first use."""

    def __getattr__(self, name: str) -> cyrt.Kernel:
        kernel = cyrt.Kernel(SOURCE, name, pdl=name.startswith("early"))
        setattr(self, name, kernel)
        return kernel
