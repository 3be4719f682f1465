"""Arrays as kernel arguments: their element type, layout and alignment fit the declaration."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cyrt
from cyrt.dtypes import DTYPES

NAMES = [each.name for each in DTYPES]

# C++ pointee to the element types that fit it, beside those that take every type.
FITS = {
    "bool": {"bool", "int8", "uint8"},
    "short": {"int16"}, "unsigned short": {"uint16"}, "int": {"int32"}, "unsigned": {"uint32"},
    "long": {"int64"}, "long long": {"int64"}, "unsigned long": {"uint64"}, "size_t": {"uint64"},
    "float": {"float32"}, "double": {"float64"}, "__half": {"float16"},
    "__nv_bfloat16": {"bfloat16"}, "__half2": {"float16"}, "__nv_bfloat162": {"bfloat16"},
    "float2": {"float32", "complex64"}, "float3": {"float32"}, "float4": {"float32", "complex64"},
    "double2": {"float64", "complex128"}, "int4": {"int32"}, "ulonglong2": {"uint64"},
    "cuFloatComplex": {"complex64", "float32"}, "cuDoubleComplex": {"complex128", "float64"},
    "cuda::std::complex<float>": {"complex64", "float32"}, "float*": {"int64", "uint64"},
}  # fmt: skip
EVERY = ["void", "char", "signed char", "unsigned char", "uchar4", "Unknown", "Mode"]

HEADERS = """
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
struct Unknown { float a; int b; };
enum class Mode : int { one };
namespace cuda { namespace std { template <class T> struct alignas(2 * sizeof(T)) complex {
    T parts[2]; }; } }
"""


class Foreign:
    """Another library's array over an Array's memory, by one of the protocols."""

    def __init__(self, array, protocol, **fields):
        self.array, self.dtype = array, array.dtype
        if protocol == "dlpack" or array.dtype == "bfloat16":  # the interface has none
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__
        else:
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **fields}


@pytest.fixture(params=["own", "interface", "dlpack"])
def as_argument(request):
    """How an array goes to a kernel: as itself, or as another library's."""
    if request.param == "own":
        return lambda array: array
    return lambda array: Foreign(array, request.param)


@pytest.fixture(scope="module")
def module():
    kernels = "".join(
        f'extern "C" __global__ void k{i}({pointee}* x) {{}}\n'
        f'extern "C" __global__ void c{i}(const {pointee}* x) {{}}\n'
        for i, pointee in enumerate([*FITS, *EVERY])
    )
    return cyrt.Module(HEADERS + kernels)


@pytest.mark.parametrize("pointee", [*FITS, *EVERY])
def test_element_types(module, pointee):
    i = [*FITS, *EVERY].index(pointee)
    for kernel in (module[f"k{i}"], module[f"c{i}"]):
        for name in NAMES:
            x = cyrt.zeros(48, dtype=name)
            if name in FITS.get(pointee, NAMES):
                kernel[1, 1](x)
                continue
            with pytest.raises(TypeError) as caught:
                kernel[1, 1](x)
            text = str(caught.value)
            assert re.match(rf"{kernel.name}: argument 1 \(.*\* x\): expected an array of ", text)
            assert f"got an array of {name}, shape (48,), strides ({x.itemsize},)" in text
            fits = sorted(FITS[pointee], key=NAMES.index)
            if x.dtype.kind == "c":
                whole = [each for each in fits if each.startswith("complex")]
                fits = whole or fits
                assert (".real.astype(" in text) == (not whole)
            assert f".astype('{fits[0]}')" in text
            assert all(each in text for each in FITS[pointee])


@pytest.mark.parametrize(
    ("name", "fits"),
    [("float32", True), ("float64", False), ("int32", False), ("complex64", False)],
)
def test_element_types_of_every_kind_of_array(module, as_argument, name, fits):
    kernel = module[f"k{[*FITS].index('float')}"]
    x = as_argument(cyrt.zeros(6, dtype=name))
    if fits:
        kernel[1, 1](x)
    else:
        with pytest.raises(TypeError, match=rf"expected an array of float32, got.*{name}"):
            kernel[1, 1](x)


def test_bfloat16_and_types_that_cyrt_lacks(module):
    x = cyrt.zeros(8, dtype="bfloat16")
    module[f"k{[*FITS].index('__nv_bfloat16')}"][1, 1](Foreign(x, "dlpack"))
    half = module[f"k{[*FITS].index('__half')}"]
    with pytest.raises(TypeError, match="expected an array of float16, got an array of bfloat16"):
        half[1, 1](Foreign(x, "dlpack"))
    y = cyrt.zeros(8, dtype="int64")
    longs = module[f"k{[*FITS].index('long')}"]
    with pytest.raises(TypeError, match="expected an array of int64"):
        longs[1, 1](Foreign(y, "interface", typestr="<M8"))
    longs[1, 1](Foreign(y, "interface", typestr="|V8"))  # the type tells a size only
    module[f"k{len(FITS)}"][1, 1](Foreign(y, "interface", typestr="<M8"))


def test_memory_without_a_dtype_is_bytes(module):
    """RMM's and cuda.core's buffers tell one-byte integers by protocols that want a type."""
    x = Foreign(cyrt.zeros(16, dtype="uint8"), "interface")
    kernel = module[f"k{[*FITS].index('float')}"]
    with pytest.raises(TypeError):
        kernel[1, 1](x)
    del x.dtype
    kernel[1, 1](x)


def test_a_structured_array_of_the_host(module):
    """asarray() refuses one; a Buffer takes its bytes."""
    kernel = module[f"k{[*FITS, *EVERY].index('Unknown')}"]
    x = np.zeros(4, [("a", np.float32), ("b", np.int32)])
    with pytest.raises(TypeError, match=r"argument 1 .* cyrt\.Buffer\(x\.nbytes\), .*copy_from"):
        kernel[1, 1](x)
    buffer = cyrt.Buffer(x.nbytes)
    buffer.copy_from(x)
    kernel[1, 1](buffer)
    with pytest.raises(TypeError, match=r"argument 1 .* cyrt\.asarray\(\) copies it"):
        kernel[1, 1](x["a"])


def test_buffers_are_not_checked(module):
    buffer = cyrt.Buffer(50)
    for pointee in ("float", "float4", "double2"):
        module[f"k{[*FITS].index(pointee)}"][1, 1](buffer)
        module[f"k{[*FITS].index(pointee)}"][1, 1](cyrt.pointer(buffer.ptr + 2, 6))


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 .ptr .global .align 1 y) { ret; }
"""


def test_ptx_is_checked_where_it_is_declared():
    x = cyrt.arange(8, dtype="float64")[::2]
    cyrt.Kernel(PTX, "k")[1, 1](x, cyrt.broadcast_to(x, (3, 4)))
    kernel = cyrt.Kernel(PTX, "k", signature="void k(float* x, const double* y)")
    with pytest.raises(TypeError, match=r"argument 1 \(float\* x\).*float64, shape \(4,\)"):
        kernel[1, 1](x, x)
    with pytest.raises(ValueError, match=r"argument 2 \(const double\* y\)"):
        kernel[1, 1](None, x)


# -- layout ----------------------------------------------------------------------------------------

ADD = """
extern "C" __global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1;
}
extern "C" __global__ void columns(const float* x, int row, int column, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i / 3 * row + i % 3 * column] + 1;
}
"""
VIEWS = {
    "column": lambda m: m[:, 3],
    "reversed": lambda m: m[::-1],
    "stepped": lambda m: m[0, ::2],
    "transposed": lambda m: m.T,
    "part of rows": lambda m: m[:, :3],
    "broadcast": lambda m: cyrt.broadcast_to(m[0], (3, 5)),
    "broadcast along the last": lambda m: cyrt.broadcast_to(m[:, :1], (4, 5)),
}
CONTIGUOUS = {
    "rows": lambda m: m[1:3],
    "one row": lambda m: m[2],
    "one element": lambda m: m[1:2, 3:4],
    "empty": lambda m: m[:, 2:2],
    "new axes": lambda m: m[:, None, :, None],
    "broadcast of nothing": lambda m: cyrt.broadcast_to(m[:, :1], (0, 4, 5)),
    "broadcast to the same": lambda m: cyrt.broadcast_to(m, (1, 4, 5)),
}


@pytest.fixture(scope="module")
def source():
    return cyrt.Module(ADD)


@pytest.fixture(scope="module")
def strided():
    return cyrt.Module(ADD, strided=True)


@pytest.fixture
def matrix():
    return cyrt.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_not_contiguous_is_refused(source, matrix, as_argument, view):
    before = matrix.numpy()
    x = VIEWS[view](matrix)
    y = cyrt.zeros(20, dtype="float32")
    tells = (
        rf"got an array of float32, shape {re.escape(str(x.shape))}, "
        rf"strides {re.escape(str(x.strides))}"
    )
    with pytest.raises(
        ValueError,
        match=r"add: argument 1 \(const float\* x\): expected a "
        rf"C-contiguous array, {tells}; .*\.copy\(\).*strided",
    ):
        source["add"][1, 32](as_argument(x), y, 20)
    with pytest.raises(ValueError, match=rf"add: argument 2 \(float\* y\): .*{tells}.*\.copy\(\)"):
        source["add"][1, 32](y, as_argument(x), 20)
    assert np.array_equal(matrix.numpy(), before)
    assert not y.numpy().any()


@pytest.mark.parametrize("view", CONTIGUOUS)
def test_what_is_contiguous_is_taken(source, matrix, as_argument, view):
    x = CONTIGUOUS[view](matrix)
    expected = x.numpy() + 1
    source["add"][1, 32](as_argument(x), as_argument(x), x.size)
    assert np.array_equal(x.numpy(), expected)


@pytest.mark.parametrize("view", ["part of rows", "transposed", "broadcast", "reversed"])
def test_strided(strided, matrix, as_argument, view):
    """The pointer is that of the element whose indices are all 0."""
    x = VIEWS[view](matrix)[:, :3]
    y = cyrt.zeros(x.shape, dtype="float32")
    row, column = (step // 4 for step in x.strides)
    strided["columns"][1, 32](as_argument(x), row, column, y, y.size)
    assert np.array_equal(y.numpy(), x.numpy() + 1)


def test_strided_kernel(matrix, as_argument):
    kernel = cyrt.Kernel(ADD, "add", strided=True)
    column = matrix[:, 3]
    kernel[1, 1](as_argument(matrix), as_argument(column), 1)
    assert column.numpy().tolist() == [1, 8, 13, 18]
    with pytest.raises(TypeError, match="float64"):
        kernel[1, 1](as_argument(matrix), as_argument(cyrt.zeros((4, 4), dtype="float64")[:, 1]), 1)


@pytest.mark.parametrize("view", ["broadcast", "broadcast along the last"])
def test_a_broadcast_view_is_never_written(source, strided, matrix, as_argument, view):
    x = VIEWS[view](matrix)
    advice = r"argument 2 \(float\* y\).*read-only view.*declare the parameter const"
    with pytest.raises(ValueError, match=rf"{advice}\n"):
        strided["add"][1, 1](matrix, as_argument(x), 1)
    with pytest.raises(ValueError, match=rf"{advice} and make the kernel with strided=True\n"):
        source["add"][1, 1](matrix, as_argument(x), 1)


# -- alignment -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pointee", "name", "align", "unit"),
    [
        ("float2", "float32", 8, 8),
        ("float4", "float32", 16, 16),
        ("float3", "float32", 4, 12),
        ("__half2", "float16", 4, 4),
        ("__nv_bfloat162", "bfloat16", 4, 4),
        ("int4", "int32", 16, 16),
        ("double2", "float64", 16, 16),
        ("float4", "complex64", 16, 16),
        ("cuFloatComplex", "float32", 8, 8),
        ("uchar4", "uint8", 4, 4),
    ],
)
def test_vectors_are_whole_and_aligned(module, as_argument, pointee, name, align, unit):
    i = [*FITS, *EVERY].index(pointee)
    x = cyrt.zeros(96, dtype=name)
    for first in range(0, 12):
        for count in range(0, 13):
            part = x[first : first + count]
            for kernel in (module[f"k{i}"], module[f"c{i}"]):
                if count and first * x.itemsize % align:
                    with pytest.raises(ValueError, match=rf"multiple of {align}, got 0x.*copy"):
                        kernel[1, 1](as_argument(part))
                elif count * x.itemsize % unit:
                    with pytest.raises(
                        ValueError,
                        match=rf"multiple of {unit} bytes, got an array.*, of {part.nbytes} bytes;",
                    ):
                        kernel[1, 1](as_argument(part))
                else:
                    kernel[1, 1](as_argument(part))


def test_misaligned_memory_of_others(module):
    x = cyrt.zeros(64, dtype="uint8")
    kernel = module[f"k{[*FITS].index('float')}"]
    for offset in range(8):
        view = Foreign(
            x,
            "interface",
            typestr="<f4",
            shape=(4,),
            data=(x.__cuda_array_interface__["data"][0] + offset, False),
        )
        if offset % 4:
            with pytest.raises(ValueError, match="multiple of 4"):
                kernel[1, 1](view)
        else:
            kernel[1, 1](view)


def test_strided_vectors_are_aligned():
    kernel = cyrt.Kernel('extern "C" __global__ void k(const float2* x) {}', "k", strided=True)
    m = cyrt.zeros((4, 6), dtype="float32")
    kernel[1, 1](m[:, :3])
    with pytest.raises(ValueError, match="multiple of 8"):
        kernel[1, 1](m[:, 1:3])


# -- every way to launch ---------------------------------------------------------------------------


def launch(kernel, *args):
    kernel[1, 32](*args)


def launch_with_lists(kernel, *args):
    kernel[1, 32](*args, writes=[args[1]])


def add_kernel(kernel, *args):
    cyrt.current_encoder().add_kernel(kernel, 1, 32, args)


def for_each(kernel, *args):
    kernel.for_each(20, *args)


def tune(kernel, *args):
    kernel.tune(20, args, [32])


@pytest.mark.parametrize("run", [launch, launch_with_lists, add_kernel, for_each, tune])
@pytest.mark.parametrize(
    "make",
    [lambda: cyrt.Kernel(ADD, "add"), lambda: cyrt.Module(ADD)["add"]],
    ids=["Kernel", "Module"],
)
def test_every_way_checks(make, run, matrix):
    kernel, y = make(), cyrt.zeros(20, dtype="float32")
    with pytest.raises(TypeError, match=r"add: argument 1 .*float64"):
        run(kernel, matrix.astype("float64"), y, 20)
    for bad in (matrix.T, cyrt.broadcast_to(matrix[0], (4, 5))):
        with pytest.raises(ValueError, match=r"add: argument 2 .*strides"):
            run(kernel, matrix, bad, 20)
    assert not y.numpy().any()
    run(kernel, matrix, y, 20)
    expected = np.zeros(20) if run is tune else np.arange(20) + 1
    assert np.array_equal(y.numpy(), expected)


def test_tune_puts_back_what_lies_between(matrix):
    """A kernel that is told strides may write anywhere in what the view is of."""
    kernel = cyrt.Kernel(ADD, "add", strided=True)
    before = matrix.numpy()
    kernel.tune(4, (matrix, matrix[:, 1], 4), [32])
    assert np.array_equal(matrix.numpy(), before)


# -- arrays where no pointer is --------------------------------------------------------------------


@pytest.mark.parametrize("parameter", ["Pair s", "float4 s"])
def test_an_array_is_no_struct(as_argument, parameter):
    kernel = cyrt.Kernel(
        f'struct Pair {{ int a, b; }};extern "C" __global__ void k({parameter}) {{}}', "k"
    )
    for name in ("int64", "int32"):
        for shape in ((), (1,), (2,), (4,)):
            with pytest.raises(TypeError, match=r"k: argument 1 .*expected \d+ bytes: .*, got "):
                kernel[1, 1](as_argument(cyrt.zeros(shape, dtype=name)))


def test_an_array_for_a_number_of_unknown_sign():
    kernel = cyrt.Kernel(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 n) { ret; }",
        "k",
    )
    kernel[1, 1](cyrt.asarray(3))
    with pytest.raises(TypeError, match=r"k: argument 1"):
        kernel[1, 1](cyrt.zeros(2, dtype="int32"))


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [
        ("short", -(2**15), 2**15 - 1),
        ("int", -(2**31), 2**31 - 1),
        ("unsigned", 0, 2**32 - 1),
        ("long long", -(2**63), 2**63 - 1),
        ("unsigned long long", 0, 2**64 - 1),
    ],
)
def test_the_range_of_an_integer_is_named(type, low, high):
    kernel = cyrt.Kernel(f'extern "C" __global__ void take({type} n) {{}}', "take")
    kernel[1, 1](low)
    kernel[1, 1](high)
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"{value} is out of range, expected {low} to {high}"):
            kernel[1, 1](value)


def test_a_launch_without_a_geometry():
    kernel = cyrt.Kernel('extern "C" __global__ void take(int n) {}', "take")
    with pytest.raises(TypeError, match=r"take: a launch is written kernel\[grid, block\]"):
        kernel((1,), (8,), (3,))
