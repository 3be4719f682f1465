"""The stand-in for cuBLASLt: compiled here, over kernels of the project's own compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path

import pytest
from outside import Library as Driver

from cyrt.jit import compiler

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Gemm {
    const void *a, *b, *c;
    void* d;
    char turned_a, turned_b, with_c;
    long long rows, columns, depth, step_a, step_b, step_c, step_d;
    long long batch_a, batch_b, batch_c, batch_d;
    double alpha[2], beta[2];
    int* counter;
    const void* memory;
};
struct Pair { double re, im; };
struct F { float re, im; };
struct D { double re, im; };
__device__ Pair load(const float* x, long long i) { return {x[i], 0}; }
__device__ Pair load(const double* x, long long i) { return {x[i], 0}; }
__device__ Pair load(const __half* x, long long i) { return {__half2float(x[i]), 0}; }
__device__ Pair load(const __nv_bfloat16* x, long long i) { return {__bfloat162float(x[i]), 0}; }
__device__ Pair load(const signed char* x, long long i) { return {double(x[i]), 0}; }
__device__ Pair load(const int* x, long long i) { return {double(x[i]), 0}; }
__device__ Pair load(const F* x, long long i) { return {x[i].re, x[i].im}; }
__device__ Pair load(const D* x, long long i) { return {x[i].re, x[i].im}; }
__device__ void store(float* x, long long i, Pair v) { x[i] = float(v.re); }
__device__ void store(double* x, long long i, Pair v) { x[i] = v.re; }
__device__ void store(__half* x, long long i, Pair v) { x[i] = __float2half(float(v.re)); }
__device__ void store(__nv_bfloat16* x, long long i, Pair v) {
    x[i] = __float2bfloat16(float(v.re));
}
__device__ void store(int* x, long long i, Pair v) { x[i] = int(v.re); }
__device__ void store(F* x, long long i, Pair v) { x[i] = {float(v.re), float(v.im)}; }
__device__ void store(D* x, long long i, Pair v) { x[i] = {v.re, v.im}; }
__device__ Pair times(Pair x, Pair y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class In, class Out>
__device__ void multiply(const Gemm& g) {
    long long at = blockIdx.x * 128ll + threadIdx.x;
    if (at >= g.rows * g.columns) return;
    long long i = at % g.rows, j = at / g.rows;
    const In* a = (const In*)g.a + blockIdx.y * g.batch_a;
    const In* b = (const In*)g.b + blockIdx.y * g.batch_b;
    Pair sum{g.counter ? double(*g.counter) : 0.0, 0};
    for (long long l = 0; l < g.depth; ++l) {
        Pair p = times(load(a, g.turned_a ? l + i * g.step_a : i + l * g.step_a),
                       load(b, g.turned_b ? j + l * g.step_b : l + j * g.step_b));
        sum.re += p.re;
        sum.im += p.im;
    }
    sum = times(sum, {g.alpha[0], g.alpha[1]});
    if (g.with_c) {
        Pair more = times(load((const Out*)g.c + blockIdx.y * g.batch_c, i + j * g.step_c),
                          {g.beta[0], g.beta[1]});
        sum.re += more.re;
        sum.im += more.im;
    }
    store((Out*)g.d + blockIdx.y * g.batch_d, i + j * g.step_d, sum);
}
extern "C" {
__global__ void gemm_float32(Gemm g) { multiply<float, float>(g); }
__global__ void gemm_float64(Gemm g) { multiply<double, double>(g); }
__global__ void gemm_float16(Gemm g) { multiply<__half, __half>(g); }
__global__ void gemm_bfloat16(Gemm g) { multiply<__nv_bfloat16, __nv_bfloat16>(g); }
__global__ void gemm_complex64(Gemm g) { multiply<F, F>(g); }
__global__ void gemm_complex128(Gemm g) { multiply<D, D>(g); }
__global__ void gemm_int32(Gemm g) { multiply<signed char, int>(g); }
__global__ void spoil(int* counter) { *counter = 1000; }
}
"""
TYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "complex64": 4,
    "complex128": 5,
    "int32": 10,
    "bfloat16": 14,
}


class Standin:
    """The compiled library, with the functions that set what it does."""

    def __init__(self, path: Path):
        self.path = str(path)
        self.library = ctypes.CDLL(self.path)
        self.library.standin_preference.restype = c_uint64

    def use_driver(self):
        """Give it the driver and its kernels."""
        driver = Driver()
        self.library.standin_driver(
            *(
                ctypes.cast(getattr(driver.driver, name), c_void_p)
                for name in ("cuLaunchKernel", "cuMemsetD8Async", "cuMemAlloc_v2", "cuMemFree_v2")
            )
        )
        code = compiler.compile(SOURCE, arch="compute_90").code
        with driver:
            module = c_void_p()
            driver("cuModuleLoadData", byref(module), code)
            for name, number in TYPES.items():
                function = c_void_p()
                driver("cuModuleGetFunction", byref(function), module, f"gemm_{name}".encode())
                self.library.standin_kernel(number, function)
            function = c_void_p()
            driver("cuModuleGetFunction", byref(function), module, b"spoil")
            self.library.standin_spoiler(function)

    def set(self, *, version=130000, workspace=0, create=0, heuristic=0, algorithms=1, matmul=0):
        self.library.standin_set(
            c_size_t(version), c_size_t(workspace), create, heuristic, algorithms, matmul
        )

    @property
    def products(self):
        return self.library.standin_products()

    @property
    def asked(self):
        return self.library.standin_asked()

    @property
    def handles(self):
        return self.library.standin_handles()

    @property
    def compute(self):
        """The cublasComputeType_t of the last product that was asked for."""
        return self.library.standin_compute()

    @property
    def live(self):
        return self.library.standin_live()

    @property
    def preference(self):
        """Workspace, reduction schemes and the alignments of A, B, C and D that were asked for."""
        return [self.library.standin_preference(c_int(i)) for i in range(6)]


def build(folder: Path) -> Standin:
    """Compile it, or skip the test."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("there is no C compiler for the stand-in of cuBLASLt")
    target = folder / "libstandin.so"
    source = Path(__file__).with_name("standin.c")
    subprocess.run([found, "-O1", "-shared", "-fPIC", "-o", target, source], check=True)
    return Standin(target)
