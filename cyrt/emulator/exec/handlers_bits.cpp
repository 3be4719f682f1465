// Bits: mov, logic, shifts, fields, counts, permutations, small dot products.
#include "exec/handlers_table.hpp"
#include "exec/handler_lanes.hpp"

namespace cyrt::emu {
namespace {

struct Move {
    template <class T> static CYRT_INLINE T of(T a) { return a; }
};
struct And {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a & b; }
};
struct Or {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a | b; }
};
struct Xor {
    template <class T> static CYRT_INLINE T of(T a, T b) { return a ^ b; }
};
struct Not {
    template <class T> static CYRT_INLINE T of(T a) { return T(~a); }
};
struct CNot {
    template <class T> static CYRT_INLINE T of(T a) { return a == 0; }
};

template <class T> constexpr u32 width_v = sizeof(T) * 8;

// Counts beyond the width shift everything out.
struct Shl {
    template <class T> static CYRT_INLINE T of(T a, u32 n) {
        const T shifted = T(a << (n & (width_v<T> - 1)));
        return n < width_v<T> ? shifted : T(0);
    }
};
struct Shr {
    template <class T> static CYRT_INLINE T of(T a, u32 n) {
        const T shifted = T(a >> (n & (width_v<T> - 1)));
        return n < width_v<T> ? shifted : T(a < 0 ? -1 : 0);
    }
};
template <bool Left, bool Clamp> struct Funnel {
    static CYRT_INLINE u32 of(u32 low, u32 high, u32 n) {
        const u32 count = Clamp ? (n < 32 ? n : 32) : n & 31;
        const u64 both = u64(high) << 32 | low;
        return Left ? u32(both << count >> 32) : u32(both >> count);
    }
};

// Any function of three bits: a tree of choices among the bits of its table.
struct Lop3 {
    static CYRT_INLINE u32 of(u32 a, u32 b, u32 c, u32 lut) {
        const u32 a0 =
            choose(b, choose(c, bit<0>(lut), bit<1>(lut)), choose(c, bit<2>(lut), bit<3>(lut)));
        const u32 a1 =
            choose(b, choose(c, bit<4>(lut), bit<5>(lut)), choose(c, bit<6>(lut), bit<7>(lut)));
        return choose(a, a0, a1);
    }
    template <int N> static CYRT_INLINE u32 bit(u32 lut) { return u32(s32(lut << (31 - N)) >> 31); }
    static CYRT_INLINE u32 choose(u32 by, u32 zero, u32 one) { return zero ^ (by & (zero ^ one)); }
};
template <class Op> void lop3_predicate(Warp& warp, const Inst& inst) {
    const u32 *a = cells<u32>(warp, inst.s[0]), *b = cells<u32>(warp, inst.s[1]),
              *c = cells<u32>(warp, inst.s[2]), *lut = cells<u32>(warp, inst.s[3]),
              *q = cells<u32>(warp, inst.s[4]);
    alignas(64) u32 word[kWarpSize], truth[kWarpSize];
    CYRT_LANES {
        word[i] = Lop3::of(a[i], b[i], c[i], lut[i]);
        truth[i] = Op::of(word[i] != 0 ? ~0u : 0u, q[i]);
    }
    if (inst.d[0] != kNoSlot) commit(warp, inst.d[0], word);
    if (inst.d[1] != kNoSlot) commit(warp, inst.d[1], truth);
}

struct PopC {
    static CYRT_INLINE u32 of(u32 a) {
        a -= a >> 1 & 0x55555555u;
        a = (a & 0x33333333u) + (a >> 2 & 0x33333333u);
        return ((a + (a >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
    }
    static CYRT_INLINE u32 of(u64 a) { return of(u32(a)) + of(u32(a >> 32)); }
};
struct Clz {
    static CYRT_INLINE u32 of(u32 a) { return a ? u32(__builtin_clz(a)) : 32; }
    static CYRT_INLINE u32 of(u64 a) { return a ? u32(__builtin_clzll(a)) : 64; }
};
// The highest bit that differs from the sign; ~0 if there is none.
template <bool ShiftAmount> struct BFind {
    static CYRT_INLINE u32 of(u32 a) { return result(a != 0, 31, Clz::of(a)); }
    static CYRT_INLINE u32 of(u64 a) { return result(a != 0, 63, Clz::of(a)); }
    static CYRT_INLINE u32 of(s32 a) { return of(u32(a < 0 ? ~a : a)); }
    static CYRT_INLINE u32 of(s64 a) { return of(u64(a < 0 ? ~a : a)); }
    static CYRT_INLINE u32 result(bool found, u32 top, u32 zeros) {
        return !found ? ~0u : ShiftAmount ? zeros : top - zeros;
    }
};
struct BRev {
    static CYRT_INLINE u32 of(u32 a) {
        a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
        a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
        a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
        return __builtin_bswap32(a);
    }
    static CYRT_INLINE u64 of(u64 a) { return u64(of(u32(a))) << 32 | of(u32(a >> 32)); }
};

// `length` ones from bit 0 up.
template <class T> CYRT_INLINE T ones(u32 length) { return T(~Shl::of(T(~T(0)), length)); }

struct Bfe {
    template <class T> static CYRT_INLINE T of(T a, u32 position, u32 length) {
        using Unsigned = std::make_unsigned_t<T>;
        position &= 0xff;
        length &= 0xff;
        const Unsigned mask = ones<Unsigned>(length);
        const Unsigned field = Unsigned(Shr::of(a, position)) & mask;
        if (T(-1) > T(0)) return T(field);
        // The sign is the field's highest bit within the source.
        const u32 last = position + length - 1, top = width_v<T> - 1;
        const bool negative = length != 0 && (Shr::of(Unsigned(a), last < top ? last : top) & 1);
        return T(negative ? field | ~mask : field);
    }
};
struct Bfi {
    template <class T> static CYRT_INLINE T of(T a, T b, u32 position, u32 length) {
        const T mask = Shl::of(ones<T>(length & 0xff), position & 0xff);
        return (Shl::of(a, position & 0xff) & mask) | (b & ~mask);
    }
};
template <bool Clamp> struct BMask {
    static CYRT_INLINE u32 of(u32 position, u32 length) {
        if (!Clamp) return ones<u32>(length & 31) << (position & 31);
        return Shl::of(ones<u32>(length), position);
    }
};
template <bool Clamp> struct SzExt {
    template <class T> static CYRT_INLINE T of(T a, u32 length) {
        length = Clamp ? (length < 32 ? length : 32) : length & 31;
        const T shifted = T(Shl::of(u32(a), 32 - length));
        return length == 0 ? T(0) : T(shifted >> ((32 - length) & 31));
    }
};
struct Fns {
    static CYRT_INLINE u32 of(u32 mask, u32 base, s32 offset) {
        base &= 31;
        if (offset == 0) return mask >> base & 1 ? base : ~0u;
        u32 left = offset > 0 ? u32(offset) : 0u - u32(offset);
        const s32 step = offset > 0 ? 1 : -1;
        for (s32 at = s32(base); at >= 0 && at < 32; at += step)
            if ((mask >> at & 1) && --left == 0) return u32(at);
        return ~0u;
    }
};

// Byte permutation. Control nibbles pick a byte of {b, a}; bit 3 spreads the byte's sign instead.
struct Prmt {
    static CYRT_INLINE u32 of(u32 a, u32 b, u32 control) {
        const u64 both = u64(b) << 32 | a;
        u32 out = 0;
        for (u32 n = 0; n < 32; n += 8) {
            const u32 nibble = control >> (n / 2);
            const u32 byte = u32(both >> ((nibble & 7) * 8)) & 0xff;
            out |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << n;
        }
        return out;
    }
};
// The control is nearly always a constant, the same for all lanes: each byte is then two shifts.
struct BytePick {
    const u32* from;
    u32 up, down;  // brings the byte to the top, and back with zeros or its sign
    CYRT_INLINE u32 of(int lane) const { return u32(s32(from[lane] << up) >> down) & 0xff; }
};
void prmt(Warp& warp, const Inst& inst) {
    const u32* sources[2] = {cells<u32>(warp, inst.s[0]), cells<u32>(warp, inst.s[1])};
    const u32* control = cells<u32>(warp, inst.s[2]);
    u32 differs = 0;
    CYRT_LANES differs |= control[i] ^ control[0];
    if (differs) return apply<Prmt, u32, u32, u32, u32>(warp, inst);
    const auto pick = [&](u32 n) -> BytePick {
        const u32 nibble = control[0] >> (4 * n);
        return {sources[nibble >> 2 & 1], 24 - (nibble & 3) * 8, nibble & 8 ? 31u : 24u};
    };
    const BytePick b0 = pick(0), b1 = pick(1), b2 = pick(2), b3 = pick(3);
    alignas(64) u32 out[kWarpSize];
    CYRT_LANES out[i] = b0.of(i) | b1.of(i) << 8 | b2.of(i) << 16 | b3.of(i) << 24;
    commit(warp, inst.d[0], out);
}
// A mode's four controls, chosen by the low bits of the third operand.
template <u32 C0, u32 C1, u32 C2, u32 C3> struct PrmtMode {
    static CYRT_INLINE u32 of(u32 a, u32 b, u32 c) {
        const u32 low = c & 1 ? C1 : C0, high = c & 1 ? C3 : C2;
        return Prmt::of(a, b, c & 2 ? high : low);
    }
};

// Extends a field of a word by its own type.
template <class Field> CYRT_INLINE s32 field(u32 word, u32 index) {
    return s32(Field(word >> (index * width_v<Field>)));
}
template <class A, class B> struct Dp4a {
    static CYRT_INLINE u32 of(u32 a, u32 b, u32 c) {
        for (u32 n = 0; n < 4; ++n) c += u32(field<A>(a, n) * field<B>(b, n));
        return c;
    }
};
template <class A, class B, u32 First> struct Dp2a {
    static CYRT_INLINE u32 of(u32 a, u32 b, u32 c) {
        for (u32 n = 0; n < 2; ++n) c += u32(field<A>(a, n)) * u32(field<B>(b, First + n));
        return c;
    }
};

struct B128 {
    u64 low, high;
};

// clang-format off: a table, several rows a line
#define LOGIC(name, Op) \
    {name ".pred", apply<Op, u32, u32, u32>}, {name ".b16", apply<Op, u32, u32, u32>}, \
    {name ".b32", apply<Op, u32, u32, u32>}, {name ".b64", apply<Op, u64, u64, u64>}
#define MOVE(type, T) {"mov." type, apply<Move, T, T>}
#define SHIFT_LEFT(type, T) {"shl." type, apply<Shl, T, T, u32>}
#define SHIFT_RIGHT(type, T) {"shr." type, apply<Shr, T, T, u32>}
#define FUNNEL(side, mode, Left, Clamp) \
    {"shf." side "." mode ".b32", apply<Funnel<Left, Clamp>, u32, u32, u32, u32>}
#define BFIND(type, T) \
    {"bfind." type, apply<BFind<false>, u32, T>}, \
    {"bfind.shiftamt." type, apply<BFind<true>, u32, T>}
#define BFE(type, T) {"bfe." type, apply<Bfe, T, T, u32, u32>}
#define PRMT(mode, ...) {"prmt.b32." mode, apply<PrmtMode<__VA_ARGS__>, u32, u32, u32, u32>}
#define DOTS(a, A4, A2, b, B) \
    {"dp4a." a "." b, apply<Dp4a<A4, B>, u32, u32, u32, u32>}, \
    {"dp2a.lo." a "." b, apply<Dp2a<A2, B, 0>, u32, u32, u32, u32>}, \
    {"dp2a.hi." a "." b, apply<Dp2a<A2, B, 2>, u32, u32, u32, u32>}

constexpr HandlerEntry entries[] = {
    MOVE("pred", u32), MOVE("b16", u32), MOVE("u16", u32), MOVE("s16", u32), MOVE("f16", u32),
    MOVE("bf16", u32), MOVE("b32", u32), MOVE("u32", u32), MOVE("s32", u32), MOVE("f32", u32),
    MOVE("f16x2", u32), MOVE("bf16x2", u32), MOVE("b64", u64), MOVE("u64", u64),
    MOVE("s64", u64), MOVE("f64", u64), MOVE("b128", B128),

    LOGIC("and", And), LOGIC("or", Or), LOGIC("xor", Xor),
    {"not.pred", apply<Not, u32, u32>}, {"not.b16", apply<Not, u32, u32>},
    {"not.b32", apply<Not, u32, u32>}, {"not.b64", apply<Not, u64, u64>},
    {"cnot.b16", apply<CNot, u16, u16>}, {"cnot.b32", apply<CNot, u32, u32>},
    {"cnot.b64", apply<CNot, u64, u64>},
    {"lop3.b32", apply<Lop3, u32, u32, u32, u32, u32>},
    {"lop3.or.b32", lop3_predicate<Or>}, {"lop3.and.b32", lop3_predicate<And>},

    SHIFT_LEFT("b16", u16), SHIFT_LEFT("b32", u32), SHIFT_LEFT("b64", u64),
    SHIFT_RIGHT("b16", u16), SHIFT_RIGHT("b32", u32), SHIFT_RIGHT("b64", u64),
    SHIFT_RIGHT("u16", u16), SHIFT_RIGHT("u32", u32), SHIFT_RIGHT("u64", u64),
    SHIFT_RIGHT("s16", s16), SHIFT_RIGHT("s32", s32), SHIFT_RIGHT("s64", s64),
    FUNNEL("l", "wrap", true, false), FUNNEL("l", "clamp", true, true),
    FUNNEL("r", "wrap", false, false), FUNNEL("r", "clamp", false, true),

    {"popc.b32", apply<PopC, u32, u32>}, {"popc.b64", apply<PopC, u32, u64>},
    {"clz.b32", apply<Clz, u32, u32>}, {"clz.b64", apply<Clz, u32, u64>},
    BFIND("u32", u32), BFIND("s32", s32), BFIND("u64", u64), BFIND("s64", s64),
    {"brev.b32", apply<BRev, u32, u32>}, {"brev.b64", apply<BRev, u64, u64>},
    BFE("u32", u32), BFE("s32", s32), BFE("u64", u64), BFE("s64", s64),
    {"bfi.b32", apply<Bfi, u32, u32, u32, u32, u32>},
    {"bfi.b64", apply<Bfi, u64, u64, u64, u32, u32>},
    {"bmsk.clamp.b32", apply<BMask<true>, u32, u32, u32>},
    {"bmsk.wrap.b32", apply<BMask<false>, u32, u32, u32>},
    {"szext.clamp.u32", apply<SzExt<true>, u32, u32, u32>},
    {"szext.clamp.s32", apply<SzExt<true>, s32, s32, u32>},
    {"szext.wrap.u32", apply<SzExt<false>, u32, u32, u32>},
    {"szext.wrap.s32", apply<SzExt<false>, s32, s32, u32>},
    {"fns.b32", apply<Fns, u32, u32, u32, s32>},

    {"prmt.b32", prmt},
    PRMT("f4e", 0x3210, 0x4321, 0x5432, 0x6543), PRMT("b4e", 0x5670, 0x6701, 0x7012, 0x0123),
    PRMT("rc8", 0x0000, 0x1111, 0x2222, 0x3333), PRMT("ecl", 0x3210, 0x3211, 0x3222, 0x3333),
    PRMT("ecr", 0x0000, 0x1110, 0x2210, 0x3210), PRMT("rc16", 0x1010, 0x3232, 0x1010, 0x3232),

    DOTS("u32", u8, u16, "u32", u8), DOTS("u32", u8, u16, "s32", s8),
    DOTS("s32", s8, s16, "u32", u8), DOTS("s32", s8, s16, "s32", s8),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(bits, entries)

}  // namespace cyrt::emu
