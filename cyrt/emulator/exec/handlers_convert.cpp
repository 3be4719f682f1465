// cvt between integers, f32 and f64, from halves to wider types, and to integral floats (.rni ...).
#include "exec/handler_halves.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

struct Convert {
    template <class T> static CYRT_INLINE T of(T a) { return a; }
};

template <class T> constexpr bool is_signed_v = T(-1) < T(0);
template <class T> constexpr T highest_v =
    is_signed_v<T> ? T((u64(1) << (sizeof(T) * 8 - 1)) - 1) : T(-1);
template <class T> constexpr T lowest_v = T(T(-1) - highest_v<T>);

template <class D> struct ClampInteger {
    template <class S> static CYRT_INLINE D of(S a) {
        if (is_signed_v<S>) {
            if (s64(a) < (is_signed_v<D> ? s64(lowest_v<D>) : 0)) return lowest_v<D>;
            if (sizeof(D) == 8) return D(a);
            return s64(a) > s64(highest_v<D>) ? highest_v<D> : D(a);
        }
        return u64(a) > u64(highest_v<D>) ? highest_v<D> : D(a);
    }
};

// Integer to float. A u32 goes through a double, which vectorises: the double is made of its bits.
template <class D, bool Sat> struct FromInteger {
    template <class S> static CYRT_INLINE D of(S a) { return saturate<Sat>(D(a)); }
    static CYRT_INLINE D of(u32 a) {
        return saturate<Sat>(D(bits_as<double>(0x4330000000000000u | a) - 0x1p52));
    }
};
// The difference above would give -0 when rounding downward.
template <class D, bool Sat> struct FromIntegerDirected {
    template <class S> static CYRT_INLINE D of(S a) { return saturate<Sat>(D(a)); }
    static CYRT_INLINE D of(u32 a) { return saturate<Sat>(D(s64(a))); }
};

struct ToNearest {
    static CYRT_INLINE double of(double a) { return __builtin_rint(a); }
    static CYRT_INLINE float of(float a) { return __builtin_rintf(a); }
};
struct ToZero {
    static CYRT_INLINE double of(double a) { return __builtin_trunc(a); }
    static CYRT_INLINE float of(float a) { return __builtin_truncf(a); }
};
struct Down {
    static CYRT_INLINE double of(double a) { return __builtin_floor(a); }
    static CYRT_INLINE float of(float a) { return __builtin_floorf(a); }
};
struct Up {
    static CYRT_INLINE double of(double a) { return __builtin_ceil(a); }
    static CYRT_INLINE float of(float a) { return __builtin_ceilf(a); }
};
struct Same {
    template <class T> static CYRT_INLINE T of(T a) { return a; }
};

// The reading of a source.
struct F64 {
    using Cell = double;
    static CYRT_INLINE double of(double a) { return a; }
};
template <bool Ftz> struct F32 {
    using Cell = float;
    static CYRT_INLINE float of(float a) { return flush<Ftz>(a); }
};
template <class Format> struct F16 {
    using Cell = u32;
    static CYRT_INLINE float of(u32 a) { return Format::widen(a); }
};

// Float to integer: clamped; a NaN gives 0, or only the top bit from f64 or to 64 bits.
template <class Source, class Round, class D> struct ToInteger {
    static constexpr bool kWide = sizeof(D) == 8;
    static constexpr D kNan =
        std::is_same_v<Source, F64> || kWide ? D(u64(1) << (sizeof(D) * 8 - 1)) : D(0);

    static CYRT_INLINE D of(typename Source::Cell source) {
        const double a = Source::of(source);
        return is_nan(a) ? kNan : clamped(Round::of(a));
    }
    static CYRT_INLINE D clamped(double a) {
        constexpr double low = double(lowest_v<D>);
        if constexpr (kWide) {
            constexpr double above = is_signed_v<D> ? 0x1p63 : 0x1p64;
            return a >= above ? highest_v<D> : a > low ? D(a) : lowest_v<D>;
        } else {
            constexpr double high = double(highest_v<D>);
            double bounded = a > low ? a : low;
            bounded = bounded < high ? bounded : high;
            return D(u32(bits_as<u64>(bounded + 0x1.8p52)));  // the sum's low bits
        }
    }
};

// Float to float.
template <class Source, class Round, class D, bool Ftz, bool Sat> struct ToFloat {
    static CYRT_INLINE D of(typename Source::Cell source) {
        const D value = D(Round::of(Source::of(source)));
        return saturate<Sat>(out(canonical(value)));
    }
    static CYRT_INLINE float out(float a) { return flush<Ftz>(a); }
    static CYRT_INLINE double out(double a) { return a; }
};

// The most common conversion: the processor's own instruction widens halves.
template <class Format, bool Sat> void widen(Warp& warp, const Inst& inst) {
    alignas(64) FloatLanes wide;
    Format::widen_all(cells<u32>(warp, inst.s[0]), 0, wide);
    CYRT_LANES wide[i] = saturate<Sat>(canonical(wide[i]));
    commit(warp, inst.d[0], wide);
}

// clang-format off: a table, several rows a line
#define INTEGERS(form, ...) \
    form("u8", u8, __VA_ARGS__), form("u16", u16, __VA_ARGS__), form("u32", u32, __VA_ARGS__), \
    form("u64", u64, __VA_ARGS__), form("s8", s8, __VA_ARGS__), form("s16", s16, __VA_ARGS__), \
    form("s32", s32, __VA_ARGS__), form("s64", s64, __VA_ARGS__)

#define TO_INT(type, D, source, S) \
    {"cvt." type "." source, apply<Convert, D, S>}, \
    {"cvt.sat." type "." source, apply<ClampInteger<D>, D, S>}

#define PLAIN(head, tail, ...) {head tail, __VA_ARGS__}
#define NEAREST(head, tail, ...) {head ".rn" tail, __VA_ARGS__}
#define FROM_INT(source, S, type, D) \
    NEAREST("cvt", "." type "." source, apply<FromInteger<D, false>, D, S>), \
    NEAREST("cvt", ".sat." type "." source, apply<FromInteger<D, true>, D, S>), \
    CYRT_DIRECTED("cvt", "." type "." source, apply<FromIntegerDirected<D, false>, D, S>), \
    CYRT_DIRECTED("cvt", ".sat." type "." source, apply<FromIntegerDirected<D, true>, D, S>)

#define ROUND_TO_INT(type, D, mode, Round, ftz, source, Source) \
    {"cvt." mode ftz "." type source, apply<ToInteger<Source, Round, D>, D, Source::Cell>}, \
    {"cvt." mode ftz ".sat." type source, apply<ToInteger<Source, Round, D>, D, Source::Cell>}
#define FROM_FLOAT(...) \
    INTEGERS(ROUND_TO_INT, "rni", ToNearest, __VA_ARGS__), \
    INTEGERS(ROUND_TO_INT, "rzi", ToZero, __VA_ARGS__), \
    INTEGERS(ROUND_TO_INT, "rmi", Down, __VA_ARGS__), \
    INTEGERS(ROUND_TO_INT, "rpi", Up, __VA_ARGS__)

#define FLOAT(form, head, types, Source, Round, D, Ftz) \
    form(head, types, apply<ToFloat<Source, Round, D, Ftz, false>, D, Source::Cell>), \
    form(head, ".sat" types, apply<ToFloat<Source, Round, D, Ftz, true>, D, Source::Cell>)
#define IN_PLACE(mode, Round) \
    FLOAT(PLAIN, "cvt" mode, ".f32.f32", F32<false>, Round, float, false), \
    FLOAT(PLAIN, "cvt" mode ".ftz", ".f32.f32", F32<true>, Round, float, true), \
    FLOAT(PLAIN, "cvt" mode, ".f64.f64", F64, Round, double, false)

constexpr HandlerEntry entries[] = {
    INTEGERS(TO_INT, "u8", u8), INTEGERS(TO_INT, "u16", u16), INTEGERS(TO_INT, "u32", u32),
    INTEGERS(TO_INT, "u64", u64), INTEGERS(TO_INT, "s8", s8), INTEGERS(TO_INT, "s16", s16),
    INTEGERS(TO_INT, "s32", s32), INTEGERS(TO_INT, "s64", s64),

    INTEGERS(FROM_INT, "f32", float), INTEGERS(FROM_INT, "f64", double),

    FROM_FLOAT("", ".f32", F32<false>), FROM_FLOAT(".ftz", ".f32", F32<true>),
    FROM_FLOAT("", ".f64", F64), FROM_FLOAT("", ".f16", F16<Half>),
    FROM_FLOAT("", ".bf16", F16<BFloat>),

    IN_PLACE("", Same), IN_PLACE(".rni", ToNearest), IN_PLACE(".rzi", ToZero),
    IN_PLACE(".rmi", Down), IN_PLACE(".rpi", Up),

    FLOAT(PLAIN, "cvt", ".f64.f32", F32<false>, Same, double, false),
    FLOAT(PLAIN, "cvt.ftz", ".f64.f32", F32<true>, Same, double, false),
    FLOAT(CYRT_ROUNDED, "cvt", ".f32.f64", F64, Same, float, false),
    FLOAT(CYRT_ROUNDED, "cvt", ".ftz.f32.f64", F64, Same, float, true),

    {"cvt.f32.f16", widen<Half, false>}, {"cvt.sat.f32.f16", widen<Half, true>},
    {"cvt.ftz.f32.f16", widen<Half, false>}, {"cvt.ftz.sat.f32.f16", widen<Half, true>},
    {"cvt.f32.bf16", widen<BFloat, false>}, {"cvt.sat.f32.bf16", widen<BFloat, true>},
    {"cvt.ftz.f32.bf16", apply<ToFloat<F16<BFloat>, Same, float, true, false>, float, u32>},
    FLOAT(PLAIN, "cvt", ".f64.f16", F16<Half>, Same, double, false),
    FLOAT(PLAIN, "cvt", ".f64.bf16", F16<BFloat>, Same, double, false),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(convert, entries)

}  // namespace cyrt::emu
