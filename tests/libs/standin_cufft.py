"""The stand-in for cuFFT: the functions that cyrt calls, over a kernel of the project's own
compiler. Like cuFFT it has tables on the device, which are no operand of a call."""

from __future__ import annotations

import ctypes
import itertools
from ctypes import byref, c_double, c_int, c_longlong, c_size_t, c_uint64, c_void_p

from outside import Library as Driver

from cyrt.jit import compiler
from cyrt.libs import cufft
from cyrt.libs.library import DATA_TYPES

SOURCE = r"""
struct Dft {
    const void* in;
    void* out;
    const double* table;    // of a plan: a factor of the results, which is 1
    long long sizes[3], in_sizes[3], out_sizes[3];
    long long in_step, in_distance, out_step, out_distance, batch;
    int sign, real_in, real_out, wide;
};
template <class T> __device__ void transform(const Dft& p) {
    long long at = blockIdx.x * 128ll + threadIdx.x, rest = at, k[3], j[3];
    for (int d = 2; d >= 0; --d) { k[d] = rest % p.out_sizes[d]; rest /= p.out_sizes[d]; }
    if (rest >= p.batch) return;
    const T* in = (const T*)p.in + rest * p.in_distance * (p.real_in ? 1 : 2);
    T* out = (T*)p.out + rest * p.out_distance * (p.real_out ? 1 : 2);
    double re = 0, im = 0;
    for (j[0] = 0; j[0] < p.sizes[0]; ++j[0])
    for (j[1] = 0; j[1] < p.sizes[1]; ++j[1])
    for (j[2] = 0; j[2] < p.sizes[2]; ++j[2]) {
        bool mirrored = j[2] >= p.in_sizes[2];
        long long i = 0;
        double turns = 0;
        for (int d = 0; d < 3; ++d) {
            i = i * p.in_sizes[d] + (mirrored ? (p.sizes[d] - j[d]) % p.sizes[d] : j[d]);
            turns += double(j[d] * k[d] % p.sizes[d]) / p.sizes[d];
        }
        i *= p.in_step;
        double x = p.real_in ? in[i] : in[2 * i], y = p.real_in ? 0 : in[2 * i + 1];
        double c = cospi(2 * turns), s = p.sign * sinpi(2 * turns);
        if (mirrored) y = -y;
        re += x * c - y * s;
        im += x * s + y * c;
    }
    long long o = ((k[0] * p.out_sizes[1] + k[1]) * p.out_sizes[2] + k[2]) * p.out_step;
    double factor = p.table[0];
    if (p.real_out) { out[o] = T(re * factor); return; }
    out[2 * o] = T(re * factor);
    out[2 * o + 1] = T(im * factor);
}
extern "C" __global__ void dft(Dft p) {
    if (p.wide) transform<double>(p); else transform<float>(p);
}
"""


class _Params(ctypes.Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("input", "out", "table")),
        *((name, c_longlong * 3) for name in ("sizes", "in_sizes", "out_sizes")),
        *(
            (name, c_longlong)
            for name in ("in_step", "in_distance", "out_step", "out_distance", "batch")
        ),
        *((name, c_int) for name in ("sign", "real_in", "real_out", "wide")),
    ]


def _three(sizes):
    return [1] * (3 - len(sizes)) + list(sizes)


class Standin(cufft.CuFft):
    """The library. `status`: what plans are refused with; `workspace`: their bytes."""

    def __init__(self):
        self.path, self.version, self.dotted = "stand-in", 12000, "12.0.0"
        self.functions = {name: getattr(self, name) for name in cufft._SIGNATURES}
        self.driver = Driver()
        with self.driver:
            module, self.kernel = c_void_p(), c_void_p()
            code = compiler.compile(SOURCE, arch="compute_90").code
            self.driver("cuModuleLoadData", byref(module), code)
            self.driver("cuModuleGetFunction", byref(self.kernel), module, b"dft")
        self.numbers = itertools.count()  # earlier plans may end after a reset
        self.reset()

    def reset(self):
        self.plans = {}
        self.status = self.workspace = self.made = self.calls = 0

    def cufftCreate(self, plan):
        plan._obj.value = next(self.numbers)
        self.made += 1
        self.plans[plan._obj.value] = {}
        return 0

    def cufftDestroy(self, plan):
        table = self.plans.pop(plan.value, {}).get("table")
        if table:
            with self.driver:
                self.driver("cuMemFree_v2", table)
        return 0

    def cufftSetAutoAllocation(self, plan, auto):
        assert auto == 0
        return 0

    def cufftSetStream(self, plan, stream):
        self.plans[plan.value]["stream"] = stream
        return 0

    def cufftSetWorkArea(self, plan, address):
        self.plans[plan.value]["area"] = address
        return 0

    def cufftXtMakePlanMany(self, plan, rank, sizes, *described):
        source, target, (batch, workspace, _type) = described[:4], described[4:8], described[8:]
        if self.status or not (source[2] and target[2]):
            return self.status or 4
        table = self.plans[plan.value]["table"] = c_uint64()
        with self.driver:
            self.driver("cuMemAlloc_v2", byref(table), c_size_t(8))
            self.driver("cuMemcpyHtoD_v2", table, byref(c_double(1)), c_size_t(8))
        params = _Params(table=table.value, batch=batch)
        params.sizes[:] = _three(sizes[:rank])
        real = DATA_TYPES["float32"], DATA_TYPES["float64"]
        params.wide = source[3] in (DATA_TYPES["float64"], DATA_TYPES["complex128"])
        params.real_in, params.real_out = source[3] in real, target[3] in real
        params.in_sizes[:] = _three(source[0][:rank])
        params.out_sizes[:] = _three(target[0][:rank])
        params.in_step, params.in_distance = source[1:3]
        params.out_step, params.out_distance = target[1:3]
        self.plans[plan.value]["params"] = params
        workspace._obj.value = self.workspace
        return 0

    def cufftXtExec(self, plan, source, target, direction):
        self.calls += 1
        known = self.plans[plan.value]
        assert ("area" in known) == (self.workspace > 0)
        params = known["params"]
        params.input, params.out, params.sign = source, target, direction
        if params.real_out or params.real_in:
            params.sign = 1 if params.real_out else -1
        points = params.batch
        for size in params.out_sizes:
            points *= size
        values = (c_void_p * 1)(ctypes.addressof(params))
        with self.driver:
            self.driver(
                "cuLaunchKernel",
                self.kernel,
                -(-points // 128),
                1,
                1,
                128,
                1,
                1,
                0,
                c_void_p(known["stream"]),
                values,
                None,
            )
        return 0
