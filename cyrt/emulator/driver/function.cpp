#include "driver/function.hpp"

#include <algorithm>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/library.hpp"
#include "driver/module.hpp"
#include "exec/code.hpp"

namespace cyrt::emu {

namespace {

// What an assembler would be held to: a kernel always gets enough for its largest block.
uint32_t registers_for(const KernelInfo& info) {
    uint32_t most = std::min(255u, limits::kRegisters / std::max(info.max_threads, 1u));
    return std::clamp(info.registers, 8u, most);
}

}  // namespace

Function::Function(Module& owner, const std::string& entry)
    : module(owner),
      name(entry),
      info(kernel_info(*owner.ptx(), entry)),
      registers_(registers_for(info)),
      max_dynamic_shared_(limits::kStaticShared - std::min(limits::kStaticShared,
                                                           info.static_shared)) {
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
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            return;     // clusters are refused at the launch
        default:
            throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

void Function::check_block(Dim3 block) const {
    require(block.x && block.y && block.z);
    require(block.x <= limits::kBlockX && block.y <= limits::kBlockY && block.z <= limits::kBlockZ);
    require(block.count() <= std::min(limits::kBlockThreads, info.max_threads));
    if (required_.x)
        require(block.x == required_.x && block.y == required_.y && block.z == required_.z);
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
    return context_entry([&](Context& context) {
        function_from(function, context)->set_attribute(which, value);
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
        *state = function_from(function, context)->prepared()
                     ? CU_FUNCTION_LOADING_STATE_LOADED
                     : CU_FUNCTION_LOADING_STATE_UNLOADED;
    });
}

CYRT_API CUresult cuFuncLoad(CUfunction function) {
    return context_entry([&](Context& context) { function_from(function, context)->program(); });
}
