"""Single instructions, by inline PTX or intrinsics, against Python and NumPy."""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np
import pytest

import cyrt

M32, M64 = 2**32 - 1, 2**64 - 1
EDGES = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x12345678,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xDEADBEEF,
    0xFFFFFFFE,
    0xFFFFFFFF,
]


def signed(value, bits=32):
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def run(body, inputs, out, prelude=""):
    """Run `body` for each row of the inputs `a`, `b`, `c`: what it assigns to `d`."""
    inputs = [np.ascontiguousarray(x) for x in inputs]
    ctypes = {
        "u4": "unsigned",
        "i4": "int",
        "u8": "unsigned long long",
        "i8": "long long",
        "f4": "float",
        "f8": "double",
        "u2": "unsigned short",
    }
    names = "abc"[: len(inputs)]
    kinds = [ctypes[x.dtype.str[1:]] for x in inputs]
    params = ", ".join(f"const {k}* p{n}" for k, n in zip(kinds, names, strict=True))
    loads = " ".join(f"{k} {n} = p{n}[i];" for k, n in zip(kinds, names, strict=True))
    result = ctypes[np.dtype(out).str[1:]]
    kernel = cyrt.Kernel(
        f'{prelude}\nextern "C" __global__ void probe({params}, {result}* pd, int n) {{\n'
        f"int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n"
        f"{loads} {result} d; {body}\npd[i] = d; }}",
        "probe",
    )
    buffers = []
    for x in inputs:
        buffers.append(cyrt.Buffer(x.nbytes))
        buffers[-1].copy_from(x)
    n = inputs[0].size
    got = np.empty(n, out)
    buffers.append(cyrt.Buffer(got.nbytes))
    kernel[-(-n // 64), 64](*buffers, n)
    buffers[-1].copy_to(got)
    return got


def pairs(values=EDGES, dtype=np.uint32):
    grid = np.array([(a, b) for a in values for b in values], dtype)
    return grid[:, 0].copy(), grid[:, 1].copy()


def asm(text, result, *sources):
    return (
        f'asm volatile("{text}" : "={result[0]}"({result[1]}) : '
        + ", ".join(f'"{kind}"({name})' for kind, name in sources)
        + ");"
    )


def binary(name):
    return asm(f"{name} %0, %1, %2;", ("r", "d"), ("r", "a"), ("r", "b"))


def unary(name):
    return asm(f"{name} %0, %1;", ("r", "d"), ("r", "a"))


BINARY = {
    "add.u32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: signed(a) * signed(b) >> 32,
    "mul24.lo.u32": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "div.u32": lambda a, b: a // b if b else None,
    "rem.u32": lambda a, b: a % b if b else None,
    "div.s32": lambda a, b: math.trunc(signed(a) / signed(b)) if b else None,
    "rem.s32": lambda a, b: int(math.fmod(signed(a), signed(b))) if b else None,
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << min(b, 32),
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: signed(a) >> min(b, 31),
    "add.sat.s32": lambda a, b: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
    "sub.sat.s32": lambda a, b: max(-(2**31), min(2**31 - 1, signed(a) - signed(b))),
    "bmsk.clamp.b32": lambda a, b: ((1 << min(b, 32)) - 1) << min(a, 32),
}


@pytest.mark.parametrize("name", BINARY)
def test_integer_binary(name):
    a, b = pairs()
    got = run(binary(name), [a, b], np.uint32)
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        expected = BINARY[name](x, y)
        assert expected is None or z == expected & M32, f"{name} {x:#x} {y:#x}"


UNARY = {
    "not.b32": lambda a: ~a,
    "neg.s32": lambda a: -a,
    "abs.s32": lambda a: abs(signed(a)),
    "popc.b32": lambda a: a.bit_count(),
    "clz.b32": lambda a: 32 - a.bit_length(),
    "brev.b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "bfind.u32": lambda a: a.bit_length() - 1,
    "bfind.s32": lambda a: (~a & M32 if a >> 31 else a).bit_length() - 1,
    "cnot.b32": lambda a: int(a == 0),
    "cvt.s32.s8": lambda a: signed(a, 8),
    "cvt.u32.u16": lambda a: a & 0xFFFF,
    "cvt.sat.u8.s32": lambda a: max(0, min(255, signed(a))),
}


@pytest.mark.parametrize("name", UNARY)
def test_integer_unary(name):
    a = np.array(EDGES, np.uint32)
    got = run(unary(name), [a], np.uint32)
    assert got.tolist() == [UNARY[name](x) & M32 for x in EDGES]


def permuted(a, b, selector):
    source = (b << 32 | a).to_bytes(8, "little")
    return sum(source[selector >> 4 * i & 7] << 8 * i for i in range(4))


TERNARY = {
    "__byte_perm(a, b, c & 0x7777)": lambda a, b, c: permuted(a, b, c & 0x7777),
    "__funnelshift_l(a, b, c)": lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    "__funnelshift_r(a, b, c)": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "__funnelshift_lc(a, b, c)": lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
    "__usad(a, b, c)": lambda a, b, c: abs(a - b) + c,
    "__dp4a(a, b, c)": lambda a, b, c: (
        c + sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4))
    ),
    "__dp4a((int)a, (int)b, (int)c)": lambda a, b, c: (
        c + sum(signed(a >> 8 * i, 8) * signed(b >> 8 * i, 8) for i in range(4))
    ),
    "__vadd4(a, b) + c": lambda a, b, c: (
        c + sum(((a >> s) + (b >> s) & 255) << s for s in (0, 8, 16, 24))
    ),
    "__vabsdiffu4(a, b) ^ c": lambda a, b, c: (
        c ^ sum(abs((a >> s & 255) - (b >> s & 255)) << s for s in (0, 8, 16, 24))
    ),
    "(a & b) | (~a & c)": lambda a, b, c: a & b | ~a & c,
    "__umulhi(a, b) + __mulhi((int)a, (int)c)": lambda a, b, c: (
        (a * b >> 32) + (signed(a) * signed(c) >> 32)
    ),
    "__brev(a) ^ __popc(b) ^ __clz(c)": lambda a, b, c: (
        int(f"{a:032b}"[::-1], 2) ^ b.bit_count() ^ 32 - c.bit_length()
    ),
}


@pytest.mark.parametrize("expression", TERNARY)
def test_integer_ternary(rng, expression):
    rows = rng.integers(0, 2**32, (200, 3), np.uint32)
    rows[:50] = rng.choice(np.array(EDGES, np.uint32), (50, 3))
    a, b, c = (column.copy() for column in rows.T)
    got = run(f"d = {expression};", [a, b, c], np.uint32)
    expected = [TERNARY[expression](*map(int, row)) & M32 for row in rows]
    assert got.tolist() == expected


@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("d = __umul64hi(a, b);", lambda a, b: a * b >> 64),
        (
            "d = __mul64hi((long long)a, (long long)b);",
            lambda a, b: signed(a, 64) * signed(b, 64) >> 64,
        ),
        ("d = b ? a / b : 0;", lambda a, b: a // b if b else 0),
        ("d = b ? a % b : 0;", lambda a, b: a % b if b else 0),
        ("d = __brevll(a) + __popcll(b);", lambda a, b: int(f"{a:064b}"[::-1], 2) + b.bit_count()),
        (
            "d = __clzll(a) * 100 + __ffsll(b);",
            lambda a, b: (64 - a.bit_length()) * 100 + (b & -b).bit_length(),
        ),
        (
            "d = a << (b & 63) | a >> (63 - (b & 63));",
            lambda a, b: a << (b & 63) | a >> (63 - (b & 63)),
        ),
        (
            "d = (unsigned long long)((__int128)(long long)a * (long long)b >> 40);",
            lambda a, b: signed(a, 64) * signed(b, 64) >> 40,
        ),
    ],
)
def test_64_bit(rng, body, reference):
    a, b = rng.integers(0, 2**64, (2, 100), np.uint64)
    a[:20], b[10:40] = a[:20] >> 40, b[10:40] >> 50
    b[:3] = 0
    got = run(body, [a, b], np.uint64)
    expected = [reference(int(x), int(y)) & M64 for x, y in zip(a, b, strict=True)]
    assert got.tolist() == expected


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    1e-40,
    -1e-45,
    3.4e38,
    1e-20,
    math.inf,
    -math.inf,
    math.nan,
    16777217.0,
    0.1,
    123456.789,
    -2147483648.0,
    4e9,
    65504.0,
    65520.0,
]


@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("d = a + b;", np.add),
        ("d = a * b;", np.multiply),
        ("d = a / b;", np.divide),
        ("d = fminf(a, b);", np.fmin),
        ("d = fmaxf(a, b);", np.fmax),
        ("d = fmodf(a, b);", np.fmod),
        ("d = copysignf(a, b);", np.copysign),
        ("d = sqrtf(fabsf(a)) + 0 * b;", lambda a, b: np.sqrt(np.abs(a)) + 0 * b),
        ("d = rintf(a) - truncf(b);", lambda a, b: np.rint(a) - np.trunc(b)),
        ("d = floorf(a) + ceilf(b);", lambda a, b: np.floor(a) + np.ceil(b)),
        (
            "d = (a < b) + 2 * (a == b) + 4 * (a != b) + 8 * !(a >= b);",
            lambda a, b: (a < b) + 2 * (a == b) + 4 * (a != b) + 8 * ~(a >= b),
        ),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_exactly(body, reference, dtype):
    a, b = pairs(FLOATS, dtype)
    if dtype is np.float64:
        for name in (
            "fmin",
            "fmax",
            "fmod",
            "copysign",
            "sqrt",
            "rint",
            "trunc",
            "floor",
            "ceil",
            "fabs",
        ):
            body = body.replace(name + "f(", name + "(")
    with np.errstate(all="ignore"):
        expected = reference(a, b).astype(dtype)
    np.testing.assert_array_equal(run(body, [a, b], dtype), expected)


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
def test_directed_rounding(rng, mode):
    a, b = (rng.standard_normal((2, 500)) * 10.0 ** rng.integers(-8, 8, (2, 500))).astype(
        np.float32
    )
    c = rng.standard_normal(500).astype(np.float32)
    exact = a.astype(np.float64) * b
    got = run(f"d = __fmul_{mode}(a, b);", [a, b], np.float32).astype(np.float64)
    down = np.where(
        exact.astype(np.float32) <= exact,
        exact.astype(np.float32),
        np.nextafter(exact.astype(np.float32), np.float32(-np.inf)),
    )
    up = np.where(
        exact.astype(np.float32) >= exact,
        exact.astype(np.float32),
        np.nextafter(exact.astype(np.float32), np.float32(np.inf)),
    )
    expected = {
        "rn": exact.astype(np.float32),
        "rd": down,
        "ru": up,
        "rz": np.where(exact < 0, up, down),
    }[mode]
    np.testing.assert_array_equal(got, expected)
    sums = run(f"d = __fmaf_{mode}(a, b, c);", [a, b, c], np.float32)
    np.testing.assert_allclose(sums, exact + c, rtol=1e-6, atol=1e-30)


MATH = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atanh",
    "cbrt",
    "erf",
    "erfc",
    "lgamma",
    "tgamma",
    "rsqrt",
]
DOMAINS = {
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atanh": (-0.99, 0.99),
    "log": (1e-3, 50),
    "log2": (1e-3, 50),
    "log10": (1e-3, 50),
    "log1p": (-0.9, 50),
    "rsqrt": (1e-3, 50),
    "lgamma": (0.1, 20),
    "tgamma": (0.1, 20),
    "erfc": (-3, 5),
}


@pytest.mark.parametrize("name", MATH)
def test_math_library(rng, name):
    reference = {"rsqrt": lambda x: x**-0.5, "cbrt": math.cbrt, "tgamma": math.gamma}.get(
        name
    ) or getattr(math, name)
    x = rng.uniform(*DOMAINS.get(name, (-8, 8)), 200)
    expected = [reference(v) for v in x.tolist()]
    np.testing.assert_allclose(
        run(f"d = {name}(a);", [x], np.float64), expected, rtol=1e-13, atol=1e-15
    )
    x = x.astype(np.float32)
    expected = [reference(v) for v in x.tolist()]
    np.testing.assert_allclose(
        run(f"d = {name}f(a);", [x], np.float32), expected, rtol=3e-6, atol=1e-6
    )


def test_large_arguments(rng):
    x = rng.uniform(1e5, 1e15, 200)
    np.testing.assert_allclose(run("d = sin(a);", [x], np.float64), np.sin(x), rtol=1e-9)
    got = run("d = pow(a, b);", [x, rng.uniform(-20, 20, 200)], np.float64)
    assert np.isfinite(got).all()


@pytest.mark.parametrize(
    ("cxx", "dtype"), [("__half", np.float16), ("__nv_bfloat16", ml_dtypes.bfloat16)]
)
@pytest.mark.parametrize(
    ("body", "reference"),
    [("x + y", np.add), ("x * y", np.multiply), ("x / y", np.divide), ("__hmax(x, y)", np.maximum)],
)
def test_half_arithmetic(rng, cxx, dtype, body, reference):
    a, b = (rng.standard_normal((2, 300)) * 4).astype(dtype)
    to, back = (
        ("ushort_as_half", "half_as_ushort")
        if cxx == "__half"
        else ("ushort_as_bfloat16", "bfloat16_as_ushort")
    )
    got = run(
        f"{cxx} x = __{to}(a), y = __{to}(b); d = __{back}({cxx}({body}));",
        [a.view(np.uint16), b.view(np.uint16)],
        np.uint16,
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>",
    ).view(dtype)
    expected = reference(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    difference = np.abs(got.view(np.int16).astype(int) - expected.view(np.int16).astype(int))
    assert difference.max() <= ("/" in body)


@pytest.mark.parametrize(
    ("intrinsic", "reference"),
    [
        ("__float2int_rn", np.rint),
        ("__float2int_rz", np.trunc),
        ("__float2int_ru", np.ceil),
        ("__float2int_rd", np.floor),
    ],
)
def test_float_to_int(intrinsic, reference):
    a = np.array([*FLOATS, 0.5, 1.5, -0.5, -2.5, 2147483520.0, 1e30, -1e30], np.float32)
    exact = np.clip(np.nan_to_num(reference(a.astype(np.float64)), nan=0), -(2**31), 2**31 - 1)
    got = run(f"d = {intrinsic}(a);", [a], np.int32)
    np.testing.assert_array_equal(got, exact.astype(np.int64))


def test_carry_chain(rng):
    a, b = rng.integers(0, 2**64, (2, 100), np.uint64)
    text = (
        "{ .reg .b32 al, ah, bl, bh, dl, dh; mov.b64 {al, ah}, %1; mov.b64 {bl, bh}, %2;"
        " add.cc.u32 dl, al, bl; addc.u32 dh, ah, bh; mov.b64 %0, {dl, dh}; }"
    )
    got = run(asm(text, ("l", "d"), ("l", "a"), ("l", "b")), [a, b], np.uint64)
    np.testing.assert_array_equal(got, a + b)


PTX = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %a, %b; .reg .b32 %x, %y, %z, %w; .reg .f32 %f, %g; .reg .b16 %h;
    ld.param.u64 %a, [p];
    mov.u32 %x, 1; mov.u32 %y, 2; mov.u32 %z, 3; mov.u32 %w, 4;
    {code}
    st.global.v4.u32 [%a], {{%x, %y, %z, %w}};
    ret;
}}
"""


def run_ptx(code):
    """Run PTX that computes %x, %y, %z, %w from 1, 2, 3, 4; [%a] holds four zeros."""
    if cyrt.Device().compute_capability < (9, 0):
        pytest.skip("PTX of sm_90")
    out = cyrt.zeros(4, dtype="uint32")
    cyrt.Module(PTX.format(code=code).encode())["k"][1, 1](out)
    return out.numpy().tolist()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mov.v2.u32 {%x, %y}, {%y, %x};", [2, 1, 3, 4]),
        ("mov.v4.b32 {%x, %y, %z, %w}, {%w, %z, %y, %x};", [4, 3, 2, 1]),
        ("mov.v4.u32 {%w, _, %y, %z}, {%z, %w, %x, %y};", [1, 1, 2, 3]),
        ("mov.v2.u32 {%x, %y}, {%y, 9};", [2, 9, 3, 4]),
        ("mov.b64 %b, {%x, %y}; mov.b64 {%y, %x}, %b;", [2, 1, 3, 4]),
        (
            "mov.b64 %b, %a; st.global.v2.u64 [%b], {%b, 7};"
            " ld.global.v2.u64 {%b, _}, [%b]; sub.u64 %b, %b, %a; cvt.u32.u64 %x, %b;",
            [0, 2, 3, 4],
        ),
        # Old values and operands in the same registers.
        (
            "st.global.v2.f32 [%a], {0f40400000, 0f40A00000}; mov.f32 %f, 0f3F800000;"
            " mov.f32 %g, 0f40000000; atom.global.v2.f32.add {%g, %f}, [%a], {%f, %g};"
            " cvt.rzi.u32.f32 %x, %g; cvt.rzi.u32.f32 %y, %f;"
            " ld.global.v2.f32 {%f, %g}, [%a]; cvt.rzi.u32.f32 %z, %f; cvt.rzi.u32.f32 %w, %g;",
            [3, 5, 4, 7],
        ),
        (
            "sub.u32 %y, %y, 2; shfl.sync.idx.b32 %y, %y, %y, %y, -1; setp.eq.s32 %p|%q, %x, 1;"
            " setp.ne.or.s32 %p|%q, %x, 1, %q; selp.u32 %z, 1, 0, %p; selp.u32 %w, 1, 0, %q;",
            [1, 0, 0, 1],
        ),
    ],
)
def test_sources_are_read_before_results_are_written(code, expected):
    assert run_ptx(".reg .pred %p, %q; " + code) == expected


@pytest.mark.parametrize("width", [32, 64])
def test_the_flag_is_the_adders_carry(rng, width):
    """A subtraction is a + ~b + 1, so addc behind sub.cc adds 1 where there was no borrow."""
    dtype, letter, code = (np.uint32, "r", "u4") if width == 32 else (np.uint64, "l", "u8")
    edges = np.array([0, 1, 2, 2 ** (width - 1), 2**width - 2, 2**width - 1], dtype)
    a, b, c = (x.ravel() for x in np.meshgrid(edges, edges, edges))
    first = {"add": lambda a, b: a + b, "sub": lambda a, b: a + (2**width - 1 - b) + 1}
    then = {
        "addc": lambda a, b, carry: a + b + carry,
        "subc": lambda a, b, carry: a + (2**width - 1 - b) + carry,
    }
    for before, total in first.items():
        for middle, step in then.items():
            for after, last in then.items():
                text = (
                    f"{{ .reg .b{width} t; {before}.cc.u{width} t, %1, %2;"
                    f" {middle}.cc.u{width} t, %2, %3; {after}.u{width} %0, t, %1; }}"
                )
                body = asm(text, (letter, "d"), (letter, "a"), (letter, "b"), (letter, "c"))
                got = run(body, [a, b, c], code)
                for i, (x, y, z) in enumerate(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)):
                    carry = total(x, y) >> width
                    between = step(y, z, carry)
                    want = last(between % 2**width, x, between >> width) % 2**width
                    assert got[i] == want, (before, middle, after, x, y, z)


def test_the_flag_of_a_subtraction_ends_a_product(rng):
    """madc.lo behind sub.cc adds the same flag."""
    body = asm(
        "{ .reg .b32 t; sub.cc.u32 t, %1, %2; madc.lo.u32 %0, %1, %2, 0; }",
        ("r", "d"),
        ("r", "a"),
        ("r", "b"),
    )
    a, b = rng.integers(0, 2**32, (2, 50), np.uint32)
    np.testing.assert_array_equal(run(body, [a, b], np.uint32), a * b + (a >= b))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("add.u32 %x, %y + 5, %z + -1;", [9, 2, 3, 4]),
        ("mov.u32 %x, %x + 1; mov.b32 %y, %x + 0x10 + 1;", [2, 19, 3, 4]),
        ("cvt.u64.u32 %b, %w + 1; cvt.u32.u64 %x, %b + 1;", [6, 2, 3, 4]),
        ("st.global.u64 [%a], %a + 8; ld.global.u64 %b, [%a]; sub.u64 %b, %b, %a;"
         " cvt.u32.u64 %x, %b;", [8, 2, 3, 4]),
        ("cvta.to.global.u64 %b, %a + 8; st.global.u32 [%b + 4], %w + 1;"
         " ld.global.u32 %x, [%a + 12];", [5, 2, 3, 4]),
        ("cvt.u16.u32 %h, %x; add.u16 %h, %h + 0xffff, 0; cvt.u32.u16 %x, %h;", [0, 2, 3, 4]),
    ],
)  # fmt: skip
def test_register_plus_constant(code, expected):
    assert run_ptx(code) == expected


def test_scopes_and_predicates_of_inline_ptx(rng):
    a = rng.integers(-100, 100, 100).astype(np.int32)
    text = (
        "{ .reg .pred p, q; .reg .s32 x; mov.s32 x, 7; setp.lt.s32 p|q, %1, 0;"
        " @p neg.s32 x, %1; @q add.s32 x, x, %1; mov.s32 %0, x; }"
    )
    got = run(asm(text, ("r", "d"), ("r", "a")), [a], np.int32)
    np.testing.assert_array_equal(got, np.where(a < 0, -a, 7 + a))


@pytest.mark.parametrize(
    ("call", "reference"),
    [
        ("atomicAdd(x, a)", lambda old, a: old + a),
        ("atomicSub(x, a)", lambda old, a: old - a),
        ("atomicMin(x, a)", min),
        ("atomicMax(x, a)", max),
        ("atomicAnd(x, a)", lambda o, a: o & a),
        ("atomicOr(x, a)", lambda o, a: o | a),
        ("atomicXor(x, a)", lambda o, a: o ^ a),
        ("atomicInc(x, 1000)", lambda o, a: 0 if o >= 1000 else o + 1),
        ("atomicDec(x, 1000)", lambda o, a: 1000 if o == 0 or o > 1000 else o - 1),
    ],
)
@pytest.mark.parametrize("space", ["__shared__", "__device__"])
def test_atomics(rng, call, reference, space):
    a = rng.integers(0, 2**32, 64, np.uint32)
    shared = space == "__shared__"
    got = run(
        ("__shared__ unsigned cell;" if shared else "")
        + " unsigned* x = &cell; if (threadIdx.x == 0) *x = 500; __syncthreads();"
        f" {call}; __syncthreads(); d = *x;",
        [a],
        np.uint32,
        "" if shared else "__device__ unsigned cell;",
    )
    value = 500
    for operand in a.tolist():
        value = reference(value, operand) & M32
    assert set(got.tolist()) == {value}


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_float_atomics(kind, dtype):
    a = np.arange(64, dtype=dtype)
    got = run(
        "if (i == 0) cell = 0; __syncthreads(); atomicAdd(&cell, a); __syncthreads(); d = cell;",
        [a],
        dtype,
        f"__device__ {kind} cell;",
    )
    assert (got == 63 * 32).all()


def test_volatile_and_vector_memory(rng):
    x = rng.integers(0, 2**32, 256, np.uint32)
    kernel = cyrt.Kernel(
        r"""
    extern "C" __global__ void copy(const uint4* in, uint4* out, const char4* c, short2* s) {
        int i = threadIdx.x;
        uint4 v = __ldg(in + i);
        out[i] = make_uint4(v.w, v.z, v.y, v.x);
        char4 q = c[i];
        s[i] = make_short2(q.x + q.y, q.z - q.w);
    }""",
        "copy",
    )
    buffers = [cyrt.Buffer(1024) for _ in range(3)] + [cyrt.Buffer(256)]
    buffers[0].copy_from(x)
    buffers[2].copy_from(x)
    kernel[1, 64](buffers[0], buffers[1], buffers[2], buffers[3])
    out, sums = np.empty((64, 4), np.uint32), np.empty((64, 2), np.int16)
    buffers[1].copy_to(out)
    buffers[3].copy_to(sums)
    np.testing.assert_array_equal(out, x.reshape(64, 4)[:, ::-1])
    c = x.view(np.int8)[:256].reshape(64, 4).astype(np.int16)
    np.testing.assert_array_equal(sums, np.stack([c[:, 0] + c[:, 1], c[:, 2] - c[:, 3]], 1))


def test_special_registers():
    kernel = cyrt.Kernel(
        r"""
    extern "C" __global__ void places(unsigned* out) {
        unsigned lane, warp, lt, ge;
        asm("mov.u32 %0, %%laneid;" : "=r"(lane));
        asm("mov.u32 %0, %%warpid;" : "=r"(warp));
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
        asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
        long long before = clock64();
        unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        unsigned i = b * (blockDim.x * blockDim.y * blockDim.z) + t;
        out[i] = lane == t % 32 && lt == (1u << lane) - 1 && ge == ~lt && clock64() >= before
            ? t : 0xffffffffu;
    }""",
        "places",
    )
    out = cyrt.Buffer(4 * 12 * 105)
    kernel[(2, 3, 2), (7, 5, 3)](out)
    got = np.empty((12, 105), np.uint32)
    out.copy_to(got)
    np.testing.assert_array_equal(got, np.broadcast_to(np.arange(105), (12, 105)))


@pytest.mark.parametrize("fixed", [0, 1000])
def test_sizes_of_shared_memory(fixed):
    """The total is what is allocated; the aggregate contains the system's 1,024 bytes."""
    if cyrt.Device().compute_capability < (9, 0):
        pytest.skip("as on sm_90")
    kernel = cyrt.Kernel(
        r"""extern "C" __global__ void k(unsigned* out, int n) {
        %s
        asm volatile("mov.u32 %%0, %%%%dynamic_smem_size;" : "=r"(out[0]));
        asm volatile("mov.u32 %%0, %%%%total_smem_size;" : "=r"(out[1]));
        asm volatile("mov.u32 %%0, %%%%aggr_smem_size;" : "=r"(out[2]));
    }"""
        % (
            f"__shared__ char own[{fixed}]; own[n] = 1; __syncthreads(); out[3] = own[n & 7];"
            if fixed
            else ""
        ),
        "k",
    )
    for dynamic in (0, 1, 100, 128, 1000):
        out = cyrt.zeros(4, dtype="uint32")
        kernel[1, 1, dynamic](out, 0)
        whole = dynamic + fixed
        assert out.numpy().tolist()[:3] == [dynamic, -(-whole // 128) * 128, whole + 1024]


def test_approximations(rng):
    x = rng.uniform(0.1, 30, 300).astype(np.float32)
    for name, reference in [
        ("__expf", np.exp),
        ("__logf", np.log),
        ("__sinf", np.sin),
        ("__frcp_rn", np.reciprocal),
        ("__frsqrt_rn", lambda v: v**-0.5),
        ("__fsqrt_rn", np.sqrt),
        ("__tanhf", np.tanh),
    ]:
        got = run(
            f"d = {name}(a);"
            if name != "__tanhf"
            else asm("tanh.approx.f32 %0, %1;", ("f", "d"), ("f", "a")),
            [x],
            np.float32,
        )
        tolerance = 5e-4 if name == "__tanhf" else 2e-5
        np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=tolerance, atol=2e-6)


def test_bits_of_floats_survive():
    bits = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1], np.uint32)
    assert (
        run("d = __float_as_uint(__uint_as_float(a));", [bits], np.uint32).tolist() == bits.tolist()
    )
    assert struct.pack("<f", 1.5) == run("d = 1.5f + 0 * a;", [bits[3:]], np.float32).tobytes()
