"""The emulated device's driver ABI, by ctypes: what a C program would see of graphs."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler

KERNELS = r"""
extern "C" {
__global__ void add(int* out, const int* in, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + value;
}
__global__ void scale(int* out, int factor) { out[threadIdx.x] *= factor; }
__global__ void count(int* out) { atomicAdd(out, 1); }
__global__ void early(int* out, const int* in) {      // reads before it waits
    int seen = in[threadIdx.x];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = seen;
}
__global__ void late(int* out, const int* in, const int* weights) {
    int weight = weights[threadIdx.x];                  // of nobody before it: may be early
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x] * weight;
}
__global__ void triggering(int* out, int value) {
    asm volatile("griddepcontrol.launch_dependents;");
    out[threadIdx.x] = value;
}
__global__ void relay(int* unused) {                  // lets dependents start before it waits
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
__global__ void orderly(int* unused) {                // waits, by whatever way, and then does so
    asm volatile("{ .reg .pred p; setp.eq.u64 p, %0, 0;"
                 "@p griddepcontrol.wait; @!p griddepcontrol.wait; }" :: "l"(unused) : "memory");
    asm volatile("griddepcontrol.launch_dependents;");
}
__global__ void spin(volatile int* flag) { while (*flag == 0) {} }
}
"""


class KernelParams(ctypes.Structure):
    _fields_ = [
        ("func", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("kernelParams", c_void_p),
        ("extra", c_void_p),
        ("kern", c_void_p),
        ("ctx", c_void_p),
    ]


class MemsetParams(ctypes.Structure):
    _fields_ = [
        ("dst", c_uint64),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("element", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class CopySide(ctypes.Structure):
    _fields_ = [
        ("x", c_size_t),
        ("y", c_size_t),
        ("z", c_size_t),
        ("lod", c_size_t),
        ("type", c_uint),
        ("host", c_void_p),
        ("device", c_uint64),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    ]


class CopyParams(ctypes.Structure):
    _fields_ = [
        ("src", CopySide),
        ("dst", CopySide),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    ]


class EdgeData(ctypes.Structure):
    _fields_ = [
        ("from_port", c_ubyte),
        ("to_port", c_ubyte),
        ("type", c_ubyte),
        ("reserved", c_ubyte * 5),
    ]


class UpdateInfo(ctypes.Structure):
    _fields_ = [("result", c_int), ("node", c_void_p), ("origin", c_void_p)]


class InstantiateParams(ctypes.Structure):
    _fields_ = [("flags", c_uint64), ("stream", c_void_p), ("node", c_void_p), ("result", c_int)]


class Attribute(ctypes.Union):
    _fields_ = [("bytes", c_ubyte * 64), ("value", c_int), ("dims", c_uint * 3)]


PROGRAMMATIC = EdgeData(1, 0, 1)


def handles(items):
    return (c_void_p * max(len(items), 1))(*items)


class Refused(Exception):
    """A call that did not succeed; `code` is its CUresult."""

    def __init__(self, name, code):
        super().__init__(f"{name}: {code}")
        self.code = code


def refused(code):
    """The calls within end with that CUresult."""
    return pytest.raises(Refused, match=rf": {code}$")


class Driver:
    """The driver with a context of its own. Each method is a call of that name; errors raise."""

    def __init__(self):
        cyrt.Device(0)  # the library is initialised
        self.library = ctypes.CDLL(str(Path(cyrt.__file__).parent / "emulator/libcyrt_emu.so"))
        self.functions = {}
        self.context = self.make("cuCtxCreate", c_uint(0), 0, version=11030)
        image = compiler.compile(KERNELS, arch="compute_90")
        self.module = self.make("cuModuleLoadData", image.code)
        self.kernels = {
            name: self.make("cuModuleGetFunction", c_void_p(self.module), name.encode())
            for name in (
                "add",
                "scale",
                "count",
                "early",
                "late",
                "triggering",
                "relay",
                "orderly",
                "spin",
            )
        }

    def close(self):
        self("cuCtxDestroy", c_void_p(self.context))

    def call(self, name, *arguments, version=12080):
        key = name, version
        if key not in self.functions:
            address, status = c_void_p(), c_int()
            self.library.cuGetProcAddress_v2(
                name.encode(), ctypes.byref(address), version, c_uint64(0), ctypes.byref(status)
            )
            if not address:
                raise LookupError(name)
            self.functions[key] = ctypes.CFUNCTYPE(c_int)(address.value)
        return self.functions[key](*arguments)

    def __call__(self, name, *arguments, version=12080):
        if code := self.call(name, *arguments, version=version):
            raise Refused(name, code)

    def make(self, name, *arguments, version=12080):
        """The handle that the call writes through its first argument."""
        out = c_void_p()
        self(name, ctypes.byref(out), *arguments, version=version)
        return out.value

    def fault(self):
        text = ctypes.create_string_buffer(1000)
        self.library.cyrtEmuLastFault(0, text, c_size_t(len(text)))
        return text.value.decode()

    # --- memory and streams ---

    def memory(self, values):
        values = np.ascontiguousarray(values, np.int32)
        address = self.make("cuMemAlloc", c_size_t(values.nbytes))
        self(
            "cuMemcpyHtoD", c_uint64(address), c_void_p(values.ctypes.data), c_size_t(values.nbytes)
        )
        return address

    def read(self, address, count=32):
        out = np.empty(count, np.int32)
        self("cuMemcpyDtoH", c_void_p(out.ctypes.data), c_uint64(address), c_size_t(out.nbytes))
        return out

    def stream(self):
        return c_void_p(self.make("cuStreamCreate", 1))

    def event(self):
        return c_void_p(self.make("cuEventCreate", 2))

    # --- kernels ---

    def arguments(self, *values):
        """An array of pointers to them; addresses are wider than C's int."""
        self.kept = [c_uint64(v) if v > 0xFFFFFFFF else c_int(v) for v in values]
        return handles([ctypes.addressof(value) for value in self.kept])

    def params(self, name, *values, grid=1, block=32):
        pointers = self.arguments(*values)
        params = KernelParams(
            self.kernels[name], (grid, 1, 1), (block, 1, 1), 0, ctypes.addressof(pointers)
        )
        params.kept = pointers, self.kept
        return params

    def launch(self, stream, name, *values, grid=1, block=32):
        self(
            "cuLaunchKernel",
            c_void_p(self.kernels[name]),
            grid,
            1,
            1,
            block,
            1,
            1,
            0,
            stream,
            self.arguments(*values),
            None,
        )


class Graph:
    """A graph of a driver's."""

    def __init__(self, driver, handle=None):
        self.driver = driver
        self.handle = c_void_p(handle or driver.make("cuGraphCreate", 0))

    def add(self, call, after, *params, version=12080):
        return self.driver.make(
            call, self.handle, handles(after), c_size_t(len(after)), *params, version=version
        )

    def kernel(self, name, *values, after=(), **shape):
        return self.add(
            "cuGraphAddKernelNode", after, ctypes.byref(self.driver.params(name, *values, **shape))
        )

    def memset(self, address, value, *, after=(), width=32, height=1, pitch=0, element=4):
        return self.add(
            "cuGraphAddMemsetNode",
            after,
            ctypes.byref(MemsetParams(address, pitch, value, element, width, height)),
            None,
        )

    def copy(self, dst, src, size=128, *, after=()):
        return self.add(
            "cuGraphAddMemcpyNode", after, ctypes.byref(copy_params(dst, src, size)), None
        )

    def empty(self, *, after=()):
        return self.add("cuGraphAddEmptyNode", after)

    def edge(self, origin, to, data=None):
        self.driver(
            "cuGraphAddDependencies",
            self.handle,
            handles([origin]),
            handles([to]),
            data and ctypes.byref(data),
            c_size_t(1),
        )

    def edges(self):
        count = c_size_t()
        self.driver("cuGraphGetEdges", self.handle, None, None, None, ctypes.byref(count))
        origin, to = handles([0] * count.value), handles([0] * count.value)
        data = (EdgeData * max(count.value, 1))()
        self.driver("cuGraphGetEdges", self.handle, origin, to, data, ctypes.byref(count))
        return {(origin[i], to[i]): data[i].type for i in range(count.value)}

    def nodes(self, call="cuGraphGetNodes"):
        count = c_size_t()
        self.driver(call, self.handle, None, ctypes.byref(count))
        found = handles([0] * count.value)
        self.driver(call, self.handle, found, ctypes.byref(count))
        return list(found)[: count.value]

    def instantiate(self, flags=0):
        return c_void_p(
            self.driver.make("cuGraphInstantiateWithFlags", self.handle, c_uint64(flags))
        )


def copy_params(dst, src, size, kinds=(2, 2)):
    def side(address, kind):
        place = {"host": address} if kind == 1 else {"device": address}
        return CopySide(type=kind, **place)

    return CopyParams(side(src, kinds[1]), side(dst, kinds[0]), size, 1, 1)


def run(driver, exec_, stream, times=1):
    for _ in range(times):
        driver("cuGraphLaunch", exec_, stream)
    driver("cuStreamSynchronize", stream)
