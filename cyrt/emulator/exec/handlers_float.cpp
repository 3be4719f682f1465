// f32 and f64: add, sub, mul, fma, mad, div, rcp, sqrt, rsqrt with their roundings, neg, abs, min,
// max, copysign, testp, and the packed f32x2.
#include "exec/handler_floats.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

struct Div {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a / b; }
};
struct Rcp {
    template <class T> static CYRT_INLINE T of(T a) { return T(1) / a; }
};
struct Sqrt {
    static CYRT_INLINE float of(float a) { return __builtin_sqrtf(a); }
    static CYRT_INLINE double of(double a) { return __builtin_sqrt(a); }
};
struct RSqrt {
    template <class T> static CYRT_INLINE T of(T a) { return T(1) / Sqrt::of(a); }
};
template <class Op> struct FlushedDouble {
    static CYRT_INLINE double of(double a) { return flush(Op::of(flush(a))); }
};

// Signs are changed in the bits: a NaN keeps its payload.
struct Neg {
    static CYRT_INLINE u32 of(u32 a) { return a ^ 0x80000000u; }
    static CYRT_INLINE u64 of(u64 a) { return a ^ 0x8000000000000000u; }
};
struct Abs {
    static CYRT_INLINE u32 of(u32 a) { return a & 0x7fffffffu; }
    static CYRT_INLINE u64 of(u64 a) { return a & 0x7fffffffffffffffu; }
};
template <class Op> struct FlushedBits {
    static CYRT_INLINE u32 of(u32 a) {
        return Op::of(bits_as<u32>(flush<true>(bits_as<float>(a))));
    }
};
// The sign of the first on the magnitude of the second.
struct CopySign {
    static CYRT_INLINE u32 of(u32 a, u32 b) { return (a & 0x80000000u) | Abs::of(b); }
    static CYRT_INLINE u64 of(u64 a, u64 b) { return (a >> 63 << 63) | Abs::of(b); }
};

template <class Op> struct Three {
    static CYRT_INLINE float of(float a, float b, float c) { return Op::of(Op::of(a, b), c); }
};
// .abs without .xorsign.
template <class Op> struct OfMagnitudes {
    static CYRT_INLINE float of(float a, float b, float c) {
        return Three<Op>::of(magnitude(a), magnitude(b), magnitude(c));
    }
};
// Two or three operands under one name.
template <class Op, bool Ftz> void extremum(Warp& warp, const Inst& inst) {
    if (inst.s[2] == kNoSlot) return apply<Single<Op, Ftz, false>, float, float, float>(warp, inst);
    apply<Single<Three<Op>, Ftz, false>, float, float, float, float>(warp, inst);
}

enum class Kind { finite, infinite, number, not_a_number, normal, subnormal };
template <Kind K> struct TestP {
    static CYRT_INLINE u32 of(u32 a) { return test(a & 0x7fffffffu, 0x7f800000u, 0x00800000u); }
    static CYRT_INLINE u32 of(u64 a) {
        return test(Abs::of(a), u64(0x7ff0000000000000u), u64(0x0010000000000000u));
    }
    template <class T> static CYRT_INLINE u32 test(T magnitude, T infinity, T normal) {
        const bool holds = K == Kind::finite         ? magnitude < infinity
                           : K == Kind::infinite     ? magnitude == infinity
                           : K == Kind::number       ? magnitude <= infinity
                           : K == Kind::not_a_number ? magnitude > infinity
                           : K == Kind::normal       ? magnitude >= normal && magnitude < infinity
                                                     : magnitude > 0 && magnitude < normal;
        return holds ? ~0u : 0u;
    }
};

// f32x2: a 64-bit cell is two floats, one behind the other.
template <class Op, bool Ftz, class... S, size_t... I>
CYRT_INLINE void run_packed(Warp& warp, const Inst& inst, std::index_sequence<I...>) {
    alignas(64) float out[2 * kWarpSize];
    const auto loop = [&](const S*... s) __attribute__((always_inline)) {
        CYRT_INDEPENDENT
        for (int i = 0; i < 2 * kWarpSize; ++i) out[i] = Single<Op, Ftz, false>::of(s[i]...);
    };
    loop(cells<S>(warp, inst.s[I])...);
    alignas(64) u64 pairs[kWarpSize];
    std::memcpy(pairs, out, sizeof pairs);
    commit(warp, inst.d[0], pairs);
}
template <class Op, bool Ftz, class... S> void packed(Warp& warp, const Inst& inst) {
    run_packed<Op, Ftz, S...>(warp, inst, std::index_sequence_for<S...>());
}

// clang-format off: a table, several rows a line
#define F32_1(Op, Ftz, Sat) apply<Single<Op, Ftz, Sat>, float, float>
#define F32_2(Op, Ftz, Sat) apply<Single<Op, Ftz, Sat>, float, float, float>
#define F32_3(Op, Ftz, Sat) apply<Single<Op, Ftz, Sat>, float, float, float, float>
#define F64_1(Op) apply<Op, double, double>
#define F64_2(Op) apply<Op, double, double, double>
#define F64_3(Op) apply<Op, double, double, double, double>

// .ftz and .sat of f32, `form` giving the roundings.
#define F32_SAT(form, head, handler, Op) \
    form(head, ".f32", handler(Op, false, false)), \
    form(head, ".ftz.f32", handler(Op, true, false)), \
    form(head, ".sat.f32", handler(Op, false, true)), \
    form(head, ".ftz.sat.f32", handler(Op, true, true))
#define PLAIN(head, tail, ...) {head tail, __VA_ARGS__}
#define NEAREST(head, tail, ...) {head ".rn" tail, __VA_ARGS__}

#define SUMS(head, Op) \
    F32_SAT(PLAIN, head, F32_2, Op), F32_SAT(CYRT_ROUNDED, head, F32_2, Op), \
    PLAIN(head, ".f64", F64_2(Op)), CYRT_ROUNDED(head, ".f64", F64_2(Op))
// The software fma has the rounding to nearest built in: directed forms have their own.
#define FMAS(head) \
    F32_SAT(NEAREST, head, F32_3, Fma), F32_SAT(CYRT_DIRECTED, head, F32_3, DirectedFma), \
    NEAREST(head, ".f64", F64_3(Fma)), CYRT_DIRECTED(head, ".f64", F64_3(DirectedFma))
#define IEEE_1(head, Op) \
    CYRT_ROUNDED(head, ".f32", F32_1(Op, false, false)), \
    CYRT_ROUNDED(head, ".ftz.f32", F32_1(Op, true, false)), \
    CYRT_ROUNDED(head, ".f64", F64_1(Op))
#define APPROX(head, handler, Op) \
    {head ".f32", handler(Op, false, false)}, {head ".ftz.f32", handler(Op, true, false)}
#define SIGN(head, Op) \
    {head ".f32", apply<Op, u32, u32>}, {head ".ftz.f32", apply<FlushedBits<Op>, u32, u32>}, \
    {head ".f64", apply<Op, u64, u64>}
#define EXTREMA(head, Op) \
    {head ".f32", extremum<Op, false>}, {head ".ftz.f32", extremum<Op, true>}, \
    {head ".NaN.f32", extremum<NanWins<Op>, false>}, \
    {head ".ftz.NaN.f32", extremum<NanWins<Op>, true>}, \
    {head ".xorsign.abs.f32", F32_2(XorSign<Op>, false, false)}, \
    {head ".ftz.xorsign.abs.f32", F32_2(XorSign<Op>, true, false)}, \
    {head ".NaN.xorsign.abs.f32", F32_2(XorSign<NanWins<Op>>, false, false)}, \
    {head ".ftz.NaN.xorsign.abs.f32", F32_2(XorSign<NanWins<Op>>, true, false)}, \
    {head ".abs.f32", F32_3(OfMagnitudes<Op>, false, false)}, \
    {head ".ftz.abs.f32", F32_3(OfMagnitudes<Op>, true, false)}, \
    {head ".NaN.abs.f32", F32_3(OfMagnitudes<NanWins<Op>>, false, false)}, \
    {head ".ftz.NaN.abs.f32", F32_3(OfMagnitudes<NanWins<Op>>, true, false)}, \
    {head ".f64", F64_2(Op)}
#define TESTP(name, K) \
    {"testp." name ".f32", apply<TestP<K>, u32, u32>}, \
    {"testp." name ".f64", apply<TestP<K>, u32, u64>}
#define PACKED(form, head, Op, ...) \
    form(head, ".f32x2", packed<Op, false, __VA_ARGS__>), \
    form(head, ".ftz.f32x2", packed<Op, true, __VA_ARGS__>)

constexpr HandlerEntry entries[] = {
    SUMS("add", Add), SUMS("sub", Sub), SUMS("mul", Mul), FMAS("fma"), FMAS("mad"),
    F32_SAT(PLAIN, "mad", F32_3, Fma),

    CYRT_ROUNDED("div", ".f32", F32_2(Div, false, false)),
    CYRT_ROUNDED("div", ".ftz.f32", F32_2(Div, true, false)),
    CYRT_ROUNDED("div", ".f64", F64_2(Div)),
    APPROX("div.approx", F32_2, Div), APPROX("div.full", F32_2, Div),
    IEEE_1("rcp", Rcp), APPROX("rcp.approx", F32_1, Rcp),
    {"rcp.approx.ftz.f64", F64_1(FlushedDouble<Rcp>)},
    IEEE_1("sqrt", Sqrt), APPROX("sqrt.approx", F32_1, Sqrt),
    APPROX("rsqrt.approx", F32_1, RSqrt), {"rsqrt.approx.f64", F64_1(RSqrt)},
    {"rsqrt.approx.ftz.f64", F64_1(FlushedDouble<RSqrt>)},

    SIGN("neg", Neg), SIGN("abs", Abs), EXTREMA("min", Min), EXTREMA("max", Max),
    {"copysign.f32", apply<CopySign, u32, u32, u32>},
    {"copysign.f64", apply<CopySign, u64, u64, u64>},
    TESTP("finite", Kind::finite), TESTP("infinite", Kind::infinite),
    TESTP("number", Kind::number), TESTP("notanumber", Kind::not_a_number),
    TESTP("normal", Kind::normal), TESTP("subnormal", Kind::subnormal),

    PACKED(PLAIN, "add", Add, float, float), PACKED(CYRT_ROUNDED, "add", Add, float, float),
    PACKED(PLAIN, "sub", Sub, float, float), PACKED(CYRT_ROUNDED, "sub", Sub, float, float),
    PACKED(PLAIN, "mul", Mul, float, float), PACKED(CYRT_ROUNDED, "mul", Mul, float, float),
    PACKED(NEAREST, "fma", Fma, float, float, float),
    PACKED(CYRT_DIRECTED, "fma", DirectedFma, float, float, float),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(float, entries)

}  // namespace cyrt::emu
