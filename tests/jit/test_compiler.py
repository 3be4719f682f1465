"""Compiling with NVRTC: code, names, signatures, and what is said of a source that fails."""

from __future__ import annotations

import builtins
import threading

import numpy as np
import pytest

import cyrt
from cyrt.driver import table
from cyrt.driver.errors import CompileError, CudaError
from cyrt.jit import build, compiler, nvrtc, toolchain
from cyrt.jit.compiler import architecture, compile
from cyrt.jit.signature import from_declaration, from_mangled
from cyrt.jit.source import declared_kernels
from cyrt.jit.standard import GLOBAL_NAMES, STANDARD_HEADERS, STD_NAMES

PTX = "compute_90"
SAXPY = """\
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""


def signature(source, name, **more):
    return str(compile(source, [name], arch=PTX, **more).signatures[name])


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
    compile(source, ["saxpy", "t<float>"], arch=PTX)
    assert len(runs) == 1


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


# -- headers and names that NVRTC lacks ------------------------------------------------------------


@pytest.mark.parametrize("header", [*STANDARD_HEADERS, "cuda_runtime.h", "cuda_fp16.h"])
def test_header(header):
    image = compile(f"#include <{header}>\n{SAXPY}", arch=PTX)
    assert image.log == ""


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20"])
def test_headers_together(std):
    includes = "".join(f"#include <{header}>\n" for header in STANDARD_HEADERS)
    assert compile(includes + SAXPY, arch=PTX, options=[f"-std={std}"]).log == ""


def check(*claims, headers=()):
    """Let the compiler hold constant expressions true."""
    text = "".join(f"#include <{header}>\n" for header in headers)
    compile(text + "using namespace std;\n" + "".join(f"static_assert({c});\n" for c in claims),
            arch=PTX)  # fmt: skip


def test_limits():
    check(
        "numeric_limits<float>::infinity() > FLT_MAX",
        "numeric_limits<double>::quiet_NaN() != numeric_limits<double>::quiet_NaN()",
        "numeric_limits<float>::lowest() == -FLT_MAX && numeric_limits<float>::digits == 24",
        "numeric_limits<float>::denorm_min() > 0 && FLT_EPSILON == 1.f / (1 << 23)",
        "numeric_limits<int>::min() == INT_MIN && numeric_limits<int>::digits10 == 9",
        "numeric_limits<unsigned char>::max() == 255 && numeric_limits<long long>::digits10 == 18",
        "INT8_MIN == -128 && UINT32_MAX == 4294967295u && SIZE_MAX == ~size_t(0) && CHAR_BIT == 8",
        "sizeof(int8_t) == 1 && sizeof(uint16_t) == 2 && sizeof(int_least32_t) == 4",
        "sizeof(intptr_t) == 8 && INT64_MIN + 1 == -INT64_MAX",
        headers=("limits", "cstdint", "cfloat", "climits"),
    )


def test_type_traits():
    check(
        "is_same_v<decay_t<const int&>, int> && is_same_v<decay_t<int[3]>, int*>",
        "is_same_v<decay_t<int(int)>, int (*)(int)>",
        "is_integral_v<const unsigned long> && !is_integral_v<float> && is_arithmetic_v<double>",
        "is_signed_v<int> && !is_signed_v<unsigned> && !is_signed_v<dim3>",
        "is_pointer_v<int* const> && is_same_v<remove_pointer_t<int* const>, int>",
        "is_same_v<common_type_t<int, float, double>, double>",
        "is_same_v<make_unsigned_t<int>, unsigned> && is_same_v<conditional_t<0, int, char>, char>",
        "is_same_v<enable_if_t<true, int>, int> && is_function_v<int(int)> && !is_function_v<int>",
        "is_convertible_v<int, float> && !is_convertible_v<dim3*, int>",
        "conjunction_v<true_type, true_type> && !disjunction_v<false_type>",
        "is_same_v<make_index_sequence<5>, index_sequence<0, 1, 2, 3, 4>>",
        "std::min(1, 2) == 1 && std::max(1.0, 2.0) == 2.0 && clamp(5, 0, 3) == 3",
        "sizeof(array<float, 3>) == 12 && pair<int, char>(1, 'a').second == 'a'",
        headers=("type_traits", "utility", "algorithm", "array"),
    )


def test_math_of_integers_and_of_others_types():
    check(
        "is_same_v<decltype(sqrt(2)), double> && is_same_v<decltype(sqrt(2.f)), float>",
        "is_same_v<decltype(pow(2, 3)), double> && is_same_v<decltype(pow(2.f, 3.f)), float>",
        "is_same_v<decltype(std::abs(-1.f)), float> && is_same_v<decltype(std::fmax(1, 2.0)), "
        "double>",
        headers=("cmath", "type_traits"),
    )
    own = """
    struct My { float v; };
    __device__ My sqrt(My m) { return m; }
    __device__ My pow(My m, int n) { return m; }
    extern "C" __global__ void k(float* x) { x[0] = sqrt(pow(My{x[1]}, 2)).v + std::sqrt(x[2]); }
    """
    compile("#include <math.h>\n" + own, arch=PTX)


@pytest.mark.parametrize(
    "expression",
    [
        *("INFINITY", "NAN", "M_PI", "FLT_MAX", "INT_MAX", "DBL_EPSILON", "(uint32_t)3", "uint(3)"),
        *("std::min(1, 2)", "std::sqrt(2.f)", "std::numeric_limits<float>::max()", "sin(1)"),
        *("std::is_same<int, int>::value", "(std::size_t)1 + (int64_t)2 + UINT_MAX"),
    ],
)
def test_what_nvcc_includes_unasked_is_there(expression):
    source = f'extern "C" __global__ void k(double* x) {{ *x = {expression}; }}'
    assert signature(source, "k") == "void k(double* x)"


def test_every_name_promised_is_there():
    whole = {"NULL": "0", "offsetof": "0"}
    uses = [
        f"#ifndef {name}\ntypedef {name} use_{name};\n#endif\n" if header.endswith("types.h")
        or name.endswith("_t") else f"#ifndef {name}\n#error {name}\n#endif\n"
        for name, header in GLOBAL_NAMES.items() if name not in whole
    ]  # fmt: skip
    uses += [f"namespace use {{ using std::{name}; }}\n" for name in STD_NAMES]
    headers = sorted({*GLOBAL_NAMES.values(), *STD_NAMES.values()})
    includes = "".join(f"#include <{h}>\n" for h in headers)
    compile(includes + "".join(uses), arch=PTX)


def test_own_definitions_are_not_disturbed():
    # This compiles with NVRTC alone, and must go on so: nothing is included without need.
    source = "typedef long int64_t;\n#define INFINITY 3\nenum { FLT_MAX };\n"
    compile(source + 'extern "C" __global__ void k(int64_t* x) { *x = INFINITY; }', arch=PTX)


def test_own_headers_and_macros():
    source = (
        '#include "mine.h"\n#include <stdint.h>\nextern "C" __global__ void k(T* x) { *x = N; }'
    )
    image = compile(
        source, arch=PTX, headers={"mine.h": "typedef float T;", "stdint.h": ""}, define={"N": 4}
    )
    assert str(image.signatures["k"]) == "void k(float* x)"


def test_macros_of_every_type():
    source = """
    static_assert(N == -3 && F == 0.5 && SMALL < 1e-9 && NO == 0 && YES == 1 && NONE == 1);
    extern "C" __global__ void k(T* x) {}
    static_assert(sizeof(T) == 4 EMPTY && SEEN == -3 && SQUARE(3) == 9 && WIDE == 70000);
    """
    define = {
        "N": -3, "F": 0.5, "SMALL": 1e-10, "NO": False, "YES": True, "NONE": None,
        "T": "unsigned int", "SQUARE(x)": "((x) * (x))", "WIDE": np.int32(70000), "EMPTY": "",
    }  # fmt: skip
    headers = {"first.h": "enum { SEEN = N };"}
    image = compile(source, arch=PTX, define=define, headers=headers, options=["-include=first.h"])
    assert str(image.signatures["k"]) == "void k(unsigned int* x)"


def test_the_documentation_tells_what_none_defines():
    for described in (compile, cyrt.Module):
        assert "None and True define 1, as" in described.__doc__


# -- errors ----------------------------------------------------------------------------------------


def failure(source, names=(), **more):
    with pytest.raises(CompileError) as failed:
        compile(source, names, arch=PTX, **more)
    assert isinstance(failed.value, CudaError)
    assert failed.value.call.startswith("nvrtc")
    return str(failed.value)


def test_error_shows_the_line():
    message = failure('extern "C" __global__ void k() {\n\n    int x = wrong;\n}', filename="my.cu")
    assert "my.cu does not compile for compute_90" in message
    assert 'my.cu(3): error: identifier "wrong" is undefined' in message
    assert "\n    3 |     int x = wrong;\n" in message
    lines = message.split("\n")
    shown = next(i for i, line in enumerate(lines) if "|" in line)
    assert lines[shown + 1].index("^") == lines[shown].index("wrong")
    assert "probe" not in message


def test_error_has_the_log():
    with pytest.raises(CompileError) as failed:
        compile("int x = ;", arch=PTX)
    assert "cyrt_kernel.cu(1): error" in failed.value.log
    assert failed.value.code == 6


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nope", 'identifier "nope" is undefined'),
        ("over", "cannot determine which instance"),
        ("tmpl", "cannot"),
        ("tmpl<flaot>", 'identifier "flaot" is undefined'),
        ("helper", "non-__global__"),
        ("_Z4nopev", "no kernel has this symbol"),
    ],
)
def test_wrong_name_says_which_there_are(name, why):
    source = (
        SAXPY
        + """
    __global__ void over(int*) {} __global__ void over(float*) {}
    template<class T> __global__ void tmpl(T*) {}
    __device__ void helper() {}
    """
    )
    message = failure(source, [name])
    assert f"'{name}' is not in cyrt_kernel.cu" in message
    assert why in message
    assert "its kernels: saxpy, over, tmpl<…>" in message
    assert "probe" not in message
    assert "__nv_name_map" not in message
    assert "pragma" not in message


def test_failing_instance_shows_its_line():
    source = 'template<int N> __global__ void k() {\n  static_assert(N > 3, "too few");\n}'
    message = failure(source, ["k<2>"])
    assert "too few" in message
    assert "    2 |" in message


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("cublas_not_there.h", "pip install nvidia-cublas"),
        ("cuda/not_there.h", "pip install nvidia-cuda-cccl"),
        ("cuda_not_there.h", "pip install nvidia-cuda-runtime"),
        ("iostream", "device code only"),
        ("mine.h", "headers={'mine.h': …}"),
    ],
)
def test_missing_header_says_where_it_is(header, advice):
    assert advice in failure(f"#include <{header}>\n{SAXPY}")


def test_headers_of_a_toolkit(python, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda_runtime.h").write_text("")
    program = """
    import site
    site.getsitepackages = lambda: []
    site.ENABLE_USER_SITE = False
    from cyrt.jit.headers import include_directories
    print(include_directories()[0])
    """
    for name, other in (("CUDA_HOME", "CUDA_PATH"), ("CUDA_PATH", "CUDA_HOME")):
        done = python(program, **{name: str(tmp_path), other: "", "CONDA_PREFIX": ""})
        assert done.stdout.strip() == str(tmp_path / "include"), done.stderr


def test_unknown_architecture_lists_those_known():
    with pytest.raises(CompileError, match="compiles for sm_ .*90"):
        compile(SAXPY, arch="sm_13")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("-nonsense", "NVRTC refuses one of the options -lineinfo -nonsense"),
        ("-maxrregcount=few", "expects an integer value"),
        ("-dlto", "neither PTX nor a cubin"),
    ],
)
def test_options_that_nvrtc_refuses(option, says):
    assert says in failure(SAXPY, options=["-lineinfo", option])


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"source": b"x"}, TypeError, "got bytes"),
        ({"source": "a\0b"}, ValueError, "NUL"),
        ({"names": "saxpy"}, TypeError, "sequence of str, got 'saxpy'"),
        ({"names": [3]}, TypeError, "sequence of str"),
        ({"names": [" "]}, ValueError, "empty"),
        ({"options": "-G"}, TypeError, "sequence of str"),
        ({"options": ["-arch=sm_80"]}, ValueError, "arch="),
        ({"arch": "90"}, ValueError, "'sm_90'.*got '90'"),
        ({"source": "\ud800"}, ValueError, "source.*UTF-8"),
        ({"options": {"-G"}}, TypeError, "sequence of str"),
        ({"options": [""]}, ValueError, "empty"),
        ({"options": ["-DA=\0"]}, ValueError, "NUL"),
        ({"headers": [("a.h", "")]}, TypeError, "headers is a mapping from names, got list"),
        ({"headers": {"a.h": b""}}, TypeError, r"headers\['a.h'\].*got bytes"),
        ({"headers": {3: ""}}, TypeError, "headers: 3.*got int"),
        ({"define": ["N"]}, TypeError, "define is a mapping"),
        ({"define": {"1N": 3}}, ValueError, "1N"),
        ({"define": {"N": [3]}}, TypeError, r"define\['N'\].*got list"),
        ({"define": {"N": 1j}}, TypeError, r"define\['N'\].*got complex"),
        ({"define": {"N": float("inf")}}, ValueError, r"define\['N'\] is inf"),
        ({"define": {"N": "a\nb"}}, ValueError, "line's end"),
        ({"define": {"N": "a\\", "M": 1}}, ValueError, r"define\['N'\] ends in a backslash"),
        ({"filename": 3}, TypeError, "filename.*got int"),
    ],
)
def test_wrong_argument(more, error, says):
    arguments = {"source": SAXPY, "arch": PTX, **more}
    with pytest.raises(error, match=says):
        compile(arguments.pop("source"), **arguments)


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("cuda"):
            raise ImportError(name)
        return real(name, *rest)

    nvrtc._nvrtc.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    try:
        with pytest.raises(CompileError, match=r"(?s)cannot be loaded.*pip install 'cyrt\[cuda13"):
            compile(SAXPY, arch=PTX)
        assert compiler.library_path() is None
    finally:
        monkeypatch.undo()
    assert compile(SAXPY, arch=PTX).format == "ptx"


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
    assert len({names[0] for names in runs}) < len(many)
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
    with pytest.raises(CompileError, match=r"(?s)serves CUDA 12\.8.*pip install 'cyrt\[cuda12\]'"):
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
