#include "driver/occupancy.hpp"

#include <algorithm>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/function.hpp"
#include "driver/kernel.hpp"
#include "driver/launch_attributes.hpp"

namespace cyrt::emu {

namespace {

constexpr uint32_t kRegisterUnit = 256;  // allocation unit of registers per warp

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t shared_of(const Function& function, uint64_t dynamic) {
    return round_up(function.info.static_shared + dynamic + limits::kReservedShared,
                    limits::kSharedUnit);
}

}  // namespace

uint32_t blocks_per_multiprocessor(const Function& function, uint32_t threads,
                                   uint64_t dynamic_shared) {
    if (threads > limits::kBlockThreads) return 0;
    if (dynamic_shared > function.max_dynamic_shared()) return 0;
    uint64_t warps = (threads + limits::kWarp - 1) / limits::kWarp;
    uint64_t registers = warps * round_up(function.registers() * limits::kWarp, kRegisterUnit);
    return static_cast<uint32_t>(std::min(
        {uint64_t(limits::kMultiprocessorBlocks),
         limits::kMultiprocessorThreads / (warps * limits::kWarp), limits::kRegisters / registers,
         limits::kMultiprocessorShared / shared_of(function, dynamic_shared)}));
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

CUresult active_blocks(int* out, CUfunction handle, int threads, size_t shared, unsigned flags) {
    return context_entry([&](Context& context) {
        require(out && threads > 0 && !(flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
        auto function = function_from(handle, context);
        *out = static_cast<int>(blocks_per_multiprocessor(*function, threads, shared));
    });
}

// The block size with the most active threads; of several, the largest.
CUresult potential_block(int* least_grid, int* block, CUfunction handle,
                         CUoccupancyB2DSize shared_of_block, size_t shared, int limit,
                         unsigned flags) {
    return context_entry([&](Context& context) {
        require(least_grid && block && limit >= 0);
        require(!(flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
        auto function = function_from(handle, context);
        int most = static_cast<int>(function->max_threads());
        if (limit > 0) most = std::min(most, limit);
        int warp = static_cast<int>(limits::kWarp);
        uint32_t best_threads = 0, best_blocks = 0;
        for (int size = most; size > 0; size = (size - 1) / warp * warp) {
            uint64_t dynamic = shared_of_block ? shared_of_block(size) : shared;
            uint32_t blocks = blocks_per_multiprocessor(*function, size, dynamic);
            if (blocks * size <= best_threads) continue;
            best_threads = blocks * size;
            best_blocks = blocks;
            *block = size;
        }
        require(best_threads > 0);
        *least_grid = static_cast<int>(best_blocks * limits::kMultiprocessors);
    });
}

}  // namespace

CYRT_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function,
                                                              int threads, size_t shared) {
    return active_blocks(out, function, threads, shared, 0);
}

CYRT_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out,
                                                                       CUfunction function,
                                                                       int threads, size_t shared,
                                                                       unsigned flags) {
    return active_blocks(out, function, threads, shared, flags);
}

CYRT_API CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of_block,
                                                   size_t shared, int limit) {
    return potential_block(grid, block, function, shared_of_block, shared, limit, 0);
}

CYRT_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                            CUfunction function,
                                                            CUoccupancyB2DSize shared_of_block,
                                                            size_t shared, int limit,
                                                            unsigned flags) {
    return potential_block(grid, block, function, shared_of_block, shared, limit, flags);
}

CYRT_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* out, CUfunction handle,
                                                          int blocks, int threads) {
    return context_entry([&](Context& context) {
        require(out && blocks > 0 && threads > 0);
        auto function = function_from(handle, context);
        require(blocks_per_multiprocessor(*function, threads, 0) >= uint32_t(blocks));
        uint64_t share = limits::kMultiprocessorShared / uint32_t(blocks) / limits::kSharedUnit *
                         limits::kSharedUnit;
        uint64_t taken = function->info.static_shared + limits::kReservedShared;
        uint64_t room = share > taken ? share - taken : 0;
        *out = std::min<uint64_t>(room, function->max_dynamic_shared());
    });
}

CYRT_API CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction handle,
                                                     const CUlaunchConfig* config) {
    return context_entry([&](Context& context) {
        require(out && config);
        auto function = function_from(handle, context);
        const LaunchShape shape = shape_from(*config, attributes_from(*config));
        function->check_block(shape.block);
        require(blocks_per_multiprocessor(*function, uint32_t(shape.block.count()),
                                          shape.dynamic_shared) > 0);
        *out = static_cast<int>(function->most_cluster_blocks());
    });
}

CYRT_API CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction handle,
                                               const CUlaunchConfig* config) {
    return context_entry([&](Context& context) {
        require(out && config);
        auto function = function_from(handle, context);
        const LaunchShape shape = shape_from(*config, attributes_from(*config));
        check_launch(*function, shape);
        const Dim3 size = shape.cluster.x ? shape.cluster : function->required_cluster();
        const uint64_t blocks = limits::kMultiprocessors *
                                blocks_per_multiprocessor(*function, uint32_t(shape.block.count()),
                                                          shape.dynamic_shared);
        *out = static_cast<int>(blocks / std::max<uint64_t>(size.count(), 1));
    });
}
