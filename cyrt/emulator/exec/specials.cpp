#include "exec/specials.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

#include "exec/lanes.hpp"
#include "exec/limits.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

namespace {

struct Named {
    const char* name;
    Special which;
    ptx::Type type;
};

constexpr ptx::Type u32 = ptx::Type::u32;
constexpr ptx::Type u64 = ptx::Type::u64;

// clang-format off: a table, several rows a line
const Named kNamed[] = {
    {"%tid.x", Special::tid_x, u32}, {"%tid.y", Special::tid_y, u32},
    {"%tid.z", Special::tid_z, u32}, {"%tid.w", Special::zero, u32},
    {"%ntid.x", Special::ntid_x, u32}, {"%ntid.y", Special::ntid_y, u32},
    {"%ntid.z", Special::ntid_z, u32}, {"%ntid.w", Special::one, u32},
    {"%ctaid.x", Special::ctaid_x, u32}, {"%ctaid.y", Special::ctaid_y, u32},
    {"%ctaid.z", Special::ctaid_z, u32}, {"%ctaid.w", Special::zero, u32},
    {"%nctaid.x", Special::nctaid_x, u32}, {"%nctaid.y", Special::nctaid_y, u32},
    {"%nctaid.z", Special::nctaid_z, u32}, {"%nctaid.w", Special::one, u32},
    {"%laneid", Special::laneid, u32}, {"%warpid", Special::warpid, u32},
    {"%nwarpid", Special::nwarpid, u32}, {"%smid", Special::smid, u32},
    {"%nsmid", Special::nsmid, u32}, {"%gridid", Special::gridid, u64},
    {"%lanemask_eq", Special::lanemask_eq, u32}, {"%lanemask_le", Special::lanemask_le, u32},
    {"%lanemask_lt", Special::lanemask_lt, u32}, {"%lanemask_ge", Special::lanemask_ge, u32},
    {"%lanemask_gt", Special::lanemask_gt, u32},
    {"%dynamic_smem_size", Special::dynamic_smem_size, u32},
    {"%total_smem_size", Special::total_smem_size, u32},
    {"%aggr_smem_size", Special::aggr_smem_size, u32},
    {"%reserved_smem_offset_begin", Special::reserved_begin, u32},
    {"%reserved_smem_offset_end", Special::reserved_end, u32},
    {"%reserved_smem_offset_cap", Special::reserved_end, u32},
    {"%reserved_smem_offset_0", Special::reserved_begin, u32},
    {"%reserved_smem_offset_1", Special::reserved_begin, u32},
    {"%envreg1", Special::workspace_high, u32},
    {"%envreg2", Special::workspace_low, u32},
    {"%clusterid.x", Special::clusterid_x, u32}, {"%clusterid.y", Special::clusterid_y, u32},
    {"%clusterid.z", Special::clusterid_z, u32}, {"%clusterid.w", Special::zero, u32},
    {"%nclusterid.x", Special::nclusterid_x, u32}, {"%nclusterid.y", Special::nclusterid_y, u32},
    {"%nclusterid.z", Special::nclusterid_z, u32}, {"%nclusterid.w", Special::one, u32},
    {"%cluster_ctaid.x", Special::cluster_ctaid_x, u32},
    {"%cluster_ctaid.y", Special::cluster_ctaid_y, u32},
    {"%cluster_ctaid.z", Special::cluster_ctaid_z, u32}, {"%cluster_ctaid.w", Special::zero, u32},
    {"%cluster_nctaid.x", Special::cluster_nctaid_x, u32},
    {"%cluster_nctaid.y", Special::cluster_nctaid_y, u32},
    {"%cluster_nctaid.z", Special::cluster_nctaid_z, u32}, {"%cluster_nctaid.w", Special::one, u32},
    {"%cluster_ctarank", Special::cluster_ctarank, u32},
    {"%cluster_nctarank", Special::cluster_nctarank, u32},
    {"%is_explicit_cluster", Special::is_explicit_cluster, ptx::Type::pred},
    {"%current_graph_exec", Special::zero, u64},
    {"%clock", Special::clock, u32}, {"%clock_hi", Special::clock_hi, u32},
    {"%clock64", Special::clock64, u64}, {"%globaltimer", Special::globaltimer, u64},
    {"%globaltimer_lo", Special::globaltimer_lo, u32},
    {"%globaltimer_hi", Special::globaltimer_hi, u32},
};
// clang-format on

uint64_t nanoseconds_of(std::chrono::nanoseconds since) { return uint64_t(since.count()); }

// The emulated clock ticks once a nanosecond.
uint64_t clock_now() { return nanoseconds_of(std::chrono::steady_clock::now().time_since_epoch()); }

uint64_t wall_now() { return nanoseconds_of(std::chrono::system_clock::now().time_since_epoch()); }

template <typename Cell, uint64_t (*Read)(), int Shift>
void read_into(Warp& warp, const Inst& inst) {
    const Cell value = Cell(Read() >> Shift);
    auto* out = cells<Cell>(warp, inst.d[0]);
    for (int lane = 0; lane < kWarpSize; ++lane)
        if (warp.active >> lane & 1) out[lane] = value;
}

template <typename Cell, typename Value>
void fill(std::byte* at, Value value_of) {
    auto* out = reinterpret_cast<Cell*>(at);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) out[lane] = Cell(value_of(lane));
}

// A lane's coordinates in the block, incremented from lane to lane, without a division each.
template <typename Cell>
void fill_tid(std::byte* at, int axis, const WarpPlace& place) {
    const Dim3& size = place.launch->block;
    const uint32_t first = place.warp * kWarpSize;
    uint32_t x = first % size.x;
    uint32_t y = first / size.x % size.y;
    uint32_t z = first / size.x / size.y;
    auto* out = reinterpret_cast<Cell*>(at);
    for (int lane = 0; lane < kWarpSize; ++lane) {
        out[lane] = axis == 0 ? x : axis == 1 ? y : z;
        if (++x < size.x) continue;
        x = 0;
        if (++y < size.y) continue;
        y = 0;
        ++z;
    }
}

uint64_t uniform_value(Special which, const WarpPlace& place) {
    const Launch& launch = *place.launch;
    const uint32_t processors = std::max(1u, launch.multiprocessors);
    switch (which) {
    case Special::ntid_x: return launch.block.x;
    case Special::ntid_y: return launch.block.y;
    case Special::ntid_z: return launch.block.z;
    case Special::ctaid_x: return place.block_index.x;
    case Special::ctaid_y: return place.block_index.y;
    case Special::ctaid_z: return place.block_index.z;
    case Special::nctaid_x: return launch.grid.x;
    case Special::nctaid_y: return launch.grid.y;
    case Special::nctaid_z: return launch.grid.z;
    case Special::warpid: return place.warp;
    case Special::nwarpid: return 64;  // warps that a multiprocessor of capability 9.0 holds
    case Special::smid: {
        const Dim3& at = place.block_index;
        return (at.x + launch.grid.x * (at.y + uint64_t(launch.grid.y) * at.z)) % processors;
    }
    case Special::clusterid_x: return place.block_index.x / launch.cluster.x;
    case Special::clusterid_y: return place.block_index.y / launch.cluster.y;
    case Special::clusterid_z: return place.block_index.z / launch.cluster.z;
    case Special::nclusterid_x: return launch.grid.x / launch.cluster.x;
    case Special::nclusterid_y: return launch.grid.y / launch.cluster.y;
    case Special::nclusterid_z: return launch.grid.z / launch.cluster.z;
    case Special::cluster_ctaid_x: return place.block_index.x % launch.cluster.x;
    case Special::cluster_ctaid_y: return place.block_index.y % launch.cluster.y;
    case Special::cluster_ctaid_z: return place.block_index.z % launch.cluster.z;
    case Special::cluster_nctaid_x: return launch.cluster.x;
    case Special::cluster_nctaid_y: return launch.cluster.y;
    case Special::cluster_nctaid_z: return launch.cluster.z;
    case Special::cluster_ctarank: return place.rank;
    case Special::cluster_nctarank: return launch.cluster.count();
    case Special::is_explicit_cluster: return launch.explicit_cluster ? 0xffffffffu : 0;
    case Special::nsmid: return processors;
    case Special::gridid: return launch.grid_id;
    case Special::dynamic_smem_size: return launch.dynamic_shared;
    case Special::total_smem_size: return round_up(place.shared_bytes, limits::kSharedUnit);
    case Special::aggr_smem_size: return place.shared_bytes + kReservedShared;
    case Special::one: return 1;
    case Special::workspace_low: return place.workspace & 0xffffffffu;
    case Special::workspace_high: return place.workspace >> 32;
    case Special::reserved_begin: return place.reserved_offset;
    case Special::reserved_end: return place.reserved_offset + kReservedShared;
    default: return 0;
    }
}

template <typename Cell>
void fill_cells(Special which, const WarpPlace& place, std::byte* at) {
    switch (which) {
    case Special::tid_x:
        if (place.launch->block.x % kWarpSize == 0) {  // the warp is within one row
            const uint32_t x = place.warp * kWarpSize % place.launch->block.x;
            return fill<Cell>(at, [x](uint32_t lane) { return x + lane; });
        }
        return fill_tid<Cell>(at, 0, place);
    case Special::tid_y: return fill_tid<Cell>(at, 1, place);
    case Special::tid_z: return fill_tid<Cell>(at, 2, place);
    case Special::laneid: return fill<Cell>(at, [](uint32_t lane) { return lane; });
    case Special::lanemask_eq: return fill<Cell>(at, [](uint32_t lane) { return 1u << lane; });
    case Special::lanemask_lt:
        return fill<Cell>(at, [](uint32_t lane) { return (1u << lane) - 1; });
    case Special::lanemask_le:
        return fill<Cell>(at, [](uint32_t lane) { return (1u << lane << 1) - 1; });
    case Special::lanemask_ge: return fill<Cell>(at, [](uint32_t lane) { return ~0u << lane; });
    case Special::lanemask_gt:
        return fill<Cell>(at, [](uint32_t lane) { return ~0u << lane << 1; });
    default: {
        const uint64_t value = uniform_value(which, place);
        return fill<Cell>(at, [value](uint32_t) { return value; });
    }
    }
}

}  // namespace

bool special_from(const std::string& name, Special& out, ptx::Type& type) {
    const auto* found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                     [&](const Named& named) { return name == named.name; });
    if (found == std::end(kNamed)) {
        // The driver's registers and the profiler's counters: their values are unspecified.
        if (name.compare(0, 7, "%envreg") != 0 && name.compare(0, 3, "%pm") != 0) return false;
        out = Special::zero;
        type = u32;
        return true;
    }
    out = found->which;
    type = found->type;
    return true;
}

void fill_special(const SpecialSlot& special, const WarpPlace& place, std::byte* slots) {
    if (special.cell == 4)
        fill_cells<uint32_t>(special.which, place, slots + special.slot);
    else
        fill_cells<uint64_t>(special.which, place, slots + special.slot);
}

Handler special_reader(Special special) {
    switch (special) {
    case Special::clock: return read_into<uint32_t, clock_now, 0>;
    case Special::clock_hi: return read_into<uint32_t, clock_now, 32>;
    case Special::clock64: return read_into<uint64_t, clock_now, 0>;
    case Special::globaltimer: return read_into<uint64_t, wall_now, 0>;
    case Special::globaltimer_lo: return read_into<uint32_t, wall_now, 0>;
    case Special::globaltimer_hi: return read_into<uint32_t, wall_now, 32>;
    default: return nullptr;
    }
}

}  // namespace cyrt::emu
