#include "exec/memory_ops.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

#include "exec/addressing.hpp"
#include "exec/handlers.hpp"
#include "exec/memory_forms.hpp"

namespace cyrt::emu {

namespace {

using ptx::Space;
using ptx::Type;

// --- ld and st ----------------------------------------------------------------------------------

// The handler's name contains the target, the element's type in memory and the lanes' cell type.
Handler access_handler(const char* opcode, Type type, Space space, int cell) {
    const uint32_t size = ptx::size_of(type);
    const bool extends_sign = ptx::is_signed(type) && int(size) < cell && opcode[0] == 'l';
    std::string name = opcode;
    switch (address_kind(space)) {
    case AddressKind::window: name += ".window"; break;
    case AddressKind::device: name += ".device"; break;
    default: name += ".generic"; break;
    }
    name += (extends_sign ? ".s" : ".u") + std::to_string(8 * size);
    return find_handler(name + ".b" + std::to_string(8 * cell));
}

// --- addresses as values ----------------------------------------------------------------------

// The generic address at which a state space begins.
uint64_t first_address(Space space) {
    switch (space) {
    case Space::shared: return kSharedWindow;
    case Space::local: return kLocalWindow;
    case Space::param: return kParamWindow;
    default: return 0;  // device memory: its addresses are generic ones
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
    const uint64_t window = first_address(form.space);
    if (window == 0) return convert_address<uint64_t, ~0ull, 0>;
    if (to_space) return convert_address<uint64_t, kLow, 0>;
    if (window == kSharedWindow) return convert_address<uint64_t, kLow, kSharedWindow>;
    if (window == kLocalWindow) return convert_address<uint64_t, kLow, kLocalWindow>;
    return convert_address<uint64_t, kLow, kParamWindow>;
}

// --- addresses in a cluster -------------------------------------------------------------------

// The address of the same location in the shared memory of the block of rank s[2].
template <typename Cell>
void map_to_rank(Warp& warp, const Inst& inst) {
    Cell* to = cells<Cell>(warp, inst.d[0]);
    const Cell* from = cells<Cell>(warp, inst.s[1]);
    const Cell* rank = cells<Cell>(warp, inst.s[2]);
    constexpr Cell kMost = Cell(kRankMask >> kRankShift);
    for (int i = 0; i < kWarpSize; ++i) {
        // no block has this rank: an access faults
        const Cell field = std::min(Cell(rank[i] + 1), kMost);
        to[i] = warp.lane_on[i] ? Cell((from[i] & ~Cell(kRankMask)) | field << kRankShift) : to[i];
    }
}

uint32_t rank_of(uint64_t address, const WarpContext& context) {
    const uint32_t field = uint32_t((address & kRankMask) >> kRankShift);
    return field == 0 ? context.rank : field - 1;
}

template <typename Cell>
void find_rank(Warp& warp, const Inst& inst) {
    Cell* to = cells<Cell>(warp, inst.d[0]);
    const Cell* from = cells<Cell>(warp, inst.s[1]);
    for (int i = 0; i < kWarpSize; ++i)
        to[i] = warp.lane_on[i] ? Cell(rank_of(from[i], *warp.context)) : to[i];
}

// --- isspacep -----------------------------------------------------------------------------------

// Device memory: every address outside of the windows. Constant variables are in it too.
constexpr uint64_t kNoWindow = 0;

template <uint64_t window, bool only_own>
void is_in_space(Warp& warp, const Inst& inst) {
    uint64_t* to = cells<uint64_t>(warp, inst.d[0]);  // the result is a predicate, 64 bits wide
    const uint64_t* from = cells<uint64_t>(warp, inst.s[1]);
    for (int i = 0; i < kWarpSize; ++i) {
        const uint64_t at = from[i] & kWindowMask;
        const bool in_window = at == kSharedWindow || at == kLocalWindow || at == kParamWindow;
        const bool is_own = !only_own || rank_of(from[i], *warp.context) == warp.context->rank;
        const bool holds = window == kNoWindow ? !in_window : at == window && is_own;
        to[i] = warp.lane_on[i] ? (holds ? 0xffffffffull : 0) : to[i];
    }
}

template <typename Cell>
void zero(Warp& warp, const Inst& inst) {
    Cell* to = cells<Cell>(warp, inst.d[0]);
    for (int i = 0; i < kWarpSize; ++i) to[i] = warp.lane_on[i] ? Cell(0) : to[i];
}

Handler isspacep_handler(const MemoryForm& form) {
    switch (form.space) {
    case Space::shared:
        return form.in_cluster ? is_in_space<kSharedWindow, false>
                               : is_in_space<kSharedWindow, true>;
    case Space::local: return is_in_space<kLocalWindow, false>;
    case Space::param: return is_in_space<kParamWindow, false>;
    case Space::global: return is_in_space<kNoWindow, false>;
    case Space::constant: return zero<uint64_t>;
    default: return nullptr;
    }
}

// --- fences and hints ---------------------------------------------------------------------------

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
    if (opcode == "createpolicy") return zero<uint64_t>;  // hints and their policies are ignored

    ptx::Instruction without_to = source;
    const bool to_space =
        opcode == "cvta" && !without_to.modifiers.empty() && without_to.modifiers.front() == "to";
    if (to_space) without_to.modifiers.erase(without_to.modifiers.begin());
    MemoryForm form;
    if (!read_memory_form(without_to, form)) return nullptr;
    if (opcode == "cvta") return cvta_handler(form, to_space);
    if (opcode == "isspacep") return isspacep_handler(form);
    if (form.type != Type::u32 && form.type != Type::u64) return nullptr;
    if (opcode == "mapa")
        return form.type == Type::u32 ? map_to_rank<uint32_t> : map_to_rank<uint64_t>;
    return form.type == Type::u32 ? find_rank<uint32_t> : find_rank<uint64_t>;  // getctarank
}

}  // namespace

bool select_memory_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op) {
    const std::string_view opcode = source.opcode;
    const bool loads = opcode == "ld" || opcode == "ldu";
    const bool stores = opcode == "st";
    const bool updates = opcode == "atom" || opcode == "red";
    if (!loads && !stores && !updates && opcode != "mbarrier") {
        inst.run = other_handler(source);
        return inst.run != nullptr;
    }
    if (opcode == "mbarrier") {
        inst.run = find_mbarrier_handler(source, op);
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
    inst.run = updates ? find_atomic_handler(form)
                       : access_handler(loads ? "ld" : "st", form.type, form.space, op.cell);
    return inst.run != nullptr;
}

}  // namespace cyrt::emu
