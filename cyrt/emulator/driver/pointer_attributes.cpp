// The attributes of pointers, and the hints for managed memory.
#include <cstring>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/memory.hpp"
#include "driver/mempool.hpp"
#include "driver/stream.hpp"

using namespace cyrt::emu;

namespace {

template <class T>
void put(void* out, T value) {
    std::memcpy(out, &value, sizeof value);
}

bool is_pooled(const Allocation& found) { return found.pool != nullptr; }

// Writes the attribute as its own type. Throws for attributes that do not exist or that this kind
// of memory does not have.
void answer(const Allocation& found, uint64_t address, CUpointer_attribute which, void* out) {
    bool on_device = found.on_device(), managed = found.kind == MemoryKind::managed;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: put(out, as_handle<CUcontext>(found.context)); return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put<unsigned>(out, on_device || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
        return;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: put<CUdeviceptr>(out, address); return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        require(!on_device);
        put(out, reinterpret_cast<void*>(address));
        return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: put<unsigned>(out, 0); return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: put<unsigned long long>(out, found.id); return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: put<unsigned>(out, managed); return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put<int>(out, found.device->ordinal); return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: put<unsigned>(out, 0); return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: put<CUdeviceptr>(out, found.address); return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: put<size_t>(out, found.size); return;
    case CU_POINTER_ATTRIBUTE_MAPPED: put<unsigned>(out, 1); return;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: put<uint64_t>(out, 0); return;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: put<unsigned>(out, 0); return;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put<unsigned>(out, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
        return;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put(out, is_pooled(found) ? as_handle<CUmemoryPool>(found.pool->handle) : nullptr);
        return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

// For memory unknown to the driver: zero of the attribute's size.
void answer_unknown(CUpointer_attribute which, void* out) {
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: put<uint64_t>(out, 0); return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put<int>(out, CU_DEVICE_INVALID); return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: put<unsigned>(out, 0); return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

void check_location(CUmemLocation location) {
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: device_at(location.id); return;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return;
    default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
    }
}

CUmemLocation location_of(CUdevice device) {
    CUmemLocation location{};
    location.type =
        device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device == CU_DEVICE_CPU ? 0 : device;
    return location;
}

void check_managed(CUdeviceptr address, size_t count) {
    auto found = allocation_at(address);
    require(count > 0 && found && found->kind == MemoryKind::managed);
    require(count <= found->size - (address - found->address));
}

// Managed memory is host memory, visible everywhere: hints are validated, nothing moves.
CUresult prefetch(CUdeviceptr address, size_t count, CUmemLocation to, CUstream handle) {
    return stream_entry(handle, [&](Stream&) {
        check_managed(address, count);
        check_location(to);
    });
}

CUresult advise(CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location) {
    return context_entry([&](Context&) {
        check_managed(address, count);
        require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
                advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
        if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
            advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY)
            check_location(location);
    });
}

}  // namespace

CYRT_API CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr address) {
    return entry([&] {
        require(out);
        auto found = allocation_at(address);
        require(found.has_value());
        answer(*found, address, which, out);
    });
}

CYRT_API CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** out,
                                         CUdeviceptr address) {
    return entry([&] {
        require(count > 0 && which && out);
        auto found = allocation_at(address);
        for (unsigned i = 0; i < count; ++i) {
            require(out[i]);
            bool has_none =
                which[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && found && found->on_device();
            if (found && !has_none)
                answer(*found, address, which[i], out[i]);
            else
                answer_unknown(which[i], out[i]);
        }
    });
}

CYRT_API CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute which,
                                        CUdeviceptr address) {
    return entry([&] {
        require(value && which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
        require(allocation_at(address).has_value());
    });
}

CYRT_API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t count, CUdevice to,
                                     CUstream stream) {
    return prefetch(address, count, location_of(to), stream);
}

CYRT_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t count, CUmemLocation to,
                                        unsigned flags, CUstream stream) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return prefetch(address, count, to, stream);
}

CYRT_API CUresult cuMemAdvise(CUdeviceptr address, size_t count, CUmem_advise advice,
                              CUdevice device) {
    return advise(address, count, advice, location_of(device));
}

CYRT_API CUresult cuMemAdvise_v2(CUdeviceptr address, size_t count, CUmem_advise advice,
                                 CUmemLocation location) {
    return advise(address, count, advice, location);
}
