"""What the tests of the encoder share: kernels, and another library that uses the driver itself."""

from __future__ import annotations

import ctypes
import time
from ctypes import c_int, c_size_t, c_ubyte, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler

N = 256
SOURCE = r"""
extern "C" {
__global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
__global__ void axpb(float* x, float a, float b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = a * x[i] + b;
}
__global__ void deep(float** x, int n) { if (threadIdx.x < n) x[0][threadIdx.x] += 1.0f; }
}
"""
only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="looks at plans; CYRT_GRAPHS=0 has none",
)
# One operation a batch: no edges, nothing that stays recorded.
only_batches = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')"
    " or __import__('cyrt').settings.get('CYRT_MAX_OPS_PER_GRAPH') == 1"
    " or __import__('cyrt').settings.get('CYRT_LAUNCH_BLOCKING')",
    reason="looks at batches of several operations",
)


def device(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(array)
    return buffer


def zeros(count=N):
    return device(np.zeros(count, np.float32))


def host(buffer):
    out = np.empty(buffer.nbytes // 4, np.float32)
    buffer.copy_to(out)
    return out


def edges(encoder):
    return [(source, target) for source, target, _ in encoder.last_plan().edges]


def until(reached, seconds=20):
    """Wait for what another thread does; whether it came."""
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.0005)
    return reached()


class MemsetParams(ctypes.Structure):
    _fields_ = [
        ("dst", c_uint64),
        ("pitch", c_size_t),
        ("value", ctypes.c_uint),
        ("element", ctypes.c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class Library:
    """Another library of the process: works in the primary context, knows nothing of cyrt."""

    def __init__(self):
        emulated = cyrt.Device(0).emulated
        cyrt.Stream()  # the primary context is there
        self.driver = ctypes.CDLL(
            str(Path(cyrt.__file__).parent / "emulator/libcyrt_emu.so")
            if emulated
            else "libcuda.so.1"
        )
        context = c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.context = context
        image = compiler.compile(SOURCE, arch="compute_90")
        with self:
            module, self.axpb = c_void_p(), c_void_p()
            self("cuModuleLoadData", ctypes.byref(module), image.code)
            self("cuModuleGetFunction", ctypes.byref(self.axpb), module, b"axpb")

    def __call__(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        assert code == 0, (name, code)

    def __enter__(self):
        self("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *exc):
        self("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    def launch(self, stream, address, a, b, n=N):
        values = c_uint64(address), ctypes.c_float(a), ctypes.c_float(b), c_int(n)
        pointers = (c_void_p * 4)(*[ctypes.addressof(value) for value in values])
        with self:
            self("cuLaunchKernel", self.axpb, 1, 1, 1, n, 1, 1, 0, c_void_p(stream), pointers, None)

    def memset(self, stream, address, value, nbytes=4 * N):
        with self:
            self(
                "cuMemsetD8Async",
                c_uint64(address),
                c_ubyte(value),
                c_size_t(nbytes),
                c_void_p(stream),
            )

    def graph(self):
        graph = c_void_p()
        self("cuGraphCreate", ctypes.byref(graph), 0)
        return graph

    def add_memset(self, graph, address, value, nbytes=4 * N):
        node = c_void_p()
        self(
            "cuGraphAddMemsetNode",
            ctypes.byref(node),
            graph,
            None,
            c_size_t(0),
            ctypes.byref(MemsetParams(address, 0, value, 1, nbytes, 1)),
            self.context,
        )
        return node

    def filling(self, address, value, nbytes=4 * N):
        """A graph of one node that fills memory; its handle."""
        graph = self.graph()
        self.add_memset(graph, address, value, nbytes)
        return graph.value


class Tensor:
    """An array of another library: memory of the driver's, put to use on the legacy stream."""

    def __init__(self, library, count=N):
        self.library = library
        address = c_uint64()
        with library:
            library("cuMemAlloc_v2", ctypes.byref(address), c_size_t(4 * count))
        self.address, self.count = address.value, count
        library.memset(0, self.address, 0, 4 * count)

    def __del__(self):
        # As a library's own pool: the next owner writes it at once, on the legacy stream.
        self.library.memset(0, self.address, 0xFF, 4 * self.count)

    def __getitem__(self, key):
        start, stop, _ = key.indices(self.count)
        return View(self, self.address + 4 * start, stop - start)

    @property
    def __cuda_array_interface__(self):
        return self[:].__cuda_array_interface__

    def values(self):
        """Read as its own library would: on the legacy stream, with no call of cyrt's."""
        out = np.empty(self.count, np.float32)
        with self.library:
            self.library(
                "cuMemcpyDtoH_v2",
                c_void_p(out.ctypes.data),
                c_uint64(self.address),
                c_size_t(out.nbytes),
            )
        return out


class View:
    """A part of a Tensor, an object of its own."""

    def __init__(self, tensor, address, count):
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": (count,),
            "data": (address, False),
        }
