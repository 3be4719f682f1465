"""Kernels from source: signatures, arguments, geometry, launches."""

from __future__ import annotations

import ctypes
import struct

import ml_dtypes
import numpy as np
import pytest

import cyrt

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(scope="module")
def saxpy():
    return cyrt.Kernel(SAXPY, "saxpy")


def device(array):
    buffer = cyrt.Buffer(array.nbytes)
    buffer.copy_from(array)
    return buffer


def host(buffer, dtype):
    out = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    buffer.copy_to(out)
    return out


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 100_003])
def test_saxpy(saxpy, rng, n):
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    dx, dy = device(x), device(y)
    saxpy[-(-n // 256), 256](2.5, dx, dy, n)
    np.testing.assert_allclose(host(dy, np.float32), np.float32(2.5) * x + y, rtol=1e-6)


def test_signature_is_read(saxpy):
    assert saxpy.signature == "void saxpy(float a, const float* x, float* y, int n)"
    assert [
        p.writes
        for p in saxpy.module._signature("saxpy", saxpy.module._function("saxpy", 0)).parameters
    ] == [False, False, True, False]


def test_properties(saxpy):
    assert saxpy.registers > 0
    assert saxpy.max_threads >= 128
    assert saxpy.shared_bytes == 0
    assert saxpy.local_bytes == 0
    grid, block = saxpy.suggest(1 << 20)
    assert 32 <= block <= 1024
    assert grid > 0
    assert saxpy.blocks_per_multiprocessor(256) > 0


def test_templates_by_name_expression(rng):
    source = """
    template <class T> __global__ void axpy(T a, const T* x, T* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }
    extern "C" __global__ void plain(int* x) { *x = 7; }
    """
    module = cyrt.Module(source, names=["axpy<float>", "axpy<double>"])
    assert set(module.names) >= {"axpy<float>", "axpy<double>", "plain"}
    for dtype in (np.float32, np.float64):
        x, y = rng.random(50).astype(dtype), rng.random(50).astype(dtype)
        dx, dy = device(x), device(y)
        module[f"axpy<{'float' if dtype is np.float32 else 'double'}>"][2, 32](3, dx, dy, 50)
        np.testing.assert_allclose(host(dy, dtype), y + 3 * x, rtol=1e-6)
    one = cyrt.Buffer(4)
    module["plain"][1, 1](one)
    assert host(one, np.int32)[0] == 7


def test_plain_cpp_kernel_by_its_name():
    kernel = cyrt.Kernel(
        "namespace deep { __global__ void set(int* x, int v) { *x = v; } }", "deep::set"
    )
    out = cyrt.Buffer(4)
    kernel[1, 1](out, 11)
    assert host(out, np.int32)[0] == 11


ECHO = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __global__ void echo(T value, T* out) { *out = value; }
"""
SCALARS = {
    "bool": ("?", [True, False, np.bool_(True), 1, 0], [2, -1, "x", 1.0]),
    "signed char": ("b", [-128, 127, np.int8(-3)], [128, -129, 1.0, "1", None]),
    "unsigned char": ("B", [0, 255], [-1, 256]),
    "short": ("h", [-32768, 32767], [32768]),
    "unsigned short": ("H", [65535], [65536, -1]),
    "int": (
        "i",
        [-(2**31), 2**31 - 1, np.int64(5), True],
        [2**31, -(2**31) - 1, 2.0, np.float32(1)],
    ),
    "unsigned": ("I", [0, 2**32 - 1], [-1, 2**32]),
    "long long": ("q", [-(2**63), 2**63 - 1], [2**63, 2**70]),
    "unsigned long long": ("Q", [0, 2**64 - 1], [-1, 2**64]),
    "float": (
        "f",
        [1.5, 3, np.float64(2.25), float("inf"), -0.0, np.float16(0.5)],
        [1e300, "1", 1j, None, [1.0]],
    ),
    "double": ("d", [1e300, 7, np.float32(1.5)], ["1", 1j, None]),
    "long double": ("d", [0.1, -3], ["1", 1j, None, [1.0]]),
    "__half": ("e", [0.5, 65504.0, 1, float("-inf")], [1e6, "x"]),
}


@pytest.fixture(scope="module")
def echo():
    return cyrt.Module(ECHO, names=[f"echo<{t}>" for t in [*SCALARS, "__nv_bfloat16"]])


@pytest.mark.parametrize("ctype", SCALARS)
def test_scalars_arrive_as_declared(echo, ctype):
    code, values, _ = SCALARS[ctype]
    size = struct.calcsize(code)
    out = cyrt.Buffer(size)
    for value in values:
        echo[f"echo<{ctype}>"][1, 1](value, out)
        raw = bytearray(size)
        out.copy_to(raw)
        plain = value.item() if hasattr(value, "item") else value
        assert raw == struct.pack(code, plain), (value, raw)


@pytest.mark.parametrize("ctype", [*SCALARS, "__nv_bfloat16"])
def test_scalars_beside_arrays(echo, ctype):
    """The quick way, which packs Python's numbers in C."""
    if ctype == "long double":
        pytest.skip("no array has elements of this type")
    code, values, refused = SCALARS.get(ctype, ("e", [1.5, -2, float("inf")], [3.4e38, "x"]))
    dtype = "bfloat16" if ctype == "__nv_bfloat16" else np.dtype(code).name
    out, kernel = cyrt.zeros(1, dtype), echo[f"echo<{ctype}>"]
    for value in values:
        kernel[1, 1](value, out)
        expected = np.asarray(value).astype(np.float64 if code in "fde" else np.dtype(code))
        assert out.numpy().astype(expected.dtype)[0] == expected, value
    for value in refused:
        with pytest.raises((ValueError, TypeError), match=r"echo<.*>: argument 1 \("):
            kernel[1, 1](value, out)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_integers_of_unknown_sign_beside_arrays(size):
    """Compiled code without a signature tells a parameter's size only."""
    kernel = cyrt.Kernel(
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        f".visible .entry k(.param .u{8 * size} v, .param .u64 x) {{\n"
        f"  .reg .b{max(16, 8 * size)} %v; .reg .b64 %x;\n"
        "  ld.param.u64 %x, [x]; cvta.to.global.u64 %x, %x;\n"
        f"  ld.param.u{8 * size} %v, [v]; st.global.u{8 * size} [%x], %v; ret;\n}}\n",
        "k",
    )
    out, bits = cyrt.zeros(1, f"uint{8 * size}"), 8 * size
    for value in (0, 5, -1, -(1 << bits - 1), (1 << bits) - 1):
        kernel[1, 1](value, out)
        assert out.item() == value % (1 << bits)
    for value in (1 << bits, -(1 << bits - 1) - 1):
        with pytest.raises(ValueError, match="out of range"):
            kernel[1, 1](value, out)


@pytest.mark.parametrize("ctype", SCALARS)
def test_scalars_out_of_range_or_of_another_type(echo, ctype):
    out = cyrt.Buffer(16)
    for value in SCALARS[ctype][2]:
        with pytest.raises((ValueError, TypeError), match=r"echo<.*>: argument 1 \(") as caught:
            echo[f"echo<{ctype}>"][1, 1](value, out)
        assert "void echo" in str(caught.value)


@pytest.mark.parametrize("value", [1.0, 3.14159, -2.5e-40, 65280.0, 1e38, float("inf")])
def test_bfloat16_rounds_to_nearest(echo, value):
    out = cyrt.Buffer(2)
    echo["echo<__nv_bfloat16>"][1, 1](value, out)
    expected = np.float32(value).astype(ml_dtypes.bfloat16)
    assert host(out, np.uint16)[0] == expected.view(np.uint16)


def test_structs_by_value():
    kernel = cyrt.Kernel(
        """
        struct Plane { float normal[3]; double offset; int id; };
        extern "C" __global__ void use(Plane p, float4 q, double* out) {
            out[0] = p.normal[2]; out[1] = p.offset; out[2] = p.id; out[3] = q.w;
        }
        """,
        "use",
    )
    plane = np.zeros(
        (), np.dtype([("normal", "f4", 3), ("offset", "f8"), ("id", "i4")], align=True)
    )
    plane["normal"], plane["offset"], plane["id"] = [1, 2, 3], 0.5, 42
    out = cyrt.Buffer(32)
    kernel[1, 1](plane[()], np.arange(4, dtype=np.float32), out)
    assert host(out, np.float64).tolist() == [3.0, 0.5, 42.0, 3.0]
    kernel[1, 1](plane.tobytes(), struct.pack("4f", 0, 0, 0, 9), out)
    assert host(out, np.float64)[3] == 9
    with pytest.raises(ValueError, match=r"argument 1 \(Plane.*expected 32 bytes, got 31"):
        kernel[1, 1](bytes(31), bytes(16), out)
    with pytest.raises(TypeError, match="expected 16 bytes: a bytes object"):
        kernel[1, 1](plane.tobytes(), 1.5, out)
    with pytest.raises(ValueError, match=r"argument 2 \(float4.*expected 16 bytes, got 12"):
        kernel[1, 1](plane, np.zeros(3, np.float32), out)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int16), ("b", ctypes.c_double))


PAIR = [("a", "i2"), ("b", "f8")]


@pytest.fixture(scope="module")
def pair():
    return cyrt.Kernel(
        "struct Pair { short a; double b; };"
        'extern "C" __global__ void use(Pair p, double* out) { *out = p.a + p.b; }',
        "use",
    )


@pytest.mark.parametrize(
    "value",
    [
        Pair(3, 0.5),
        np.array((3, 0.5), np.dtype(PAIR, align=True)),
        np.array([(3, 0.5)], np.dtype(PAIR, align=True))[0],
        struct.pack("hxxxxxxd", 3, 0.5),
        memoryview(struct.pack("hxxxxxxd", 3, 0.5)),
        bytearray(struct.pack("hxxxxxxd", 3, 0.5)),
    ],
)
def test_structs_from_all_that_has_bytes(pair, value):
    out = cyrt.Buffer(8)
    pair[1, 1](value, out)
    assert host(out, np.float64)[0] == 3.5


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (np.zeros((), PAIR), ValueError, r"expected 16 bytes, got 10; np\.dtype\(.*align=True\)"),
        (np.zeros((), np.dtype(PAIR, align=True).newbyteorder(">")), TypeError, "byte order"),
        (np.array([1, 2], object), TypeError, "expected 16 bytes .* got object"),
        ((3, 0.5), TypeError, "a NumPy structured scalar or a ctypes structure, got tuple"),
        (b"3", ValueError, "expected 16 bytes, got 1$"),
        (None, TypeError, "got NoneType"),
        (1, TypeError, "a NumPy structured scalar or a ctypes structure, got int"),
        (np.clongdouble(1), TypeError, "a NumPy structured scalar or a ctypes structure, got"),
    ],
)
def test_structs_refused(pair, value, error, match):
    with pytest.raises(error, match=rf"(?m)use: argument 1 \(Pair p\): .*{match}"):
        pair[1, 1](value, cyrt.Buffer(8))


def test_launches_are_called_in_every_way(saxpy):
    x, y = device(np.ones(1, np.float32)), device(np.zeros(1, np.float32))
    launch, args = saxpy[1, 1], (1.0, x, y, 1)
    launch(*args)
    launch(1.0, x, y, 1, writes=[y])
    launch(*args, **{"reads": [x]})
    launch.__call__(*args)
    list(map(launch, *([a] for a in args)))
    assert host(y, np.float32)[0] == 5
    for bad in ("n", "a"):
        message = rf"saxpy: .* not {bad}=: cooperative= .* CommandEncoder\.add_kernel"
        with pytest.raises(TypeError, match=message):
            launch(*args, **{"reads": [], bad: 1})


@pytest.mark.parametrize("make", [cyrt.Kernel, lambda code, name, **how: cyrt.Module(code, **how)])
def test_the_architecture_is_no_option(make):
    with pytest.raises(ValueError, match="'-arch=sm_70' .*the device.s architecture") as caught:
        make(SAXPY, "saxpy", options=["-arch=sm_70"])
    assert "arch=," not in str(caught.value)


def test_large_parameters():
    kernel = cyrt.Kernel(
        "struct Big { int v[1000]; };"
        'extern "C" __global__ void last(Big b, int* out) { *out = b.v[999]; }',
        "last",
    )
    out = cyrt.Buffer(4)
    kernel[1, 1](np.arange(1000, dtype=np.int32), out)
    assert host(out, np.int32)[0] == 999


def test_enumerations_and_references_to_types():
    kernel = cyrt.Kernel(
        "enum class Mode : int { a, b = 5 }; using real = double; typedef unsigned short u;"
        'extern "C" __global__ void k(Mode m, real r, u s, size_t n, double* out) {'
        " out[0] = (int)m; out[1] = r; out[2] = s; out[3] = n; }",
        "k",
    )
    out = cyrt.Buffer(32)
    kernel[1, 1](5, 2.5, 65535, 2**40, out)
    assert host(out, np.float64).tolist() == [5, 2.5, 65535, 2**40]
    with pytest.raises(ValueError, match="argument 3"):
        kernel[1, 1](5, 2.5, 65536, 1, out)


STRUCT = ".param .align 4 .b8 value[8]"
ENUMERATION = ".param .u64 value"


def words(parameter):
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z1k4Type({parameter}) {{ ret; }}
"""


@pytest.mark.parametrize("signature", [None, "void k(Type value)"])
@pytest.mark.parametrize("value", [1, np.float64(1), np.array(1)])
def test_only_an_enumeration_is_an_integer(value, signature):
    """PTX tells a struct from an enumeration, neither of which the type's name does."""
    cyrt.Kernel(words(ENUMERATION), "_Z1k4Type", signature=signature)[1, 1](value)
    kernel = cyrt.Kernel(words(STRUCT), "_Z1k4Type", signature=signature)
    kernel[1, 1](bytes(8))
    kernel[1, 1](np.array([1, 2], np.int32))
    with pytest.raises(TypeError, match=r"Type: argument 1 \(Type.*: expected 8 bytes: .*, got "):
        kernel[1, 1](value)


def test_a_type_of_a_cubin_may_be_an_enumeration(monkeypatch):
    """A cubin has no declarations: its parameters have sizes, and the symbol the types' names."""
    monkeypatch.setattr(cyrt.Module, "_compiled_signature", lambda *_: None)
    kernel = cyrt.Kernel(words(STRUCT), "_Z1k4Type")
    for value in (1, -1, np.int64(1), np.float64(1), bytes(8), np.zeros(2, np.int32)):
        kernel[1, 1](value)
    for value in (1.0, "a", cyrt.asarray(1)):
        with pytest.raises(TypeError, match=r"argument 1 \(Type\): expected 8 bytes: .*, got "):
            kernel[1, 1](value)


@pytest.mark.parametrize(
    "kernel",
    [
        'extern "C" __global__ void k(const float* x, int& n) {}',
        "template<class T> __global__ void k(T n) {}",
    ],
)
def test_a_reference_is_refused(kernel):
    with pytest.raises(TypeError, match=r"int&( n)?: a kernel takes no references; pass a value"):
        cyrt.Kernel(kernel, "k<int&>" if "template" in kernel else "k")


def test_complex():
    kernel = cyrt.Kernel(
        "#include <cuComplex.h>\n"
        'extern "C" __global__ void k(cuFloatComplex z, cuDoubleComplex w, double* out)'
        "{ out[0] = z.x; out[1] = z.y; out[2] = w.x; out[3] = w.y; }",
        "k",
    )
    out = cyrt.Buffer(32)
    kernel[1, 1](1 + 2j, 3 - 4j, out)
    assert host(out, np.float64).tolist() == [1, 2, 3, -4]


@pytest.mark.parametrize("type", ["float2", "double2"])
def test_what_is_no_complex_number_is_refused(type):
    source = f'extern "C" __global__ void k({type} z, float* out) {{ *out = z.x; }}'
    kernel = cyrt.Kernel(source, "k")
    out = cyrt.zeros(4)
    launches = (
        kernel[1, 1],
        lambda *args: kernel.for_each(1, *args),
        lambda *args: cyrt.current_encoder().add_kernel(kernel, 1, 1, args),
    )
    message = rf"k: argument 1 \({type} z\): expected a complex number"
    for launch in launches:
        for value in ((1, 2), None, "a", [1, 2], out):
            with pytest.raises(TypeError, match=message):
                launch(value, out)
    assert not out.numpy().any()


def test_null_and_foreign_pointers():
    kernel = cyrt.Kernel(
        'extern "C" __global__ void k(const int* maybe, int* out) { *out = maybe ? *maybe : -1; }',
        "k",
    )
    value = device(np.array([6], np.int32))
    out = cyrt.Buffer(4)
    kernel[1, 1](None, out)
    assert host(out, np.int32)[0] == -1
    kernel[1, 1](cyrt.pointer(value.ptr, 4), out)
    assert host(out, np.int32)[0] == 6

    class Array:
        def __init__(self):
            self.__cuda_array_interface__ = {
                "shape": (1,),
                "typestr": "<i4",
                "data": (value.ptr, True),
                "version": 3,
            }

    out.fill(0)
    kernel[1, 1](Array(), out)
    assert host(out, np.int32)[0] == 6
    with pytest.raises(ValueError, match="argument 2 .*read-only"):
        kernel[1, 1](value, Array())


@pytest.mark.parametrize("bad", [0, 140_000_000, "p", 1.5, np.zeros(4, np.float32), object()])
def test_what_is_no_pointer(saxpy, bad):
    x = cyrt.Buffer(16)
    with pytest.raises(TypeError, match=r"saxpy: argument 2 \(const float\*"):
        saxpy[1, 1](1.0, bad, x, 1)


def test_freed_buffer(saxpy):
    x, y = cyrt.Buffer(16), cyrt.Buffer(16)
    y.free()
    with pytest.raises(ValueError, match=r"argument 3 .*was freed already"):
        saxpy[1, 1](1.0, x, y, 1)


@pytest.mark.parametrize("freed", [2, 3])
def test_an_argument_whose_own_code_frees_another_one(saxpy, freed):
    x, y = cyrt.Buffer(16), cyrt.Buffer(16)

    class Count:
        def __index__(self):
            (x if freed == 2 else y).free()
            return 1

    with pytest.raises(ValueError, match=rf"argument {freed} .*was freed already"):
        saxpy[1, 1](1.0, x, y, Count())


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, None, None, 1, 2)])
def test_number_of_arguments(saxpy, args):
    with pytest.raises(TypeError, match=rf"expected 4 arguments, got {len(args)}\n  void saxpy"):
        saxpy[1, 1](*args)


@pytest.mark.parametrize(
    ("grid", "block", "error"),
    [
        (0, 1, ValueError),
        (1, 0, ValueError),
        ((1, 0), 1, ValueError),
        (-1, 1, ValueError),
        ((1, 1, 1, 1), 1, ValueError),
        ((), 1, ValueError),
        (1.5, 1, TypeError),
        ("1", 1, TypeError),
        (True, 1, TypeError),
        (1, None, TypeError),
        (1 << 32, 1, ValueError),
    ],
)
def test_geometry_refused(saxpy, grid, block, error):
    with pytest.raises(error, match="expected"):
        saxpy[grid, block]


def test_geometry_over_the_limits(saxpy):
    x, y = device(np.ones(4, np.float32)), device(np.ones(4, np.float32))
    with pytest.raises(ValueError, match=r"a block of \(1025, 1, 1\) has 1,025 threads"):
        saxpy[1, 1025](1.0, x, y, 1)
    with pytest.raises(ValueError, match=r"grid \(1, 65536, 1\): y is at most 65,535"):
        saxpy[(1, 65536), 1](1.0, x, y, 1)
    with pytest.raises(ValueError, match=r"block \(1, 1, 65\): z is at most 64"):
        saxpy[1, (1, 1, 65)](1.0, x, y, 1)
    saxpy[1, 1](1.0, x, y, 1)
    cyrt.synchronize()


def test_too_many_threads_for_the_kernel():
    kernel = cyrt.Kernel(
        'extern "C" __global__ void __launch_bounds__(64) k(int* x) { *x = 1; }', "k"
    )
    with pytest.raises(ValueError, match=r"has 65 threads.*64"):
        kernel[1, 65](cyrt.Buffer(4))


@pytest.mark.parametrize("config", [1, (1,), (1, 2, 3, 4), None])
def test_config_wants_grid_and_block(config):
    kernel = cyrt.Kernel(SAXPY, "saxpy")  # never launched: nothing is remembered
    with pytest.raises(TypeError, match=r"expected \[grid, block\]"):
        kernel[config]


def test_three_dimensions():
    kernel = cyrt.Kernel(
        'extern "C" __global__ void k(int* out) {'
        " int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);"
        " int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);"
        " int i = b * blockDim.x * blockDim.y * blockDim.z + t; out[i] = i; }",
        "k",
    )
    out = cyrt.Buffer(4 * 2 * 3 * 4 * 5 * 6 * 7)
    out.fill(255)
    kernel[(2, 3, 4), (5, 6, 7)](out)
    assert np.array_equal(host(out, np.int32), np.arange(2 * 3 * 4 * 5 * 6 * 7))


@pytest.mark.parametrize("nbytes", [1024, 48 << 10, 100 << 10, 227 << 10])
def test_dynamic_shared_memory(nbytes):
    if nbytes > cyrt.Device().attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"):
        pytest.skip(f"the device has less than {nbytes} bytes of shared memory for a block")
    kernel = cyrt.Kernel(
        'extern "C" __global__ void k(int n, int* out) { extern __shared__ int s[];'
        " for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i; __syncthreads();"
        " int sum = 0; for (int i = threadIdx.x; i < n; i += blockDim.x) sum += s[n - 1 - i];"
        " atomicAdd(out, sum); }",
        "k",
    )
    n = nbytes // 4
    out = cyrt.Buffer(4)
    out.fill(0)
    kernel[1, 128, nbytes](n, out)
    assert host(out, np.int32)[0] == np.arange(n, dtype=np.int64).sum().astype(np.int32)


def test_too_much_shared_memory(saxpy):
    x = cyrt.Buffer(16)
    with pytest.raises(ValueError, match=r"1,000,000 bytes of dynamic .* shared memory"):
        saxpy[1, 1, 1_000_000](1.0, x, x, 1)
    with pytest.raises(ValueError, match="smem"):
        saxpy[1, 1, -1]


def test_compile_error_shows_the_line():
    with pytest.raises(cyrt.CompileError) as caught:
        cyrt.Kernel('extern "C" __global__ void k(int* x) {\n  *x = undefined_name;\n}', "k")
    assert "undefined_name" in str(caught.value)
    assert "*x = undefined_name;" in str(caught.value)
    assert caught.value.log


def test_kernel_not_in_the_source():
    with pytest.raises((KeyError, cyrt.CompileError), match="sxapy"):
        cyrt.Kernel(SAXPY, "sxapy")
    with pytest.raises(KeyError, match=r"no kernel 'other'; it has saxpy"):
        cyrt.Module(SAXPY)["other"]


@pytest.mark.parametrize("code", [None, 5, ["x"]])
def test_code_of_another_type(code):
    with pytest.raises(TypeError, match="code: expected"):
        cyrt.Kernel(code, "k")


def test_all_or_nothing(saxpy):
    """An argument that is refused leaves no trace of the ones before it."""
    x, y = device(np.ones(4, np.float32)), device(np.ones(4, np.float32))
    with pytest.raises(TypeError):
        saxpy[1, 4](1.0, x, y, "4")
    assert host(y, np.float32).tolist() == [1, 1, 1, 1]


def test_threads_launch_together(saxpy):
    import threading

    results = []

    def work(scale):
        x, y = device(np.full(1000, scale, np.float32)), device(np.zeros(1000, np.float32))
        for _ in range(50):
            saxpy[4, 256](1.0, x, y, 1000)
        results.append((host(y, np.float32) == 50 * scale).all())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 4


def test_numpy_0d(saxpy):
    x, y = device(np.ones(1, np.float32)), device(np.zeros(1, np.float32))
    saxpy[1, 1](np.array(2.0), x, y, np.array(1))
    assert host(y, np.float32)[0] == 2


OF_CTYPES = """
extern "C" __global__ void scalars(double* out, int i, unsigned char b, float f, double d, bool t,
                                   long long w) {
    out[0] = i; out[1] = b; out[2] = f; out[3] = d; out[4] = t; out[5] = w;
}
"""


def test_scalars_of_ctypes():
    kernel = cyrt.Kernel(OF_CTYPES, "scalars")
    out = cyrt.zeros(6, dtype="float64")
    kernel[1, 1](
        out,
        ctypes.c_int(-3),
        ctypes.c_ubyte(200),
        ctypes.c_float(0.5),
        ctypes.c_double(0.1),
        ctypes.c_bool(True),
        ctypes.c_longlong(-(2**40)),
    )
    assert out.tolist() == [-3, 200, 0.5, 0.1, 1, -(2.0**40)]
    kernel[1, 1](out, ctypes.c_long(7), 1, ctypes.c_double(2.0), ctypes.c_float(3), False, 1)
    assert out.tolist() == [7, 1, 2, 3, 0, 1]
    for value, message in (
        (ctypes.c_float(1.5), r"argument 2 \(int i\): expected an int, got float"),
        (ctypes.c_longlong(2**40), r"argument 2 \(int i\): 1099511627776 is out of range"),
        (ctypes.c_char(b"a"), r"argument 2 \(int i\): expected an int, got bytes"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            kernel[1, 1](out, value, 1, 1.0, 1.0, True, 1)


PTX_OF_WORDS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry words(.param .u64 out, .param .b32 x) {
    .reg .b32 %r1; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd2, %rd1;
    ld.param.b32 %r1, [x]; st.global.b32 [%rd2], %r1; ret;
}
"""


def test_scalars_of_ctypes_where_only_their_size_is_known():
    kernel = cyrt.Kernel(PTX_OF_WORDS, "words")
    out = cyrt.zeros(1)
    kernel[1, 1](out, ctypes.c_float(1.25))
    assert out.tolist() == [1.25]
    with pytest.raises(ValueError, match="expected 4 bytes, got 8"):
        kernel[1, 1](out, ctypes.c_double(1.25))
