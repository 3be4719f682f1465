#include "exec/moves.hpp"

#include <cstring>
#include <string>
#include <type_traits>

#include "exec/context.hpp"
#include "exec/lanes.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

struct alignas(16) Bits128 {
    uint64_t lo, hi;
};

// Writes f(lane) to the active lanes; the loop without a test can be vectorised.
template <typename Cell, typename F>
inline void each(Warp& warp, uint32_t slot, F f) {
    Cell* out = cells<Cell>(warp, slot);
    if (warp.active == kFullMask) {
        for (int lane = 0; lane < kWarpSize; ++lane) out[lane] = f(lane);
    } else {
        for_lanes(warp.active, [&](int lane) { out[lane] = f(lane); });
    }
}

template <typename From, typename To>
void resize(Warp& warp, const Inst& inst) {
    const From* in = cells<From>(warp, inst.s[0]);
    each<To>(warp, inst.d[0], [=](int lane) { return To(in[lane]); });
}

template <typename From, typename To>
void resize_from_wide(Warp& warp, const Inst& inst) {
    const Bits128* in = cells<Bits128>(warp, inst.s[0]);
    each<To>(warp, inst.d[0], [=](int lane) { return To(From(in[lane].lo)); });
}

template <typename From>
void resize_to_wide(Warp& warp, const Inst& inst) {
    const From* in = cells<From>(warp, inst.s[0]);
    each<Bits128>(warp, inst.d[0], [=](int lane) {
        const auto value = int64_t(in[lane]);
        return Bits128{uint64_t(value), From(-1) < 0 && value < 0 ? ~0ull : 0};
    });
}

// PTX is little endian, and so is every host this runs on: a cell's low bytes come first.
template <typename To, int Width, int Count>
void pack(Warp& warp, const Inst& inst) {
    constexpr int kCell = Width <= 4 ? 4 : 8;
    const std::byte* in[Count];
    for (int i = 0; i < Count; ++i) in[i] = warp.slots + inst.s[i];
    each<To>(warp, inst.d[0], [&](int lane) {
        To out{};
        for (int i = 0; i < Count; ++i)
            std::memcpy(reinterpret_cast<std::byte*>(&out) + i * Width, in[i] + lane * kCell,
                        Width);
        return out;
    });
}

template <int FromCell, int Width, int Index>
void extract(Warp& warp, const Inst& inst) {
    const std::byte* in = warp.slots + inst.s[0] + Index * Width;
    using Cell = std::conditional_t<Width == 8, uint64_t, uint32_t>;
    each<Cell>(warp, inst.d[0], [=](int lane) {
        Cell out = 0;
        std::memcpy(&out, in + lane * FromCell, Width);
        return out;
    });
}

template <int FromCell, int Width>
Handler extract_from(uint32_t index) {
    switch (index) {
    case 0: return extract<FromCell, Width, 0>;
    case 1: return extract<FromCell, Width, 1>;
    case 2: return extract<FromCell, Width, 2>;
    case 3: return extract<FromCell, Width, 3>;
    default: return nullptr;
    }
}

}  // namespace

Handler resize_handler(uint8_t from_cell, uint8_t to_cell, bool is_signed) {
    switch (from_cell * 100 + to_cell) {
    case 404: return resize<uint32_t, uint32_t>;
    case 808: return resize<uint64_t, uint64_t>;
    case 1616: return resize<Bits128, Bits128>;
    case 408: return is_signed ? resize<int32_t, int64_t> : resize<uint32_t, uint64_t>;
    case 804: return resize<uint64_t, uint32_t>;
    case 416: return is_signed ? resize_to_wide<int32_t> : resize_to_wide<uint32_t>;
    case 816: return is_signed ? resize_to_wide<int64_t> : resize_to_wide<uint64_t>;
    case 1604: return resize_from_wide<uint32_t, uint32_t>;
    case 1608: return resize_from_wide<uint64_t, uint64_t>;
    default: return nullptr;
    }
}

Handler pack_handler(uint32_t count, uint32_t width) {
    switch (count * 10 + width) {
    case 21: return pack<uint32_t, 1, 2>;
    case 41: return pack<uint32_t, 1, 4>;
    case 22: return pack<uint32_t, 2, 2>;
    case 42: return pack<uint64_t, 2, 4>;
    case 24: return pack<uint64_t, 4, 2>;
    case 44: return pack<Bits128, 4, 4>;
    case 28: return pack<Bits128, 8, 2>;
    default: return nullptr;
    }
}

Handler extract_handler(uint32_t index, uint32_t width, uint32_t total) {
    if (total <= 4) return width == 1 ? extract_from<4, 1>(index) : extract_from<4, 2>(index);
    if (total == 8) return width == 2 ? extract_from<8, 2>(index) : extract_from<8, 4>(index);
    return width == 4 ? extract_from<16, 4>(index) : extract_from<16, 8>(index);
}

void copy_frame(Warp& warp, const Inst& inst) {
    const WarpContext& context = *warp.context;
    const FrameCopy& copy = context.frame_copies[inst.extra];
    const uint64_t* from = inst.s[0] == kNoSlot ? nullptr : cells<uint64_t>(warp, inst.s[0]);
    const uint64_t* to = inst.s[1] == kNoSlot ? nullptr : cells<uint64_t>(warp, inst.s[1]);
    for_lanes(warp.active, [&](int lane) {
        std::byte* local = context.local + uint64_t(lane) * context.local_stride;
        std::memcpy(local + (to ? to[lane] : 0) + copy.to,
                    local + (from ? from[lane] : 0) + copy.from, copy.bytes);
    });
}

void allocate_stack(Warp& warp, const Inst& inst) {
    const uint64_t* size = cells<uint64_t>(warp, inst.s[0]);
    const uint64_t* align = cells<uint64_t>(warp, inst.s[1]);
    auto* stack = cells<uint64_t>(warp, inst.s[2]);
    auto* out = cells<uint64_t>(warp, inst.d[0]);
    const uint64_t limit = warp.context->stack_limit;
    for_lanes(warp.active, [&](int lane) {
        const uint64_t at = round_up(stack[lane], align[lane] ? align[lane] : 1);
        if (at > limit || size[lane] > limit - at)
            throw FaultSignal{FaultKind::stack_overflow, lane,
                              "alloca of " + std::to_string(size[lane]) +
                                  " bytes: a thread's stack has " +
                                  std::to_string(warp.context->stack_bytes)};
        out[lane] = at;
        stack[lane] = round_up(at + size[lane], uint64_t(16));
    });
}

}  // namespace cyrt::emu
