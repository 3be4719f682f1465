"""A library of the tests' own, whose calls are learned as templates."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
from outside import Library

import cyrt
from cyrt.graph import template
from cyrt.jit import compiler

N = 128
SOURCE = r"""
struct Packed { const float* a; char flag; long long n; const float* b; float* out; float scale; };
struct Inner { const float* a; const float* b; };
struct Separate { Inner in; float scale; };
extern "C" {
__global__ void add(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
__global__ void scaled(Packed p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.out[i] = (p.flag ? p.a[i] : 0) + p.scale * p.b[i];
}
__global__ void nested(Separate s, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = s.scale * (s.in.a[i] + s.in.b[i]);
}
__global__ void increase(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
__global__ void distance(const float* a, long long step, float* out) {
    out[threadIdx.x] = a[step + threadIdx.x];
}
__global__ void flagged(const float* a, float* out, unsigned low, unsigned high) {
    out[threadIdx.x] = a[threadIdx.x] + (low != 0 || high != 0);
}
__global__ void ranks(float* out) {
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (threadIdx.x == 0) out[blockIdx.x] = 10.0f * size + rank;
}
}
"""


class Packed(ctypes.Structure):
    _fields_ = [
        ("a", c_uint64),
        ("flag", c_char),
        ("padding", c_char * 7),
        ("n", ctypes.c_longlong),
        ("b", c_uint64),
        ("out", c_uint64),
        ("scale", ctypes.c_float),
        ("tail", c_char * 4),
    ]


class Separate(ctypes.Structure):
    _fields_ = [
        ("a", c_uint64),
        ("b", c_uint64),
        ("scale", ctypes.c_float),
        ("padding", c_char * 4),
    ]


class KernelNodeParams(ctypes.Structure):
    _fields_ = [
        ("func", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem", c_uint),
        ("params", c_void_p),
        ("extra", c_void_p),
        ("kern", c_void_p),
        ("ctx", c_void_p),
    ]


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    ]


CLUSTER, PRIORITY = 4, 8


class Calls(Library):
    """Calls that put kernels and memsets on a stream, as a library's would."""

    def __init__(self):
        super().__init__()
        self.image = compiler.compile(SOURCE, arch="compute_90").code
        self.count = 0  # number of calls
        with self:
            self.module = c_void_p()
            self("cuModuleLoadData", byref(self.module), self.image)
        self.functions = {}

    def function(self, name):
        if name not in self.functions:
            found = c_void_p()
            with self:
                self("cuModuleGetFunction", byref(found), self.module, name.encode())
            self.functions[name] = found
        return self.functions[name]

    def kernel(self, name):
        """A kernel of a CUlibrary, which is no CUfunction."""
        library, found = c_void_p(), c_void_p()
        with self:
            self("cuLibraryLoadData", byref(library), self.image, None, None, 0, None, None, 0)
            self("cuLibraryGetKernel", byref(found), library, name.encode())
        return found

    def put(self, stream, kernel, values, *, grid=1, block=N, attributes=()):
        """Launch a kernel; `values` is a ctypes value for each parameter, or one Packed."""
        function = kernel if isinstance(kernel, c_void_p) else self.function(kernel)
        params = extra = None
        if isinstance(values, Packed):
            size = c_size_t(ctypes.sizeof(values))
            extra = (c_void_p * 5)(1, ctypes.addressof(values), 2, ctypes.addressof(size), 0)
        else:
            params = (c_void_p * len(values))(*map(ctypes.addressof, values))
        listed = (LaunchAttribute * max(1, len(attributes)))()
        for entry, (key, value) in zip(listed, attributes, strict=False):
            entry.id = key
            entry.value[: len(value)] = value
        config = LaunchConfig((grid, 1, 1), (block, 1, 1), 0, stream, ctypes.addressof(listed))
        config.count = len(attributes)
        with self:
            self("cuLaunchKernelEx", byref(config), function, params, extra)

    def add(self, stream, addresses, n=N, kernel="add"):
        self.count += 1
        self.put(stream, kernel, [*map(c_uint64, addresses[:3]), c_int(n)])

    def scaled(self, stream, addresses, *, n=N, scale=2.0, padding=b"", offset=0):
        self.count += 1
        a, b, out = addresses[:3]
        self.put(
            stream,
            "scaled",
            Packed(a + offset, b"\1", padding, n, b + offset, out + offset, scale, padding[:4]),
        )

    def nested(self, stream, addresses, *, padding=b"", scale=3.0):
        self.count += 1
        a, b, out = addresses[:3]
        self.put(stream, "nested", [Separate(a, b, scale, padding), c_uint64(out), c_int(N)])

    def chain(self, stream, addresses):
        """A memset of the workspace, and three kernels."""
        self.count += 1
        a, b, out, workspace = addresses
        self.memset(stream, workspace + 64, 0, 4 * N)
        self.put(stream, "increase", [c_uint64(workspace + 64), c_int(N)])
        self.put(stream, "scaled", Packed(a, b"\1", b"", N, b, out, 2.0, b""))
        self.put(stream, "add", [c_uint64(out), c_uint64(workspace + 64), c_uint64(out), c_int(N)])

    def streams(self, count):
        """New streams and an event, for `forked`."""
        streams, event = [c_void_p() for _ in range(count)], c_void_p()
        with self:
            self("cuEventCreate", byref(event), 2)
            for other in streams:
                self("cuStreamCreate", byref(other), 1)
        return streams, event

    @contextmanager
    def forked(self, stream, streams, event):
        """The other streams wait for this one; at the end it waits for them."""
        with self:
            self("cuEventRecord", event, c_void_p(stream))
            for other in streams:
                self("cuStreamWaitEvent", other, event, 0)
        yield
        with self:
            for other in streams:
                self("cuEventRecord", event, other)
                self("cuStreamWaitEvent", c_void_p(stream), event, 0)

    def node_params(self, params):
        """What a launch of the structure's parameters gets, as bytes, with the kernel's own."""
        if params.extra:
            extra = (c_void_p * 5).from_address(params.extra)
            pairs = dict(zip(extra[0:4:2], extra[1:4:2], strict=True))
            size = c_size_t.from_address(pairs[2]).value
            return ctypes.string_at(pairs[1], size)
        found = b""
        with self:
            for index in range(16):
                offset, size = c_size_t(), c_size_t()
                if self.driver.cuFuncGetParamInfo(
                    c_void_p(params.func), c_size_t(index), byref(offset), byref(size)
                ):
                    return found
                value = (c_void_p * 16).from_address(params.params)[index]
                found += ctypes.string_at(value, size.value)
        raise AssertionError("a kernel of more than 16 parameters")

    def launches(self, graph):
        """The function, geometry, parameters and attributes of each kernel of a graph, in order."""
        count = c_size_t(64)
        nodes = (c_void_p * 64)()
        found = []
        with self:
            self("cuGraphGetNodes", c_void_p(graph), nodes, byref(count))
            for node in nodes[: count.value]:
                kind = c_int()
                self("cuGraphNodeGetType", c_void_p(node), byref(kind))
                if kind.value:
                    continue
                params, values = KernelNodeParams(), []
                self("cuGraphKernelNodeGetParams_v2", c_void_p(node), byref(params))
                for attribute in (CLUSTER, PRIORITY):
                    value = (c_uint * 16)()
                    self("cuGraphKernelNodeGetAttribute", c_void_p(node), attribute, value)
                    values.append(tuple(value))
                found.append(
                    (
                        params.func,
                        tuple(params.grid),
                        tuple(params.block),
                        params.smem,
                        self.node_params(params),
                        values,
                    )
                )
        return found

    def captured(self, call, addresses):
        """The launches of a call as the driver captures them."""
        stream, graph = c_void_p(), c_void_p()
        with self:
            self("cuStreamCreate", byref(stream), 1)
            self("cuStreamBeginCapture_v2", stream, 1)
            call(stream.value, addresses)
            self("cuStreamEndCapture", stream, byref(graph))
            found = self.launches(graph.value)
            self("cuGraphDestroy", graph)
            self("cuStreamDestroy_v2", stream)
        return found


class Vectors:
    """Two inputs and an output in one Buffer each, with values that tell them apart."""

    def __init__(self, seed=1, shift=0, spare=0):
        self.spare = cyrt.Buffer(4 * N * spare) if spare else None
        self.a, self.b, self.out = (cyrt.Buffer(4 * N + 64)[shift : 4 * N + shift] for _ in "abc")
        rng = np.random.default_rng(seed)
        self.host = [rng.integers(0, 100, N).astype(np.float32) for _ in "ab"]
        self.a.copy_from(self.host[0])
        self.b.copy_from(self.host[1])
        self.out.fill(0)

    @property
    def all(self):
        return [self.a, self.b, self.out]

    def result(self):
        found = np.empty(N, np.float32)
        self.out.copy_to(found)
        return found


def record(call, vectors, key=(1,), **options):
    return template.record_call(key, call, vectors.all, (2,), **options)
