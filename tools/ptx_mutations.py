"""Almost valid PTX: small modules with every kind of instruction, and mutations of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

LONGEST = 60_000  # characters of a seed: a catalogue's module is reduced to some of its kernels

# --- seeds --------------------------------------------------------------------------------------

HEAD = """.version 8.8
.target sm_90
.address_size 64
"""
DECLARED = """.global .align 16 .b32 device[64] = {1, 2, 3};
.const .align 16 .b32 fixed[64] = {4, 5, 6};
.shared .align 16 .b32 near[64];
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func (.param .b32 r) increase(.param .b32 a)
{
    .reg .b32 %r<2>;
    ld.param.b32 %r1, [a];
    add.s32 %r1, %r1, 1;
    st.param.b32 [r], %r1;
    ret;
}
.func (.reg .b32 r) deep(.reg .b32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    setp.lt.s32 %p1, n, 1;
    mov.u32 r, n;
    @%p1 ret;
    sub.s32 %r1, n, 1;
    call.uni (%r2), deep, (%r1);
    add.s32 r, n, %r2;
    ret;
}
"""
ENTRY = """.visible .entry k{number}(.param .u64 p, .param .u64 q, .param .u32 n) {directive}
{{
    .local .align 16 .b32 own[16];
    .reg .pred %p<5>; .reg .b16 %h<6>; .reg .b32 %r<12>; .reg .b64 %l<9>; .reg .b128 %q<4>;
    .reg .f32 %f<12>; .reg .f64 %d<6>;
    ld.param.u64 %l1, [p];
    ld.param.u64 %l2, [q];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    and.b32 %r3, %r2, 15;
    mad.wide.u32 %l3, %r2, 8, %l1;
    setp.lt.s32 %p1, %r2, 20;
{code}
done:
    st.global.u32 [%l1], %r4;
    ret;
}}
"""
# Instructions of every kind; each paragraph is a kernel.
CODE = """
ld.global.v2.u64 {%l3, _}, [%l2];
st.global.v4.f32 [%l1], {0f00000000, %f1, %r1, 1.5};
ld.volatile.b128 %q1, [%l1];
st.global.u8 [%l1], %r1;
ld.global.s8 %h1, [%l2];
ld.u32 %r4, [near+8];
st.local.v2.u32 [own+8], {%r2, %r3};
ld.const.v2.u32 {%r4, %r5}, [fixed+8];
prefetch.global.L1 [%l1];
cvta.global.u64 %l4, device;
isspacep.shared %p2, %l4;

atom.global.add.u64 _, [%l2], %l3;
atom.global.v2.f32.add {%f1, %f2}, [%l2], {%f3, %f4};
atom.global.cas.b16 %h1, [%l2], %h2, %h3;
atom.shared.inc.u32 %r4, [near], 7;
atom.global.exch.b128 %q1, [%l1], %q2;
red.global.max.s32 [%l1], -5;
atom.add.noftz.f16x2 %r4, [%l1], %r5;

mov.b64 {%f1, _}, %l1;
mov.b64 %l4, {%h1, %h2, %h3, %h4};
mov.b128 %q1, {%l1, %l2};
mov.v2.b32 {%r4, %r5}, {%r3, 4};
mov.u32 %r4, near;
mov.u64 %l4, device+8;
mov.u16 %h1, %tid.x;
mov.u64 %l5, %clock64;
mov.pred %p2, %is_explicit_cluster;

add.cc.u32 %r4, %r5, %r6;
addc.u32 %r5, %r6, 0;
mad.wide.s32 %l4, %r4, %r5, %l3;
mul.hi.u64 %l4, %l5, %l3;
div.s32 %r4, %r5, %r6;
rem.u64 %l4, %l5, 7;
fma.rn.ftz.f32 %f1, %f2, %f3, 0fBF800000;
min.NaN.f32 %f1, %f2, %f3, %f4;
ex2.approx.ftz.f32 %f1, %f2;
fma.rn.relu.bf16x2 %r4, %r5, %r6, %r7;
sad.u16 %h1, %h2, %h3, %h4;
dp4a.s32.u32 %r4, %r5, %r6, %r7;
bfe.s64 %l4, %l5, %r2, %r3;
bfi.b32 %r4, %r5, %r6, 3, 9;
prmt.b32 %r4, %r5, %r6, 0x7632;
lop3.and.b32 _|%p2, %r2, %r3, %r4, 0x80, 1;
shf.l.wrap.b32 %r4, %r5, %r6, %r7;
vadd.s32.u32.s32.sat %r4.h1, %r2.b3, %r3, %r5;
vadd4.u32.u32.u32 %r4.b310, %r2.b7654, %r3, 0;
vmad.s32.s32.u32.shr7 %r4, %r5.h0, %r6.b1, %r7;
vset2.u32.u32.eq %r4, %r5, %r6, %r7;

setp.eq.and.s32 %p2|%p3, %r1, %r2, !%p1;
selp.b32 %f1, %r2, 0f00000000, %p2;
set.lt.f16x2.f16x2 %r4, %r5, %r6;
slct.f32.f32 %f1, %f2, %f3, %f4;
testp.finite.f64 %p2, %d1;
cvt.s32.s8 %r4, %l1;
cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
cvt.rzi.u8.f32 %r4, %f1;
cvt.rn.f16x2.f32 %r4, %f1, %f2;
cvt.pack.sat.u8.s32.b32 %r4, %r5, %r6, %r7;

shfl.sync.idx.b32 %f1|%p2, %f2, %r3, 31, -1;
vote.sync.ballot.b32 %r4, %p1, -1;
match.all.sync.b64 %r4|%p2, %l3, -1;
redux.sync.add.s32 %r4, %r2, -1;
elect.sync %r4|%p2, -1;
@%p1 bra second;
bar.warp.sync -1;
second: activemask.b32 %r5;
bar.red.popc.u32 %r4, 0, !%p1;
bar.sync 1, 64;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
nanosleep.u32 20;

mov.u32 %r5, near;
mapa.shared::cluster.u32 %r6, %r5, 1;
mov.u32 %r7, %cluster_ctarank;
barrier.cluster.arrive;
barrier.cluster.wait;
st.shared::cluster.u32 [%r5+4], %r7;
atom.relaxed.cluster.shared::cluster.add.u32 %r4, [%r5], 1;
cvta.shared.u64 %l4, near;
mapa.u64 %l5, %l4, 0;
ld.u32 %r4, [%l5+8];
getctarank.shared::cluster.u32 %r4, %r6;
barrier.cluster.arrive;
barrier.cluster.wait;

mbarrier.init.shared.b64 [near], 40;
mbarrier.arrive.shared.b64 %l4, [near];
mbarrier.test_wait.shared.b64 %p2, [near], %l4;
mbarrier.try_wait.parity.shared.b64 %p2, [near], 1, 100;
mbarrier.pending_count.b64 %r4, %l4;
cp.async.cg.shared.global [near+16], [%l1], 16, 8;
cp.async.ca.shared.global [near+32], [%l2], 4, %p1;
cp.async.commit_group;
cp.async.wait_group 0;
fence.proxy.async;
membar.gl;
createpolicy.fractional.L2::evict_last.b64 %l6, 1.0;
ld.global.L2::cache_hint.u32 %r4, [%l1], %l6;

mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1,%r2},{%r1,%r2},{%r3},{%r4,%r5};
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1,%d2},{%d3},{%d4},{%d1,%d2};
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4,%r5}, [near];
stmatrix.sync.aligned.m8n8.x1.shared.b16 [near], {%r4};
movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;
wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r4,%r5}, [%l1], 16;
wmma.store.d.sync.aligned.col.m16n16k16.global.s32 [%l1], {%r4,%r5,%r6,%r7,%r8,%r9,%r10,%r11}, 16;

mov.u32 %r4, 0;
loop: add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, %r1;
@%p2 bra loop;
and.b32 %r5, %r3, 7;
brx.idx %r5, table;
table: .branchtargets first, done, first, done, first, done, first, done;
first: call.uni (%r4), increase, (%r3);
call.uni (%r5), deep, (%r3);
{.param .b32 a, b; st.param.b32 [a], %r4; call.uni (b), increase, (a); ld.param.b32 %r4, [b];}
mov.u64 %l4, increase;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
{.param .b32 a, b; st.param.b32 [a], %r4; call (b), %l4, (a), proto; ld.param.b32 %r4, [b];}
alloca.u64 %l5, 32, 16;
st.local.u32 [%l5], %r4;
@!%p1 exit;
"""
DIRECTIVES = [
    "",
    ".maxntid 64, 1, 1",
    ".reqntid 40",
    ".explicitcluster",
    ".minnctapersm 2",
    ".reqnctapercluster 2, 1, 1",
    ".maxclusterrank 4",
]


def own_seeds() -> list[str]:
    """Small modules that together use every kind of instruction."""
    kernels = [
        ENTRY.format(number=number, code=code, directive=DIRECTIVES[number % 3])
        for number, code in enumerate(CODE.strip().split("\n\n"))
    ]
    return [HEAD + DECLARED + kernel for kernel in kernels]


def cut(text: str, chance: Random) -> str:
    """Reduce a long module to the text before its kernels and some of the kernels."""
    parts = re.split(r"(?=^\.visible \.entry)", text, flags=re.MULTILINE)
    kernels = [part for part in parts[1:] if len(part) < LONGEST]
    if len(text) < LONGEST or not kernels:
        return text
    return parts[0] + "".join(chance.sample(kernels, min(2, len(kernels))))


# --- mutations ----------------------------------------------------------------------------------

WORDS = [
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "f16",
    "f16x2",
    "bf16",
    "bf16x2",
    "f32",
    "f64",
    "pred",
    "tf32",
    "e4m3x2",
    "v2",
    "v4",
    "v8",
    "global",
    "shared",
    "local",
    "const",
    "param",
    "shared::cluster",
    "shared::cta",
    "generic",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "nc",
    "add",
    "min",
    "max",
    "inc",
    "dec",
    "and",
    "or",
    "xor",
    "exch",
    "cas",
    "rn",
    "rz",
    "rm",
    "rp",
    "rni",
    "ftz",
    "sat",
    "wide",
    "lo",
    "hi",
    "cc",
    "sync",
    "aligned",
    "x1",
    "x2",
    "x4",
    "trans",
    "m8n8",
    "m16n8k8",
    "m16n16k16",
    "row",
    "col",
    "popc",
    "warp",
    "arrive",
    "wait",
    "red",
    "uni",
    "approx",
    "full",
    "idx",
    "bfly",
    "up",
    "down",
    "any",
    "all",
    "ballot",
    "L2::cache_hint",
    "L1::no_allocate",
    "to",
    "noftz",
    "noinc",
    "parity",
]
OPCODES = sorted(set(re.findall(r"^(?:@!?%p\d )?([a-z]\w*)[. ]", CODE, re.MULTILINE)))
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "31",
    "32",
    "33",
    "64",
    "255",
    "256",
    "4096",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "4294967296",
    "0x7fffffffffffffff",
    "0xffffffffffffffff",
    "18446744073709551615",
    "99999999999999999999",
    "0f7F800000",
    "0f00000000",
    "0d7FF0000000000000",
    "1.5e-320",
    "1e999",
    "(1<<62)",
    "(5/0)",
    "-(-8)",
    "WARP_SZ",
    "0b101",
    "0777",
    "08",
]
OPERANDS = [
    "_",
    "%tid.x",
    "%laneid",
    "%clock64",
    "%cluster_nctarank",
    "near",
    "device",
    "fixed",
    "own",
    "p",
    "n",
    "increase",
    "dynamic",
    "done",
    "{%r1, %r2}",
    "{}",
    "[%l1]",
    "[near+4]",
    "[%r3]",
    "[%l2+-8]",
    "!%p1",
    "%r1.b0",
    "%r2.h1",
    "%nosuch",
    "{{{%r1}}}",
    "%p1|%p2",
]
LINES = [
    ".reg .b32 %r<1048577>;",
    ".reg .pred %r1;",
    ".local .align 4 .b8 big[600000];",
    ".shared .align 8 .b8 large[40000];",
    ".param .b64 a;",
    ".const .b32 odd = {1};",
    ".global .b8 many[4][1099511627776];",
    ".global .b32 given[][2] = {{1, 2}, {3, 4, 5}};",
    ".global .u64 at[] = {device, generic(near)+8, 0xff(k0)};",
    ".extern .shared .b8 x[];",
    '.pragma "nounroll";',
    ".loc 1 2 3",
    ".section .debug_str {",
    ".branchtargets done;",
    "x: .calltargets increase, deep;",
    "x: .callprototype _ (.param .b64 _);",
    "{",
    "}",
    ";",
    ".version 99.9",
    ".target sm_70",
    ".address_size 32",
    "@@DWARF",
    "/*",
    "//",
    ".alias a, b;",
    ".reg .v4 .f32 %v;",
    "mov.f32 %v.x, %v.w;",
    ".entry",
    "ret",
    "bra done;",
    "exit;",
    "trap;",
]


def replace_one(chance: Random, text: str, pattern: str, choices: Sequence[object]) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = chance.choice(found)
    return text[: match.start()] + str(chance.choice(choices)) + text[match.end() :]


def in_one_line(chance: Random, text: str, change: Callable[[str], str]) -> str:
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    lines[at] = change(lines[at])
    return "\n".join(lines)


def mutate_operands(chance: Random, text: str) -> str:
    def change(line: str) -> str:
        head, space, rest = line.rstrip(";").partition(" ")
        operands = rest.split(", ")
        at, other = chance.randrange(len(operands)), chance.randrange(len(operands))
        what = chance.randrange(5)
        if what == 0:
            del operands[at]
        elif what == 1:
            operands.insert(at, operands[other])
        elif what == 2:
            operands[at], operands[other] = operands[other], operands[at]
        elif what == 3:
            operands[at] = chance.choice(OPERANDS)
        else:
            operands[at] = "{" + ", ".join([operands[at]] * chance.choice([1, 2, 3, 4, 8, 9])) + "}"
        return head + space + ", ".join(operands) + ";"

    return in_one_line(chance, text, change)


def mutate_lines(chance: Random, text: str) -> str:
    lines = text.split("\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    what = chance.randrange(4)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[other])
    elif what == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(at, chance.choice(LINES))
    return "\n".join(lines)


def mutate_bytes(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    what = chance.randrange(4)
    if what == 0:
        return text[:at]
    if what == 1:
        noise = "".join(chr(chance.randrange(1, 256)) for _ in range(chance.randrange(1, 9)))
        return text[:at] + noise + text[at:]
    if what == 2:
        return text[:at] + text[at + chance.randrange(1, 9) :]
    depth = chance.choice([10, 200, 3000, 100000])
    return (
        text[:at]
        + chance.choice(["{", "(", "[", "-", "!", "~", "1?", "((", "{.reg .b8 c;"]) * depth
        + text[at:]
    )


MUTATIONS: list[tuple[int, Callable[[Random, str], str]]] = [
    (6, mutate_operands),
    (3, mutate_lines),
    (1, mutate_bytes),
    (6, lambda chance, text: replace_one(chance, text, r"(?<=\.)[a-z][\w:]*", WORDS)),
    (2, lambda chance, text: replace_one(chance, text, r"(?<=[a-z\d])\.[a-z][\w:]*", [""])),
    (
        3,
        lambda chance, text: replace_one(
            chance, text, r"(?<=[a-z\d])(?=\.[a-z])", ["." + word for word in WORDS]
        ),
    ),
    (4, lambda chance, text: replace_one(chance, text, r"\b\d\w*", NUMBERS)),
    (
        5,
        lambda chance, text: replace_one(
            chance, text, r"%[a-z]+\d+", re.findall(r"%[a-z]+\d+", text) or ["%r1"]
        ),
    ),
    (1, lambda chance, text: replace_one(chance, text, r"%[a-z]+\d+", OPERANDS)),
    (2, lambda chance, text: replace_one(chance, text, r"(?m)(?<=^)[a-z]\w*(?=[. ])", OPCODES)),
    (1, lambda chance, text: replace_one(chance, text, r"(?<=\)) *\n?(?=\{)", DIRECTIVES)),
]


def mutate(chance: Random, text: str) -> str:
    """The text with a few changes."""
    kinds = [kind for _, kind in MUTATIONS]
    weights = [weight for weight, _ in MUTATIONS]
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        text = chance.choices(kinds, weights)[0](chance, text) or "\n"
    return text
