// atom and red.
//
// Blocks of a grid run on several host threads, so shared device memory is changed with the host's
// atomic instructions. A cluster runs on one thread, so its blocks' shared memory needs none.
#include <cmath>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "exec/memory_forms.hpp"
#include "exec/narrow_floats.hpp"

namespace cyrt::emu {

namespace {

using ptx::Type;

// --- the layout of a value in memory ----------------------------------------------------------

template <typename Narrow>
struct Pair {  // f16x2, bf16x2
    Narrow low, high;
};

template <size_t size> struct BitsOf;
template <> struct BitsOf<2> {
    using type = uint16_t;
};
template <> struct BitsOf<4> {
    using type = uint32_t;
};
template <> struct BitsOf<8> {
    using type = uint64_t;
};
template <> struct BitsOf<16> {
    using type = Wide;
};

template <typename To, typename From>
To same_bits(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits under another type");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// --- operations -------------------------------------------------------------------------------
// of(old, b, c) is the new value.

struct Add {
    template <typename T> static T of(T old, T b) { return T(old + b); }
};
struct Min {
    template <typename T> static T of(T old, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return std::signbit(old) && old == b ? old : std::fmin(old, b);
        else
            return b < old ? b : old;
    }
};
struct Max {
    template <typename T> static T of(T old, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return std::signbit(old) && old == b ? b : std::fmax(old, b);
        else
            return old < b ? b : old;
    }
};
struct And {
    template <typename T> static T of(T old, T b) { return old & b; }
};
struct Or {
    template <typename T> static T of(T old, T b) { return old | b; }
};
struct Xor {
    template <typename T> static T of(T old, T b) { return old ^ b; }
};
struct Increment {
    template <typename T> static T of(T old, T b) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
    template <typename T> static T of(T old, T b) { return old == 0 || old > b ? b : old - 1; }
};
struct Exchange {
    template <typename T> static T of(T, T b) { return b; }
};
struct CompareAndSwap {
    static bool equal(const Wide& a, const Wide& b) { return a.low == b.low && a.high == b.high; }
    template <typename T> static bool equal(T a, T b) { return a == b; }
    template <typename T> static T of(const T& old, const T& b, const T& c) {
        return equal(old, b) ? c : old;
    }
};

template <typename Op, typename T>
T compute(T old, T b) {
    if constexpr (std::is_arithmetic_v<T>)
        return Op::of(old, b);
    else  // narrow formats compute in single precision and round once
        return T::from(Op::of(old.to_float(), b.to_float()));
}
template <typename Op, typename Narrow>
Pair<Narrow> compute(Pair<Narrow> old, Pair<Narrow> b) {
    return {compute<Op>(old.low, b.low), compute<Op>(old.high, b.high)};
}

float flush(float value) {
    return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

// --- changing memory --------------------------------------------------------------------------

// 16-byte atomic instructions are not available everywhere: addresses share these locks.
std::mutex& wide_lock(uint64_t host) {
    static std::mutex locks[64];
    return locks[host / sizeof(Wide) % 64];
}

template <bool by_threads, typename Bits, typename Change>
Bits change_memory(uint64_t host, const Change& change) {
    Bits* const at = reinterpret_cast<Bits*>(host);
    if constexpr (!by_threads) {
        const Bits old = *at;
        *at = change(old);
        return old;
    } else if constexpr (std::is_same_v<Bits, Wide>) {
        const std::lock_guard<std::mutex> hold(wide_lock(host));
        return change_memory<false, Wide>(host, change);
    } else {
        Bits old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, change(old), true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
        return old;
    }
}

// The new value of one lane in memory.
template <bool by_threads, typename Op, typename Value, typename Bits>
Bits next(const Bits& old, const Bits& b, const Bits& c) {
    if constexpr (std::is_same_v<Op, CompareAndSwap>) {
        return Op::of(old, b, c);
    } else if constexpr (std::is_same_v<Op, Exchange>) {
        return b;
    } else {
        // In device memory, not in shared memory, f32 sums flush subnormal values.
        const Value x = same_bits<Value>(old), y = same_bits<Value>(b);
        if constexpr (by_threads && std::is_same_v<Value, float>)
            return same_bits<Bits>(flush(compute<Op>(flush(x), flush(y))));
        else
            return same_bits<Bits>(compute<Op>(x, y));
    }
}

template <bool by_threads, typename Op, typename Value, typename Bits>
Bits update(uint64_t host, const Bits& b, const Bits& c) {
    if constexpr (by_threads && std::is_same_v<Op, Add> && std::is_integral_v<Value>)
        return __atomic_fetch_add(reinterpret_cast<Bits*>(host), b, __ATOMIC_SEQ_CST);
    else
        return change_memory<by_threads, Bits>(
            host, [&](Bits old) { return next<by_threads, Op, Value, Bits>(old, b, c); });
}

bool all_at_one_place(const Warp& warp, const HostAddresses& at) {
    const uint64_t first = at.lane[first_lane(warp.active)];
    uint64_t differs = 0;
    for (int lane = 0; lane < kWarpSize; ++lane)
        differs |= warp.lane_on[lane] ? at.lane[lane] ^ first : 0;
    return differs == 0;
}

// All lanes change one value, as in a sum or a counter: memory is changed once.
template <bool by_threads, typename Op, typename Value, typename Bits, typename Cell>
void update_together(const Warp& warp, uint64_t host, const Cell* b, const Cell* c, Cell* d) {
    Cell seen[kWarpSize];
    change_memory<by_threads, Bits>(host, [&](Bits value) {
        for_lanes(warp.active, [&](int lane) {
            seen[lane] = value;
            value = next<by_threads, Op, Value, Bits>(value, Bits(b[lane]), Bits(c[lane]));
        });
        return value;
    });
    if (d) for_lanes(warp.active, [&](int lane) { d[lane] = seen[lane]; });
}

constexpr int kMostElements = 8;  // elements of the longest vector

// Lanes are processed in lane order; a vector's elements are separate accesses. All its values are
// read before a result is written: they may be in the same registers.
template <AddressKind kind, typename Op, typename Value>
void atomic(Warp& warp, const Inst& inst) {
    if (warp.active == 0) return;
    using Bits = typename BitsOf<sizeof(Value)>::type;
    using Cell = std::conditional_t<sizeof(Value) == 2, uint32_t, Bits>;
    constexpr bool by_threads = kind != AddressKind::window;
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    HostAddresses at;
    locate<kind>(warp, inst, op, Access::update, at);
    const bool together = all_at_one_place(warp, at);
    alignas(64) Cell held[kMostElements][kWarpSize];
    if (op.count > 1)
        for (int e = 0; e < op.count; ++e)
            std::memcpy(held[e], warp.slots + op.values[e], sizeof held[e]);
    for (int e = 0; e < op.count; ++e) {
        Cell* d = op.vector[e] == kNoSlot ? nullptr : cells<Cell>(warp, op.vector[e]);
        const Cell* b = op.count > 1 ? held[e] : cells<Cell>(warp, op.values[e]);
        const Cell* c = std::is_same_v<Op, CompareAndSwap> ? cells<Cell>(warp, inst.s[2]) : b;
        const uint64_t offset = uint64_t(e) * sizeof(Value);
        if (together) {
            update_together<by_threads, Op, Value, Bits>(
                warp, at.lane[first_lane(warp.active)] + offset, b, c, d);
            continue;
        }
        for_lanes(warp.active, [&](int lane) {
            const Bits old = update<by_threads, Op, Value, Bits>(at.lane[lane] + offset,
                                                                 Bits(b[lane]), Bits(c[lane]));
            if (d) d[lane] = old;
        });
    }
}

template <typename Op, typename Value>
Handler in(ptx::Space space) {
    switch (address_kind(space)) {
    case AddressKind::window: return atomic<AddressKind::window, Op, Value>;
    case AddressKind::device: return atomic<AddressKind::device, Op, Value>;
    default: return atomic<AddressKind::generic, Op, Value>;
    }
}

template <typename Op>
Handler bitwise(const MemoryForm& form) {
    switch (ptx::size_of(form.type)) {
    case 4: return in<Op, uint32_t>(form.space);
    case 8: return in<Op, uint64_t>(form.space);
    default: return nullptr;
    }
}

template <typename Op>
Handler narrow(const MemoryForm& form) {
    switch (form.type) {
    case Type::f16: return in<Op, Half>(form.space);
    case Type::bf16: return in<Op, Bfloat>(form.space);
    case Type::f16x2: return in<Op, Pair<Half>>(form.space);
    case Type::bf16x2: return in<Op, Pair<Bfloat>>(form.space);
    default: return nullptr;
    }
}

Handler add(const MemoryForm& form) {
    switch (form.type) {
    case Type::u32:
    case Type::s32: return in<Add, uint32_t>(form.space);
    case Type::u64:
    case Type::s64: return in<Add, uint64_t>(form.space);
    case Type::f32: return in<Add, float>(form.space);
    case Type::f64: return in<Add, double>(form.space);
    default: return narrow<Add>(form);
    }
}

template <typename Op>
Handler extremum(const MemoryForm& form) {
    switch (form.type) {
    case Type::u32: return in<Op, uint32_t>(form.space);
    case Type::s32: return in<Op, int32_t>(form.space);
    case Type::u64: return in<Op, uint64_t>(form.space);
    case Type::s64: return in<Op, int64_t>(form.space);
    default: return narrow<Op>(form);
    }
}

template <typename Op>
Handler swap(const MemoryForm& form) {
    switch (ptx::size_of(form.type)) {
    case 2: return in<Op, uint16_t>(form.space);
    case 16: return in<Op, Wide>(form.space);
    default: return bitwise<Op>(form);
    }
}

}  // namespace

Handler find_atomic_handler(const MemoryForm& form) {
    const std::string& name = form.operation;
    // Vectors are floating-point values in device memory.
    const bool of_floats = form.type == Type::f32 || form.type == Type::f16 ||
                           form.type == Type::f16x2 || form.type == Type::bf16 ||
                           form.type == Type::bf16x2;
    if (form.count > 1 && (!of_floats || form.space == ptx::Space::shared)) return nullptr;
    if (name == "add") return add(form);
    if (name == "min") return extremum<Min>(form);
    if (name == "max") return extremum<Max>(form);
    if (name == "and") return bitwise<And>(form);
    if (name == "or") return bitwise<Or>(form);
    if (name == "xor") return bitwise<Xor>(form);
    if (name == "exch") return swap<Exchange>(form);
    if (name == "cas") return swap<CompareAndSwap>(form);
    if (form.type != Type::u32) return nullptr;
    if (name == "inc") return in<Increment, uint32_t>(form.space);
    if (name == "dec") return in<Decrement, uint32_t>(form.space);
    return nullptr;
}

}  // namespace cyrt::emu
