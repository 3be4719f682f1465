// The entry points of contexts.
#include <algorithm>

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"

using namespace cyrt::emu;

namespace {

constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;
constexpr unsigned kApiVersion = 3020;

void check_flags(unsigned flags) {
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    require(!(flags & ~kKnownFlags));
    require((schedule & (schedule - 1)) == 0);  // at most one way of waiting
}

// The named context, or the current one for nullptr.
std::shared_ptr<Context> named_or_current(CUcontext handle) {
    return handle ? context_from(handle) : usable_context().shared_from_this();
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
    return entry([&] {
        require(out);
        check_flags(flags);
        std::shared_ptr<Context> context = Context::create(device_at(device), flags, false);
        context_stack().push_back(context);
        *out = as_handle<CUcontext>(context->handle);
    });
}

CUresult primary_release(CUdevice device) {
    return entry([&] { device_at(device).release_primary(); });
}

CUresult primary_reset(CUdevice device) {
    return entry([&] { device_at(device).reset_primary(); });
}

CUresult primary_set_flags(CUdevice device, unsigned flags) {
    return entry([&] {
        check_flags(flags);
        device_at(device).set_primary_flags(flags);
    });
}

}  // namespace

CYRT_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    return entry([&] {
        require(out);
        *out = as_handle<CUcontext>(device_at(device).retain_primary()->handle);
    });
}

CYRT_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return primary_release(device); }
CYRT_API CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return primary_release(device); }
CYRT_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return primary_reset(device); }
CYRT_API CUresult cuDevicePrimaryCtxReset(CUdevice device) { return primary_reset(device); }

CYRT_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    return primary_set_flags(device, flags);
}

CYRT_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    return primary_set_flags(device, flags);
}

CYRT_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    return entry([&] {
        require(flags && active);
        bool is_active = false;
        device_at(device).primary_state(*flags, is_active);
        *active = is_active;
    });
}

CYRT_API CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
    return create(out, flags, device);
}

CYRT_API CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int affinities,
                                 unsigned flags, CUdevice device) {
    if (affinities > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device);
}

CYRT_API CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* parameters, unsigned flags,
                                 CUdevice device) {
    if (parameters && parameters->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device);
}

CYRT_API CUresult cuCtxDestroy_v2(CUcontext handle) {
    return entry([&] {
        std::shared_ptr<Context> context = context_from(handle);
        require(!context->primary, CUDA_ERROR_INVALID_CONTEXT);
        auto& stack = context_stack();
        if (!stack.empty() && stack.back() == context) stack.pop_back();
        context->tear_down();
    });
}

CYRT_API CUresult cuCtxGetCurrent(CUcontext* out) {
    return entry([&] {
        require(out);
        auto& stack = context_stack();
        *out = stack.empty() ? nullptr : as_handle<CUcontext>(stack.back()->handle);
    });
}

CYRT_API CUresult cuCtxSetCurrent(CUcontext handle) {
    return entry([&] {
        auto& stack = context_stack();
        if (handle == nullptr) {
            if (!stack.empty()) stack.pop_back();
            return;
        }
        std::shared_ptr<Context> context = context_from(handle);
        if (stack.empty())
            stack.push_back(std::move(context));
        else
            stack.back() = std::move(context);
    });
}

CYRT_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    return entry([&] { context_stack().push_back(context_from(handle)); });
}

CYRT_API CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    return entry([&] {
        auto& stack = context_stack();
        require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
        if (out) *out = as_handle<CUcontext>(stack.back()->handle);
        stack.pop_back();
    });
}

// Succeeds for a context with a fault too.
CYRT_API CUresult cuCtxGetDevice(CUdevice* out) {
    return entry([&] {
        require(out);
        auto& stack = context_stack();
        require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
        *out = stack.back()->device.ordinal;
    });
}

CYRT_API CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
    return entry([&] {
        require(out);
        *out = named_or_current(handle)->device.ordinal;
    });
}

CYRT_API CUresult cuCtxSynchronize() {
    return context_entry([&](Context& context) {
        require_none_capturing(context);
        context.synchronize();
        context.check();
    });
}

CYRT_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
    return entry([&] {
        std::shared_ptr<Context> context = named_or_current(handle);
        context->check();
        require_none_capturing(*context);
        context->synchronize();
        context->check();
    });
}

CYRT_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return context_entry([&](Context&) {
        if (least) *least = 0;
        if (greatest) *greatest = -5;
    });
}

CYRT_API CUresult cuCtxGetFlags(unsigned* flags) {
    return context_entry([&](Context& context) {
        require(flags);
        *flags = context.flags() | CU_CTX_MAP_HOST;
    });
}

CYRT_API CUresult cuCtxSetFlags(unsigned flags) {
    return context_entry([&](Context& context) {
        check_flags(flags);
        context.set_flags(flags);
    });
}

CYRT_API CUresult cuCtxGetLimit(size_t* value, CUlimit which) {
    return context_entry([&](Context& context) {
        require(value);
        *value = context.limit(which);
    });
}

CYRT_API CUresult cuCtxSetLimit(CUlimit which, size_t value) {
    return context_entry([&](Context& context) { context.set_limit(which, value); });
}

CYRT_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    return entry([&] {
        require(version);
        named_or_current(handle);
        *version = kApiVersion;
    });
}

CYRT_API CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    return entry([&] {
        require(id);
        *id = named_or_current(handle)->id;
    });
}

CYRT_API CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    return context_entry([&](Context& context) {
        require(config);
        *config = context.cache_config.load();
    });
}

CYRT_API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    return context_entry([&](Context& context) {
        require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
        context.cache_config.store(config);
    });
}

CYRT_API CUresult cuCtxResetPersistingL2Cache() {
    return context_entry([](Context&) {});
}

CYRT_API CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    return context_entry([&](Context& context) {
        require(flags == 0);
        std::shared_ptr<Context> peer = context_from(handle);
        require(&peer->device != &context.device, CUDA_ERROR_INVALID_DEVICE);
        context.enable_peer(*peer);
    });
}

CYRT_API CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    return context_entry([&](Context& context) { context.disable_peer(*context_from(handle)); });
}

// Profilers record nothing on an emulated device.
CYRT_API CUresult cuProfilerStart() {
    return context_entry([](Context&) {});
}

CYRT_API CUresult cuProfilerStop() {
    return context_entry([](Context&) {});
}
