// cvt to formats below f32: f16, bf16, their pairs, 8-bit floats, tf32, and packs of integers.
#include "exec/handler_halves.hpp"
#include "exec/handler_rounding.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

using DoubleLanes = double[kWarpSize];

// Every source becomes a double; the last bit of a long integer's records lost bits (sum_to_odd).
CYRT_INLINE double whole(u64 a) {
    const u64 cut = a >> 11 | u64((a & 0x7ff) != 0);
    return a >> 53 ? double(s64(cut)) * 2048.0 : double(s64(a));
}
template <class T> struct Number {
    static CYRT_INLINE double of(T a) { return double(a); }
};
template <> struct Number<u64> {
    static CYRT_INLINE double of(u64 a) { return whole(a); }
};
template <> struct Number<s64> {
    static CYRT_INLINE double of(s64 a) { return a < 0 ? -whole(0 - u64(a)) : whole(u64(a)); }
};
template <class T> struct From {
    static CYRT_NOINLINE void load(const Warp& warp, u32 slot, double* out) {
        const Cell<T>* a = cells<T>(warp, slot);
        CYRT_LANES out[i] = Number<T>::of(T(a[i]));
    }
};
struct FromFlushed {
    static CYRT_NOINLINE void load(const Warp& warp, u32 slot, double* out) {
        const float* a = cells<float>(warp, slot);
        CYRT_LANES out[i] = flush<true>(a[i]);
    }
};
template <class Codec, int Shift> struct FromHalf {
    static CYRT_NOINLINE void load(const Warp& warp, u32 slot, double* out) {
        const u32* a = cells<u32>(warp, slot);
        CYRT_LANES out[i] = Codec::widen(a[i] >> Shift);
    }
};

using FromF16 = FromHalf<Half, 0>;
using FromBFloat = FromHalf<BFloat, 0>;

// Any rounding to any format, lane by lane.
struct Target {
    const Format& format;
    Rounding rounding;
    Clamp limit;
    bool finite;
};
CYRT_NOINLINE void encode_lanes(const double* values, const Target& to, u32* out) {
    for (int i = 0; i < kWarpSize; ++i) {
        const double value = to.limit == Clamp::sat    ? clamp<Clamp::sat>(values[i])
                             : to.limit == Clamp::relu ? clamp<Clamp::relu>(values[i])
                                                       : values[i];
        out[i] = encode(value, to.format, to.rounding, to.finite);
    }
}
template <class Source, const Format& F, Rounding R, Clamp C, bool Finite>
void narrow_any(Warp& warp, const Inst& inst) {
    alignas(64) DoubleLanes values;
    alignas(64) WordLanes out;
    Source::load(warp, inst.s[0], values);
    encode_lanes(values, {F, R, C, Finite}, out);
    commit(warp, inst.d[0], out);
}
// The first operand, or the high half of the only one, becomes the high part.
template <class High, class Low, int LowOperand, int Bits, const Format& F, Rounding R, Clamp C,
          bool Finite>
void narrow_pair(Warp& warp, const Inst& inst) {
    alignas(64) DoubleLanes values;
    alignas(64) WordLanes high, low;
    High::load(warp, inst.s[0], values);
    encode_lanes(values, {F, R, C, Finite}, high);
    Low::load(warp, inst.s[LowOperand], values);
    encode_lanes(values, {F, R, C, Finite}, low);
    CYRT_LANES low[i] |= high[i] << Bits;
    commit(warp, inst.d[0], low);
}
template <Rounding R, Clamp C, bool Finite> void tf32(Warp& warp, const Inst& inst) {
    alignas(64) DoubleLanes values;
    alignas(64) WordLanes out;
    From<float>::load(warp, inst.s[0], values);
    encode_lanes(values, {kTF32, R, C, Finite}, out);
    CYRT_LANES out[i] <<= 13;
    commit(warp, inst.d[0], out);
}

// To nearest, the usual rounding, goes over vectors: from f32 at once ...
template <class Codec, Clamp C, bool Finite>
CYRT_INLINE void nearest_lanes(const Warp& warp, u32 slot, u32* out) {
    constexpr float largest = std::is_same_v<Codec, Half> ? 0x1.ffcp15f : 0x1.fep127f;
    const float* a = cells<float>(warp, slot);
    alignas(64) FloatLanes values;
    CYRT_LANES {
        float value = clamp<C>(a[i]);
        if (Finite) value = value > largest ? largest : value < -largest ? -largest : value;
        values[i] = value;
    }
    Codec::narrow_all(values, out);
}
template <class Codec, Clamp C, bool Finite> void nearest(Warp& warp, const Inst& inst) {
    alignas(64) WordLanes out;
    nearest_lanes<Codec, C, Finite>(warp, inst.s[0], out);
    commit(warp, inst.d[0], out);
}
template <class Codec, Clamp C, bool Finite> void nearest_pair(Warp& warp, const Inst& inst) {
    alignas(64) WordLanes high, low;
    nearest_lanes<Codec, C, Finite>(warp, inst.s[0], high);
    nearest_lanes<Codec, C, Finite>(warp, inst.s[1], low);
    CYRT_LANES low[i] |= high[i] << 16;
    commit(warp, inst.d[0], low);
}
// ... from other types through an f32 whose last bit records lost bits.
template <class Source, class Codec, Clamp C> void nearest_wide(Warp& warp, const Inst& inst) {
    alignas(64) DoubleLanes values;
    alignas(64) FloatLanes odd;
    alignas(64) WordLanes out;
    Source::load(warp, inst.s[0], values);
    CYRT_LANES {
        const double value = clamp<C>(values[i]);
        const float rounded = float(value);
        const bool above = value > double(rounded);
        odd[i] = to_odd(rounded, above || value < double(rounded), above);
    }
    Codec::narrow_all(odd, out);
    commit(warp, inst.d[0], out);
}

// Rounding to an integer within the format.
enum class Whole { none, nearest, zero, down, up };
template <class Codec, Whole W, bool Sat> struct InPlace {
    static CYRT_INLINE u32 of(u32 a) {
        const float value = Codec::widen(a);
        const float rounded = W == Whole::nearest ? __builtin_rintf(value)
                              : W == Whole::zero  ? __builtin_truncf(value)
                              : W == Whole::down  ? __builtin_floorf(value)
                              : W == Whole::up    ? __builtin_ceilf(value)
                                                  : value;
        return Codec::narrow(saturate<Sat>(rounded));
    }
};

// 8-bit floats to f16. An e5m2 is the upper byte of an f16; the bits of an e4m3 under the sign are
// those of an f16 of 2^8 times less.
template <bool E4M3, bool Relu> struct FromBytes {
    static CYRT_INLINE u32 of(u32 pair) { return one(pair & 0xff) | one(pair >> 8 & 0xff) << 16; }
    static CYRT_INLINE u32 one(u32 byte) {
        const u32 sign = (byte & 0x80u) << 8;
        const u32 nan = E4M3 ? (byte & 0x7f) == 0x7f : (byte & 0x7f) > 0x7c;
        const u32 scaled = Half::narrow(Half::widen((byte & 0x7f) << 7) * 256.0f);
        const u32 magnitude = E4M3 ? scaled : (byte & 0x7f) << 8;
        return nan ? 0x7fffu : Relu && sign ? 0 : magnitude | sign;
    }
};

// cvt.pack.sat: two clamped integers in one word, the first above the second, and above both the
// low bits of a third operand.
template <int Bits, bool Signed> CYRT_INLINE u32 clamp_field(s32 a) {
    constexpr s32 low = Signed ? -(1 << (Bits - 1)) : 0;
    constexpr s32 high = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
    return u32(a < low ? low : a > high ? high : a) & ((1u << Bits) - 1);
}
template <int Bits, bool Signed> struct Pack {
    static CYRT_INLINE u32 of(s32 a, s32 b) {
        return clamp_field<Bits, Signed>(a) << Bits | clamp_field<Bits, Signed>(b);
    }
    static CYRT_INLINE u32 of(s32 a, s32 b, u32 c) { return of(a, b) | c << (2 * Bits); }
};

// clang-format off: a table, several rows a line
#define CODECS(form, ...) \
    form(".f16", Half, kF16, __VA_ARGS__), form(".bf16", BFloat, kBF16, __VA_ARGS__)

#define DIRECTIONS(form, ...) \
    form(".rz", Rounding::zero, __VA_ARGS__), form(".rm", Rounding::down, __VA_ARGS__), \
    form(".rp", Rounding::up, __VA_ARGS__)
#define DIRECTED(mode, R, modifiers, types, Source, F, C) \
    {"cvt" mode modifiers types, narrow_any<Source, F, R, C, false>}
#define WIDER(type, Codec, F, source, Source) \
    {"cvt.rn" type source, nearest_wide<Source, Codec, Clamp::none>}, \
    {"cvt.rn.sat" type source, nearest_wide<Source, Codec, Clamp::sat>}, \
    DIRECTIONS(DIRECTED, "", type source, Source, F, Clamp::none), \
    DIRECTIONS(DIRECTED, ".sat", type source, Source, F, Clamp::sat)

#define SINGLE(type, Codec, F, unused) \
    {"cvt.rn" type ".f32", nearest<Codec, Clamp::none, false>}, \
    {"cvt.rn.sat" type ".f32", nearest<Codec, Clamp::sat, false>}, \
    {"cvt.rn.ftz" type ".f32", nearest_wide<FromFlushed, Codec, Clamp::none>}, \
    {"cvt.rn.ftz.sat" type ".f32", nearest_wide<FromFlushed, Codec, Clamp::sat>}, \
    DIRECTIONS(DIRECTED, "", type ".f32", From<float>, F, Clamp::none), \
    DIRECTIONS(DIRECTED, ".sat", type ".f32", From<float>, F, Clamp::sat), \
    DIRECTIONS(DIRECTED, ".ftz", type ".f32", FromFlushed, F, Clamp::none), \
    DIRECTIONS(DIRECTED, ".ftz.sat", type ".f32", FromFlushed, F, Clamp::sat), \
    LIMITS(NEAREST_LIMIT, type, Codec, F), LIMITS(ZERO_LIMIT, type, Codec, F), \
    {"cvt.rn" type "x2.f32", nearest_pair<Codec, Clamp::none, false>}, \
    PAIR_OF_SINGLES("cvt.rz" type "x2.f32", 16, F, Rounding::zero, Clamp::none, false)
#define LIMITS(form, ...) \
    form(".relu", Clamp::relu, false, __VA_ARGS__), \
    form(".satfinite", Clamp::none, true, __VA_ARGS__), \
    form(".relu.satfinite", Clamp::relu, true, __VA_ARGS__)
#define NEAREST_LIMIT(modifiers, C, Finite, type, Codec, F) \
    {"cvt.rn" modifiers type ".f32", nearest<Codec, C, Finite>}, \
    {"cvt.rn" modifiers type "x2.f32", nearest_pair<Codec, C, Finite>}
#define ZERO_LIMIT(modifiers, C, Finite, type, Codec, F) \
    {"cvt.rz" modifiers type ".f32", narrow_any<From<float>, F, Rounding::zero, C, Finite>}, \
    PAIR_OF_SINGLES("cvt.rz" modifiers type "x2.f32", 16, F, Rounding::zero, C, Finite)
#define PAIR_OF_SINGLES(name, Bits, ...) \
    {name, narrow_pair<From<float>, From<float>, 1, Bits, __VA_ARGS__>}

#define WITHIN(type, Codec, F, mode, W) \
    {"cvt" mode type type, apply<InPlace<Codec, W, false>, u32, u32>}, \
    {"cvt" mode ".sat" type type, apply<InPlace<Codec, W, true>, u32, u32>}

#define BYTES(type, F, E4M3) \
    BYTES_LIMIT("", type, F, E4M3, Clamp::none, false), \
    BYTES_LIMIT(".relu", type, F, E4M3, Clamp::relu, true)
#define BYTES_LIMIT(relu, type, F, E4M3, C, Relu) \
    PAIR_OF_SINGLES("cvt.rn.satfinite" relu type ".f32", 8, F, Rounding::nearest, C, true), \
    {"cvt.rn.satfinite" relu type ".f16x2", \
     narrow_pair<FromHalf<Half, 16>, FromHalf<Half, 0>, 0, 8, F, Rounding::nearest, C, true>}, \
    {"cvt.rn" relu ".f16x2" type, apply<FromBytes<E4M3, Relu>, u32, u32>}

#define TF32(mode, R) \
    {"cvt" mode ".tf32.f32", tf32<R, Clamp::none, false>}, \
    {"cvt" mode ".relu.tf32.f32", tf32<R, Clamp::relu, false>}, \
    {"cvt" mode ".satfinite.tf32.f32", tf32<R, Clamp::none, true>}, \
    {"cvt" mode ".relu.satfinite.tf32.f32", tf32<R, Clamp::relu, true>}

#define PACK16(type, Signed) {"cvt.pack.sat" type ".s32", apply<Pack<16, Signed>, u32, s32, s32>}
#define PACK(type, Bits, Signed) \
    {"cvt.pack.sat" type ".s32.b32", apply<Pack<Bits, Signed>, u32, s32, s32, u32>}

constexpr HandlerEntry entries[] = {
    CODECS(SINGLE, ), CODECS(WIDER, ".f64", From<double>),
    CODECS(WIDER, ".u8", From<u8>), CODECS(WIDER, ".s8", From<s8>),
    CODECS(WIDER, ".u16", From<u16>), CODECS(WIDER, ".s16", From<s16>),
    CODECS(WIDER, ".u32", From<u32>), CODECS(WIDER, ".s32", From<s32>),
    CODECS(WIDER, ".u64", From<u64>), CODECS(WIDER, ".s64", From<s64>),
    WIDER(".f16", Half, kF16, ".bf16", FromBFloat),
    WIDER(".bf16", BFloat, kBF16, ".f16", FromF16),

    CODECS(WITHIN, "", Whole::none), CODECS(WITHIN, ".rni", Whole::nearest),
    CODECS(WITHIN, ".rzi", Whole::zero), CODECS(WITHIN, ".rmi", Whole::down),
    CODECS(WITHIN, ".rpi", Whole::up),

    BYTES(".e4m3x2", kE4M3, true), BYTES(".e5m2x2", kE5M2, false),
    TF32(".rna", Rounding::away), TF32(".rn", Rounding::nearest), TF32(".rz", Rounding::zero),

    PACK16(".u16", false), PACK16(".s16", true), PACK(".u8", 8, false), PACK(".s8", 8, true),
    PACK(".u4", 4, false), PACK(".s4", 4, true), PACK(".u2", 2, false), PACK(".s2", 2, true),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(narrow, entries)

}  // namespace cyrt::emu
