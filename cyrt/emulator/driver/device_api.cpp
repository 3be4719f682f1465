// The entry points that describe devices.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "driver/device.hpp"

using namespace cyrt::emu;

namespace {

struct Attribute {
    CUdevice_attribute which;
    int value;
};

// The attributes that are not zero. Textures, arrays, multicast, virtual memory and sharing between
// processes have none: the emulated device does not support them.
constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, limits::kBlockThreads},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, limits::kBlockX},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, limits::kBlockY},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, limits::kBlockZ},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, limits::kGridX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, limits::kGridY},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, limits::kGridZ},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, limits::kStaticShared},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, limits::kWarp},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, limits::kRegisters},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, limits::kMultiprocessors},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, limits::kMultiprocessorThreads},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, limits::kMultiprocessorShared},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, limits::kRegisters},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, limits::kOptinShared},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, limits::kMultiprocessorBlocks},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, limits::kReservedShared},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

constexpr int kFirstBus = 1;  // the bus number of device 0

int attribute_of(CUdevice device, CUdevice_attribute which) {
    if (which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return kFirstBus + device;
    for (const Attribute& attribute : kAttributes)
        if (attribute.which == which) return attribute.value;
    return 0;
}

CUresult uuid(CUuuid* out, CUdevice device) {
    return entry([&] {
        require(out);
        char text[sizeof out->bytes + 1];
        std::snprintf(text, sizeof text, "cyrt emulated %02d", device_at(device).ordinal);
        std::memcpy(out->bytes, text, sizeof out->bytes);
    });
}

}  // namespace

CYRT_API CUresult cuDeviceGetCount(int* count) {
    return entry([&] {
        require(count);
        *count = device_count();
    });
}

CYRT_API CUresult cuDeviceGet(CUdevice* out, int ordinal) {
    return entry([&] {
        require(out);
        *out = device_at(ordinal).ordinal;
    });
}

CYRT_API CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
    return entry([&] {
        require(name && size > 0);
        device_at(device);
        std::snprintf(name, static_cast<size_t>(size), "cyrt emulated device");
    });
}

CYRT_API CUresult cuDeviceGetUuid(CUuuid* out, CUdevice device) { return uuid(out, device); }
CYRT_API CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device) { return uuid(out, device); }

CYRT_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    return entry([&] {
        require(bytes);
        *bytes = device_at(device).arena.capacity();
    });
}

CYRT_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    return entry([&] {
        require(value);
        device_at(device);
        require(which > 0 && which < CU_DEVICE_ATTRIBUTE_MAX);
        *value = attribute_of(device, which);
    });
}

CYRT_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    return entry([&] {
        require(major && minor);
        device_at(device);
        *major = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        *minor = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    });
}

CYRT_API CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
    return entry([&] {
        require(text && size > 0);
        std::snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0",
                      kFirstBus + device_at(device).ordinal);
    });
}

CYRT_API CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* text) {
    return entry([&] {
        require(out && text);
        unsigned domain = 0, bus = 0, slot = 0, function = 0;
        int known = std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
        if (known < 3) {
            domain = function = 0;
            known = std::sscanf(text, "%x:%x.%x", &bus, &slot, &function);
            require(known >= 2);
        }
        require(domain == 0 && slot == 0 && function == 0, CUDA_ERROR_INVALID_DEVICE);
        *out = device_at(static_cast<int>(bus) - kFirstBus).ordinal;
    });
}

CYRT_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return entry([&] {
        require(can);
        device_at(device);
        device_at(peer);
        *can = device != peer;
    });
}

CYRT_API CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice device,
                                          CUdevice peer) {
    return entry([&] {
        require(value);
        device_at(device);
        device_at(peer);
        require(device != peer, CUDA_ERROR_INVALID_DEVICE);
        switch (which) {
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return;
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return;
        default: throw DriverError{CUDA_ERROR_INVALID_VALUE};
        }
    });
}
