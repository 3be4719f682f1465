// ld and st, by the target of the address, the element's type in memory and the cells' type: chosen
// by select_memory_handler, which knows the forms of PTX.
#include <cstring>

#include "exec/addressing.hpp"
#include "exec/handlers_table.hpp"

namespace cyrt::emu {
namespace {

struct Wide {  // b128
    uint64_t low, high;
};

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

// One element of every lane: `Stored` in memory, sign- or zero-extended to `Cell`.
template <typename Stored, typename Cell, typename AddressOf>
void load_element(const Warp& warp, Cell* to, AddressOf address_of) {
    if (warp.active == kFullMask) {
        for (int i = 0; i < kWarpSize; ++i) to[i] = Cell(read_at<Stored>(address_of(i)));
        return;
    }
    alignas(64) Cell values[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) values[i] = Cell(read_at<Stored>(address_of(i)));
    for (int i = 0; i < kWarpSize; ++i) to[i] = warp.lane_on[i] ? values[i] : to[i];
}

template <typename Stored, typename Cell, typename AddressOf>
void load_elements(const Warp& warp, const MemoryOp& op, AddressOf address_of) {
    for (int e = 0; e < op.count; ++e) {
        if (op.vector[e] == kNoSlot) continue;
        const uint64_t offset = uint64_t(e) * sizeof(Stored);
        load_element<Stored>(warp, cells<Cell>(warp, op.vector[e]),
                             [=](int lane) { return address_of(lane) + offset; });
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
    if (const AddressRun run = find_run<kind>(warp, inst, op, Access::read); run.host != 0) {
        for (int e = 0; e < op.count; ++e)
            if (op.vector[e] != kNoSlot)
                load_run<Stored>(cells<Cell>(warp, op.vector[e]), run,
                                 uint64_t(e) * sizeof(Stored));
    } else if (warp.active != 0) {
        SharedAddresses near;
        HostAddresses far;
        if (kind == AddressKind::window && locate_shared(warp, inst, op, near)) {
            load_elements<Stored, Cell>(warp, op, [&near](int lane) {
                return reinterpret_cast<uint64_t>(near.host) + near.at[lane];
            });
        } else {
            locate<kind>(warp, inst, op, Access::read, far);
            load_elements<Stored, Cell>(warp, op, [&far](int lane) { return far.lane[lane]; });
        }
    }
    if (op.acquire) __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

// --- st -------------------------------------------------------------------------------------

// Lanes write in lane order: of several writes to one address the last one remains.
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

template <typename Stored, typename Cell, typename AddressOf>
void store_elements(const Warp& warp, const MemoryOp& op, AddressOf address_of) {
    for (int e = 0; e < op.count; ++e) {
        const Cell* from = cells<Cell>(warp, op.vector[e]);
        const uint64_t offset = uint64_t(e) * sizeof(Stored);
        if (warp.active == kFullMask) {
            for (int i = 0; i < kWarpSize; ++i) write_at(address_of(i) + offset, Stored(from[i]));
        } else {
            for_lanes(warp.active,
                      [&](int lane) { write_at(address_of(lane) + offset, Stored(from[lane])); });
        }
    }
}

template <AddressKind kind, typename Stored, typename Cell>
void store(Warp& warp, const Inst& inst) {
    const MemoryOp& op = warp.context->memory_ops[inst.extra];
    if (op.release) __atomic_thread_fence(__ATOMIC_RELEASE);
    if (const AddressRun run = find_run<kind>(warp, inst, op, Access::write); run.host != 0) {
        for (int e = 0; e < op.count; ++e)
            store_run<Stored>(cells<Cell>(warp, op.vector[e]), run, uint64_t(e) * sizeof(Stored));
    } else if (warp.active != 0) {
        SharedAddresses near;
        HostAddresses far;
        if (kind == AddressKind::window && locate_shared(warp, inst, op, near)) {
            store_elements<Stored, Cell>(warp, op, [&near](int lane) {
                return reinterpret_cast<uint64_t>(near.host) + near.at[lane];
            });
        } else {
            locate<kind>(warp, inst, op, Access::write, far);
            store_elements<Stored, Cell>(warp, op, [&far](int lane) { return far.lane[lane]; });
        }
    }
}

// clang-format off: a table, several rows a line
#define ACCESS(opcode, run, stored, Stored, cell, Cell) \
    {opcode ".window." stored "." cell, run<AddressKind::window, Stored, Cell>}, \
    {opcode ".device." stored "." cell, run<AddressKind::device, Stored, Cell>}, \
    {opcode ".generic." stored "." cell, run<AddressKind::generic, Stored, Cell>}
#define UNSIGNED(opcode, run) \
    ACCESS(opcode, run, "u8", uint8_t, "b32", uint32_t), \
    ACCESS(opcode, run, "u8", uint8_t, "b64", uint64_t), \
    ACCESS(opcode, run, "u16", uint16_t, "b32", uint32_t), \
    ACCESS(opcode, run, "u16", uint16_t, "b64", uint64_t), \
    ACCESS(opcode, run, "u32", uint32_t, "b32", uint32_t), \
    ACCESS(opcode, run, "u32", uint32_t, "b64", uint64_t), \
    ACCESS(opcode, run, "u64", uint64_t, "b64", uint64_t), \
    ACCESS(opcode, run, "u128", Wide, "b128", Wide)

constexpr HandlerEntry entries[] = {
    UNSIGNED("ld", load),
    ACCESS("ld", load, "s8", int8_t, "b32", uint32_t),
    ACCESS("ld", load, "s8", int8_t, "b64", uint64_t),
    ACCESS("ld", load, "s16", int16_t, "b32", uint32_t),
    ACCESS("ld", load, "s16", int16_t, "b64", uint64_t),
    ACCESS("ld", load, "s32", int32_t, "b64", uint64_t),
    UNSIGNED("st", store),
};
// clang-format on

}  // namespace

CYRT_EMU_EXPORT(memory, entries)

}  // namespace cyrt::emu
