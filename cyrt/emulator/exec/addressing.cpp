#include "exec/addressing.hpp"

#include <algorithm>
#include <string>

#include "exec/arena.hpp"
#include "exec/hazards.hpp"

namespace cyrt::emu {

namespace {

const char* window_name(uint64_t window) {
    if (window == kSharedWindow) return "shared";
    if (window == kLocalWindow) return "local";
    return "parameter";
}

uint64_t window_of(ptx::Space space) {
    if (space == ptx::Space::shared) return kSharedWindow;
    if (space == ptx::Space::local) return kLocalWindow;
    return kParamWindow;
}

// One lane's access.
struct LaneAccess {
    const WarpContext& context;
    const MemoryOp& op;
    Access access;
    int lane;
    uint64_t address;  // generic
    uint64_t bytes;

    [[noreturn]] void fault(FaultKind kind, const std::string& text) const {
        const char* doing = access == Access::read    ? "read"
                            : access == Access::write ? "write"
                                                      : "atomic access";
        throw FaultSignal{
            kind, lane, std::string(doing) + " of " + std::to_string(bytes) + " bytes at " + text};
    }

    std::byte* host() const {
        if (address % bytes != 0)
            fault(FaultKind::misaligned_address,
                  "address " + hex(address) + ", which is not aligned to that size");
        const uint64_t window = address & kWindowMask;
        if (window == kSharedWindow || window == kLocalWindow || window == kParamWindow)
            return in_window(window);
        return in_device_memory();
    }

    // Memory of a block of the cluster, if the address names one.
    std::byte* in_block(uint64_t at) const {
        const uint64_t rank = (at >> kRankShift) - 1, offset = at & ~kRankMask;
        const ClusterMemory& cluster = *context.cluster;
        const bool is_reachable =
            rank == context.rank || op.space == ptx::Space::generic || op.in_cluster;
        const std::string place = "address " + hex(offset) + " of the shared memory of block " +
                                  std::to_string(rank) + " of the cluster";
        if (rank >= cluster.count)
            fault(FaultKind::illegal_address,
                  place + ", which has " + std::to_string(cluster.count) + " blocks");
        const BlockMemory& block = cluster.blocks[rank];
        if (!is_reachable)
            fault(FaultKind::illegal_address, place + ", with an instruction that reaches its own");
        if (block.ended) fault(FaultKind::illegal_address, place + ", which has ended");
        if (block.bytes < bytes || offset > block.bytes - bytes)
            fault(FaultKind::illegal_address,
                  place + ", which has " + std::to_string(block.bytes) + " bytes");
        if (block.valid) track(block.valid + offset, kSharedWindow);
        see(uint32_t(rank), uint32_t(offset), block.shared + offset);
        return block.shared + offset;
    }

    std::byte* in_window(uint64_t window) const {
        if (window == kSharedWindow && ((address - window) & kRankMask) != 0)
            return in_block(address - window);
        const Stretch stretch = window == kSharedWindow  ? shared_stretch(context, window)
                                : window == kLocalWindow ? local_stretch(context, window)
                                                         : param_stretch(context, window);
        if (stretch.hi - stretch.lo < bytes || address > stretch.hi - bytes)
            fault(FaultKind::illegal_address,
                  "address " + hex(address - window) + " of " + window_name(window) +
                      " memory, which has " + std::to_string(stretch.hi - stretch.lo) + " bytes");
        if (window == kParamWindow && access != Access::read)
            fault(FaultKind::illegal_address,
                  "address " + hex(address - window) + " of the kernel's parameters");
        const uint64_t at = address - window;
        if (stretch.valid) track(stretch.valid + at, window);
        if (window == kSharedWindow) see(context.rank, uint32_t(at), stretch.host + at);
        return stretch.host + at + uint64_t(lane) * stretch.lane_stride;
    }

    // The place beside what the launch names, so many bytes outside of the nearest allocation: a
    // variable of the module, or an argument that is as near; else "".
    std::string named_place(uint64_t allocation, uint64_t distance) const {
        const Launch& launch = *context.launch;
        const std::string variable = launch.variable_at ? launch.variable_at(allocation) : "";
        if (!variable.empty())
            return std::to_string(distance) + (distance == 1 ? " byte" : " bytes") +
                   (address < allocation ? " before " : " past the end of ") + variable;
        return launch.ranges && launch.ranges->are_within(distance, address, bytes)
                   ? launch.ranges->describe(address, bytes)
                   : "";
    }

    // The memory that holds all bytes, as far as the launch may use it.
    Region region_here() const {
        for (const Region& recent : context.recent->items)
            if (recent.holds(address, bytes)) return recent;
        Region region;
        const UsableRanges* const ranges = context.launch->ranges;
        if (!context.arena->find(address, region) || !region.holds(address, bytes))
            fault(FaultKind::illegal_address,
                  "address " + hex(address) + " (" +
                      context.arena->describe(address,
                                              [&](uint64_t lo, uint64_t distance) {
                                                  return named_place(lo, distance);
                                              }) +
                      ")");
        if (region.guarded && ranges && !ranges->narrow(address, bytes, region))
            fault(FaultKind::illegal_address,
                  "address " + hex(address) + " (" + ranges->describe(address, bytes) + ")");
        context.recent->add(region);
        return region;
    }

    std::byte* in_device_memory() const {
        AccessWatch* const watch = context.launch->watch;
        Region region = context.regions[op.cache];
        if (!region.holds(address, bytes)) {
            region = region_here();
            if (region.read_only && access != Access::read)
                fault(FaultKind::illegal_address, "address " + hex(address) + " (" +
                                                      context.arena->describe(address) +
                                                      "), which is constant memory");
            // A remembered region would bypass this function, so a watched launch forgets it.
            if (!watch) {
                context.earlier[op.cache] = context.regions[op.cache];
                context.regions[op.cache] = region;
            }
        }
        if (watch) {
            const std::string wrong = watch->see(access, address, bytes, context.waited);
            if (!wrong.empty()) fault(FaultKind::unordered_access, wrong);
        }
        if (region.valid) track(region.valid + (address - region.lo));
        if (context.hazards && op.order == MemoryOrder::strong)
            context.hazards->see_device(context.warp, address, access);
        return region.at(address);
    }

    void see(uint32_t rank, uint32_t offset, const std::byte* host) const {
        if (context.hazards)
            context.hazards->see(context.warp, lane, op, access, rank, offset, uint32_t(bytes),
                                 host);
    }

    // The argument of the launch that holds the address, as reports name it.
    std::string argument() const {
        const UsableRanges* const ranges = context.launch->ranges;
        for (size_t i = 0; ranges && i < size_t(ranges->count); ++i)
            if (ranges->items[i].lo <= address && address < ranges->items[i].hi)
                return " (" + ranges->name(ranges->items[i].lo, ranges->items[i].hi) + ")";
        return "";
    }

    // `window` is 0 for device memory.
    void track(uint8_t* valid, uint64_t window = 0) const {
        if (access == Access::write) {
            std::fill_n(valid, bytes, uint8_t(1));
            return;
        }
        const uint8_t* const unwritten = std::find(valid, valid + bytes, uint8_t(0));
        if (unwritten == valid + bytes) return;
        const std::string place =
            window == 0 ? hex(address) + argument()
                        : hex(address - window) + " of " + window_name(window) + " memory";
        fault(FaultKind::uninitialized_read,
              "address " + place + ", whose byte " + std::to_string(unwritten - valid) +
                  " nobody has written" +
                  (window == kSharedWindow ? ": is a barrier missing?" : ""));
    }
};

// Finds the lanes of `left` whose bytes are in the region; returns the others.
uint32_t locate_in(const Region& region, uint32_t left, uint64_t bytes,
                   const uint64_t (&from)[kWarpSize], uint64_t (&to)[kWarpSize]) {
    if (region.hi - region.lo < bytes) return left;
    const uint64_t last = region.hi - region.lo - bytes;
    uint32_t found = 0;
    for_lanes(left, [&](int lane) {
        const uint64_t at = from[lane] - region.lo;
        if (at > last || (from[lane] & (bytes - 1)) != 0) return;
        to[lane] = reinterpret_cast<uint64_t>(region.host) + at;
        found |= kLaneBit[lane];
    });
    return left & ~found;
}

// The lanes of a warp often access two or three arrays with one instruction.
void locate_by_region(const Warp& warp, const MemoryOp& op, Access access,
                      HostAddresses& addresses) {
    const WarpContext& context = *warp.context;
    const uint64_t bytes = uint64_t(op.size) * op.count;
    const Region& region = context.regions[op.cache];
    alignas(64) uint64_t host[kWarpSize];
    uint32_t left = locate_in(region, warp.active, bytes, addresses.lane, host);
    left = locate_in(context.earlier[op.cache], left, bytes, addresses.lane, host);
    while (left) {
        const int lane = first_lane(left);
        const LaneAccess next{context, op, access, lane, addresses.lane[lane], bytes};
        host[lane] = reinterpret_cast<uint64_t>(next.host());  // this call remembers the region
        left = locate_in(region, left & ~kLaneBit[lane], bytes, addresses.lane, host);
    }
    for (int lane = 0; lane < kWarpSize; ++lane)
        addresses.lane[lane] = host[warp.lane_on[lane] ? lane : first_lane(warp.active)];
}

}  // namespace

void locate_each(const Warp& warp, const MemoryOp& op, AddressKind kind, Access access,
                 HostAddresses& addresses) {
    const uint64_t bytes = uint64_t(op.size) * op.count;
    const uint64_t window = kind == AddressKind::window ? window_of(op.space) : 0;
    const int first = first_lane(warp.active);
    if (window == 0 && !op.async && !warp.context->checking && !warp.context->launch->watch)
        return locate_by_region(warp, op, access, addresses);
    if (warp.context->hazards) warp.context->hazards->compare_writes();
    uint64_t last = 0;  // a lane that accesses what the one before does needs no search of its own
    std::byte* host = nullptr;
    for (int lane = first; lane < kWarpSize; ++lane) {
        if (!warp.lane_on[lane]) continue;
        uint64_t& address = addresses.lane[lane];
        const uint64_t at = window | address;
        const bool is_own = op.async || (at & kWindowMask) == kLocalWindow;
        if (!host || at != last || is_own)
            host = LaneAccess{*warp.context, op, access, lane, at, bytes}.host();
        last = at;
        address = reinterpret_cast<uint64_t>(host);
    }
    for (int lane = 0; lane < kWarpSize; ++lane)
        if (!warp.lane_on[lane]) addresses.lane[lane] = addresses.lane[first];
}

}  // namespace cyrt::emu
