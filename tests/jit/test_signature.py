"""Signatures read from declarations, symbols and PTX."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrt.dtypes import DTYPES
from cyrt.jit.signature import (
    Elements,
    Parameter,
    Signature,
    elements,
    entries,
    from_declaration,
    from_mangled,
    from_probe,
    from_ptx,
)


def kinds(signature):
    """Each parameter's code, with what a pointer is used for: r reads, w reads and writes."""
    return [p.code + (":w" if p.writes else ":r") * (p.code == "pointer") for p in signature]


# -- declarations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'extern "C" __global__ void saxpy(float a, const float* __restrict__ x, float *y, '
            "int n)",
            "void saxpy(float a, const float* x, float* y, int n)",
        ),
        ("void k(const float*, int)", "void k(const float*, int)"),
        ("(float, const float*, int)", "void (float, const float*, int)"),
        ("void k()", "void k()"),
        ("void k(void);", "void k()"),
        (
            "template<class T, int N = (3 > 2)> __global__ void ns::k(T a, S<T, 2>::type const* b)",
            "void ns::k(T a, const S<T, 2>::type* b)",
        ),
        ("__global__ void __launch_bounds__(256, 2) k(int x) { x = 1; }", "void k(int x)"),
        ("template __global__ void k<float>(float*);", "void k<float>(float*)"),
        ("void k(int n = f(1, 2), T<a, b> t = {1, 2}, float y = 1.f)", "void k(int n, T<a, b> t, "
         "float y)"),
        ("void k(/* a, b */ int x, // y\n int z)", "void k(int x, int z)"),
        ("void k(int (*fn)(int, float), const double (*m)[4])", "void k(int (*fn)(int, float), "
         "const double (*m)[4])"),
        ("void k(float m[2][3], const T x[])", "void k(float (*m)[3], const T* x)"),
        ("[[nodiscard]] __attribute__((used)) static void k(alignas(8) int x)", "void k(int x)"),
    ],
)  # fmt: skip
def test_declaration_is_read(text, shown):
    assert str(from_declaration(text)) == shown


@pytest.mark.parametrize(
    ("type", "code", "size", "align"),
    [
        ("bool", "bool", 1, 1),
        ("char", "i8", 1, 1),
        ("signed char", "i8", 1, 1),
        ("unsigned", "u32", 4, 4),
        ("long unsigned int", "u64", 8, 8),
        ("unsigned long long int", "u64", 8, 8),
        ("short int", "i16", 2, 2),
        ("signed", "i32", 4, 4),
        ("std::size_t", "u64", 8, 8),
        ("::uint16_t", "u16", 2, 2),
        ("cuda::std::int64_t", "i64", 8, 8),
        ("half", "f16", 2, 2),
        ("__nv_bfloat16", "bf16", 2, 2),
        ("const double", "f64", 8, 8),
        ("long double", "f64", 8, 8),
        ("float2", "c64", 8, 8),
        ("cuDoubleComplex", "c128", 16, 16),
        ("thrust::complex<float>", "c64", 8, 8),
        ("std::complex<double>", "c128", 16, 8),
        ("float3", "bytes", 12, 4),
        ("float4", "bytes", 16, 16),
        ("double4", "bytes", 32, 16),
        ("uchar4", "bytes", 4, 4),
        ("longlong3", "bytes", 24, 8),
        ("dim3", "bytes", 12, 4),
        ("cudaTextureObject_t", "u64", 8, 8),
        ("struct Options", "unknown", 0, 1),
        ("std::float4", "unknown", 0, 1),
        ("const __grid_constant__ Options", "unknown", 0, 1),
    ],
)
def test_types_by_value(type, code, size, align):
    (p,) = from_declaration(f"void k({type} x)").parameters
    assert (p.code, p.size, p.align, p.writes, p.name) == (code, size, align, False, "x")


@pytest.mark.parametrize(
    ("type", "writes", "indirect"),
    [
        ("float*", True, False),
        ("const float*", False, False),
        ("float const * const", False, False),
        ("float* const __restrict__", True, False),
        ("volatile const int*", False, False),
        ("volatile int*", True, False),
        ("const void*", False, False),
        ("float**", True, True),
        ("const float**", True, True),
        ("float* const*", False, True),
        ("const int* const* const", False, True),
    ],
)
def test_what_a_pointer_is_used_for(type, writes, indirect):
    (p,) = from_declaration(f"void k({type} x)").parameters
    assert (p.code, p.size, p.writes, p.indirect) == ("pointer", 8, writes, indirect)


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        ("void k(int& x)", "no references", "&"),
        ("void k(const T&& x)", "no references", "&&"),
        ("int k(int x)", "returns void, not 'int'", "int k"),
        ("void k(int,, int)", "missing", ", int"),
        ("void k(int, )", "missing", ")"),
        ("void k(int x", "never closed", "("),
        ("void k", "no parameter list", ""),
        ("", "no parameter list", ""),
        ("void k(float x y)", "unexpected 'y'", "y)"),
        ("void k(unsigned float x)", "is not a type", "x)"),
        ("void k(int ...)", "variable arguments", "..."),
        ("void k(Args... args)", "packs", "..."),
        ("void k(void x)", "cannot be void", "void x"),
        ("void k(int S::*p)", "unexpected", "S::"),
        ("void k(decltype(y) x)", "decltype", "decltype"),
        ("void k(3)", "expected a type", "3"),
        ("void k(int x) extra", "unexpected 'extra'", "extra"),
        ("void k([)", "unexpected ')'", ")"),
    ],
)
def test_bad_declaration_shows_text_and_place(text, says, place):
    if text == "void k(int S::*p)":
        says = "pointers to members"
    with pytest.raises(ValueError) as failed:
        from_declaration(text)
    message, line, caret = str(failed.value).split("\n")
    assert says in message
    assert line.strip() == text
    assert line[caret.index("^") :].startswith(place)


def test_declaration_must_be_text():
    with pytest.raises(TypeError, match="got int"):
        from_declaration(3)


@given(st.text(alphabet="voidkfltcns ()<>[]{}*&,:;=.\"'/0", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        signature = from_declaration(text)
    except ValueError:
        return
    assert all(p.type for p in signature.parameters)


# -- symbols ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("_Z5saxpyfPKfPfi", "void saxpy(float, const float*, float*, int)"),
        ("_Z1kv", "void k()"),
        ("_Z4axpyIfEvT_PKS0_PS0_i", "void axpy<float>(float, const float*, float*, int)"),
        ("_ZN2ns1gIdEEvPT_PKS1_NS_1TE", "void ns::g<double>(double*, const double*, ns::T)"),
        ("_Z1kIKfEvPT_", "void k<const float>(const float*)"),
        ("_Z1kIKfEvPKT_", "void k<const float>(const float*)"),
        ("_Z1kILi3ELb1ELin2EEvPf", "void k<3, true, -2>(float*)"),
        ("_Z1kIJfiEEvDpT_", "void k<float, int>(float, int)"),
        ("_Z1kIJfiEEvDpPT_", "void k<float, int>(float*, int*)"),
        ("_Z1kIJfiEEv5TupleIJDpT_EE", "void k<float, int>(Tuple<float, int>)"),
        ("_Z1kPFiiEPA4_KdPKPKi", "void k(int (*)(int), const double (*)[4], const int* const*)"),
        ("_Z1kPPFivE", "void k(int (**)())"),
        ("_Z1kPVKiPVf", "void k(const volatile int*, volatile float*)"),
        (
            "_Z1kSt6vectorIfSaIfEESs",
            "void k(std::vector<float, std::allocator<float>>, std::string)",
        ),
        ("_ZN12_GLOBAL__N_11kEPf", "void (anonymous namespace)::k(float*)"),
        ("_ZL1kPf", "void k(float*)"),
        ("_Z1kDF16_DF16bDs", "void k(_Float16, __bf16, char16_t)"),
        ("_Z1k6__half13__nv_bfloat16", "void k(__half, __nv_bfloat16)"),
        ("_Z1kN4cuda3std3__47complexIfEE", "void k(cuda::std::__4::complex<float>)"),
        ("_Z1k1SS_PS_PKS_", "void k(S, S, S*, const S*)"),
        ("_Z3appI2SqEvT_Pf", "void app<Sq>(Sq, float*)"),
        ("_Z1kRfRKi", "void k(float&, const int&)"),
    ],
)
def test_symbol_is_read(symbol, shown):
    assert str(from_mangled(symbol)) == shown


def test_symbol_kinds():
    signature = from_mangled("_Z1kIfEvPKT_PS0_jbN4cuda3std3__47complexIS0_EE6float41SPFvvE")
    assert kinds(signature.parameters) == [
        *("pointer:r", "pointer:w", "u32", "bool", "c64", "bytes", "unknown", "u64")
    ]
    assert [p.size for p in signature.parameters][-3:] == [16, 0, 8]


@pytest.mark.parametrize(
    "symbol",
    [
        "saxpy",
        "",
        "_Z",
        "_Z5saxp",
        "_Z5saxpy",  # a variable
        "_Z1kPfS9_",  # no such substitution
        "_Z1kIfEvT0_",  # no such argument
        "_Z3depIfEvN3BoxIT_E3ptrES1_",  # typename Box<T>::ptr may be anything
        "_Z3depIfEvPKN3BoxIT_E4typeE",
        "_Z1kI3BoxEvT_IfE",
        "_Z1kI3BoxfEvT_IT0_E",  # a template argument may be an alias
        "_Z1kZ4mainEUlfE_",  # a closure
        "_Z1kIXadL_Z1fvEEEvPf",
        "_Z1kIfEvDTcl1ffp_EE",
        "_Z1kiz",
        "_Z1kM1Sf",
        "_Z1kPU3AS1f",
        "_Z1kPf.clone",
        "_ZN1SpLERKS_",
    ],
)
def test_unsure_symbol_gives_none(symbol):
    assert from_mangled(symbol) is None


@given(st.data())
def test_no_symbol_raises(data):
    alphabet = st.sampled_from("NIEJTSPKVFAXLD_0123456789fivz")
    whole = "_Z4axpyIfJiPKdEEvN2ns3BoxIT_EEDpPKT0_PFvS0_EA3_S1_"
    cut = data.draw(st.integers(2, len(whole)))
    tail = "".join(data.draw(st.lists(alphabet, max_size=12)))
    from_mangled(whole[:cut] + tail)
    from_probe(whole[:cut] + tail)


def test_probe_holds_a_function_type():
    parameters = from_probe("_Z10cyrt_probeIFvfPKfPfj1SPFiiEPKPKiN2ns1TE6float4EEvv")
    assert kinds(parameters) == [
        *("f32", "pointer:r", "pointer:w", "u32", "unknown", "u64", "pointer:r", "unknown", "bytes")
    ]
    assert from_probe("_Z10cyrt_probeIFvvEEvv") == ()
    assert from_probe("_Z10cyrt_probeIfEvv") is None
    assert from_probe("cyrt_probe") is None


# -- PTX -------------------------------------------------------------------------------------------

PTX = """
.version 9.0
.target sm_90
// .entry commented(
.visible .entry first(
    .param .f32 first_param_0,
    .param .u64 first_param_1,
    .param .u64 .ptr .global .align 16 first_param_2, /* , */
    .param .u8 first_param_3,
    .param .align 8 .b8 first_param_4[24],
    .param .b16 first_param_5
)
.maxntid 256, 1, 1
{ ret; }
.weak .entry _Z6secondv()
{ ret; }
.entry third { ret; }
"""


def test_ptx_entries():
    assert entries(PTX) == ["first", "_Z6secondv", "third"]


def test_ptx_parameters():
    signature = from_ptx(PTX, "first")
    assert [(p.code, p.size, p.align, p.writes) for p in signature.parameters] == [
        ("f32", 4, 4, False),
        ("word64", 8, 8, True),
        ("pointer", 8, 8, True),
        ("word8", 1, 1, False),
        ("bytes", 24, 8, False),
        ("word16", 2, 2, False),
    ]
    assert signature.offsets == (0, 8, 16, 24, 32, 56)
    assert from_ptx(PTX, "_Z6secondv").parameters == ()
    assert from_ptx(PTX, "third").parameters == ()


def test_ptx_without_the_entry_names_those_there_are():
    with pytest.raises(ValueError, match="no entry 'nope'.*first, _Z6secondv, third"):
        from_ptx(PTX, "nope")


def test_ptx_with_an_odd_parameter():
    with pytest.raises(ValueError, match=r"`\.param \.pred p` of the PTX entry 'k'"):
        from_ptx(".entry k(.param .pred p) {}", "k")


# -- completing ------------------------------------------------------------------------------------


def test_offsets_are_those_of_a_struct():
    signature = from_declaration("void k(char a, double b, float3 c, float4 d, half e)")
    assert signature.offsets == (0, 8, 16, 32, 48)
    assert signature.extents[-1] == (48, 2)


def test_unknown_size_has_no_offsets():
    signature = from_declaration("void k(int a, S s)")
    assert not signature.complete
    with pytest.raises(ValueError, match=r"parameter 2 \(S s\).*unknown size"):
        _ = signature.offsets


def test_completed_fills_sizes_in():
    signature = from_declaration("void k(char a, S s, T t, double d)")
    full = signature.completed([(0, 1), (8, 24), (32, 3), (40, 8)])
    assert full.complete
    assert full.offsets == (0, 8, 32, 40)
    assert [(p.size, p.align) for p in full.parameters[1:3]] == [(24, 8), (3, 1)]
    assert signature.parameters[1].size == 0


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ([(0, 4)], "2 parameters, the compiled kernel 1"),
        ([(0, 4), (8, 4)], r"parameter 2 \(const float\* x\).*8 bytes at offset 8.*4 bytes"),
        ([(0, 8), (8, 8)], r"parameter 1 \(int n\).*4 bytes at offset 0.*8 bytes"),
        ([(0, 4), (16, 8)], "8 bytes at offset 8.*8 bytes at offset 16"),
    ],
)
def test_completed_refuses_what_disagrees(sizes, says):
    with pytest.raises(ValueError, match=says):
        from_declaration("void k(int n, const float* x)").completed(sizes)


def test_completed_refuses_an_impossible_place():
    with pytest.raises(ValueError, match="at offset"):
        from_declaration("void k(int n, S s)").completed([(0, 4), (7, 8)])


def test_refined_takes_an_enumeration_for_an_integer():
    ptx = Signature("k", (Parameter(".u32", "word32", 4, 4, False),))
    (p,) = from_declaration("void k(Kind kind)").refined(ptx).parameters
    assert (p.type, p.code, p.size, p.name) == ("Kind", "word32", 4, "kind")


def test_names_are_given_only_if_there_is_one_for_each():
    signature = from_mangled("_Z1kfPf")
    assert str(signature.with_names(("a", "x"))) == "void k(float a, float* x)"
    assert signature.with_names(("a",)) is signature


# -- the arrays that fit a pointer -----------------------------------------------------------------

EVERY = {dtype.name for dtype in DTYPES}


@pytest.mark.parametrize(
    ("type", "types", "size", "align"),
    [
        ("float*", {"float32"}, 4, 4),
        ("const float* __restrict__", {"float32"}, 4, 4),
        ("volatile int*", {"int32"}, 4, 4),
        ("const volatile unsigned*", {"uint32"}, 4, 4),
        ("long*", {"int64"}, 8, 8),
        ("long long*", {"int64"}, 8, 8),
        ("size_t*", {"uint64"}, 8, 8),
        ("long double*", {"float64"}, 8, 8),
        ("wchar_t*", {"int32"}, 4, 4),
        ("char16_t*", {"uint16"}, 2, 2),
        ("bool*", {"bool", "int8", "uint8"}, 1, 1),
        ("__half*", {"float16"}, 2, 2),
        ("__nv_bfloat16*", {"bfloat16"}, 2, 2),
        ("half2*", {"float16"}, 4, 4),
        ("__nv_bfloat162*", {"bfloat16"}, 4, 4),
        ("float1*", {"float32"}, 4, 4),
        ("float2*", {"float32", "complex64"}, 8, 8),
        ("float3*", {"float32"}, 12, 4),
        ("::float4*", {"float32", "complex64"}, 16, 16),
        ("double4*", {"float64", "complex128"}, 32, 16),
        ("ushort4*", {"uint16"}, 8, 8),
        ("longlong2*", {"int64"}, 16, 16),
        ("ulong4_32a*", {"uint64"}, 32, 32),
        ("uchar4*", EVERY, 4, 4),
        ("cuComplex*", {"complex64", "float32"}, 8, 8),
        ("std::complex<float>*", {"complex64", "float32"}, 8, 4),
        ("thrust::complex<double>*", {"complex128", "float64"}, 16, 16),
        ("float (*x)[4]", {"float32"}, 4, 4),
        ("const short x[2][3]", {"int16"}, 2, 2),
        ("float**", {"int64", "uint64"}, 8, 8),
        ("const void* const*", {"int64", "uint64"}, 8, 8),
        *(
            (f"{name}*", EVERY, 1, 1)
            for name in (
                "void",
                "const void",
                "char",
                "unsigned char",
                "int8_t",
                "cuda::std::uint8_t",
                "std::byte",
                "Options",
                "Box<float>",
                "ns::float4",
                "dim3",
                "__int128",
            )
        ),
    ],
)
def test_arrays_that_fit(type, types, size, align):
    (p,) = from_declaration(f"void k({type})").parameters
    assert elements(p) == Elements(frozenset(types), size, align)


def test_arrays_that_fit_by_the_symbol():
    signature = from_mangled("_Z1kP6float2PKPKfPVKiPA4_KfPPA4_iPSt4bytePN4cuda3std3__47complexIfEE")
    assert [sorted(elements(p).types)[:2] for p in signature.parameters] == [
        ["complex64", "float32"],
        ["int64", "uint64"],
        ["int32"],
        ["float32"],
        ["int64", "uint64"],
        ["bfloat16", "bool"],
        ["complex64", "float32"],
    ]


def test_what_is_no_pointer_of_a_declaration_has_no_arrays():
    for p in from_declaration("void k(float a, Options b, void (*c)(int))").parameters:
        assert elements(p) is None
    assert [elements(p) for p in from_ptx(PTX, "first").parameters] == [None] * 6
