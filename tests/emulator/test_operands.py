"""Operands that do not fit their instruction: the load is refused, whatever the instruction."""

from __future__ import annotations

import pytest

import cyrt

pytestmark = pytest.mark.usefixtures("only_emulated")

MODULE = """.version 8.8
.target sm_90
.address_size 64
.global .align 16 .b32 device[64];
.const .align 16 .b32 fixed[64];
.shared .align 16 .b32 near[64];
.func (.param .b32 r) increase(.param .b32 a)
{{
    .reg .b32 %r<2>;
    ld.param.b32 %r1, [a];
    add.s32 %r1, %r1, 1;
    st.param.b32 [r], %r1;
    ret;
}}
.visible .entry k(.param .u64 p, .param .u32 n)
{{
    .local .align 16 .b32 own[16];
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .b128 %q<3>;
    .reg .u32 %u<4>; .reg .f32 %f<9>; .reg .f64 %d<5>;
    ld.param.u64 %l1, [p];
    {code}
end:
    ret;
}}
"""
LINE = 1 + MODULE[: MODULE.index("{code}")].count("\n")


def load(code):
    return cyrt.Module(MODULE.format(code=code).encode())["k"]


COUNTS = """
st.global.v2.u64 [%l2], %l1;
st.v4.u32 [%l2], %r1;
st.global.u64 [%l2], {%l1, %l1};
st.global.v2.u64 [%l2], {%l1, %l1, %l1, %l1};
st.global.v2.u64 [%l2], {%l1};
st.global.v2.u64 [%l2], {};
ld.global.v2.u64 %l3, [%l2];
ld.global.u64 {%l3, %l4}, [%l2];
ld.global.v2.u64 {%l3, %l4, %l5, %l6}, [%l2];
ld.global.v4.u32 {%r3, %r4}, [%l2];
ld.global.u32 %r1;
ld.global.u32 %r1, [%l1], %l2;
ld.global.L2::cache_hint.u32 %r1, [%l1];
atom.global.add.u64 {%l3, %l4}, [%l2], {%l1, %l1};
atom.global.v2.f32.add %f1, [%l2], %f2;
atom.global.cas.b32 %r1, [%l2], %r2;
atom.global.add.u32 %r1, [%l2], %r2, %r3;
red.global.add.u32 [%l2];
mov.b64 %l3, {%l1, %l2};
mov.b32 {%r1, %r2}, %r3;
mov.b64 {%r1, %r2}, {%r3, %r4};
mov.b32 %r1;
add.u64 %l3, {%l1, %l2}, %l1;
add.f32 %f1, %f2;
add.f32 %f1, %f2, %f3, %f4;
fma.rn.f32 %f1, %f2, %f3;
setp.eq.s32 %p1, %r1, %r2, %p2;
setp.eq.and.s32 %p1, %r1, %r2;
setp.eq.u64 {%p1}, %l1, %l2;
lop3.b32 %r1|%p1, %r2, %r3, %r4, 0x80;
lop3.or.b32 %r1, %r2, %r3, %r4, 0x80, %p1;
cvt.rn.f16x2.f32 %r1, %f1;
min.u32 %r1, %r2, %r3, %r4;
shfl.sync.bfly.b32 %r1, %r2, 1, 31;
match.any.sync.b32 %r1|%p1, %r2, -1;
elect.sync %r1, %r2;
activemask.b32 %r1, %r2;
bar.sync;
bar.arrive 0;
bar.red.and.pred %p1, %p2;
barrier.cluster.wait 0;
trap 1;
exit %r1;
nanosleep.u32;
mbarrier.init.shared.b64 [near];
mbarrier.arrive.noComplete.shared.b64 %l1, [near];
mbarrier.try_wait.shared.b64 %p1, [near];
cp.async.ca.shared.global [near], [%l1];
vadd2.u32.u32.u32 %r1, %r2, %r3;
vadd.u32.u32.u32.add %r1, %r2, %r3;
vadd.u32.u32.u32 %r1.b0, %r2, %r3;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2},{%r1,%r2},{%r3},{%f1,%f2,%f3,%f4};
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [near];
wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4}, [near];
{.param .b32 a, b; call.uni (b), increase;}
{.param .b32 a, b; call.uni increase, (a);}
{.param .b32 a, b; call.uni (b), increase, (a, a);}
t: .callprototype (.param .b32 _) _ (.param .b32 _); {.param .b32 a; call (a), %l1, (a, a), t;}
{.param .b32 a; call %l1, (a);}
""".strip().splitlines()

KINDS = """
st.global.v2.u64 [%l2], {%l1, _};
st.global.b32.u64 [%l2], %l1;
st.global.u32 [%l2], %h1;
st.global.u32 [%l2], %p1;
st.global.f32 [%l2], %d1;
st.global.f32 [%l2], 1;
st.global.u32 [%l2], near;
st.global.u32 [near], %r1;
st.global.u32 [%r2], %r1;
st.global.u32 [%f2], %r1;
st.param.u32 [n], %r1;
st.u32 [fixed], %r1;
ld.global.b32 %h1, [%l2];
ld.global.u32 %f1, [%l2];
ld.global.u32 _, [%l2];
ld.shared.u32 %r1, [device];
ld.param.u32 %r1, [near];
ld.u32 %r1, [n];
ld.global.v2.v4.u32 {%r1, %r2}, [%l2];
st.global.v2.u32 [%l2], {%r1 + 1, %r2};
st.global.f32 [%l2], %f1 + 1;
add.u32 %r1 + 1, %r2, %r3;
and.pred %p1, %p2 + 1, %p3;
mov.b64 %l1, {%r1 + 1, %r2};
bar.red.and.pred %p1, 0, %p2 + 1;
ld.global.shared.u32 %r1, [%l2];
ld.u32 %r1, [k];
atom.global.add.u32 %r1, [%l2], %f1;
atom.global.add.u32 %r1, [%l2], %l1;
atom.shared.add.u32 %r1, [device], %r2;
red.global.exch.b32 [%l2], %r1;
mov.f32 %f1, 1;
mov.u32 %r1, 0f3F800000;
mov.u32 %f1, %r1;
mov.u32 %r1, device;
mov.u64 %l1, %tid.x;
mov.b32 _, %r1;
mov.u32 %r1, {%r2};
mov.u32 %r1, end;
add.u32 %r1, %l2, %r3;
add.u32 %r1, %h2, %r3;
add.u32 %r1, %f2, %r3;
add.u32 %r1, %p1, %r3;
add.u32 %r1, [%l2], %r3;
add.u32 %r1, _, %r3;
add.u32 _, %r2, %r3;
add.u32 5, %r2, %r3;
add.u32 %r1, %r2.b0, %r3;
add.u32 %r1, !%p1, %r3;
add.u32 %r1, near, %r3;
add.u32 %r1, %tid.x, %r3;
add.f32 %f1, %u1, %f2;
add.f16 %h1, %h2, 1.0;
not.pred %r1, %p1;
and.pred %p1, %p2, %r1;
selp.b32 %r1, %r2, %r3, %r4;
setp.eq.f32 %p1, %f1, 1;
set.eq.u32.f32 %f1, %f2, %f3;
popc.b64 %l1, %l2;
shl.b64 %l1, %l2, %l3;
mul.wide.u32 %l1, %r2, %l3;
mad.wide.s32 %l1, %r2, %r3, %r4;
bfe.u64 %l1, %l2, %l3, %r4;
lop3.b32 %r1, %r2, %r3, %r4, %r5;
cvt.rn.f32.s32 %d1, %r1;
cvt.f32.f16 %f1, %f2;
cvt.u64.u32 %l1, near;
cvta.shared.u64 %l1, device;
cvta.u64 %l1, %l2;
isspacep.global %r1, %l1;
vadd.u32.u32.u32 %r1, %r2.b7, %r3;
vadd4.u32.u32.u32 %r1.b013, %r2, %r3, %r4;
vadd2.u32.u32.u32 %r1.b1, %r2, %r3, %r4;
vote.sync.all.pred %p1, %r2, -1;
shfl.sync.bfly.b32 _, %r2, 1, 31, -1;
bar.sync %h1;
bar.red.popc.u32 %p1, 0, %p2;
bra %r1;
bra 5;
brx.idx %r1, end;
cp.async.ca.shared.global [near], [%l1], %r1;
cp.async.ca.shared.global [near], [near], 4;
cp.async.wait_group %r1;
mbarrier.test_wait.shared.b64 %p1, [near], %r1;
mbarrier.test_wait.parity.shared.b64 %r1, [near], %r1;
ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [near];
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1,%d2},{%d3},{%r4},{%d1,%d2};
fence.acq_rel.nobody;
bar.sync.foo 0;
mov.foo.b32 %r1, %r2;
@%r1 add.u32 %r1, %r1, 1;
@%r1 bra end;
{.param .b64 a, b; call.uni (b), increase, (a);}
{.param .b32 a, b; call.uni (b), increase, (%l1);}
{.param .b32 a, b; call.uni (b), k, (a);}
{.param .b32 a, b; call.uni (b), device, (a);}
""".strip().splitlines()

FITS = """
st.global.u64 [%l2], {%l1};
st.global.v2.u32 [%l2], {%r1, 5};
st.global.v4.f32 [%l2], {0f00000000, %f1, %r1, 1.5};
st.global.u8 [%l2], %r1;
st.global.b8 [%l2], %f1;
st.global.f32 [%l2], %l1;
st.local.u32 [own+4], %r1;
ld.global.v2.u64 {%l3, _}, [%l2];
ld.global.v4.b64 {%l3, %l4, %l5, %l6}, [%l2];
ld.global.L2::cache_hint.u32 %r1, [%l1], %l2;
ld.global.s8 %h1, [%l2];
ld.param.u32 %r1, [n];
ld.volatile.b128 %q1, [%l1];
atom.global.add.u64 _, [%l2], %l3;
atom.global.v2.f32.add {%f1, %f2}, [%l2], {%f3, %f4};
atom.global.cas.b16 %h1, [%l2], %h2, %h3;
red.global.add.f32 [%l2], 1.0;
mov.b64 {%f1, _}, %l1;
st.global.u64 [%l2], %l1 + 1;
add.u32 %r1, %r2 + 1, %r3 + -1;
atom.global.add.u32 %r1, [%l2], %r2 + 1;
cvta.to.global.u64 %l1, %l2 + 8;
call.uni (%r1), increase, (%r2 + 1);
mov.b64 %l1, {%h1, %h2, %h3, %h3};
mov.b128 %q1, {%l1, %l2};
mov.v2.b32 {%r1, %r2}, {%r3, 4};
mov.u32 %r1, near;
mov.u64 %l1, device+8;
mov.u64 %l1, increase;
mov.u16 %h1, %tid.x;
mov.b32 %r1, 0f3F800000;
add.f32 %f1, %r1, 0d3FF0000000000000;
setp.eq.and.s32 %p1|%p2, %r1, %u2, !%p3;
setp.eq.s32 _|%p2, %r1, -1;
selp.b32 %f1, %r2, 0f00000000, 1;
cvt.u64.u32 %l1, %tid.x;
cvt.s32.s8 %r1, %l1;
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
lop3.and.b32 _|%p1, %r2, %r3, %r4, 0x80, 1;
vadd.s32.u32.s32 %r1.h1, %r2.b3, %r3, %r4;
vadd4.u32.u32.u32 %r1.b310, %r2.b7654, %r3, 0;
shfl.sync.idx.b32 %f1|%p1, %f2, 0, 31, -1;
bar.red.popc.u32 %r1, 0, 64, !%p2;
mbarrier.arrive.shared.b64 _, [near], 2;
mbarrier.try_wait.parity.shared.b64 %p1, [near], 1, 100;
cp.async.cg.shared.global.L2::cache_hint [near], [%l1], 16, 8, %l2;
cp.async.ca.shared.global [near], [%l1], 4, %p1;
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1,_},{%l3},{%d4},{0d0000000000000000,%d2};
brx.idx %r1, t; t: .branchtargets end;
call.uni (%r1), increase, (5);
{.param .b32 a, b; call.uni (b), increase, (a);}
t: .callprototype (.param .b32 _) _ (.param .b32 _); {.param .b32 a; call (a), %l1, (a), t;}
@!%p1 bra end;
""".strip().splitlines()


@pytest.mark.parametrize("code", COUNTS + KINDS)
def test_misfit_is_refused(code):
    with pytest.raises(cyrt.CudaError) as caught:
        load(code)
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"
    assert f"line {LINE}" in str(caught.value)


@pytest.mark.parametrize("code", FITS)
def test_fit_is_taken(code):
    load(code)


def test_misfit_says_what_was_expected():
    with pytest.raises(
        cyrt.CudaError,
        match=r"st\.global\.v2\.u64: operand 2 .* expected: 2 in "
        r"braces, each .* \.u64 .*\[%l2\], %l1",
    ):
        load("st.global.v2.u64 [%l2], %l1;")


def test_unnamed_space_of_a_named_variable():
    """`ld` without a state space takes a generic address, of shared and local variables too."""
    import numpy as np

    kernel = load(
        "st.u32 [near], 7; st.u32 [own+4], 8; ld.shared.u32 %r1, [near];"
        " ld.local.u32 %r2, [own+4]; st.global.v2.u32 [%l1], {%r1, %r2};"
    )
    out = cyrt.zeros(2, dtype="uint32")
    kernel[1, 1](out, np.uint32(0))
    assert np.asarray(out).tolist() == [7, 8]


@pytest.mark.parametrize(
    "declared",
    [
        "(.param .b32 r) vprintf(.param .b64 a)",
        "vprintf(.param .b64 a, .param .b64 b)",
        "(.param .b32 r) vprintf(.param .b32 a, .param .b64 b)",
    ],
)
def test_system_function_declared_otherwise(declared):
    results = "(q), " if declared.startswith("(") else ""
    sizes = [
        part.split()[0]
        for part in declared.split(" vprintf" if results else "vprintf")[1].split(".param .")[1:]
    ]
    names = [f"a{i}" for i in range(len(sizes))]
    passed = " ".join(f".param .{size} {name};" for size, name in zip(sizes, names, strict=True))
    code = f"{{.param .b32 q; {passed} call {results}vprintf, ({', '.join(names)});}}"
    text = MODULE.format(code=code).replace(".func (", f".extern .func {declared};\n.func (", 1)
    with pytest.raises(cyrt.CudaError, match="vprintf is declared with other parameters"):
        cyrt.Module(text.encode())["k"]


def test_nameless_parameters_count():
    """A function that is declared with `_` for a parameter takes it all the same."""
    text = MODULE.format(code="call.uni ignore, (%r1, 5);").replace(
        ".visible .entry", ".func ignore(.reg .b32 _, .reg .b32 b) { ret; }\n.visible .entry"
    )
    cyrt.Module(text.encode())["k"]
    with pytest.raises(cyrt.CudaError, match="1 arguments, expected 0 and 2"):
        cyrt.Module(text.replace("(%r1, 5)", "(5)").encode())["k"]
