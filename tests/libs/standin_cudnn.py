"""The stand-in for cuDNN and its frontend: the classes that cyrt uses, over a kernel of the
project's own compiler."""

from __future__ import annotations

import ctypes
import math
import weakref
from ctypes import byref, c_double, c_int, c_longlong, c_size_t, c_uint64, c_void_p
from enum import Enum

from outside import Library as Driver

from cyrt.jit import compiler

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct Tensor { const void* at; long long size[5], step[5]; };
struct Conv {
    Tensor image, filter, result;
    const void* bias;
    int* counter;
    int kind, activation;
    long long stride[3], low[3], dilation[3], bias_step;
    double scale;
};
__device__ float load(const float* x, long long i) { return x[i]; }
__device__ float load(const __half* x, long long i) { return __half2float(x[i]); }
__device__ float load(const __nv_bfloat16* x, long long i) { return __bfloat162float(x[i]); }
__device__ void store(float* x, long long i, float v) { x[i] = v; }
__device__ void store(__half* x, long long i, float v) { x[i] = __float2half(v); }
__device__ void store(__nv_bfloat16* x, long long i, float v) { x[i] = __float2bfloat16(v); }
template <class T>
__device__ void convolve(const Conv& c) {
    const Tensor& out = c.kind == 0 ? c.result : c.kind == 1 ? c.image : c.filter;
    long long at = blockIdx.x * 128ll + threadIdx.x, id[5], rest = at;
    for (int d = 4; d >= 0; --d) {
        id[d] = rest % out.size[d];
        rest /= out.size[d];
    }
    if (rest) return;
    long long groups = c.image.size[1] / c.filter.size[1], results = c.filter.size[0] / groups;
    long long batch[2] = {id[0], id[0] + 1}, filters[2], channels[2];
    if (c.kind == 0) {
        filters[0] = id[1], filters[1] = id[1] + 1;
        channels[0] = 0, channels[1] = c.filter.size[1];
    } else if (c.kind == 1) {
        filters[0] = id[1] / c.filter.size[1] * results, filters[1] = filters[0] + results;
        channels[0] = id[1] % c.filter.size[1], channels[1] = channels[0] + 1;
    } else {
        batch[0] = 0, batch[1] = c.image.size[0];
        filters[0] = id[0], filters[1] = id[0] + 1;
        channels[0] = id[1], channels[1] = id[1] + 1;
    }
    // The places of the result and of the filter that meet the element.
    long long p[3][2], t[3][2];
    for (int d = 0; d < 3; ++d) {
        p[d][0] = c.kind == 0 ? id[2 + d] : 0;
        p[d][1] = c.kind == 0 ? p[d][0] + 1 : c.result.size[2 + d];
        t[d][0] = c.kind == 2 ? id[2 + d] : 0;
        t[d][1] = c.kind == 2 ? t[d][0] + 1 : c.filter.size[2 + d];
    }
    float sum = c.counter ? float(*c.counter) : 0.0f;
    for (long long n = batch[0]; n < batch[1]; ++n)
    for (long long k = filters[0]; k < filters[1]; ++k)
    for (long long ch = channels[0]; ch < channels[1]; ++ch)
    for (long long p0 = p[0][0]; p0 < p[0][1]; ++p0)
    for (long long p1 = p[1][0]; p1 < p[1][1]; ++p1)
    for (long long p2 = p[2][0]; p2 < p[2][1]; ++p2)
    for (long long t0 = t[0][0]; t0 < t[0][1]; ++t0)
    for (long long t1 = t[1][0]; t1 < t[1][1]; ++t1)
    for (long long t2 = t[2][0]; t2 < t[2][1]; ++t2) {
        long long ps[3] = {p0, p1, p2}, ts[3] = {t0, t1, t2}, i[3];
        bool there = true;
        for (int d = 0; d < 3; ++d) {
            i[d] = ps[d] * c.stride[d] + ts[d] * c.dilation[d] - c.low[d];
            there = there && i[d] >= 0 && i[d] < c.image.size[2 + d];
            if (c.kind == 1) there = there && i[d] == id[2 + d];
        }
        if (!there) continue;
        long long image = n * c.image.step[0]
            + (k / results * c.filter.size[1] + ch) * c.image.step[1];
        long long filter = k * c.filter.step[0] + ch * c.filter.step[1];
        long long result = n * c.result.step[0] + k * c.result.step[1];
        for (int d = 0; d < 3; ++d) {
            image += i[d] * c.image.step[2 + d];
            filter += ts[d] * c.filter.step[2 + d];
            result += ps[d] * c.result.step[2 + d];
        }
        float x = c.kind == 1 ? 1.0f : load((const T*)c.image.at, image);
        float w = c.kind == 2 ? 1.0f : load((const T*)c.filter.at, filter);
        float y = c.kind == 0 ? 1.0f : load((const T*)c.result.at, result);
        sum += x * w * y;
    }
    if (c.bias) sum += load((const T*)c.bias, id[1] * c.bias_step);
    if (c.activation == 1) sum = sum > 0 ? sum : 0;
    if (c.activation == 2) sum = sum * 0.5f * (1 + erff(sum * 0.70710678f));
    if (c.activation == 3)
        sum = 0.5f * sum * (1 + tanhf(0.79788456f * (sum + 0.044715f * sum * sum * sum)));
    if (c.activation == 4) sum = sum / (1 + expf(-sum));
    long long where = 0;
    for (int d = 0; d < 5; ++d) where += id[d] * out.step[d];
    store((T*)out.at, where, sum * float(c.scale));
}
struct Attention {
    Tensor out, q, k, v, bias;
    int* counter;
    double scale;
    int causal;
};
template <class T>
__device__ void attend(const Attention& a) {
    long long at = blockIdx.x * 128ll + threadIdx.x;
    long long row = at % a.q.size[3], head = at / a.q.size[3] % a.q.size[1];
    long long batch = at / a.q.size[3] / a.q.size[1];
    if (batch >= a.q.size[0]) return;
    long long shared = head / (a.q.size[1] / a.k.size[1]), keys = a.k.size[3];
    const T* q = (const T*)a.q.at + batch * a.q.step[0] + head * a.q.step[1] + row * a.q.step[3];
    const T* k = (const T*)a.k.at + batch * a.k.step[0] + shared * a.k.step[1];
    const T* v = (const T*)a.v.at + batch * a.v.step[0] + shared * a.v.step[1];
    T* out = (T*)a.out.at + batch * a.out.step[0] + head * a.out.step[1] + row * a.out.step[3];
    const T* bias = (const T*)a.bias.at;
    if (bias) bias += (a.bias.size[0] > 1 ? batch : 0) * a.bias.step[0]
                      + (a.bias.size[1] > 1 ? head : 0) * a.bias.step[1] + row * a.bias.step[3];
    if (a.causal) keys = row + 1 + (a.causal == 2 ? keys - a.q.size[3] : 0);
    float most = -INFINITY, total = a.counter ? float(*a.counter) : 0.0f, sums[64] = {};
    for (int pass = 0; pass < 2; ++pass)
    for (long long key = 0; key < keys; ++key) {
        float logit = 0;
        for (int d = 0; d < a.q.size[4]; ++d)
            logit += load(q, d * a.q.step[4]) * load(k, key * a.k.step[3] + d * a.k.step[4]);
        logit *= float(a.scale);
        if (bias) logit += load(bias, key * a.bias.step[4]);
        if (pass == 0) { most = max(most, logit); continue; }
        if (logit == -INFINITY) continue;
        total += expf(logit - most);
        for (int d = 0; d < a.q.size[4]; ++d)
            sums[d] += expf(logit - most) * load(v, key * a.v.step[3] + d * a.v.step[4]);
    }
    if (total == 0) total = 1;
    for (int d = 0; d < a.q.size[4]; ++d) store(out, d * a.out.step[4], sums[d] / total);
}
extern "C" {
__global__ void sdpa_HALF(Attention a) { attend<__half>(a); }
__global__ void sdpa_BFLOAT16(Attention a) { attend<__nv_bfloat16>(a); }
__global__ void conv_FLOAT(Conv c) { convolve<float>(c); }
__global__ void conv_HALF(Conv c) { convolve<__half>(c); }
__global__ void conv_BFLOAT16(Conv c) { convolve<__nv_bfloat16>(c); }
__global__ void spoil(int* counter) { *counter = 1000; }
}
"""
DataType = Enum("DataType", "NOT_SET FLOAT HALF BFLOAT16")
HeuristicMode = Enum("HeuristicMode", "A B FALLBACK")
Note = Enum(
    "Note",
    "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION FFT NONDETERMINISTIC WINOGRAD",
)
Alignment = Enum("Alignment", "TOP_LEFT BOTTOM_RIGHT")
KINDS = {"fprop": 0, "dgrad": 1, "wgrad": 2}
KERNELS = "conv_FLOAT", "conv_HALF", "conv_BFLOAT16", "sdpa_HALF", "sdpa_BFLOAT16", "spoil"
ACTIVATIONS = {"relu": 1, "gelu": 2, "gelu_approx_tanh": 3, "swish": 4}


class NotSupported(Exception):
    """As cudnn.cudnnGraphNotSupportedError."""


class _Shape(ctypes.Structure):
    _fields_ = [("at", c_uint64), ("size", c_longlong * 5), ("step", c_longlong * 5)]


class _Params(ctypes.Structure):
    _fields_ = [
        ("image", _Shape),
        ("filter", _Shape),
        ("result", _Shape),
        ("bias", c_uint64),
        ("counter", c_uint64),
        ("kind", c_int),
        ("activation", c_int),
        ("stride", c_longlong * 3),
        ("low", c_longlong * 3),
        ("dilation", c_longlong * 3),
        ("bias_step", c_longlong),
        ("scale", c_double),
    ]


class _AttentionParams(ctypes.Structure):
    _fields_ = [
        ("out", _Shape),
        ("q", _Shape),
        ("k", _Shape),
        ("v", _Shape),
        ("bias", _Shape),
        ("counter", c_uint64),
        ("scale", c_double),
        ("causal", c_int),
    ]


def _wide(values, fill):
    """Values for three spatial dimensions."""
    return [fill] * (3 - len(values)) + list(values)


class _Tensor:
    def __init__(self, dim=None, stride=None, data_type=None, uid=-1, name=""):
        self.dim, self.stride, self.data_type, self.uid = dim, stride, data_type, uid

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def set_output(self, output):
        return self

    def set_data_type(self, data_type):
        self.data_type = data_type
        return self

    def set_uid(self, uid):
        self.uid = uid
        return self

    def shape(self, address):
        made = _Shape(address)
        made.size[:] = [*self.dim[:2], *_wide(self.dim[2:], 1)]
        made.step[:] = [*self.stride[:2], *_wide(self.stride[2:], 0)]
        return made


class _Graph:
    def __init__(self, frontend, handle, compute_data_type, **_):
        assert isinstance(handle, int)
        assert compute_data_type is DataType.FLOAT
        self.frontend = frontend
        self.bias_, self.activation, self.barred = None, 0, []
        self.modules, self.counts = {}, frontend.counts  # by plan
        frontend.graphs.append(weakref.proxy(self) if frontend.compiles else self)

    def __del__(self):
        for module, _ in self.modules.values():
            with self.frontend.driver:
                self.frontend.driver("cuModuleUnload", module)
            self.counts["unloaded"] += 1

    def tensor(self, **options):
        return _Tensor(**options)

    def conv_fprop(self, image, weight, **options):
        return self._conv(0, image, weight, _Tensor(), **options)

    def conv_dgrad(self, loss, filter, **options):
        return self._conv(1, _Tensor(), filter, loss, **options)

    def conv_wgrad(self, image, loss, **options):
        return self._conv(2, image, _Tensor(), loss, **options)

    def _conv(self, kind, image, filter, result, pre_padding, post_padding, stride, dilation):
        self.kind, self.tensors = kind, (image, filter, result)
        self.low, self.high, self.stride, self.dilation = (
            pre_padding,
            post_padding,
            stride,
            dilation,
        )
        return (result, image, filter)[kind]

    def sdpa(self, q, k, v, attn_scale, generate_stats, bias=None, diagonal_alignment=None, **band):
        assert generate_stats is False
        assert bias is None or diagonal_alignment is None
        assert band == ({"diagonal_band_right_bound": 0} if diagonal_alignment else {})
        self.tensors, self.scale = (_Tensor(), q, k, v) + (bias,) * (bias is not None), attn_scale
        self.causal = diagonal_alignment.value if diagonal_alignment else 0
        return [self.tensors[0], None]

    def bias(self, x, bias):
        self.bias_ = bias
        return x

    def __getattr__(self, name):
        def apply(x):
            self.activation = ACTIVATIONS[name]
            return x

        if name not in ACTIVATIONS:
            raise AttributeError(name)
        return apply

    def validate(self):
        pass

    def build_operation_graph(self):
        if self.frontend.status:
            raise RuntimeError(f"finalize failed, and code: CUDNN_STATUS_{self.frontend.status}")
        if len(self.tensors) > 3:
            return self._check_attention()
        image, filter, result = self.tensors
        assert image.dim[0] == result.dim[0]
        assert filter.dim[0] == result.dim[1]
        assert image.dim[1] % filter.dim[1] == 0
        for d in range(len(self.stride)):
            window = (filter.dim[2 + d] - 1) * self.dilation[d] + 1
            room = image.dim[2 + d] + self.low[d] + self.high[d] - window
            if (
                self.low[d] < 0
                or self.high[d] < 0
                or (room // self.stride[d] + 1 != result.dim[2 + d])
            ):
                raise RuntimeError("is_valid_spatial_dim, and code: CUDNN_STATUS_BAD_PARAM")

    def _check_attention(self):
        out, q, k, v, *masks = self.tensors
        assert out.dim == q.dim
        assert k.dim == v.dim
        assert (q.dim[0], q.dim[3]) == (k.dim[0], k.dim[3])
        assert q.dim[1] % k.dim[1] == 0
        for mask in masks:
            assert mask.dim[0] in (1, q.dim[0])
            assert mask.dim[1] in (1, q.dim[1])
            assert mask.dim[2:] == [q.dim[2], k.dim[2]]
        if q.dim[3] % 8 or (self.causal == Alignment.BOTTOM_RIGHT.value and q.dim[2] > k.dim[2]):
            raise NotSupported("Bottom right causal mask does not support max_s_q > max_s_kv")

    def create_execution_plans(self, modes):
        assert modes == [HeuristicMode.A]
        self.frontend.asked += 1
        if not self.frontend.plans:
            raise NotSupported("no engine")

    def deselect_numeric_notes(self, notes):
        self.barred = notes

    def get_execution_plan_count(self):
        return len(self.frontend.plans)

    def get_plan_name_at_index(self, index):
        return f"eng{index}"

    def get_workspace_size_plan_at_index(self, index):
        return self.frontend.plans[index][1]

    def build_plan_at_index(self, index):
        if self.frontend.plans[index] is None:
            raise NotSupported("Deselecting execution plan")
        if self.frontend.unbuilt.get(index):
            raise NotSupported(f"cudnnFinalize Failed cudnn_status: {self.frontend.unbuilt[index]}")
        self.frontend.built.append(index)
        if self.frontend.compiles and index not in self.modules:
            self.modules[index] = self.frontend.load()
            self.counts["loaded"] += 1

    def execute_plan_at_index(self, pointers, workspace, index, handle):
        self.frontend.launch(self, pointers, workspace, index, handle)


class Frontend:
    """What `import cudnn` would give, with what the tests set and count.

    Attributes
    ----------
    plans : list
        For each plan the launches that it makes and its bytes of workspace; None: barred.
    status : str or None
        The CUDNN_STATUS of making a graph.
    unbuilt : dict
        The CUDNN_STATUS of building a plan, by its index.
    failure : str or None
        That of a call.
    compiles : bool
        Whether a plan has code of its own, which is unloaded when its graph ends.
    copies : bool
        Whether a call copies memory too, which is no kernel.
    counts : dict
        Of that code since the last reset, ``loaded`` and ``unloaded``.
    """

    cudnnGraphNotSupportedError = NotSupported
    data_type, heur_mode, numerical_note = DataType, HeuristicMode, Note
    diagonal_alignment = Alignment

    def __init__(self):
        self.functions = {}
        self.driver = None
        self.reset()

    def reset(self):
        self.__version__, self.version = "1.28.0", 91900
        self.plans, self.status, self.failure = [(1, 0)], None, None
        self.handle_status, self.unbuilt = None, {}
        self.compiles = self.copies = False
        self.counts = {"loaded": 0, "unloaded": 0}
        self.asked = self.launched = 0
        self.graphs, self.built, self.streams = [], [], {}
        self.memory = 0  # bytes that the library holds

    def use_driver(self):
        """Compile its kernels and load them."""
        self.driver = Driver()
        self.code = compiler.compile(SOURCE, arch="compute_90").code
        self.functions = self.load()[1]

    def load(self):
        """Load its kernels; return the module, and the functions by their names."""
        module, functions = c_void_p(), {}
        with self.driver:
            self.driver("cuModuleLoadData", byref(module), self.code)
            for name in (
                "conv_FLOAT",
                "conv_HALF",
                "conv_BFLOAT16",
                "sdpa_HALF",
                "sdpa_BFLOAT16",
                "spoil",
            ):
                functions[name] = c_void_p()
                self.driver("cuModuleGetFunction", byref(functions[name]), module, name.encode())
        return module, functions

    def backend_version(self):
        if self.version is None:
            raise RuntimeError("Unable to find symbol cudnnGetVersion")
        return self.version

    def create_handle(self):
        if self.handle_status:
            raise RuntimeError(f"cudnnCreate failed: CUDNN_STATUS_{self.handle_status}")
        handle = 1000 + len(self.streams)
        while handle in self.streams:
            handle += 1
        self.streams[handle] = 0
        return handle

    def destroy_handle(self, handle):
        self.streams.pop(handle, None)

    def set_stream(self, handle, stream):
        self.streams[handle] = stream

    def pygraph(self, **options):
        return _Graph(self, **options)

    def launch(self, graph, pointers, workspace, index, handle):
        """Put the work of a plan on the handle's stream: its kernel, as often as the plan says."""
        self.launched += 1
        if self.failure:
            raise RuntimeError(f"execute failed: CUDNN_STATUS_{self.failure}")
        times, nbytes = self.plans[index]
        stream = c_void_p(self.streams[handle])
        shapes = [each.shape(pointers[i + 1]) for i, each in enumerate(graph.tensors)]
        if len(shapes) > 3:
            params = _AttentionParams(*shapes, scale=graph.scale, causal=graph.causal)
            out, rows = graph.tensors[0], graph.tensors[0].dim[:3]
            name = f"sdpa_{out.data_type.name}"
        else:
            params = _Params(*shapes, kind=graph.kind, activation=graph.activation, scale=1.0)
            self._slide(params, graph, pointers)
            out = graph.tensors[(2, 0, 1)[graph.kind]]
            name, rows = f"conv_{out.data_type.name}", out.dim
        if nbytes:
            params.counter = workspace
            self.driver("cuMemsetD8Async", c_uint64(workspace), 0, 4, stream)
        values = (c_void_p * 1)(ctypes.addressof(params))
        functions = graph.modules[index][1] if index in graph.modules else self.functions
        for _ in range(times):
            self._launch(functions[name], -(-math.prod(rows) // 128), 128, stream, values)
        if self.copies:
            where = c_uint64(pointers[2])
            self.driver("cuMemcpyDtoDAsync_v2", where, where, c_size_t(4), stream)
        if nbytes:
            counter = c_uint64(workspace)
            values = (c_void_p * 1)(ctypes.addressof(counter))
            self._launch(self.functions["spoil"], 1, 1, stream, values)

    def _slide(self, params, graph, pointers):
        """Set what a convolution's windows and its bias are."""
        params.stride[:], params.dilation[:] = _wide(graph.stride, 1), _wide(graph.dilation, 1)
        params.low[:] = _wide(graph.low, 0)
        if graph.bias_ is not None:
            params.bias, params.bias_step = pointers[4], graph.bias_.stride[1]

    def _launch(self, function, grid, block, stream, values):
        sizes = grid, 1, 1, block, 1, 1, 0
        self.driver("cuLaunchKernel", function, *sizes, stream, values, None)
