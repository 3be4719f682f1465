"""Code as bytes: PTX, damaged images, images for others."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler

SOURCE = """
__device__ int counter = 5;
__global__ void mangled(const int* in, int* out, short s) { *out = *in + s + counter; }
extern "C" __global__ void plain(int* out, float f) { *out = (int)f; }
"""


@pytest.fixture(scope="module")
def ptx():
    return compiler.compile(SOURCE, ["mangled"], arch="compute_75").code


def read(buffer):
    out = np.zeros(1, np.int32)
    buffer.copy_to(out)
    return int(out[0])


def test_ptx_with_mangled_names(ptx):
    kernel = cyrt.Kernel(ptx, "mangled")
    assert kernel.signature == "void mangled(const int*, int*, short)"
    a, b = cyrt.Buffer(4), cyrt.Buffer(4)
    a.fill(0)
    kernel[1, 1](a, b, -2)
    assert read(b) == 3


def test_ptx_without_a_signature_knows_sizes(ptx):
    kernel = cyrt.Kernel(ptx, "plain")
    out = cyrt.Buffer(4)
    kernel[1, 1](out, 4.0)
    assert read(out) == 4
    with pytest.raises(TypeError, match="argument 2"):
        kernel[1, 1](out, "4")


WORDS = """// 64-bit words of no known type
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u64 value, .param .u32 rest) {
    .reg .u64 %a<4>;
    .reg .u32 %r<2>;
    ld.param.u64 %a1, [out];
    ld.param.u64 %a2, [value];
    ld.param.u32 %r1, [rest];
    cvta.to.global.u64 %a1, %a1;
    st.global.u64 [%a1], %a2;
    st.global.u32 [%a1+8], %r1;
    ret;
}
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (-1, 2**64 - 1),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), 2**63),
        (True, 1),
        (None, 0),
        (np.int64(-2), 2**64 - 2),
        (np.uint64(7), 7),
        (np.float64(1.0), 0x3FF0000000000000),
        (np.array(9), 9),
    ],
)
def test_words_of_no_known_type(value, expected):
    out = cyrt.Buffer(16)
    out.fill(0)
    cyrt.Kernel(WORDS.encode(), "store")[1, 1](out, value, -3)
    result = np.zeros(2, np.uint64)
    out.copy_to(result)
    assert result[0] == expected
    assert result[1] & 0xFFFFFFFF == 2**32 - 3


def test_words_hold_addresses():
    out, other = cyrt.Buffer(16), cyrt.Buffer(16)
    out.fill(0)
    cyrt.Kernel(WORDS.encode(), "store")[1, 1](out, other, 0)
    result = np.zeros(2, np.uint64)
    out.copy_to(result)
    assert result[0] == other.ptr


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**64, ValueError),
        (-(2**63) - 1, ValueError),
        (np.int32(3), ValueError),
        (2.5, TypeError),
        ([1], TypeError),
        ("1", TypeError),
    ],
)
def test_words_refuse(value, error):
    with pytest.raises(error, match="argument 2"):
        cyrt.Kernel(WORDS.encode(), "store")[1, 1](cyrt.Buffer(16), value, 0)


@pytest.mark.parametrize(
    "kind", [str, str.encode, lambda t: bytearray(t.encode()), lambda t: memoryview(t.encode())]
)
def test_ptx_as_any_text(kind):
    assert cyrt.Module(kind(WORDS)).names == ["store"]


def test_ptx_with_a_declared_signature(ptx):
    kernel = cyrt.Kernel(ptx, "plain", signature="void plain(int* out, float f)")
    out = cyrt.Buffer(4)
    kernel[1, 1](out, 9.5)
    assert read(out) == 9
    with pytest.raises(ValueError, match="2 parameters|1 parameters"):
        cyrt.Kernel(ptx, "plain", signature="void plain(int* out)")
    with pytest.raises(ValueError):
        cyrt.Kernel(ptx, "plain", signature="void plain(int* out, double f)")


def test_a_signature_of_no_kernel_is_refused(ptx):
    with pytest.raises(KeyError, match=r"the module has no kernel 'axpi'; it has "):
        cyrt.Module(ptx, signatures={"axpi": "void axpi(float)"})
    with pytest.raises(ValueError, match="plain: signature: expected its declaration, got void p"):
        cyrt.Kernel(ptx, "plain", signature="void put(int* out, float f)")


def test_names(ptx):
    module = cyrt.Module(ptx)
    assert "plain" in module.names
    assert any("mangled" in name for name in module.names)
    with pytest.raises(KeyError, match=r"no kernel 'absent'; it has .*plain"):
        module["absent"]
    for program in (lambda: list(module), lambda: module[3]):
        with pytest.raises(TypeError, match=r"indexed by a kernel's name, .*, not by int"):
            program()


def test_a_name_that_was_not_asked_for():
    module = cyrt.Module("template<class T> __global__ void f(T* x) {}", names=["f<float>"])
    with pytest.raises(KeyError) as caught:
        module["f<int>"]
    assert caught.value.args[0] == (
        "the module has no kernel 'f<int>'; it has f<float>. A template's instance "
        "is named when the module is made: Module(code, names=['f<int>'])"
    )


OVERLOADS = """
__global__ void one(float* x) { *x = 1; }
namespace space { __global__ void one(int* x) { *x = 2; } }
__global__ void two(float* x) { *x = 2; }
__global__ void two(int* x) { *x = 2; }
template <class T, int N> __global__ void fill(T* x) { *x = N; }
"""


def test_cpp_names_that_are_not_listed():
    module = cyrt.Module(OVERLOADS, names=["fill<float,3>"])
    names = ["fill<float,3>", "one", "space::one", "_Z3twoPf", "_Z3twoPi"]
    assert sorted(module.names) == sorted(names)
    assert all(name in repr(module) for name in names)
    assert all(name in module and module[name].name == name for name in names)
    assert module["one"].signature == "void one(float* x)"
    assert module["space::one"].signature == "void space::one(int* x)"
    assert "_Z3onePf" in module
    for absent in ("two", "fill", "fill<int, 3>", 3):
        assert absent not in module
    with pytest.raises(KeyError, match=r"several kernels 'two': _Z3two.*, _Z3two"):
        module["two"]


def test_spaces_in_the_name_of_an_instance():
    for listed in ("fill<float,3>", "fill<float, 3>"):
        module = cyrt.Module(OVERLOADS, names=[listed])
        for name in ("fill<float,3>", "fill<float, 3>", "fill< float, 3 >"):
            assert name in module
            x = cyrt.zeros(1)
            module[name][1, 1](x)
            assert x.item() == 3
    with pytest.raises(KeyError) as caught:
        module["fill<int>"]
    assert caught.value.args[0].count("fill<float") == 1


def test_get_global(ptx):
    module = cyrt.Module(ptx)
    view = module.get_global("counter")
    assert view.nbytes == 4
    assert read(view) == 5
    view.copy_from(np.array([70], np.int32))
    a, b = cyrt.Buffer(4), cyrt.Buffer(4)
    a.fill(0)
    module["mangled"][1, 1](a, b, 1)
    assert read(b) == 71
    with pytest.raises(KeyError, match="nothing"):
        module.get_global("nothing")


@pytest.mark.parametrize(
    "code",
    [
        b"",
        b"garbage",
        b"\x7fELF" + bytes(200),
        bytes(64),
        b".version 8.0\n.target sm_80\n.address_size 64\n.entry {",
    ],
)
def test_damaged_images(code):
    with pytest.raises(cyrt.CompileError) as caught:
        cyrt.Module(code)
    assert caught.value.call == "cuModuleLoadDataEx"
    assert caught.value.name.startswith("CUDA_ERROR_")


def test_cut_ptx_names_the_line(ptx):
    with pytest.raises(cyrt.CompileError) as caught:
        cyrt.Module(ptx[: len(ptx) // 2])
    assert "line" in str(caught.value)


def test_image_for_another_architecture():
    cubin = compiler.compile(SOURCE, arch="sm_120").code
    with pytest.raises(cyrt.CompileError, match="NO_BINARY_FOR_GPU|INVALID_IMAGE"):
        cyrt.Module(cubin)


@pytest.mark.gpu
def test_cubin_for_this_device():
    major, minor = cyrt.Device().compute_capability
    image = compiler.compile(SOURCE, ["mangled"], arch=f"sm_{major}{minor}")
    assert image.format == "cubin"
    kernel = cyrt.Kernel(image.code, "mangled")
    a, b = cyrt.Buffer(4), cyrt.Buffer(4)
    a.fill(0)
    kernel[1, 1](a, b, 2)
    assert read(b) == 7


def test_unsupported_opcode_is_named_with_its_line(only_emulated):
    text = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<9>;
    mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};
    ret;
}
"""
    with pytest.raises(cyrt.CompileError, match=r"mma\.sync") as caught:
        cyrt.Module(text)
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"
    assert "8" in caught.value.log


COUNTER = """extern "C" {
__device__ int counter;
__global__ void add() { atomicAdd(&counter, 1); }
}"""


@pytest.fixture
def loads(replaced):
    """Loads of a module; `loads.within` runs in another thread while the first one is loaded."""
    calls = SimpleNamespace(count=0, within=None, thread=None, result=None)

    def load(original, *arguments):
        calls.count += 1
        if calls.count == 1:
            calls.thread = threading.Thread(target=calls.within)
            calls.thread.start()
            calls.thread.join(0.5)  # it waits for this load; or it is done, and loaded, too
            if calls.result is not None:
                return calls.result
        return original(*arguments)

    replaced(
        "cuModuleLoadDataEx",
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p],
        load,
    )
    return calls


@pytest.fixture
def module():
    """One that is loaded nowhere, as on a device that it was not made on."""
    module = cyrt.Module(COUNTER)
    module._loaded.clear()
    return module


def test_threads_load_a_module_once(module, loads):
    found = []
    loads.within = lambda: found.append(module._load(0))
    found.append(module._load(0))
    loads.thread.join()
    assert loads.count == 1
    assert found[0] is found[1]
    view = module.get_global("counter")
    view.fill(0)
    module["add"][1, 1]()
    assert read(view) == 1


def test_where_a_load_fails_the_next_thread_loads(module, loads):
    found = []
    loads.result = 200  # CUDA_ERROR_INVALID_IMAGE, after which no thread tries again by itself
    loads.within = lambda: found.append(module._load(0))
    with pytest.raises(cyrt.CompileError):
        module._load(0)
    loads.thread.join()
    assert loads.count == 2
    assert module._load(0) is found[0]


def test_a_load_inside_a_load_is_the_one(module, replaced):
    """A signal handler, or a finalizer, that uses the module while it is loaded."""
    found = []

    def load(original, *arguments):
        if not found:
            found.append(None)
            found[0] = module._load(0)
        return original(*arguments)

    replaced(
        "cuModuleLoadDataEx",
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p],
        load,
    )
    assert module._load(0) is found[0]


def test_a_forked_child_is_refused_where_it_would_load(python):
    """Also where another thread was loading when the process was forked."""
    done = python(
        f"""
        import os, threading
        import cyrt
        from cyrt.runtime.module import loading
        module = cyrt.Module({WORDS!r}.encode())
        module._loaded.clear()
        held, forked = threading.Event(), threading.Event()

        def hold():
            with loading:
                held.set()
                forked.wait()

        threading.Thread(target=hold).start()
        held.wait()
        child = os.fork()
        if child == 0:
            try:
                module._load(0)
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(2)
        forked.set()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def test_an_instance_that_is_not_listed():
    source = "template <class T> __global__ void f(T* x) { *x = 1; }"
    with pytest.raises(KeyError, match="names="):
        cyrt.Module(source)["f<float>"]
    assert cyrt.Module(source, names=["f<float>"])["f<float>"].name == "f<float>"


def test_the_compilers_warnings_are_shown():
    source = 'extern "C" __global__ void quiet(int* x) {\n  int nobody_reads_it;\n  *x = 1;\n}'
    with pytest.warns(RuntimeWarning, match=r"cyrt_kernel\.cu\(2\): .*nobody_reads_it") as caught:
        cyrt.Kernel(source, "quiet")[1, 1](cyrt.Buffer(4))
    assert [warning.filename for warning in caught] == [__file__]
