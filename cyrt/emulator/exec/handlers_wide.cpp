// Arithmetic over several words: add.cc, addc, sub.cc, subc, mad.cc, madc.
#include "exec/handlers_table.hpp"
#include "exec/handler_lanes.hpp"

namespace cyrt::emu {
namespace {

template <class T> struct Carried {
    T value;
    u32 carry;
};

template <class T> CYRT_INLINE Carried<T> sum(T a, T b, u32 carry) {
    const T first = a + b, second = first + carry;
    return {second, u32((first < a) | (second < first))};
}

struct AddC {
    static constexpr u32 initial = 0;
    template <class T> static CYRT_INLINE Carried<T> of(u32 c, T a, T b) { return sum(a, b, c); }
};
// As on hardware, a subtraction is the sum a + ~b + 1, and the flag that sum's carry.
struct SubC {
    static constexpr u32 initial = 1;
    template <class T> static CYRT_INLINE Carried<T> of(u32 c, T a, T b) {
        return sum(a, T(~b), c);
    }
};
struct MadLoC {
    static constexpr u32 initial = 0;
    template <class T> static CYRT_INLINE Carried<T> of(u32 carry, T a, T b, T c) {
        return sum(T(a * b), c, carry);
    }
};
struct MadHiC {
    static constexpr u32 initial = 0;
    static CYRT_INLINE Carried<u32> of(u32 carry, u32 a, u32 b, u32 c) {
        return sum(u32(u64(a) * b >> 32), c, carry);
    }
    static CYRT_INLINE Carried<u64> of(u32 carry, u64 a, u64 b, u64 c) {
        return sum(u64((unsigned __int128)(a)*b >> 64), c, carry);
    }
};
struct MadHiSignedC {
    static constexpr u32 initial = 0;
    static CYRT_INLINE Carried<u32> of(u32 carry, u32 a, u32 b, u32 c) {
        return sum(u32(s64(s32(a)) * s32(b) >> 32), c, carry);
    }
    static CYRT_INLINE Carried<u64> of(u32 carry, u64 a, u64 b, u64 c) {
        return sum(u64((__int128)(s64(a)) * s64(b) >> 64), c, carry);
    }
};

// `Takes` the carry flag, which otherwise counts as Op::initial; `Sets` it.
template <class Op, bool Takes, bool Sets, class T, class... S, size_t... I>
CYRT_INLINE void run_carry(Warp& warp, const Inst& inst, std::index_sequence<I...>) {
    alignas(64) T value[kWarpSize];
    alignas(64) u32 carry[kWarpSize];
    const auto loop = [&](const S*... s) __attribute__((always_inline)) {
        CYRT_LANES {
            const Carried<T> out = Op::of(Takes ? warp.carry[i] : Op::initial, s[i]...);
            value[i] = out.value;
            carry[i] = out.carry;
        }
    };
    loop(cells<S>(warp, inst.s[I])...);
    commit(warp, inst.d[0], value);
    if constexpr (Sets) {
        const u32* on = warp.lane_on;
        CYRT_LANES warp.carry[i] = on[i] ? carry[i] : warp.carry[i];
    }
}
template <class Op, bool Takes, bool Sets, class T, class... S>
void with_carry(Warp& warp, const Inst& inst) {
    run_carry<Op, Takes, Sets, T, S...>(warp, inst, std::index_sequence_for<S...>());
}

// clang-format off: a table, several rows a line
#define SUMS(type, T) \
    {"add.cc." type, with_carry<AddC, false, true, T, T, T>}, \
    {"addc." type, with_carry<AddC, true, false, T, T, T>}, \
    {"addc.cc." type, with_carry<AddC, true, true, T, T, T>}, \
    {"sub.cc." type, with_carry<SubC, false, true, T, T, T>}, \
    {"subc." type, with_carry<SubC, true, false, T, T, T>}, \
    {"subc.cc." type, with_carry<SubC, true, true, T, T, T>}
#define MADS(part, type, Op, T) \
    {"mad." part ".cc." type, with_carry<Op, false, true, T, T, T, T>}, \
    {"madc." part "." type, with_carry<Op, true, false, T, T, T, T>}, \
    {"madc." part ".cc." type, with_carry<Op, true, true, T, T, T, T>}

constexpr HandlerEntry entries[] = {
    SUMS("u32", u32), SUMS("s32", u32), SUMS("b32", u32),
    SUMS("u64", u64), SUMS("s64", u64), SUMS("b64", u64),
    MADS("lo", "u32", MadLoC, u32), MADS("lo", "s32", MadLoC, u32),
    MADS("lo", "u64", MadLoC, u64), MADS("lo", "s64", MadLoC, u64),
    MADS("hi", "u32", MadHiC, u32), MADS("hi", "s32", MadHiSignedC, u32),
    MADS("hi", "u64", MadHiC, u64), MADS("hi", "s64", MadHiSignedC, u64),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(wide, entries)

}  // namespace cyrt::emu
