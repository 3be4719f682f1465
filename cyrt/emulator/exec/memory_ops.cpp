#include "exec/memory_ops.hpp"

#include <atomic>
#include <cstring>
#include <string_view>

#include "exec/addressing.hpp"
#include "exec/memory_forms.hpp"

namespace cyrt::emu {

namespace {

using ptx::Space;
using ptx::Type;

template <typename T>
T read_at(uint64_t host) {
    T value;
    std::memcpy(&value, reinterpret_cast<const void*>(host), sizeof value);
    return value;
}

template <typename T>
void write_at(uint64_t host, T value) {
    std::memcpy(reinterpret_cast<void*>(host), &value, sizeof value);
}

// --- ld -------------------------------------------------------------------------------------

// One element of every lane: `Stored` in memory, extended to `Cell` as its sign says.
template <typename Stored, typename Cell>
void load_element(const Warp& warp, Cell* to, const HostAddresses& from, uint64_t offset) {
    if (warp.active == kFullMask) {
        for (int i = 0; i < kWarpSize; ++i)
            to[i] = Cell(read_at<Stored>(from.lane[i] + offset));
        return;
    }
    for (int i = 0; i < kWarpSize; ++i) {
        const Cell value = Cell(read_at<Stored>(from.lane[i] + offset));
        to[i] = warp.lane_on[i] ? value : to[i];
    }
}

template <typename Stored, typename Cell>
void load_run(Cell* to, const AddressRun& run, uint64_t offset) {
    const uint64_t host = run.host + offset;
    if (run.step == 0) {
        const Cell value = Cell(read_at<Stored>(host));
        for (int i = 0; i < kWarpSize; ++i) to[i] = value;
    } else if (run.step == sizeof(Stored)) {
        alignas(64) Stored values[kWarpSize];
        std::memcpy(values, reinterpret_cast<const void*>(host), sizeof values);
        for (int i = 0; i < kWarpSize; ++i) to[i] = Cell(values[i]);
    } else {
        for (int i = 0; i < kWarpSize; ++i)
            to[i] = Cell(read_at<Stored>(host + uint64_t(i) * run.step));
    }
}

template <AddressKind kind, typename Stored, typename Cell>
void load(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    if (const AddressRun run = find_run<kind>(warp, inst, op); run.host != 0) {
        for (int e = 0; e < op.count; ++e)
            if (op.vector[e] != kNoSlot)
                load_run<Stored>(cells<Cell>(warp, op.vector[e]), run,
                                 uint64_t(e) * sizeof(Stored));
    } else if (warp.active != 0) {
        HostAddresses from;
        locate<kind>(warp, inst, op, Access::read, from);
        for (int e = 0; e < op.count; ++e)
            if (op.vector[e] != kNoSlot)
                load_element<Stored>(warp, cells<Cell>(warp, op.vector[e]), from,
                                     uint64_t(e) * sizeof(Stored));
    }
    if (op.acquire) std::atomic_thread_fence(std::memory_order_acquire);
}

// --- st -------------------------------------------------------------------------------------

// Lanes write in lane order: of several that write to one address the last one's value stays.
template <typename Stored, typename Cell>
void store_run(const Cell* from, const AddressRun& run, uint64_t offset) {
    const uint64_t host = run.host + offset;
    if (run.step == 0) {
        write_at(host, Stored(from[kWarpSize - 1]));
    } else if (run.step == sizeof(Stored)) {
        alignas(64) Stored values[kWarpSize];
        for (int i = 0; i < kWarpSize; ++i) values[i] = Stored(from[i]);
        std::memcpy(reinterpret_cast<void*>(host), values, sizeof values);
    } else {
        for (int i = 0; i < kWarpSize; ++i)
            write_at(host + uint64_t(i) * run.step, Stored(from[i]));
    }
}

template <AddressKind kind, typename Stored, typename Cell>
void store(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    if (op.release) std::atomic_thread_fence(std::memory_order_release);
    if (const AddressRun run = find_run<kind>(warp, inst, op); run.host != 0) {
        for (int e = 0; e < op.count; ++e)
            store_run<Stored>(cells<Cell>(warp, op.vector[e]), run, uint64_t(e) * sizeof(Stored));
    } else if (warp.active != 0) {
        HostAddresses to;
        locate<kind>(warp, inst, op, Access::write, to);
        for (int e = 0; e < op.count; ++e) {
            const Cell* from = cells<Cell>(warp, op.vector[e]);
            for_lanes(warp.active, [&](int lane) {
                write_at(to.lane[lane] + uint64_t(e) * sizeof(Stored), Stored(from[lane]));
            });
        }
    }
}

template <typename Stored, typename Cell>
Handler load_from(Space space) {
    switch (address_kind(space)) {
    case AddressKind::window: return load<AddressKind::window, Stored, Cell>;
    case AddressKind::device: return load<AddressKind::device, Stored, Cell>;
    default: return load<AddressKind::generic, Stored, Cell>;
    }
}

template <typename Stored, typename Cell>
Handler store_to(Space space) {
    switch (address_kind(space)) {
    case AddressKind::window: return store<AddressKind::window, Stored, Cell>;
    case AddressKind::device: return store<AddressKind::device, Stored, Cell>;
    default: return store<AddressKind::generic, Stored, Cell>;
    }
}

Handler load_handler(Type type, Space space, int cell) {
    const bool wide = cell == 8;
    switch (type) {
    case Type::s8: return wide ? load_from<int8_t, uint64_t>(space)
                               : load_from<int8_t, uint32_t>(space);
    case Type::s16: return wide ? load_from<int16_t, uint64_t>(space)
                                : load_from<int16_t, uint32_t>(space);
    case Type::s32:
        if (wide) return load_from<int32_t, uint64_t>(space);
        break;
    default: break;
    }
    switch (ptx::size_of(type)) {
    case 1: return wide ? load_from<uint8_t, uint64_t>(space) : load_from<uint8_t, uint32_t>(space);
    case 2: return wide ? load_from<uint16_t, uint64_t>(space)
                        : load_from<uint16_t, uint32_t>(space);
    case 4: return wide ? load_from<uint32_t, uint64_t>(space)
                        : load_from<uint32_t, uint32_t>(space);
    case 8: return load_from<uint64_t, uint64_t>(space);
    case 16: return load_from<Wide, Wide>(space);
    default: return nullptr;
    }
}

Handler store_handler(Type type, Space space, int cell) {
    const bool wide = cell == 8;
    switch (ptx::size_of(type)) {
    case 1: return wide ? store_to<uint8_t, uint64_t>(space) : store_to<uint8_t, uint32_t>(space);
    case 2: return wide ? store_to<uint16_t, uint64_t>(space)
                        : store_to<uint16_t, uint32_t>(space);
    case 4: return wide ? store_to<uint32_t, uint64_t>(space)
                        : store_to<uint32_t, uint32_t>(space);
    case 8: return store_to<uint64_t, uint64_t>(space);
    case 16: return store_to<Wide, Wide>(space);
    default: return nullptr;
    }
}

// --- addresses as values ----------------------------------------------------------------------

uint64_t window_of(Space space) {
    switch (space) {
    case Space::shared: return kSharedWindow;
    case Space::local: return kLocalWindow;
    case Space::param: return kParamWindow;
    default: return 0;   // device memory: its addresses are generic ones
    }
}

// d = (s & keep) | set
template <typename Cell, uint64_t keep, uint64_t set>
void convert_address(Warp& warp, const Inst& inst) {
    Cell* to = cells<Cell>(warp, inst.d[0]);
    const Cell* from = cells<Cell>(warp, inst.s[1]);
    for (int i = 0; i < kWarpSize; ++i)
        to[i] = warp.lane_on[i] ? Cell((from[i] & Cell(keep)) | Cell(set)) : to[i];
}

constexpr uint64_t kLow = ~kWindowMask;

Handler cvta_handler(const MemoryForm& form, bool to_space) {
    if (form.type == Type::u32) return convert_address<uint32_t, ~0ull, 0>;
    if (form.type != Type::u64) return nullptr;
    const uint64_t window = window_of(form.space);
    if (window == 0) return convert_address<uint64_t, ~0ull, 0>;
    if (to_space) return convert_address<uint64_t, kLow, 0>;
    if (window == kSharedWindow) return convert_address<uint64_t, kLow, kSharedWindow>;
    if (window == kLocalWindow) return convert_address<uint64_t, kLow, kLocalWindow>;
    return convert_address<uint64_t, kLow, kParamWindow>;
}

// Device memory: whatever lies in no window. Constant variables live there too.
constexpr uint64_t kNoWindow = 0;

template <uint64_t window>
void is_in_space(Warp& warp, const Inst& inst) {
    uint64_t* to = cells<uint64_t>(warp, inst.d[0]);   // of a predicate, 64 bits wide
    const uint64_t* from = cells<uint64_t>(warp, inst.s[1]);
    for (int i = 0; i < kWarpSize; ++i) {
        const uint64_t at = from[i] & kWindowMask;
        const bool in_window = at == kSharedWindow || at == kLocalWindow || at == kParamWindow;
        const bool holds = window == kNoWindow ? !in_window : at == window;
        to[i] = warp.lane_on[i] ? (holds ? 0xffffffffull : 0) : to[i];
    }
}

template <typename Cell>
void zero(Warp& warp, const Inst& inst) {
    Cell* to = cells<Cell>(warp, inst.d[0]);
    for (int i = 0; i < kWarpSize; ++i) to[i] = warp.lane_on[i] ? Cell(0) : to[i];
}

Handler isspacep_handler(Space space) {
    switch (space) {
    case Space::shared: return is_in_space<kSharedWindow>;
    case Space::local: return is_in_space<kLocalWindow>;
    case Space::param: return is_in_space<kParamWindow>;
    case Space::global: return is_in_space<kNoWindow>;
    case Space::constant: return zero<uint64_t>;
    default: return nullptr;
    }
}

// --- what only orders or hints ------------------------------------------------------------------

void fence(Warp&, const Inst&) { std::atomic_thread_fence(std::memory_order_seq_cst); }

void nothing(Warp&, const Inst&) {}

bool has(const ptx::Instruction& source, std::string_view modifier) {
    for (const std::string& text : source.modifiers)
        if (text == modifier) return true;
    return false;
}

Handler other_handler(const ptx::Instruction& source) {
    const std::string_view opcode = source.opcode;
    if (opcode == "membar" || opcode == "fence") return fence;
    if (opcode == "prefetch" || opcode == "prefetchu" || opcode == "discard" ||
        opcode == "applypriority")
        return has(source, "tensormap") ? nullptr : nothing;
    if (opcode == "createpolicy") return zero<uint64_t>;   // hints are ignored, so is their policy

    ptx::Instruction plain = source;
    const bool to_space = opcode == "cvta" && !plain.modifiers.empty() &&
                          plain.modifiers.front() == "to";
    if (to_space) plain.modifiers.erase(plain.modifiers.begin());
    MemoryForm form;
    if (!read_memory_form(plain, form)) return nullptr;
    if (opcode == "cvta") return cvta_handler(form, to_space);
    if (opcode == "isspacep") return isspacep_handler(form.space);
    // A cluster is one block here: its shared memory is the block's own, its rank is 0.
    if (opcode == "mapa")
        return form.type == Type::u32 ? convert_address<uint32_t, ~0ull, 0>
                                      : convert_address<uint64_t, ~0ull, 0>;
    if (opcode == "getctarank")
        return form.type == Type::u32 ? zero<uint32_t> : zero<uint64_t>;
    return nullptr;
}

}  // namespace

bool select_memory_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op) {
    const std::string_view opcode = source.opcode;
    const bool loads = opcode == "ld" || opcode == "ldu";
    const bool stores = opcode == "st";
    const bool updates = opcode == "atom" || opcode == "red";
    if (!loads && !stores && !updates) {
        inst.run = other_handler(source);
        return inst.run != nullptr;
    }
    MemoryForm form;
    if (!read_memory_form(source, form) || !apply_memory_form(form, op)) return false;
    if (form.operation.empty() == updates) return false;
    if (!loads && (form.space == Space::constant || form.space == Space::param)) return false;
    if (op.count == 1) {
        op.vector[0] = stores ? inst.s[1] : inst.d[0];
        op.values[0] = inst.s[1];
    } else if (opcode == "red") {
        for (int e = 0; e < op.count; ++e) {
            op.values[e] = op.vector[e];
            op.vector[e] = kNoSlot;
        }
    }
    inst.run = loads    ? load_handler(form.type, form.space, op.cell)
               : stores ? store_handler(form.type, form.space, op.cell)
                        : find_atomic_handler(form);
    return inst.run != nullptr;
}

}  // namespace cyrt::emu
