"""Headers and names of the standard library, which NVRTC lacks."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_sources import PTX, SAXPY, signature

import cyrt
from cyrt.jit.compiler import compile
from cyrt.jit.standard import GLOBAL_NAMES, STANDARD_HEADERS, STD_NAMES


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
