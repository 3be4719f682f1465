#include "driver/mempool.hpp"

#include <algorithm>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/memory.hpp"
#include "driver/stream.hpp"

namespace cyrt::emu {

void MemoryPool::taken(uint64_t size) {
    std::lock_guard lock(mutex_);
    used_ += size;
    used_high_ = std::max(used_high_, used_);
}

void MemoryPool::returned(uint64_t size) {
    std::lock_guard lock(mutex_);
    used_ -= size;
}

void MemoryPool::get(CUmemPool_attribute which, void* value) const {
    std::lock_guard lock(mutex_);
    auto* number = static_cast<cuuint64_t*>(value);
    switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *static_cast<int*>(value) = reuse_[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        return;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *number = release_threshold_; return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *number = used_; return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *number = used_high_; return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

void MemoryPool::set(CUmemPool_attribute which, const void* value) {
    std::lock_guard lock(mutex_);
    switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        reuse_[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
            *static_cast<const int*>(value);
        return;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        release_threshold_ = *static_cast<const cuuint64_t*>(value);
        return;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:  // only a reset to zero is allowed
        require(*static_cast<const cuuint64_t*>(value) == 0);
        used_high_ = used_;
        return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

HandleTable<MemoryPool>& memory_pools() {
    static auto& table = *new HandleTable<MemoryPool>(HandleKind::memory_pool);
    return table;
}

}  // namespace cyrt::emu

using namespace cyrt::emu;

namespace {

std::shared_ptr<MemoryPool> pool_from(CUmemoryPool handle) {
    std::shared_ptr<MemoryPool> pool = memory_pools().find(handle);
    require(pool != nullptr);
    return pool;
}

CUdeviceptr allocate_in(Stream& stream, size_t size, std::shared_ptr<MemoryPool> pool) {
    Context& context = stream.context();
    try {
        return allocate(context, size, MemoryKind::device, pool);
    } catch (const DriverError&) {
        stream.synchronize();  // earlier frees in the stream release memory
        return allocate(context, size, MemoryKind::device, std::move(pool));
    }
}

}  // namespace

CYRT_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream handle) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        require(out);
        *out = size ? allocate_in(stream, size, stream.context().device.current_pool()) : 0;
    });
}

CYRT_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                          CUstream handle) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        require(out);
        std::shared_ptr<MemoryPool> from = pool_from(pool);
        *out = size ? allocate_in(stream, size, std::move(from)) : 0;
    });
}

CYRT_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    return uncaptured_stream_entry(handle, [&](Stream& stream) {
        if (!address) return;
        claim_for_free(address);
        stream.submit(FreeOperation{address});
    });
}

CYRT_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
    return entry([&] {
        require(out);
        *out = as_handle<CUmemoryPool>(device_at(device).default_pool->handle);
    });
}

CYRT_API CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
    return entry([&] {
        require(out);
        *out = as_handle<CUmemoryPool>(device_at(device).current_pool()->handle);
    });
}

CYRT_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
    return entry([&] {
        Device& owner = device_at(device);
        std::shared_ptr<MemoryPool> pool = pool_from(handle);
        require(&pool->device == &owner);
        owner.set_current_pool(std::move(pool));
    });
}

CYRT_API CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
    return entry([&] {
        require(out && properties && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
        require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
        require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
        auto pool = std::make_shared<MemoryPool>(device_at(properties->location.id));
        *out = as_handle<CUmemoryPool>(memory_pools().add(std::move(pool)));
    });
}

CYRT_API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    return entry([&] {
        std::shared_ptr<MemoryPool> pool = pool_from(handle);
        Device& device = pool->device;
        require(pool != device.default_pool);
        if (device.current_pool() == pool) device.set_current_pool(device.default_pool);
        memory_pools().remove(handle);
    });
}

CYRT_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
    return entry([&] {
        require(value);
        pool_from(pool)->get(which, value);
    });
}

CYRT_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
    return entry([&] {
        require(value);
        pool_from(pool)->set(which, value);
    });
}

CYRT_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
    return entry([&] { pool_from(pool); });
}

CYRT_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access,
                                     size_t count) {
    return entry([&] {
        pool_from(pool);
        require(access || count == 0);
    });
}
