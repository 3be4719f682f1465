// Comparisons and choices: setp, set, selp, slct.
//
// A comparison is done once for each operator and type, into a mask for each lane; the use of the
// masks is shared code.
#include "exec/handler_halves.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

struct Eq {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a == b; }
};
struct Ne {  // ordered: false for a NaN
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a < b || a > b; }
};
struct Lt {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a < b; }
};
struct Le {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a <= b; }
};
struct Gt {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a > b; }
};
struct Ge {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return a >= b; }
};
struct Num {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return !is_nan(a) && !is_nan(b); }
};
// The unordered operators hold for NaN: each is the negation of an ordered one.
template <class Op> struct No {
    template <class T> static CYRT_INLINE bool of(T a, T b) { return !Op::of(a, b); }
};

// The reading of operands: integers and doubles unchanged, f32 with flushing, halves by part.
template <class T> struct Plain {
    template <class Op> static CYRT_NOINLINE void compare(Warp& warp, const Inst& inst, u32* mask) {
        const Cell<T>*a = cells<T>(warp, inst.s[0]), *b = cells<T>(warp, inst.s[1]);
        CYRT_LANES mask[i] = Op::of(T(a[i]), T(b[i])) ? ~0u : 0u;
    }
};
struct Flushed {
    template <class Op> static CYRT_NOINLINE void compare(Warp& warp, const Inst& inst, u32* mask) {
        const float *a = cells<float>(warp, inst.s[0]), *b = cells<float>(warp, inst.s[1]);
        CYRT_LANES mask[i] = Op::of(flush<true>(a[i]), flush<true>(b[i])) ? ~0u : 0u;
    }
};
template <class Format, int Part, bool Ftz> struct HalfPart {
    template <class Op> static CYRT_NOINLINE void compare(Warp& warp, const Inst& inst, u32* mask) {
        alignas(64) FloatLanes a, b;
        Format::widen_all(cells<u32>(warp, inst.s[0]), Part * 16, a);
        Format::widen_all(cells<u32>(warp, inst.s[1]), Part * 16, b);
        CYRT_LANES mask[i] = Op::of(flushed(a[i]), flushed(b[i])) ? ~0u : 0u;
    }
    static CYRT_INLINE float flushed(float a) { return Ftz && magnitude(a) < 0x1p-14f ? 0.0f : a; }
};

// The third source's combination with the truth t of a comparison.
struct Alone {
    static CYRT_INLINE u32 of(u32 t, u32) { return t; }
};
struct And {
    static CYRT_INLINE u32 of(u32 t, u32 c) { return t & c; }
};
struct Or {
    static CYRT_INLINE u32 of(u32 t, u32 c) { return t | c; }
};
struct Xor {
    static CYRT_INLINE u32 of(u32 t, u32 c) { return t ^ c; }
};
template <class Combine> CYRT_NOINLINE void combine(Warp& warp, const Inst& inst, u32* mask) {
    const u32* c = cells<u32>(warp, inst.s[2]);
    CYRT_LANES mask[i] = Combine::of(mask[i], c[i]);
}

// p = (a op b) combined with c, q = !(a op b) combined with c.
template <class Combine>
CYRT_NOINLINE void store_predicates(Warp& warp, const Inst& inst, u32* mask) {
    alignas(64) WordLanes inverse;
    if (inst.d[1] != kNoSlot) {
        CYRT_LANES inverse[i] = ~mask[i];
        if constexpr (!std::is_same_v<Combine, Alone>) combine<Combine>(warp, inst, inverse);
    }
    if constexpr (!std::is_same_v<Combine, Alone>) combine<Combine>(warp, inst, mask);
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], mask);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], inverse);
}
template <class Source, class Op, class Combine> void setp(Warp& warp, const Inst& inst) {
    // The common form writes its masks directly to the result.
    if (std::is_same_v<Combine, Alone> && warp.active == kFullMask && inst.d[0] != kNoSlot &&
        inst.d[1] == kNoSlot)
        return Source::template compare<Op>(warp, inst, cells<u32>(warp, inst.d[0]));
    alignas(64) WordLanes mask;
    Source::template compare<Op>(warp, inst, mask);
    store_predicates<Combine>(warp, inst, mask);
}

// set: `truth` (all ones, or the type's 1) if the comparison is true.
template <class Combine>
CYRT_NOINLINE void store_words(Warp& warp, const Inst& inst, u32* mask, u32 truth) {
    if constexpr (!std::is_same_v<Combine, Alone>) combine<Combine>(warp, inst, mask);
    CYRT_LANES mask[i] &= truth;
    commit(warp, inst.d[0], mask);
}
template <class Source, class Op, class Combine, u32 Truth>
void set(Warp& warp, const Inst& inst) {
    alignas(64) WordLanes mask;
    Source::template compare<Op>(warp, inst, mask);
    store_words<Combine>(warp, inst, mask, Truth);
}

// For pairs: the low halves' result is p or the low half of the word, the high halves' the other.
template <class Combine>
CYRT_NOINLINE void store_pair(Warp& warp, const Inst& inst, u32* low, u32* high, u32 truth) {
    if constexpr (!std::is_same_v<Combine, Alone>) {
        combine<Combine>(warp, inst, low);
        combine<Combine>(warp, inst, high);
    }
    if (truth != 0) {
        CYRT_LANES low[i] = (low[i] & truth) | (high[i] & truth) << 16;
    }
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], low);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], high);
}
template <class Format, bool Ftz, class Op, class Combine, u32 Truth>
void compare_pair(Warp& warp, const Inst& inst) {
    alignas(64) WordLanes low, high;
    HalfPart<Format, 0, Ftz>::template compare<Op>(warp, inst, low);
    HalfPart<Format, 1, Ftz>::template compare<Op>(warp, inst, high);
    store_pair<Combine>(warp, inst, low, high, Truth);
}

struct Select {
    template <class T> static CYRT_INLINE T of(T a, T b, u32 p) { return p ? a : b; }
};
struct SelectBySign {
    template <class T> static CYRT_INLINE T of(T a, T b, s32 c) { return c >= 0 ? a : b; }
};
// -0 selects the first, a NaN the second.
template <bool Ftz> struct SelectByFloat {
    template <class T> static CYRT_INLINE T of(T a, T b, float c) {
        return flush<Ftz>(c) >= 0.0f ? a : b;
    }
};

// clang-format off: a table, several rows a line
#define WITH_COMBINE(form, ...) \
    form("", Alone, __VA_ARGS__), form(".and", And, __VA_ARGS__), form(".or", Or, __VA_ARGS__), \
    form(".xor", Xor, __VA_ARGS__)

// One operator on one source type: setp and set.
#define WORDS(combine, Combine, op, Op, ftz, type, Source) \
    {"setp." op combine ftz type, setp<Source, Op, Combine>}, \
    {"set." op combine ftz ".u32" type, set<Source, Op, Combine, 0xffffffffu>}, \
    {"set." op combine ftz ".s32" type, set<Source, Op, Combine, 0xffffffffu>}, \
    {"set." op combine ftz ".f32" type, set<Source, Op, Combine, 0x3f800000u>}, \
    {"set." op combine ftz ".f16" type, set<Source, Op, Combine, 0x3c00u>}, \
    {"set." op combine ftz ".bf16" type, set<Source, Op, Combine, 0x3f80u>}
#define ON(op, Op, ftz, type, ...) WITH_COMBINE(WORDS, op, Op, ftz, type, __VA_ARGS__)

#define HALF(combine, Combine, op, Op, ftz, type, one, ...) \
    {"setp." op combine ftz type, setp<HalfPart<__VA_ARGS__>, Op, Combine>}, \
    {"set." op combine ftz ".u32" type, set<HalfPart<__VA_ARGS__>, Op, Combine, 0xffffffffu>}, \
    {"set." op combine ftz ".s32" type, set<HalfPart<__VA_ARGS__>, Op, Combine, 0xffffffffu>}, \
    {"set." op combine ftz ".u16" type, set<HalfPart<__VA_ARGS__>, Op, Combine, 0xffffu>}, \
    {"set." op combine ftz ".s16" type, set<HalfPart<__VA_ARGS__>, Op, Combine, 0xffffu>}, \
    {"set." op combine ftz type type, set<HalfPart<__VA_ARGS__>, Op, Combine, one>}
#define ON_HALF(op, Op, ...) WITH_COMBINE(HALF, op, Op, __VA_ARGS__)

#define PAIR(combine, Combine, op, Op, ftz, type, one, Format, Ftz) \
    {"setp." op combine ftz type, compare_pair<Format, Ftz, Op, Combine, 0>}, \
    {"set." op combine ftz ".u32" type, compare_pair<Format, Ftz, Op, Combine, 0xffffu>}, \
    {"set." op combine ftz ".s32" type, compare_pair<Format, Ftz, Op, Combine, 0xffffu>}, \
    {"set." op combine ftz type type, compare_pair<Format, Ftz, Op, Combine, one>}
#define ON_PAIR(op, Op, ...) WITH_COMBINE(PAIR, op, Op, __VA_ARGS__)

#define EQUALITY(...) ON("eq", Eq, "", __VA_ARGS__), ON("ne", No<Eq>, "", __VA_ARGS__)
#define ORDER(...) \
    EQUALITY(__VA_ARGS__), ON("lt", Lt, "", __VA_ARGS__), ON("le", Le, "", __VA_ARGS__), \
    ON("gt", Gt, "", __VA_ARGS__), ON("ge", Ge, "", __VA_ARGS__)
#define UNSIGNED(...) \
    ORDER(__VA_ARGS__), ON("lo", Lt, "", __VA_ARGS__), ON("ls", Le, "", __VA_ARGS__), \
    ON("hi", Gt, "", __VA_ARGS__), ON("hs", Ge, "", __VA_ARGS__)
#define FLOATING(on, ...) \
    on("eq", Eq, __VA_ARGS__), on("ne", Ne, __VA_ARGS__), on("lt", Lt, __VA_ARGS__), \
    on("le", Le, __VA_ARGS__), on("gt", Gt, __VA_ARGS__), on("ge", Ge, __VA_ARGS__), \
    on("equ", No<Ne>, __VA_ARGS__), on("neu", No<Eq>, __VA_ARGS__), \
    on("ltu", No<Ge>, __VA_ARGS__), on("leu", No<Gt>, __VA_ARGS__), \
    on("gtu", No<Le>, __VA_ARGS__), on("geu", No<Lt>, __VA_ARGS__), \
    on("num", Num, __VA_ARGS__), on("nan", No<Num>, __VA_ARGS__)

#define CHOOSE(type, T) \
    {"selp." type, apply<Select, T, T, T, u32>}, \
    {"slct." type ".s32", apply<SelectBySign, T, T, T, s32>}, \
    {"slct." type ".f32", apply<SelectByFloat<false>, T, T, T, float>}, \
    {"slct.ftz." type ".f32", apply<SelectByFloat<true>, T, T, T, float>}

constexpr HandlerEntry entries[] = {
    EQUALITY(".b16", Plain<u16>), EQUALITY(".b32", Plain<u32>), EQUALITY(".b64", Plain<u64>),
    UNSIGNED(".u16", Plain<u16>), UNSIGNED(".u32", Plain<u32>), UNSIGNED(".u64", Plain<u64>),
    ORDER(".s16", Plain<s16>), ORDER(".s32", Plain<s32>), ORDER(".s64", Plain<s64>),
    FLOATING(ON, "", ".f32", Plain<float>), FLOATING(ON, ".ftz", ".f32", Flushed),
    FLOATING(ON, "", ".f64", Plain<double>),
    FLOATING(ON_HALF, "", ".f16", 0x3c00u, Half, 0, false),
    FLOATING(ON_HALF, ".ftz", ".f16", 0x3c00u, Half, 0, true),
    FLOATING(ON_HALF, "", ".bf16", 0x3f80u, BFloat, 0, false),
    FLOATING(ON_PAIR, "", ".f16x2", 0x3c00u, Half, false),
    FLOATING(ON_PAIR, ".ftz", ".f16x2", 0x3c00u, Half, true),
    FLOATING(ON_PAIR, "", ".bf16x2", 0x3f80u, BFloat, false),

    CHOOSE("b16", u32), CHOOSE("u16", u32), CHOOSE("s16", u32), CHOOSE("f16", u32),
    CHOOSE("b32", u32), CHOOSE("u32", u32), CHOOSE("s32", u32), CHOOSE("f32", u32),
    CHOOSE("b64", u64), CHOOSE("u64", u64), CHOOSE("s64", u64), CHOOSE("f64", u64),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(compare, entries)

}  // namespace cyrt::emu
