#include "driver/function.hpp"

#include <algorithm>
#include <sstream>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/library.hpp"
#include "driver/module.hpp"
#include "exec/code.hpp"

namespace cyrt::emu {

namespace {

// The limit that an assembler would have: a kernel can always run with its largest block.
uint32_t registers_for(const KernelInfo& info) {
    uint32_t most = std::min(255u, limits::kRegisters / std::max(info.max_threads, 1u));
    return std::clamp(info.registers, 8u, most);
}

}  // namespace

Function::Function(Module& owner, const std::string& entry)
    : module(owner), name(entry), info(kernel_info(*owner.ptx(), entry)),
      registers_(registers_for(info)),
      max_dynamic_shared_(limits::kStaticShared -
                          std::min(limits::kStaticShared, info.static_shared)) {
    const uint32_t* required = owner.ptx()->functions.at(entry).req_ntid;
    if (required[0])
        required_ = {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
}

Context& Function::context() const { return module.context(); }

const Program& Function::program() {
    if (!prepared()) {
        std::lock_guard lock(preparing_);
        if (!program_) {
            program_ = prepare(module.ptx(), name, [this](const std::string& symbol) {
                return module.address_of(symbol);
            });
            prepared_.store(true, std::memory_order_release);
        }
    }
    return *program_;
}

bool Function::launches_dependents() { return program().launches_dependents; }
bool Function::triggers_before_waiting() { return program().triggers_before_waiting; }

int Function::attribute(CUfunction_attribute which) const {
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return static_cast<int>(info.max_threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(info.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(info.const_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(info.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return static_cast<int>(registers_);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return info.target;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return 90;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return static_cast<int>(max_dynamic_shared());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return carveout_.load();
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return info.explicit_cluster;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return int(required_cluster().x);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return int(required_cluster().y);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return int(required_cluster().z);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return large_clusters_.load();
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return cluster_scheduling_.load();
    default: break;
    }
    require(which >= 0 && which < CU_FUNC_ATTRIBUTE_MAX);
    return 0;
}

void Function::set_attribute(CUfunction_attribute which, int value) {
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        require(value >= 0);
        require(uint64_t(value) + info.static_shared <= limits::kOptinShared);
        max_dynamic_shared_.store(static_cast<uint32_t>(value));
        return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        require(value >= -1 && value <= 100);
        carveout_.store(value);
        return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        require(value >= 0 && info.cluster[0] == 0);
        cluster_[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH].store(uint32_t(value));
        return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        large_clusters_.store(value != 0);
        return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        require(value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
                value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
        cluster_scheduling_.store(value);
        return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

void Function::set_ranges(size_t count, std::vector<std::string> declarations) {
    std::lock_guard lock(preparing_);
    require(count > 0 && (num_ranges() == 0 || num_ranges() == count));
    if (num_ranges()) return;
    declarations_ = std::move(declarations);
    num_ranges_.store(count, std::memory_order_release);
}

void Function::check_block(Dim3 block) const {
    require(block.x && block.y && block.z);
    require(block.x <= limits::kBlockX && block.y <= limits::kBlockY && block.z <= limits::kBlockZ);
    require(block.count() <= std::min(limits::kBlockThreads, info.max_threads));
    if (required_.x)
        require(block.x == required_.x && block.y == required_.y && block.z == required_.z);
}

Dim3 Function::required_cluster() const {
    if (info.cluster[0]) return {info.cluster[0], info.cluster[1], info.cluster[2]};
    return {cluster_[0].load(), cluster_[1].load(), cluster_[2].load()};
}

uint32_t Function::most_cluster_blocks() const {
    const uint32_t most =
        large_clusters_.load() ? limits::kOptinClusterBlocks : limits::kClusterBlocks;
    return info.max_cluster_rank ? std::min(most, info.max_cluster_rank) : most;
}

Dim3 Function::grid_in_blocks(Dim3 grid) const {
    if (!info.blocks_are_clusters) return grid;
    const auto times = [](uint32_t clusters, uint32_t size) {
        return uint32_t(std::min<uint64_t>(uint64_t(clusters) * size, UINT32_MAX));
    };
    return {times(grid.x, info.cluster[0]), times(grid.y, info.cluster[1]),
            times(grid.z, info.cluster[2])};
}

void Function::check_cluster(Dim3 cluster, Dim3 grid) const {
    const auto is_set = [](const Dim3& size) { return size.x || size.y || size.z; };
    const auto demand = [](bool holds) { require(holds, CUDA_ERROR_INVALID_CLUSTER_SIZE); };
    const Dim3 required = required_cluster();
    if (is_set(cluster) && is_set(required))
        demand(cluster.x == required.x && cluster.y == required.y && cluster.z == required.z);
    const Dim3 size = is_set(cluster) ? cluster : required;
    if (!is_set(size)) return demand(!info.explicit_cluster);
    demand(size.x && size.y && size.z);
    const uint32_t most = most_cluster_blocks();
    demand(size.x <= most && size.y <= most && size.z <= most && size.count() <= most);
    demand(grid.x % size.x == 0 && grid.y % size.y == 0 && grid.z % size.z == 0);
}

HandleTable<Function>& functions() {
    static auto& table = *new HandleTable<Function>(HandleKind::function);
    return table;
}

std::shared_ptr<Function> function_from(CUfunction handle, Context& context) {
    std::shared_ptr<Function> function = functions().find(handle);
    if (!function)
        if (auto kernel = kernels().find(handle)) function = kernel->function_in(context);
    require(function && &function->context() == &context, CUDA_ERROR_INVALID_HANDLE);
    return function;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuFuncGetAttribute(int* out, CUfunction_attribute which, CUfunction function) {
    return context_entry([&](Context& context) {
        require(out);
        *out = function_from(function, context)->attribute(which);
    });
}

CYRT_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    return context_entry(
        [&](Context& context) { function_from(function, context)->set_attribute(which, value); });
}

// The launches of the function have `count` ranges of 16 bytes each behind their parameters.
// `declarations`: one line for each parameter.
CYRT_API CUresult cyrtEmuSetRanges(CUfunction function, size_t count, const char* declarations) {
    return context_entry([&](Context& context) {
        require(declarations);
        std::istringstream text(declarations);
        std::vector<std::string> lines;
        for (std::string line; std::getline(text, line);) lines.push_back(line);
        function_from(function, context)->set_ranges(count, std::move(lines));
    });
}

CYRT_API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    return context_entry([&](Context& context) {
        function_from(function, context);
        require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    });
}

CYRT_API CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
    return context_entry([&](Context& context) {
        function_from(function, context);
        require(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
                config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    });
}

CYRT_API CUresult cuFuncGetName(const char** name, CUfunction function) {
    return context_entry([&](Context& context) {
        require(name);
        *name = function_from(function, context)->name.c_str();
    });
}

CYRT_API CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    return context_entry([&](Context& context) {
        require(module);
        *module = as_handle<CUmodule>(function_from(function, context)->module.handle);
    });
}

CYRT_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset,
                                     size_t* size) {
    return context_entry([&](Context& context) {
        require(offset);
        std::shared_ptr<Function> known = function_from(function, context);
        require(index < known->info.params.size());
        *offset = known->info.params[index].offset;
        if (size) *size = known->info.params[index].size;
    });
}

CYRT_API CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
    return context_entry([&](Context& context) {
        require(state);
        *state = function_from(function, context)->prepared() ? CU_FUNCTION_LOADING_STATE_LOADED
                                                              : CU_FUNCTION_LOADING_STATE_UNLOADED;
    });
}

CYRT_API CUresult cuFuncLoad(CUfunction function) {
    return context_entry([&](Context& context) { function_from(function, context)->program(); });
}
