// Special registers: their list, and the slots that hold them.
#pragma once

#include <cstdint>
#include <string>

#include "exec/inst.hpp"
#include "exec/launch.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

enum class Special : uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    dynamic_smem_size,
    total_smem_size,
    aggr_smem_size,
    zero,
    one,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    is_explicit_cluster,
    // For cooperative groups: the addresses of the grid's barrier and of the runtime's shared
    // memory.
    workspace_low,
    workspace_high,
    reserved_begin,
    reserved_end,
    // The following ones change while a warp runs: an instruction reads them, they have no slot.
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
};

constexpr uint32_t kReservedShared = 1024;  // bytes, as on hardware since capability 8.0

constexpr bool changes(Special special) { return special >= Special::clock; }

// The register's own type, by its name as in PTX ("%tid.x"); false if there is none.
bool special_from(const std::string& name, Special& out, ptx::Type& type);

struct SpecialSlot {
    Special which;
    uint8_t cell;
    uint32_t slot;
};

// The inputs that determine the special registers of a warp.
struct WarpPlace {
    const Launch* launch;
    Dim3 block_index;
    uint32_t rank;  // rank of the block in its cluster
    uint32_t warp;
    uint32_t shared_bytes;     // the kernel's own
    uint32_t reserved_offset;  // offset of the runtime's part, which follows
    uint64_t workspace;        // 0 unless the launch is cooperative
};

void fill_special(const SpecialSlot& special, const WarpPlace& place, std::byte* slots);

// Reads a changing one into d[0]; nullptr where `special` does not change.
Handler special_reader(Special special);

}  // namespace cyrt::emu
