"""Kernels and modules of source: CuPy's `RawKernel` and `RawModule`; and `fuse`."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import cyrt
from cyrt.cupy_compat import RawKernel, RawModule, fuse

SOURCE = """
__constant__ float table[4];
extern "C" __global__ void add(const float* x, const float* y, float* z, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ void look_up(const int* index, float* out) {
    out[threadIdx.x] = table[index[threadIdx.x]];
}
extern "C" __global__ void reverse(float* x) {
    extern __shared__ float kept[];
    kept[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}
template <class T> __global__ void square(T* x) { x[threadIdx.x] *= x[threadIdx.x]; }
"""


@pytest.fixture(scope="module")
def module():
    return RawModule(code=SOURCE, name_expressions=["square<float>", "square<int>"])


def test_a_kernel_and_its_arguments(module):
    kernel = RawKernel(SOURCE, "add")
    x, y, z = cyrt.arange(100, dtype="float32"), cyrt.ones(100), cyrt.zeros(100)
    for add in (kernel, module.get_function("add"), pickle.loads(pickle.dumps(kernel))):
        z.fill(0)
        add((10,), (10,), (x, y, z, np.uint32(100)))
        np.testing.assert_array_equal(z.numpy(), x.numpy() + 1)
    with cyrt.Stream() as stream:
        pass
    kernel((10, 1, 1), (10, 1), [x, x, z, 100], stream=stream)
    np.testing.assert_array_equal(z.numpy(), 2 * x.numpy())
    with pytest.raises(TypeError, match="add: "):
        kernel((1,), (1,), (x, y))
    with pytest.raises(TypeError, match="argument 1.*an int is not a pointer"):
        kernel((1,), (1,), (x.ptr, y, z, 1))


def test_views_and_types_are_the_kernel_s_matter(module):
    """The address alone counts, as in CuPy."""
    add = module.get_function("add")
    x = cyrt.asarray(np.arange(6, dtype="float32").reshape(2, 3))
    z = cyrt.zeros(6, dtype="int32")
    add((1,), (6,), (x.T, x.T, z, 6))
    np.testing.assert_array_equal(z.numpy().view("float32"), 2 * np.arange(6))
    add((1,), (2,), (x[1:], x[1:], z, 2))
    np.testing.assert_array_equal(z.numpy().view("float32")[:2], [6, 8])


def test_templates(module):
    x = cyrt.arange(5, dtype="int32")
    module.get_function("square<int>")((1,), (5,), (x,))
    assert x.tolist() == [0, 1, 4, 9, 16]
    with pytest.raises(cyrt.CudaError, match="NOT_FOUND.*square<double>"):
        module.get_function("square<double>")


def test_a_module_is_pickled_as_its_source(module):
    again = pickle.loads(pickle.dumps(module))
    x = cyrt.arange(3, dtype="float32")
    again.get_function("square<float>")((1,), (3,), (x,))
    assert x.tolist() == [0, 1, 4]


def test_what_the_compiler_says():
    code = 'extern "C" __global__ void f(int* x) { int unused; x[0] = 1; }'
    for each in (RawKernel(code, "f"), RawModule(code=code)):
        log = io.StringIO()
        with pytest.warns(RuntimeWarning, match="unused"):
            each.compile(log_stream=log)
        assert "warning" in log.getvalue()


@pytest.mark.parametrize(
    ("jitify", "text"),
    [
        (True, r"^jitify=True is deprecated"),
        (False, r"^The jitify argument is deprecated.*Avoid passing jitify=False"),
    ],
)
def test_the_warning_of_jitify_begins_as_cupy_s_does_and_names_the_caller(jitify, text):
    for make in (
        lambda: RawModule(code="", jitify=jitify),
        lambda: RawKernel("", "f", jitify=jitify),
    ):
        with pytest.warns(DeprecationWarning, match=text) as warned:
            make()
        assert [each.filename for each in warned] == [__file__]


def test_variables(module):
    module.get_global("table").copy_from(np.float32([10, 20, 30, 40]))
    out = cyrt.zeros(3)
    index = cyrt.asarray([3, 0, 2], dtype="int32")
    module.get_function("look_up")((1,), (3,), (index, out))
    assert out.tolist() == [40, 10, 30]
    with pytest.raises(cyrt.CudaError, match="NOT_FOUND.*'nothing'"):
        module.get_global("nothing")


def test_shared_memory_and_attributes(module):
    kernel = module.get_function("reverse")
    x = cyrt.arange(8, dtype="float32")
    kernel((1,), (8,), (x,), shared_mem=32)
    assert x.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    found = kernel.attributes
    assert set(found) == {
        *("binary_version", "cache_mode_ca", "const_size_bytes", "local_size_bytes", "num_regs"),
        *("max_dynamic_shared_size_bytes", "max_threads_per_block", "ptx_version"),
        *("preferred_shared_memory_carveout", "shared_size_bytes"),
    }
    assert found["num_regs"] > 0
    assert found["max_threads_per_block"] > 0
    assert found["binary_version"] >= 80
    assert found["shared_size_bytes"] == 0
    assert kernel.const_size_bytes == found["const_size_bytes"]
    kernel.max_dynamic_shared_size_bytes = 50_000
    kernel.preferred_shared_memory_carveout = 50
    assert kernel.attributes["max_dynamic_shared_size_bytes"] == 50_000
    assert kernel.preferred_shared_memory_carveout == 50
    kernel((1,), (8,), (x,), shared_mem=50_000)
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_complex_numbers():
    code = r"""
#include <cupy/complex.cuh>
extern "C" __global__ void f(const complex<float>* x, complex<float>* y, complex<float> by) {
    y[threadIdx.x] = x[threadIdx.x] * by + conj(x[threadIdx.x]);
}
"""
    x = (np.arange(4) + 1j).astype("complex64")
    y = cyrt.zeros(4, dtype="complex64")
    RawKernel(code, "f")((1,), (4,), (cyrt.asarray(x), y, np.complex64(2j)))
    np.testing.assert_array_equal(y.numpy(), x * 2j + x.conj())
    code = r"""
#include <cuComplex.h>
extern "C" __global__ void f(cuDoubleComplex* x, cuDoubleComplex by, double* size) {
    x[threadIdx.x] = cuCadd(cuCmul(x[threadIdx.x], by), make_cuDoubleComplex(1, 0));
    size[threadIdx.x] = cuCabs(x[threadIdx.x]);
}
"""
    for translate in (False, True):
        y, size = cyrt.asarray(x.astype("complex128")), cyrt.zeros(4, dtype="float64")
        kernel = RawKernel(code, "f", translate_cucomplex=translate)
        kernel((1,), (4,), (y, 2 + 3j, size))
        np.testing.assert_allclose(y.numpy(), x * (2 + 3j) + 1)
        np.testing.assert_allclose(size.numpy(), np.abs(y.numpy()))


def test_a_cooperative_launch():
    code = """
__device__ unsigned arrived;
extern "C" __global__ void meet(int* out) {
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < gridDim.x) {}
    out[blockIdx.x] = 1;
}
"""
    out = cyrt.zeros(2, dtype="int32")
    kernel = RawKernel(code, "meet", enable_cooperative_groups=True)
    kernel((2,), (1,), (out,))
    assert out.tolist() == [1, 1]


def test_a_cooperative_grid_is_reduced_to_what_runs_at_once():
    code = """
extern "C" __global__ void blocks(int* out) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *out = gridDim.x;
}
"""
    kernel = RawKernel(code, "blocks", enable_cooperative_groups=True)
    per_multiprocessor = kernel.kernel.blocks_per_multiprocessor(1024)
    most = per_multiprocessor * cyrt.Device.current().multiprocessors
    out = cyrt.zeros(1, dtype="int32")
    kernel((most,), (1024,), (out,))
    assert out.item() == most
    with pytest.warns(UserWarning, match=f"reduced from {most + 1} to {most}") as warned:
        kernel((most + 1, 1, 1), (1024, 1), (out,))
    assert out.item() == most
    assert [each.filename for each in warned] == [__file__]
    with pytest.raises(ValueError, match="run at once"):
        kernel((most, 2), (1024,), (out,))


def test_files(tmp_path):
    ptx = cyrt.Module(SOURCE)._image(0).code
    if not ptx.startswith(b"//"):
        pytest.skip("the device takes cubins")
    (tmp_path / "code.ptx").write_bytes(ptx)
    kernel = RawModule(path=str(tmp_path / "code.ptx")).get_function("reverse")
    x = cyrt.arange(4, dtype="float32")
    kernel((1,), (4,), (x,), shared_mem=16)
    assert x.tolist() == [3, 2, 1, 0]
    with pytest.raises(cyrt.CudaError, match="FILE_NOT_FOUND.*none.cubin"):
        RawModule(path=str(tmp_path / "none.cubin")).get_function("f")


def test_it_is_compiled_at_first_use(module):
    wrong = RawModule(code="broken")
    with pytest.raises(cyrt.CompileError):
        wrong.compile()
    with pytest.raises(cyrt.CompileError, match="no precision"):
        RawModule(code="#if P == 3\n#error no precision\n#endif", options=("-DP=3",)).compile()
    with pytest.raises(cyrt.CudaError, match="no kernel 'none'"):
        module.get_function("none")


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ({}, TypeError, "exactly one of code= and path="),
        ({"code": "", "path": "x"}, TypeError, "exactly one of code= and path="),
        ({"code": "", "backend": "clang"}, ValueError, "backend: expected 'nvrtc' or 'nvcc'"),
        ({"path": "x", "name_expressions": ["f"]}, ValueError, "for source only"),
        ({"code": "", "backend": "nvcc", "name_expressions": ["f"]}, ValueError, "nvrtc"),
    ],
)
def test_wrong_modules(how, error, text):
    with pytest.raises(error, match=text):
        RawModule(**how)


def test_fuse_leaves_functions_as_they_are():
    def plain(x, y):
        """A function."""
        return (x - y) * (x - y)

    assert fuse(plain) is plain
    assert fuse()(plain) is plain
    assert fuse(kernel_name="named")(plain) is plain
    assert fuse(plain)(cyrt.asarray([3.0]), 1).tolist() == [4.0]
    with pytest.raises(TypeError, match="fuse: expected a function, got int"):
        fuse(3)
