"""Random programs of launches, copies, fills and frees on several streams, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cyrt
from cyrt.runtime import transfer

SOURCE = r"""
typedef unsigned char byte;
__device__ void linger(unsigned rounds) {       // so that what is not ordered overlaps
    unsigned state = rounds;
    for (unsigned i = 0; i < rounds; ++i) state = state * state + i;
    if (state == 1u) __trap();
}
extern "C" __global__ void add(const byte* x, byte* y, int n, unsigned rounds) {
    linger(rounds);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += x[i];
}
extern "C" __global__ void mix(const byte* x, const byte* y, byte* z, int n, unsigned rounds) {
    linger(rounds);
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[i] = 3 * x[i] + y[i];
}
"""
STREAMS = 3
SIZES = (64, 600, 5000)
CHUNK = 256  # bytes of a copy between host and device that go at once

index = st.integers(0, 1 << 20)
step = st.tuples(
    st.sampled_from(
        [
            "make",
            "make",
            "free",
            "drop",
            "fill",
            "write",
            "read",
            "copy",
            "add",
            "add",
            "mix",
            "mix",
            "adrift",
            "wait",
            "trim",
        ]
    ),
    st.integers(0, STREAMS - 1),
    index,
    index,
    index,
)


class Program:
    """Buffers and their NumPy twins; every operation is done to both."""

    def __init__(self, devices):
        self.devices = devices
        self.modules, self.streams = [], []
        for device in range(devices):
            with cyrt.Device(device):
                self.modules.append(cyrt.Module(SOURCE))
                self.streams.append([cyrt.Stream(device) for _ in range(STREAMS)])
        self.pairs = []

    def make(self, a, b):
        size, device = SIZES[a % len(SIZES)], b % self.devices
        buffer, twin = cyrt.Buffer(size, device), np.full(size, a % 251, np.uint8)
        buffer.fill(a % 251)
        self.pairs.append((buffer, twin))

    def views(self, a, *others, device=None):
        """The same range of several Buffers, and of their twins; of one device where asked."""
        pairs = [p for p in self.pairs if device is None or p[0].device.index == device]
        if not pairs:
            return None
        chosen = [pairs[k % len(pairs)] for k in (a, *others)]
        n = min(len(twin) for _, twin in chosen)
        start = a % n if a % 3 else 0
        return [(buffer[start:n], twin[start:n]) for buffer, twin in chosen]

    def run(self, kind, stream, a, b, c):
        if kind == "make" or not self.pairs:
            self.make(a, b)
        elif kind in ("free", "drop"):
            buffer, _ = self.pairs.pop(a % len(self.pairs))
            if kind == "free":
                buffer.free()
        elif kind == "wait":
            cyrt.synchronize()
        elif kind == "trim":
            cyrt.trim_memory(a % self.devices)
        elif kind in ("copy", "read", "write", "fill"):
            self.transfer(kind, stream, a, b)
        else:
            self.launch(kind, stream, a, b, c)

    def transfer(self, kind, stream, a, b):
        (x, twin_x), (y, twin_y) = self.views(a, b)
        stream = self.streams[x.device.index][stream]
        if kind == "copy":
            x.copy_from(y, stream)
            twin_x[:] = twin_y.copy()
        elif kind == "fill":
            x.fill(b % 256, stream)
            twin_x[:] = b % 256
        elif kind == "write":
            twin_x[:] = np.arange(b, b + len(twin_x))
            x.copy_from(twin_x, stream)
        else:
            got = np.empty_like(twin_x)
            x.copy_to(got, stream)
            np.testing.assert_array_equal(got, twin_x)

    def launch(self, kind, stream, a, b, c):
        device = c % self.devices
        chosen = self.views(a, b, c, device=device)
        if chosen is None:
            return
        (x, twin_x), (y, twin_y), (z, twin_z) = chosen
        n, rounds = len(twin_x), (c % 4) * 1000
        with cyrt.Device(device), self.streams[device][stream]:
            if kind == "add":
                self.modules[device]["add"][1, 64](x, y, n, rounds)
                twin_y += twin_x
            elif kind == "mix":
                self.modules[device]["mix"][1, 64](x, y, z, n, rounds)
                twin_z[:] = 3 * twin_x + twin_y
            else:  # memory that is given back while the kernels that use it may still run
                aside = cyrt.Buffer(n)
                aside.fill(1)
                self.modules[device]["add"][1, 64](x, aside, n, rounds)
                self.modules[device]["add"][1, 64](aside, z, n, 0)
                twin_z += twin_x + np.uint8(1)

    def check(self):
        for buffer, twin in self.pairs:
            got = np.empty_like(twin)
            buffer.copy_to(got)
            np.testing.assert_array_equal(got, twin)


def runs(program):
    def run(steps):
        before = transfer._set_chunk_size(CHUNK)
        try:
            for one in steps:
                program.run(*one)
            program.check()
        finally:
            program.pairs.clear()
            transfer._set_chunk_size(before)

    return run


@pytest.fixture(scope="module")
def program():
    return Program(1)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, min_size=5, max_size=40))
def test_one_device(program, steps):
    runs(program)(steps)


@pytest.mark.usefixtures("only_emulated")
def test_two_devices(python):
    done = python(
        f"""
        import importlib.util
        from hypothesis import HealthCheck, given, settings, strategies as st
        spec = importlib.util.spec_from_file_location("programs", {__file__!r})
        programs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(programs)
        program = programs.Program(2)
        check = settings(max_examples=200, deadline=None, database=None,
                         suppress_health_check=list(HealthCheck))(
            given(st.lists(programs.step, min_size=5, max_size=40))(programs.runs(program)))
        check()
        """,
        CYRT_EMULATED_DEVICES="2",
    )
    assert done.returncode == 0, done.stderr
