// Integer arithmetic in one word: add, sub, mul, mad, div, rem, abs, neg, min, max, sad.
#include "exec/handlers_table.hpp"
#include "exec/handler_lanes.hpp"

namespace cyrt::emu {
namespace {

// Sums and products wrap: computed unsigned, in at least 32 bits (a u16 would become an int).
template <class T> struct WrapOf {
    using type = u32;
};
template <> struct WrapOf<u64> {
    using type = u64;
};
template <> struct WrapOf<s64> {
    using type = u64;
};
template <class T> using Wrap = typename WrapOf<T>::type;

template <class T> constexpr bool is_signed_v = T(-1) < T(0);
template <class T> constexpr T highest_v =
    is_signed_v<T> ? T((u64(1) << (sizeof(T) * 8 - 1)) - 1) : T(-1);
template <class T> constexpr T lowest_v = T(T(-1) - highest_v<T>);

struct Add {
    template <class T> static CYRT_INLINE T of(T a, T b) { return T(Wrap<T>(a) + Wrap<T>(b)); }
};
struct Sub {
    template <class T> static CYRT_INLINE T of(T a, T b) { return T(Wrap<T>(a) - Wrap<T>(b)); }
};
struct MulLo {
    template <class T> static CYRT_INLINE T of(T a, T b) { return T(Wrap<T>(a) * Wrap<T>(b)); }
};

CYRT_INLINE s32 clamp_s32(s64 value) {
    return s32(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
// The overflow of a sum shows in the signs; stays in 32-bit lanes.
struct AddSat {
    static CYRT_INLINE s32 of(s32 a, s32 b) {
        const u32 sum = u32(a) + u32(b);
        const bool overflow = s32((u32(a) ^ sum) & (u32(b) ^ sum)) < 0;
        return overflow ? (a < 0 ? INT32_MIN : INT32_MAX) : s32(sum);
    }
};
struct SubSat {
    static CYRT_INLINE s32 of(s32 a, s32 b) {
        const u32 difference = u32(a) - u32(b);
        const bool overflow = s32((u32(a) ^ u32(b)) & (u32(a) ^ difference)) < 0;
        return overflow ? (a < 0 ? INT32_MIN : INT32_MAX) : s32(difference);
    }
};

CYRT_INLINE u64 high_product(u64 a, u64 b) { return u64((unsigned __int128)(a)*b >> 64); }
CYRT_INLINE s64 high_product(s64 a, s64 b) { return s64((__int128)(a)*b >> 64); }
CYRT_INLINE u32 high_product(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
CYRT_INLINE s32 high_product(s32 a, s32 b) { return s32(s64(a) * b >> 32); }
CYRT_INLINE u16 high_product(u16 a, u16 b) { return u16(u32(a) * b >> 16); }
CYRT_INLINE s16 high_product(s16 a, s16 b) { return s16(s32(a) * b >> 16); }

struct MulHi {
    template <class T> static CYRT_INLINE T of(T a, T b) { return high_product(a, b); }
};
template <class D> struct MulWide {
    template <class T> static CYRT_INLINE D of(T a, T b) { return D(D(a) * D(b)); }
};
template <class Product> struct MadOf {
    template <class T, class C> static CYRT_INLINE C of(T a, T b, C c) {
        return Add::of(C(Product::of(a, b)), c);
    }
};
struct MadHiSat {
    static CYRT_INLINE s32 of(s32 a, s32 b, s32 c) { return AddSat::of(high_product(a, b), c); }
};

// 24-bit factors, sign or zero extended: the low or the high 32 bits of the 48-bit product.
CYRT_INLINE s64 low24(s32 a) { return s32(u32(a) << 8) >> 8; }
CYRT_INLINE u64 low24(u32 a) { return a & 0xffffffu; }
struct Mul24Lo {
    template <class T> static CYRT_INLINE T of(T a, T b) { return T(low24(a) * low24(b)); }
};
struct Mul24Hi {
    template <class T> static CYRT_INLINE T of(T a, T b) { return T(low24(a) * low24(b) >> 16); }
};
struct Mad24HiSat {
    static CYRT_INLINE s32 of(s32 a, s32 b, s32 c) {
        return clamp_s32((low24(a) * low24(b) >> 16) + c);
    }
};

// Doubles hold 32-bit integers exactly, and no quotient of two of them rounds up to the next
// integer: the truncated double is the integer quotient, and the division vectorises. Adding 2^52
// leaves an integer in the low bits. A division by zero gives all ones, as on the hardware.
CYRT_INLINE double exact(u32 a) { return bits_as<double>(0x4330000000000000u | a) - 0x1p52; }
CYRT_INLINE double exact(s32 a) { return double(a); }
struct Div {
    template <class T> static CYRT_INLINE T of(T a, T b) {
        const double whole = __builtin_trunc(exact(a) / exact(T(b == 0 ? 1 : b)));
        const T quotient = T(u32(bits_as<u64>(whole + 0x1.8p52)));
        return b == 0 ? T(-1) : quotient;
    }
    static CYRT_INLINE u16 of(u16 a, u16 b) { return u16(of(s32(a), s32(b))); }
    static CYRT_INLINE s16 of(s16 a, s16 b) { return s16(of(s32(a), s32(b))); }
};
struct Rem {
    template <class T> static CYRT_INLINE T of(T a, T b) {
        const T rest = T(u32(a) - u32(Div::of(a, b)) * u32(b));
        return b == 0 ? T(-1) : rest;
    }
    static CYRT_INLINE u16 of(u16 a, u16 b) { return u16(of(s32(a), s32(b))); }
    static CYRT_INLINE s16 of(s16 a, s16 b) { return s16(of(s32(a), s32(b))); }
};
struct Div64 {
    static CYRT_INLINE u64 of(u64 a, u64 b) {
        if (b == 0) return ~u64(0);
        return (a | b) >> 32 ? a / b : u32(a) / u32(b);
    }
    static CYRT_INLINE s64 of(s64 a, s64 b) {
        if (b == 0) return -1;
        const u64 quotient = of(a < 0 ? 0 - u64(a) : u64(a), b < 0 ? 0 - u64(b) : u64(b));
        return s64((a < 0) != (b < 0) ? 0 - quotient : quotient);
    }
};
struct Rem64 {
    template <class T> static CYRT_INLINE T of(T a, T b) {
        return b == 0 ? T(-1) : T(u64(a) - u64(Div64::of(a, b)) * u64(b));
    }
};

struct Neg {
    template <class T> static CYRT_INLINE T of(T a) { return T(Wrap<T>(0) - Wrap<T>(a)); }
};
struct Abs {
    template <class T> static CYRT_INLINE T of(T a) { return a < 0 ? Neg::of(a) : a; }
};
struct Min {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a < b ? a : b; }
};
struct Max {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a > b ? a : b; }
};
template <class Op> struct Relu {
    template <class T> static CYRT_INLINE T of(T a, T b) { return Max::of(Op::of(a, b), T(0)); }
};
struct Sad {
    template <class T> static CYRT_INLINE T of(T a, T b, T c) {
        return Add::of(c, a < b ? Sub::of(b, a) : Sub::of(a, b));
    }
};

// The same on the two 16-bit halves of a word.
template <class Op, class Half> struct Pair {
    static CYRT_INLINE u32 of(u32 a, u32 b) {
        const u16 low = u16(Op::of(Half(a), Half(b)));
        const u16 high = u16(Op::of(Half(a >> 16), Half(b >> 16)));
        return low | u32(high) << 16;
    }
};

// clang-format off: a table, several rows a line
#define UNARY(name, Op, T) {name, apply<Op, T, T>}
#define BINARY(name, Op, T) {name, apply<Op, T, T, T>}
#define TERNARY(name, Op, T) {name, apply<Op, T, T, T, T>}
#define PAIR(name, Op, Half) {name, apply<Pair<Op, Half>, u32, u32, u32>}
// If signs do not matter, both types share the unsigned code.
#define EITHER(form, head, Op) \
    form(head ".u16", Op, u16), form(head ".s16", Op, u16), form(head ".u32", Op, u32), \
    form(head ".s32", Op, u32), form(head ".u64", Op, u64), form(head ".s64", Op, u64)
#define EVERY(form, head, Op) \
    form(head ".u16", Op, u16), form(head ".s16", Op, s16), form(head ".u32", Op, u32), \
    form(head ".s32", Op, s32), form(head ".u64", Op, u64), form(head ".s64", Op, s64)
#define SIGNED(form, head, Op) \
    form(head ".s16", Op, s16), form(head ".s32", Op, s32), form(head ".s64", Op, s64)
#define WIDE(T, D, name) \
    {"mul.wide." name, apply<MulWide<D>, D, T, T>}, \
    {"mad.wide." name, apply<MadOf<MulWide<D>>, D, T, T, D>}

constexpr HandlerEntry entries[] = {
    EITHER(BINARY, "add", Add), EITHER(BINARY, "sub", Sub), EITHER(BINARY, "mul.lo", MulLo),
    EITHER(TERNARY, "mad.lo", MadOf<MulLo>),
    PAIR("add.u16x2", Add, u16), PAIR("add.s16x2", Add, u16),
    BINARY("add.sat.s32", AddSat, s32), BINARY("sub.sat.s32", SubSat, s32),

    EVERY(BINARY, "mul.hi", MulHi), EVERY(TERNARY, "mad.hi", MadOf<MulHi>),
    TERNARY("mad.hi.sat.s32", MadHiSat, s32),
    WIDE(u16, u32, "u16"), WIDE(s16, s32, "s16"), WIDE(u32, u64, "u32"), WIDE(s32, s64, "s32"),

    BINARY("mul24.lo.u32", Mul24Lo, u32), BINARY("mul24.lo.s32", Mul24Lo, s32),
    BINARY("mul24.hi.u32", Mul24Hi, u32), BINARY("mul24.hi.s32", Mul24Hi, s32),
    TERNARY("mad24.lo.u32", MadOf<Mul24Lo>, u32), TERNARY("mad24.lo.s32", MadOf<Mul24Lo>, s32),
    TERNARY("mad24.hi.u32", MadOf<Mul24Hi>, u32), TERNARY("mad24.hi.s32", MadOf<Mul24Hi>, s32),
    TERNARY("mad24.hi.sat.s32", Mad24HiSat, s32),

    BINARY("div.u16", Div, u16), BINARY("div.s16", Div, s16), BINARY("div.u32", Div, u32),
    BINARY("div.s32", Div, s32), BINARY("div.u64", Div64, u64), BINARY("div.s64", Div64, s64),
    BINARY("rem.u16", Rem, u16), BINARY("rem.s16", Rem, s16), BINARY("rem.u32", Rem, u32),
    BINARY("rem.s32", Rem, s32), BINARY("rem.u64", Rem64, u64), BINARY("rem.s64", Rem64, s64),

    SIGNED(UNARY, "abs", Abs), SIGNED(UNARY, "neg", Neg),
    EVERY(BINARY, "min", Min), EVERY(BINARY, "max", Max), EVERY(TERNARY, "sad", Sad),
    PAIR("min.u16x2", Min, u16), PAIR("min.s16x2", Min, s16),
    PAIR("max.u16x2", Max, u16), PAIR("max.s16x2", Max, s16),
    PAIR("min.relu.s16x2", Relu<Min>, s16), PAIR("max.relu.s16x2", Relu<Max>, s16),
    BINARY("min.relu.s32", Relu<Min>, s32), BINARY("max.relu.s32", Relu<Max>, s32),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(integer, entries)

}  // namespace cyrt::emu
