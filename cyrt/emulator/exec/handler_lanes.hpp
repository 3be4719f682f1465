// Loops over the lanes of a warp, used by the register-to-register handlers. Everything here is
// local to the file that includes it (exec/handlers_table.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "exec/inst.hpp"

#define CYRT_INLINE inline __attribute__((always_inline))
#define CYRT_NOINLINE __attribute__((noinline))

// Lanes are independent: a result's slot equals a source's or does not overlap it.
#if defined(__clang__)
#define CYRT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CYRT_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define CYRT_LANES CYRT_INDEPENDENT for (int i = 0; i < kWarpSize; ++i)

namespace cyrt::emu {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

// The layout of a value of type T in its cell: 8- and 16-bit integers in a 32-bit one.
template <class T, size_t = sizeof(T)> struct CellOf {
    using type = T;
};
template <class T> struct CellOf<T, 1> {
    using type = u32;
};
template <class T> struct CellOf<T, 2> {
    using type = u32;
};
template <class T> using Cell = typename CellOf<T>::type;

template <class T> CYRT_INLINE Cell<T>* cells(const Warp& warp, u32 slot) {
    return static_cast<Cell<T>*>(__builtin_assume_aligned(warp.slots + slot, 64));
}

template <class To, class From> CYRT_INLINE To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same bits under another type");
    To out;
    std::memcpy(&out, &value, sizeof out);
    return out;
}

// Op::of over the lanes: results of type D from sources of types S.
template <class Op, class D, class... S> struct Each {
    static CYRT_INLINE void run(const Warp& warp, Cell<D>* d, const Cell<S>*... s) {
        if (warp.active == kFullMask) {
            CYRT_LANES d[i] = Cell<D>(D(Op::of(S(s[i])...)));
            return;
        }
        const u32* on = warp.lane_on;
        CYRT_LANES {
            const Cell<D> value = Cell<D>(D(Op::of(S(s[i])...)));
            d[i] = on[i] ? value : d[i];
        }
    }
    template <size_t... I>
    static CYRT_INLINE void decode(const Warp& warp, const Inst& inst, std::index_sequence<I...>) {
        run(warp, cells<D>(warp, inst.d[0]), cells<S>(warp, inst.s[I])...);
    }
};

// The handler d = Op::of(s...).
template <class Op, class D, class... S> void apply(Warp& warp, const Inst& inst) {
    Each<Op, D, S...>::decode(warp, inst, std::index_sequence_for<S...>());
}

// Stores the results computed for all lanes into the cells of the active lanes.
template <class T> CYRT_INLINE void commit(const Warp& warp, u32 slot, const T* values) {
    T* d = cells<T>(warp, slot);
    if (warp.active == kFullMask) {
        std::memcpy(d, values, sizeof(T) * kWarpSize);
        return;
    }
    const u32* on = warp.lane_on;
    CYRT_LANES d[i] = on[i] ? values[i] : d[i];
}

}  // namespace
}  // namespace cyrt::emu
