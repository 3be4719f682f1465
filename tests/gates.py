"""Kernels that wait for the host, so that a test decides what runs before what."""

from __future__ import annotations

import threading

import numpy as np

import cyrt

# A driver may need the device for what it prepares while a kernel waits: so none waits for ever.
MOST_SECONDS = 30
SOURCE = f"""
__device__ unsigned long long nanoseconds() {{
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}}
__device__ void await(volatile int* go) {{
    unsigned long long end = nanoseconds() + {MOST_SECONDS}000000000ull;
    while (!*go && nanoseconds() < end) {{}}
    if (!*go) go[1] = 1;
}}
extern "C" {{
__global__ void wait(volatile int* go) {{ await(go); }}
__global__ void copy_late(volatile int* go, const int* x, int* y, int n) {{
    await(go);
    for (int i = 0; i < n; ++i) y[i] = x[i];
}}
__global__ void write_late(volatile int* go, int* x, int value, int n) {{
    await(go);
    for (int i = 0; i < n; ++i) x[i] = value;
}}
}}
"""


class Gate:
    """A flag in page-locked memory that kernels wait for."""

    def __init__(self):
        self.memory = cyrt.PinnedBuffer(8)
        self.flag = np.frombuffer(self.memory, np.int32)
        self.flag[:] = 0
        self.kernels = cyrt.Module(SOURCE)
        cyrt.synchronize()

    def open(self):
        self.flag[0] = 1

    @property
    def expired(self):
        """Whether a kernel has gone on though the gate was closed: the host was held up."""
        return self.flag[1] != 0

    def open_in(self, seconds):
        timer = threading.Timer(seconds, self.open)
        timer.start()
        return timer

    def wait(self):
        self.kernels["wait"][1, 1](self.memory)

    def copy(self, x, y, n):
        self.kernels["copy_late"][1, 1](self.memory, x, y, n)

    def write(self, x, value, n):
        self.kernels["write_late"][1, 1](self.memory, x, value, n)
