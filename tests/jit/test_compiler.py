"""Compiling with NVRTC: code, names, signatures, and what is said of a source that fails."""

from __future__ import annotations

import threading

import pytest
from kernel_sources import PTX, SAXPY, signature

from cyrt.driver import table
from cyrt.driver.errors import CompileError
from cyrt.jit import build, compiler, nvrtc, toolchain
from cyrt.jit.compiler import architecture, compile
from cyrt.jit.signature import from_declaration, from_mangled
from cyrt.jit.source import declared_kernels

# -- code and names --------------------------------------------------------------------------------


def test_ptx():
    image = compile(SAXPY, arch=PTX)
    assert image.format == "ptx"
    assert b".entry saxpy" in image.code
    assert b".target sm_90" in image.code
    assert b"\0" not in image.code
    assert image.log == ""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a"])
def test_cubin(arch):
    image = compile(SAXPY, arch=arch)
    assert image.format == "cubin"
    assert image.code[:4] == b"\x7fELF"
    assert str(image.signatures["saxpy"]) == "void saxpy(float a, const float* x, float* y, int n)"


def test_probes_leave_nothing_in_the_code(monkeypatch):
    probed = compile(SAXPY, arch=PTX)
    monkeypatch.setattr(build, "_probes", lambda names, declared: {})
    assert compile(SAXPY, arch=PTX).code == probed.code


def test_one_compilation_is_enough(monkeypatch):
    runs = []
    run = nvrtc.run
    monkeypatch.setattr(nvrtc, "run", lambda *a, **k: runs.append(a) or run(*a, **k))
    source = SAXPY + "\ntemplate<class T> __global__ void t(T* x) {}"
    compile(source, ["saxpy"], arch=PTX)
    assert len(runs) == 1
    compile(source, ["saxpy", "t<float>"], arch=PTX)
    assert len(runs) == 3  # the check of the syntax, since a template is named


def test_names_are_lowered():
    source = """
    namespace ns { template<class T, int N> __global__ void axpy(T a, const T* x, T* y) {} }
    __global__ void plain(int* x) {}
    __device__ int counter;
    __constant__ float table[4];
    """
    names = ["ns::axpy<float, 3>", "plain", "&counter", "&table", "_Z5plainPi"]
    image = compile(source, names, arch=PTX)
    assert image.lowered == {
        "ns::axpy<float, 3>": "_ZN2ns4axpyIfLi3EEEvT_PKS1_PS1_",
        "plain": "_Z5plainPi",
        "&counter": "counter",
        "&table": "table",
        "_Z5plainPi": "_Z5plainPi",
        "_ZN2ns4axpyIfLi3EEEvT_PKS1_PS1_": "_ZN2ns4axpyIfLi3EEEvT_PKS1_PS1_",
    }
    assert set(image.signatures) == set(image.lowered) - {"&counter", "&table"}


def test_kernels_are_there_unasked():
    source = SAXPY + "__global__ void k(float*) {} __global__ void k(int*) {}"
    image = compile(source, arch=PTX)
    assert set(image.lowered) == {"saxpy", "_Z1kPf", "_Z1kPi"}
    assert str(image.signatures["_Z1kPi"]) == "void k(int*)"


# -- signatures ------------------------------------------------------------------------------------

TYPES = """
#include <stdint.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef unsigned int word;
struct Inner { char c[3]; };
struct alignas(16) Wide { float v[5]; };
struct Mixed { float x; double y; Inner i; };
"""
DECLARATIONS = [
    "void k0()",
    "void k1(float a, const float* __restrict__ x, float* y, int n)",
    "void k2(bool b, char c, signed char d, unsigned char e, short f, unsigned short g)",
    "void k3(int a, unsigned b, long c, unsigned long d, long long e, unsigned long long f)",
    "void k4(int8_t a, uint16_t b, int32_t c, uint64_t d, size_t e)",
    "void k5(half a, const half* b, __nv_bfloat16 c, __nv_bfloat16* d, half2 e)",
    "void k6(float2 a, float3 b, float4 c, double2 d, double3 e, uchar4 f, int3 g, short2 h)",
    "void k7(char a, longlong3 b, char c, double4 d, char1 e, dim3 f, ulonglong2 g)",
    "void k8(const float* const* a, float** b, float* const* c, const void* d, void* e)",
    "void k9(int (*f)(int), const double (*m)[4], float t[3], const int u[2][2])",
    "void k10(const volatile int* a, volatile float* const b, float const* const c)",
]


@pytest.fixture(scope="module")
def typed():
    linked = "\n".join(f'extern "C" __global__ {d} {{}}' for d in DECLARATIONS)
    mangled = "\n".join(f"namespace m {{ __global__ {d} {{}} }}" for d in DECLARATIONS)
    return compile(f"{TYPES}\n{linked}\n{mangled}\n", arch=PTX)


def facts(signature):
    return [(p.code, p.size, p.align, p.writes, p.indirect) for p in signature.parameters]


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_all_sources_agree_on_types(typed, declaration):
    declared = from_declaration(declaration)
    probed = typed.signatures[declared.name]
    assert facts(probed) == facts(declared)
    assert [p.name for p in probed.parameters] == [p.name for p in declared.parameters]
    symbol = next(s for s in typed.lowered if s.startswith(f"_ZN1m{len(declared.name)}") and
                  from_mangled(s).name == f"m::{declared.name}")  # fmt: skip
    assert facts(from_mangled(symbol)) == facts(declared)
    assert facts(typed.signatures[symbol]) == facts(declared)


@pytest.mark.parametrize(
    ("source", "name", "shown", "sizes"),
    [
        (
            TYPES + 'extern "C" __global__ void k(word n, Inner i, Mixed m, Wide w) {}',
            "k",
            "void k(unsigned int n, Inner i, Mixed m, Wide w)",
            [(0, 4), (4, 3), (8, 24), (32, 32)],
        ),
        (
            "enum E { A = -3 }; enum class F : unsigned char { B };\n"
            'extern "C" __global__ void k(E e, const F f, F* g) {}',
            "k",
            "void k(int e, unsigned char f, F* g)",
            [(0, 4), (4, 1), (8, 8)],
        ),
        (
            "template<class T> struct Box { typedef const T* ptr; };\n"
            "template<class T> __global__ void k(typename Box<T>::ptr p, T t) {}",
            "k<double>",
            "void k<double>(const double* p, double t)",
            [(0, 8), (8, 8)],
        ),
        (
            "template<auto f> __global__ void k(float* x) { *x = f(*x); }\n"
            "__device__ float twice(float x) { return 2 * x; }",
            "k<&twice>",
            "void k<&twice>(float* x)",
            [(0, 8)],
        ),
        (
            "template<class... T> __global__ void k(T*... p) {}",
            "k<int, const float>",
            "void k<int, const float>(int*, const float*)",
            [(0, 8), (8, 8)],
        ),
        (
            "#define KERNEL(name, T) extern \"C\" __global__ void name(T* y, const T* x)\n"
            "KERNEL(made, float) { *y = *x; }",
            "made",
            "void made(float*, const float*)",
            [(0, 8), (8, 8)],
        ),
        ("namespace { __global__ void k(int x) {} }", "k", "void k(int x)", [(0, 4)]),
        ("static __global__ void k(int x) {}", "k", "void k(int x)", [(0, 4)]),
    ],
)  # fmt: skip
def test_signature_comes_from_the_compiler(source, name, shown, sizes):
    found = compile(source, [name], arch=PTX).signatures[name]
    assert str(found) == shown
    assert list(found.extents) == sizes


def test_extern_c_inside_a_namespace():
    source = (
        'namespace a::b { inline namespace v1 { extern "C" __global__ void k(const T* x) {} } }'
    )
    image = compile("typedef float T;\n" + source, ["a::b::k"], arch=PTX)
    assert image.lowered == {"a::b::k": "k", "k": "k"}
    assert str(image.signatures["a::b::k"]) == "void a::b::v1::k(const float* x)"


def test_ghost_of_a_kernel_is_no_harm():
    ghost = '#ifdef NEVER\nextern "C" __global__ void ghost(float* x) {}\n#endif\n'
    image = compile(ghost + "typedef const float* in;\n" + SAXPY.replace("const float*", "in"),
                    arch=PTX)  # fmt: skip
    assert set(image.lowered) == {"saxpy"}
    assert not image.signatures["saxpy"].parameters[1].writes


def test_branch_not_compiled_does_not_give_the_signature():
    source = """
    #ifdef DOUBLE
    extern "C" __global__ void k(double* x, double a) { *x = a; }
    #else
    extern "C" __global__ void k(const float* x, float a, int n) { }
    #endif
    """
    assert signature(source, "k") == "void k(const float*, float, int)"
    assert signature(source, "k", define={"DOUBLE": None}) == "void k(double*, double)"


def test_old_dialect_has_no_probes():
    # The probes are C++11; the declaration in the text serves instead.
    image = compile(SAXPY, arch=PTX, options=["-std=c++03"])
    assert str(image.signatures["saxpy"]) == "void saxpy(float a, const float* x, float* y, int n)"


@pytest.mark.parametrize(
    "tail", ["", "\n", "// end", "/* end */", "\n#define X \\", "\n#if 1\n#endif", "\\\n"]
)
def test_end_of_the_source(tail):
    assert signature(SAXPY + tail, "saxpy").startswith("void saxpy(float a")


# -- the scan of a source --------------------------------------------------------------------------


def test_scan_finds_kernels():
    source = r"""
    // extern "C" __global__ void commented(int x);
    /* __global__ void blocked() */
    const char* s = "__global__ void quoted() {"; char c = '{';
    #if 0
    __global__ void off() {}
    #else
    __global__ void on() {}
    #endif
    #define M(n) __global__ void n() {}
    extern "C" { namespace q { struct S { int x; }; __global__ void inner(S s) { if (1) { } } } }
    extern "C" __global__ void __launch_bounds__(MAX(1, 2)) bounded(int (*f)(int)) {}
    template<class T> __global__ void tmpl(T t);
    template<> __global__ void tmpl<int>(int t) {}
    M(x) extern "C" __global__ void after_macro(int n) {}
    namespace a { namespace { __global__ void hidden() {} } namespace b::c {
    __global__ void deep(float* x) {} } }
    R"(" __global__ void raw() {)"
    __global__ void UNKNOWN(3) odd(float x) {}
    """
    found = {k.name: (k.extern_c, k.template) for k in declared_kernels(source)}
    assert found == {
        "on": (False, False),
        "q::inner": (True, False),
        "bounded": (True, False),
        "tmpl": (False, True),
        "tmpl<int>": (False, False),
        "after_macro": (True, False),
        "a::hidden": (False, False),
        "a::b::c::deep": (False, False),
        "odd": (False, False),
    }


@pytest.mark.parametrize(
    "source", ["", "}}}}", "{", '"', "/*", "__global__", "#if 0", 'R"(', "extern"]
)
def test_scan_bears_anything(source):
    assert declared_kernels(source) == []


# -- the compiler itself ---------------------------------------------------------------------------


def test_threads():
    found = {}

    def work(i):
        name = f"k{i}"
        found[i] = compile(SAXPY.replace("saxpy", name), arch=PTX).lowered == {name: name}

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: True for i in range(8)}


def test_many_at_once(monkeypatch):
    source = "template<class T> __global__ void k(T* x) { *x += 1; }"
    groups = [[f"k<{t}>"] for t in ("int", "float", "double")]
    images = compiler.compile_many(source, groups, arch=PTX)
    assert [next(iter(image.lowered)) for image in images] == [names[0] for names in groups]
    with pytest.raises(CompileError, match="'k<nope>' is not in"):
        compiler.compile_many(source, [*groups, ["k<nope>"]], arch=PTX)
    runs = []
    run = nvrtc.run
    monkeypatch.setattr(nvrtc, "run", lambda *a, **k: runs.append(a[4]) or run(*a, **k))
    many = [["k<nope>"], *[[f"k<int[{n}]>"] for n in range(1, 50)]]
    with pytest.raises(CompileError, match="'k<nope>' is not in"):
        compiler.compile_many(source, many, arch=PTX, threads=1)
    assert len({names[0] for names in runs if names}) < len(many)
    with pytest.raises(TypeError, match="sequence of sequences of names, got 'k<int>'"):
        compiler.compile_many(source, "k<int>", arch=PTX)


def test_line_info(setting):
    assert b".loc" not in compile(SAXPY, arch=PTX).code
    setting(CYRT_LINEINFO="1")
    assert b".loc" in compile(SAXPY, arch=PTX).code
    assert b".loc" in compile(SAXPY, arch=PTX, options=["-lineinfo"]).code


def test_dump(setting, folder, tmp_path):
    # Also of what the cache has.
    image = compile(SAXPY, ["saxpy"], arch="sm_90")
    setting(CYRT_JIT_DUMP=str(tmp_path / "new" / "folder"))
    assert compile(SAXPY, ["saxpy"], arch="sm_90") == image
    files = {path.suffix: path for path in (tmp_path / "new" / "folder").iterdir()}
    assert set(files) == {".cu", ".ptx", ".cubin", ".log"}
    assert all(path.stem.startswith("saxpy-") for path in files.values())
    assert files[".cu"].read_text() == SAXPY
    assert files[".cubin"].read_bytes() == image.code
    assert ".entry saxpy" in files[".ptx"].read_text()
    with pytest.raises(CompileError):
        compile("int x = ;", ["wrong"], arch=PTX)
    (log,) = (tmp_path / "new" / "folder").glob("wrong-*.log")
    assert "(1): error" in log.read_text()


def test_dump_to_what_is_no_folder(setting, tmp_path):
    (tmp_path / "file").write_text("")
    setting(CYRT_JIT_DUMP=str(tmp_path / "file"))
    with pytest.raises(ValueError, match="CYRT_JIT_DUMP=.*file"):
        compile(SAXPY, arch=PTX)


def test_version_and_archs():
    major, minor = compiler.nvrtc_version()
    assert major >= 12
    assert minor >= 0
    assert {80, 90} < set(compiler.supported_archs())
    assert "nvrtc" in compiler.library_path()


@pytest.fixture
def installed(monkeypatch):
    """Makes another NVRTC and driver stand there."""

    def set(version, archs, driver):
        found = toolchain.Library((), version, archs)
        monkeypatch.setattr(toolchain, "_library", found)
        monkeypatch.setattr(table, "driver_info", lambda: ("libcuda.so.1", False, driver))

    return set


@pytest.mark.parametrize(
    ("capability", "emulated", "arch"),
    [
        ((9, 0), False, "sm_90"),
        ((9, 0), True, "compute_90"),
        ((8, 0), False, "sm_80"),
        ((8, 5), False, "compute_80"),
        ((9, 9), False, "compute_90"),
    ],
)
def test_architecture(installed, capability, emulated, arch):
    installed((13, 5), (75, 80, 90, 100), 13000)
    assert architecture(capability, emulated) == arch


def test_architecture_of_an_old_gpu(installed):
    installed((13, 5), (75, 80, 90), 13000)
    with pytest.raises(CompileError, match=r"7\.5 and up, the device has 6\.1"):
        architecture((6, 1))


def test_nvrtc_of_a_newer_major_version_than_the_driver(installed):
    installed((13, 5), (80, 90), 12080)
    with pytest.raises(CompileError, match=r"(?s)supports CUDA 12\.8.*pip install 'cyrt\[cu12\]'"):
        architecture((9, 0))
    assert architecture((9, 0), emulated=True) == "compute_90"


def test_unmarked_functions_and_variables():
    """What nvcc takes for the host's, beside kernels or used by them, does not stand in the way."""
    image = compile(
        r"""
        static int calls = 0;
        constexpr int twice(int x) { return 2 * x; }
        int host_side(int x) { ++calls; return x + calls; }
        struct Pair { int a, b; Pair(int a, int b) : a(a), b(b) {} int sum() { return a + b; } };
        extern "C" __global__ void k(int* x) { *x = twice(*x) + Pair(1, 2).sum(); }
        """,
        arch="compute_90",
    )
    assert "k" in image.lowered


def test_unmarked_functions_of_the_host_are_told_as_written():
    with pytest.raises(CompileError) as caught:
        compile('#include <fstream>\nint main() { std::ofstream f("x"); }', arch="compute_90")
    assert "fstream" in str(caught.value)


def test_128_bit_integers():
    source = 'extern "C" __global__ void k(__int128* x) { *x *= *x; }'
    assert "mul.hi.u64" in compile(source, arch="compute_90").code.decode()
