// f16, bf16 and their pairs: add, sub, mul, fma, neg, abs, min, max, ex2, tanh; sums and products
// of halves and f32.
#include "exec/handler_approx.hpp"
#include "exec/handler_halves.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

template <class Format> struct Fused {
    static CYRT_INLINE float of(float a, float b, float c) { return Format::fma(a, b, c); }
};

// A subnormal of the format becomes a zero of its sign.
template <class Format> CYRT_INLINE u32 flush_half(u32 half) {
    return half & Format::kExponent ? half : half & 0x8000u;
}
template <class Format> CYRT_INLINE float flush_wide(float a) {
    const float smallest = std::is_same_v<Format, Half> ? 0x1p-14f : 0x1p-126f;
    return magnitude(a) < smallest ? bits_as<float>(bits_as<u32>(a) & 0x80000000u) : a;
}

// Applies Op to the halves of `Parts` positions (1, or 2 for a pair).
template <class Format, int Parts, class Op, bool Ftz, Clamp C, size_t... I>
CYRT_INLINE void run_halves(Warp& warp, const Inst& inst, std::index_sequence<I...>) {
    alignas(64) FloatLanes s[sizeof...(I)], wide;
    alignas(64) WordLanes out, part;
    for (int n = 0; n < Parts; ++n) {
        (Format::widen_all(cells<u32>(warp, inst.s[I]), n * 16, s[I]), ...);
        CYRT_LANES { wide[i] = clamp<C>(Op::of((Ftz ? flush_wide<Format>(s[I][i]) : s[I][i])...)); }
        Format::narrow_all(wide, n == 0 ? out : part);
        if (n == 1) {
            CYRT_LANES out[i] |= part[i] << 16;
        }
    }
    if (Ftz) {
        CYRT_LANES {
            const u32 low = flush_half<Format>(out[i] & 0xffffu);
            out[i] = low | flush_half<Format>(out[i] >> 16) << 16;
        }
    }
    commit(warp, inst.d[0], out);
}
template <class Format, int Parts, class Op, int Sources, bool Ftz, Clamp C>
void halves(Warp& warp, const Inst& inst) {
    run_halves<Format, Parts, Op, Ftz, C>(warp, inst, std::make_index_sequence<Sources>());
}

template <u32 Flip, u32 Keep> struct Signs {
    static CYRT_INLINE u32 of(u32 a) { return (a ^ Flip) & Keep; }
};
using Neg = Signs<0x80008000u, 0xffffffffu>;
using Abs = Signs<0, 0x7fff7fffu>;
template <class Format, class Op> struct FlushedSigns {
    static CYRT_INLINE u32 of(u32 a) {
        const u32 low = flush_half<Format>(a & 0xffffu);
        return Op::of(low | flush_half<Format>(a >> 16) << 16);
    }
};

// f32 = half (op) f32.
template <class Format, class Op, bool Sat> struct Mixed {
    static CYRT_INLINE float of(u32 a, float c) {
        return Single<Op, false, Sat>::of(Format::widen(a), c);
    }
    static CYRT_INLINE float of(u32 a, u32 b, float c) {
        return Single<Op, false, Sat>::of(Format::widen(a), Format::widen(b), c);
    }
};

// clang-format off: a table, several rows a line
#define HALVES(Format, Parts, Op, Sources, Ftz, C) halves<Format, Parts, Op, Sources, Ftz, C>
#define BOTH(form, ...) form(".f16", Half, 1, __VA_ARGS__), form(".f16x2", Half, 2, __VA_ARGS__)
#define BOTH_B(form, ...) \
    form(".bf16", BFloat, 1, __VA_ARGS__), form(".bf16x2", BFloat, 2, __VA_ARGS__)

#define SUM_F16(type, Format, Parts, head, Op) \
    {head type, HALVES(Format, Parts, Op, 2, false, Clamp::none)}, \
    {head ".ftz" type, HALVES(Format, Parts, Op, 2, true, Clamp::none)}, \
    {head ".sat" type, HALVES(Format, Parts, Op, 2, false, Clamp::sat)}, \
    {head ".ftz.sat" type, HALVES(Format, Parts, Op, 2, true, Clamp::sat)}
#define SUM_BF16(type, Format, Parts, head, Op) \
    {head type, HALVES(Format, Parts, Op, 2, false, Clamp::none)}
#define SUMS(name, Op) \
    BOTH(SUM_F16, name, Op), BOTH(SUM_F16, name ".rn", Op), \
    BOTH_B(SUM_BF16, name, Op), BOTH_B(SUM_BF16, name ".rn", Op)

#define FMA_F16(type, Format, Parts, Op) \
    SUM3(type, Format, Parts, Op, "", false, Clamp::none), \
    SUM3(type, Format, Parts, Op, ".ftz", true, Clamp::none), \
    SUM3(type, Format, Parts, Op, ".sat", false, Clamp::sat), \
    SUM3(type, Format, Parts, Op, ".ftz.sat", true, Clamp::sat), \
    SUM3(type, Format, Parts, Op, ".relu", false, Clamp::relu), \
    SUM3(type, Format, Parts, Op, ".ftz.relu", true, Clamp::relu)
#define FMA_BF16(type, Format, Parts, Op) \
    SUM3(type, Format, Parts, Op, "", false, Clamp::none), \
    SUM3(type, Format, Parts, Op, ".relu", false, Clamp::relu)
#define SUM3(type, Format, Parts, Op, modifiers, Ftz, C) \
    {"fma.rn" modifiers type, HALVES(Format, Parts, Op, 3, Ftz, C)}

#define EXTREMA_OF(type, Format, Parts, head, Op, Ftz) \
    {head type, HALVES(Format, Parts, Op, 2, Ftz, Clamp::none)}, \
    {head ".NaN" type, HALVES(Format, Parts, NanWins<Op>, 2, Ftz, Clamp::none)}, \
    {head ".xorsign.abs" type, HALVES(Format, Parts, XorSign<Op>, 2, Ftz, Clamp::none)}, \
    {head ".NaN.xorsign.abs" type, \
     HALVES(Format, Parts, XorSign<NanWins<Op>>, 2, Ftz, Clamp::none)}
#define EXTREMA(name, Op) \
    BOTH(EXTREMA_OF, name, Op, false), BOTH(EXTREMA_OF, name ".ftz", Op, true), \
    BOTH_B(EXTREMA_OF, name, Op, false)

#define SIGNS(name, Op) \
    {name ".f16", apply<Op, u32, u32>}, {name ".f16x2", apply<Op, u32, u32>}, \
    {name ".bf16", apply<Op, u32, u32>}, {name ".bf16x2", apply<Op, u32, u32>}, \
    {name ".ftz.f16", apply<FlushedSigns<Half, Op>, u32, u32>}, \
    {name ".ftz.f16x2", apply<FlushedSigns<Half, Op>, u32, u32>}, \
    {name ".ftz.bf16", apply<FlushedSigns<BFloat, Op>, u32, u32>}, \
    {name ".ftz.bf16x2", apply<FlushedSigns<BFloat, Op>, u32, u32>}

#define APPROX_OF(type, Format, Parts, head, Op, Ftz) \
    {head type, HALVES(Format, Parts, Op, 1, Ftz, Clamp::none)}

#define PLAIN(head, tail, ...) {head tail, __VA_ARGS__}
#define NEAREST(head, tail, ...) {head ".rn" tail, __VA_ARGS__}
#define MIXED(form, head, type, Format, Op, ...) \
    form(head, ".f32" type, apply<Mixed<Format, Op, false>, float, __VA_ARGS__>), \
    form(head, ".sat.f32" type, apply<Mixed<Format, Op, true>, float, __VA_ARGS__>)
#define MIXED_SUMS(head, type, Format, Op) \
    MIXED(PLAIN, head, type, Format, Op, u32, float), \
    MIXED(CYRT_ROUNDED, head, type, Format, Op, u32, float)
#define MIXED_FMAS(type, Format) \
    MIXED(NEAREST, "fma", type, Format, Fma, u32, u32, float), \
    MIXED(CYRT_DIRECTED, "fma", type, Format, DirectedFma, u32, u32, float)

constexpr HandlerEntry entries[] = {
    SUMS("add", Add), SUMS("sub", Sub), SUMS("mul", Mul),
    BOTH(FMA_F16, Fused<Half>), BOTH_B(FMA_BF16, Fused<BFloat>),
    EXTREMA("min", Min), EXTREMA("max", Max), SIGNS("neg", Neg), SIGNS("abs", Abs),

    BOTH(APPROX_OF, "ex2.approx", Ex2, false), BOTH_B(APPROX_OF, "ex2.approx.ftz", Ex2, true),
    BOTH(APPROX_OF, "tanh.approx", Tanh, false), BOTH_B(APPROX_OF, "tanh.approx", Tanh, false),

    MIXED_SUMS("add", ".f16", Half, Add), MIXED_SUMS("add", ".bf16", BFloat, Add),
    MIXED_SUMS("sub", ".f16", Half, Sub), MIXED_SUMS("sub", ".bf16", BFloat, Sub),
    MIXED_FMAS(".f16", Half), MIXED_FMAS(".bf16", BFloat),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(half, entries)

}  // namespace cyrt::emu
