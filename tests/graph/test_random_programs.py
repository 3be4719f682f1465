"""Random operations on random overlapping memory, against NumPy; also under other settings."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cyrt

SOURCE = r"""
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
    int i = threadIdx.x;
    float sum = 0;
    if (i < n) sum = x[i] + y[i];
    __syncthreads();
    if (i < n) z[i] = sum;
}
extern "C" __global__ void halve(float* x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] = 0.5f * x[i] + 1.0f;
}
"""
EARLY = r"""
extern "C" __global__ void early(const float* x, float* y, int n) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = threadIdx.x;
    float v = 0;
    if (i < n) v = x[i];
    __syncthreads();
    if (i < n) y[i] = v - 1.0f;
}
"""
BUFFERS, SIZE, CHUNK = 4, 128, 32

place = st.tuples(st.integers(0, BUFFERS - 1), st.integers(0, SIZE // CHUNK - 1))
operation = st.one_of(
    st.tuples(st.just("add"), place, place, place, st.integers(1, CHUNK)),
    st.tuples(st.just("halve"), place, st.integers(1, SIZE)),
    st.tuples(st.just("early"), place, place, st.integers(1, CHUNK)),
    st.tuples(st.just("copy"), place, place),
    st.tuples(st.just("fill"), place, st.integers(-4, 4)),
    st.tuples(st.just("replace"), st.integers(0, BUFFERS - 1)),
    st.tuples(st.just("write"), place, st.integers(-4, 4)),
    st.tuples(st.just("commit")),
    st.tuples(st.just("stream"), st.integers(0, 1)),
)


@pytest.fixture(scope="module")
def kernels():
    module = cyrt.Module(SOURCE)
    return {"add": module["add"], "halve": module["halve"],
            "early": cyrt.Kernel(EARLY, "early", pdl=True)}


class Machine:
    """The same memory twice: Buffers, and NumPy arrays."""

    def __init__(self, kernels):
        self.kernels = kernels
        self.streams = [cyrt.Stream(), cyrt.Stream()]
        self.stream = self.streams[0]
        self.arrays = [np.arange(SIZE, dtype=np.float32) + i for i in range(BUFFERS)]
        self.buffers = [self.fresh(array) for array in self.arrays]

    @staticmethod
    def fresh(array):
        buffer = cyrt.Buffer(array.nbytes)
        buffer.copy_from(array)
        return buffer

    def both(self, where):
        index, chunk = where
        return (self.buffers[index][4 * CHUNK * chunk:], self.arrays[index][CHUNK * chunk:])

    def run(self, kind, *args):
        with self.stream:
            getattr(self, kind)(*args)

    def add(self, a, b, c, n):
        (dx, x), (dy, y), (dz, z) = self.both(a), self.both(b), self.both(c)
        self.kernels["add"][1, CHUNK](dx, dy, dz, n)
        z[:n] = x[:n] + y[:n]

    def halve(self, a, n):
        dx, x = self.both(a)
        n = min(n, len(x))
        self.kernels["halve"][1, SIZE](dx, n)
        x[:n] = np.float32(0.5) * x[:n] + np.float32(1)

    def early(self, a, b, n):
        (dx, x), (dy, y) = self.both(a), self.both(b)
        self.kernels["early"][1, CHUNK](dx, dy, n)
        y[:n] = x[:n] - np.float32(1)

    def copy(self, a, b):
        if a == b:
            return
        (dx, x), (dy, y) = self.both(a), self.both(b)
        dy[: 4 * CHUNK].copy_from(dx[: 4 * CHUNK])
        y[:CHUNK] = x[:CHUNK]

    def fill(self, a, value):
        dx, x = self.both(a)
        dx[: 4 * CHUNK].fill(np.float32(value))
        x[:CHUNK] = value

    def write(self, a, value):
        dx, x = self.both(a)
        source = np.full(CHUNK, value, np.float32)
        dx[: 4 * CHUNK].copy_from(source)
        source[:] = -99                 # staged at the call
        x[:CHUNK] = value

    def replace(self, index):
        array = np.full(SIZE, index, np.float32)
        self.buffers[index] = None      # freed with its operations recorded
        self.buffers[index] = self.fresh(array)
        self.arrays[index][:] = array

    def commit(self):
        cyrt.commit()

    def check(self):
        out = np.empty(SIZE, np.float32)
        for buffer, array in zip(self.buffers, self.arrays, strict=True):
            buffer.copy_to(out)
            np.testing.assert_array_equal(out, array)


@settings(max_examples=int(os.environ.get("CYRT_TEST_EXAMPLES", "60")), deadline=None,
          derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(operation, max_size=60))
def test_random_program(kernels, program):
    machine = Machine(kernels)
    for kind, *args in program:
        if kind == "stream":
            machine.stream = machine.streams[args[0]]
        else:
            machine.run(kind, *args)
    machine.check()


@pytest.mark.parametrize("setting", [
    {"CYRT_GRAPHS": "0"}, {"CYRT_MAX_OPS_PER_GRAPH": "1"}, {"CYRT_MAX_OPS_PER_GRAPH": "5"},
    {"CYRT_GRAPH_CACHE_SIZE": "1"}, {"CYRT_PDL": "0"}, {"CYRT_POOL": "0"}, {"CYRT_CHECK": "1"},
    {"CYRT_LAUNCH_BLOCKING": "1"}, {"CYRT_GRAPH_UPDATE": "exec"},
], ids=lambda s: "=".join(*s.items()))
def test_the_same_under(setting):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         f"{__file__}::test_random_program"],
        env={**os.environ, **setting, "CYRT_TEST_EXAMPLES": "25"}, capture_output=True, text=True,
        timeout=100, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
