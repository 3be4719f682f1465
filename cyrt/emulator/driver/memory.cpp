// INVARIANTS
// - Every live allocation is in `table`, and in the arena of its device (of every device, for host
//   memory).
// - Host memory is removed from the arenas before it is returned to the system.
#include "driver/memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "driver/capture.hpp"
#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/mempool.hpp"

namespace cyrt::emu {

namespace {

struct Table {
    std::shared_mutex mutex;
    std::map<uint64_t, Allocation> by_address;
};

Table& table() {
    static Table& made = *new Table;
    return made;
}

void enter(Allocation allocation) {
    static std::atomic<uint64_t> ids{0};
    allocation.id = ++ids;
    std::unique_lock lock(table().mutex);
    table().by_address.emplace(allocation.address, std::move(allocation));
}

// The entry that contains `address`; the caller holds the lock.
Allocation* holder(uint64_t address) {
    auto& map = table().by_address;
    auto next = map.upper_bound(address);
    if (next == map.begin()) return nullptr;
    Allocation& below = std::prev(next)->second;
    return address - below.address < below.size ? &below : nullptr;
}

void* as_host(const Allocation& allocation) { return reinterpret_cast<void*>(allocation.address); }

void attach_everywhere(const Allocation& allocation) {
    for (int i = 0; i < device_count(); ++i)
        device_at(i).arena.attach(as_host(allocation), allocation.size);
}

// Releases the memory of an entry already removed from the table. `keep_mapped`: the device forgets
// host memory, and the host may still access it.
void dispose(const Allocation& allocation, bool keep_mapped = false) {
    if (allocation.on_device()) {
        allocation.device->arena.release(allocation.address);
        if (allocation.pool) allocation.pool->returned(allocation.size);
        return;
    }
    for (int i = 0; i < device_count(); ++i) device_at(i).arena.detach(as_host(allocation));
    if (allocation.kind != MemoryKind::registered && !keep_mapped)
        munmap(as_host(allocation), allocation.size);
}

// Releases the allocation that begins at `address` if it has one of the requested kinds.
template <class Wanted>
bool take_and_dispose(uint64_t address, Wanted wanted) {
    Allocation taken;
    {
        std::unique_lock lock(table().mutex);
        auto found = table().by_address.find(address);
        if (found == table().by_address.end() || !wanted(found->second)) return false;
        taken = std::move(found->second);
        table().by_address.erase(found);
    }
    dispose(taken);
    return true;
}

bool is_pinned(const Allocation& a) { return a.kind == MemoryKind::pinned; }
bool is_registered(const Allocation& a) { return a.kind == MemoryKind::registered; }
bool is_freeable(const Allocation& a) {
    return a.kind == MemoryKind::device || a.kind == MemoryKind::managed;
}

}  // namespace

uint64_t allocate(Context& context, uint64_t size, MemoryKind kind,
                  std::shared_ptr<MemoryPool> pool) {
    Allocation entry;
    entry.device = pool ? &pool->device : &context.device;
    entry.address = entry.device->arena.allocate(size);
    require(entry.address != 0, CUDA_ERROR_OUT_OF_MEMORY);
    entry.size = size;
    entry.kind = kind;
    entry.context = context.handle;
    if (pool) pool->taken(size);
    entry.pool = std::move(pool);
    uint64_t address = entry.address;
    enter(std::move(entry));
    return address;
}

void* allocate_host(Context& context, uint64_t size, MemoryKind kind, unsigned flags) {
    require(size > 0);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    Allocation entry;
    entry.address = reinterpret_cast<uint64_t>(memory);
    entry.size = size;
    entry.kind = kind;
    entry.device = &context.device;
    entry.context = context.handle;
    entry.flags = flags;
    attach_everywhere(entry);
    enter(std::move(entry));
    return memory;
}

std::optional<Allocation> allocation_at(uint64_t address) {
    std::shared_lock lock(table().mutex);
    Allocation* found = holder(address);
    if (!found) return std::nullopt;
    return *found;
}

bool release(uint64_t address) {
    return take_and_dispose(address, [](const Allocation&) { return true; });
}

void release_allocations(const Context& context) {
    std::vector<Allocation> taken;
    {
        std::unique_lock lock(table().mutex);
        auto& map = table().by_address;
        for (auto it = map.begin(); it != map.end();) {
            if (it->second.context == context.handle) {
                taken.push_back(std::move(it->second));
                it = map.erase(it);
            } else {
                ++it;
            }
        }
    }
    // Views of pinned memory outlive a reset of its context, and must not fault the process.
    for (const Allocation& allocation : taken) dispose(allocation, true);
}

void claim_for_free(uint64_t address) {
    std::unique_lock lock(table().mutex);
    Allocation* found = holder(address);
    require(found && found->address == address && is_freeable(*found) && !found->freeing);
    found->freeing = true;
}

void FreeOperation::run(Context&) { take_and_dispose(address, is_freeable); }

}  // namespace cyrt::emu

using namespace cyrt::emu;

CYRT_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
    return context_entry([&](Context& context) {
        require(free && total);
        const Arena& arena = context.device.arena;
        *free = arena.capacity() - arena.used();
        *total = arena.capacity();
    });
}

CYRT_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
    return context_entry([&](Context& context) {
        require_safe_call();
        require(out && size > 0);
        *out = allocate(context, size);
    });
}

// Launches with ranges use no more of the allocation than these say.
CYRT_API CUresult cyrtEmuGuard(CUdeviceptr address) {
    return context_entry([&](Context&) {
        Device* const device = device_of(address);
        require(device && device->arena.guard(address));
    });
}

CYRT_API CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                     unsigned element) {
    return context_entry([&](Context& context) {
        require_safe_call();
        require(out && pitch && width > 0 && height > 0);
        require(element == 4 || element == 8 || element == 16);
        size_t row = (width + 511) / 512 * 512;
        require(row >= width && row <= SIZE_MAX / height, CUDA_ERROR_OUT_OF_MEMORY);
        *out = allocate(context, row * height);
        *pitch = row;
    });
}

CYRT_API CUresult cuMemFree_v2(CUdeviceptr address) {
    return entry([&]() -> CUresult {
        require_safe_call();
        if (!address) return CUDA_SUCCESS;
        Context& context = usable_context();
        auto found = allocation_at(address);
        require(found && found->address == address && is_freeable(*found) && !found->freeing);
        // Work in flight may still use it.
        if (auto owner = contexts().find(as_handle<CUcontext>(found->context)))
            owner->synchronize();
        require(take_and_dispose(address, is_freeable));
        return context.state();
    });
}

CYRT_API CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned flags) {
    return context_entry([&](Context& context) {
        require_safe_call();
        require(out && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
        void* memory = allocate_host(context, size, MemoryKind::managed, flags);
        *out = reinterpret_cast<CUdeviceptr>(memory);
    });
}

CYRT_API CUresult cuMemHostAlloc(void** out, size_t size, unsigned flags) {
    return context_entry([&](Context& context) {
        require_safe_call();
        constexpr unsigned known =
            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
        require(out && !(flags & ~known));
        *out = size ? allocate_host(context, size, MemoryKind::pinned, flags) : nullptr;
    });
}

CYRT_API CUresult cuMemAllocHost_v2(void** out, size_t size) {
    return cuMemHostAlloc(out, size, CU_MEMHOSTALLOC_DEVICEMAP);
}

CYRT_API CUresult cuMemFreeHost(void* memory) {
    return entry([&]() -> CUresult {
        require_safe_call();
        if (!memory) return CUDA_SUCCESS;
        Context& context = usable_context();
        auto found = allocation_at(reinterpret_cast<uint64_t>(memory));
        require(found && as_host(*found) == memory && is_pinned(*found));
        context.synchronize();
        require(take_and_dispose(found->address, is_pinned));
        return context.state();
    });
}

CYRT_API CUresult cuMemHostRegister_v2(void* memory, size_t size, unsigned flags) {
    return context_entry([&](Context& context) {
        require_safe_call();
        constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                   CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
        require(memory && size > 0 && !(flags & ~known));
        Allocation entry;
        entry.address = reinterpret_cast<uint64_t>(memory);
        entry.size = size;
        require(entry.address + size > entry.address && !device_of(entry.address));
        entry.kind = MemoryKind::registered;
        entry.device = &context.device;
        entry.context = context.handle;
        entry.flags = flags;
        {
            std::shared_lock lock(table().mutex);
            auto next = table().by_address.lower_bound(entry.address);
            bool overlaps = next != table().by_address.end() && next->first < entry.address + size;
            require(!overlaps && !holder(entry.address), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        }
        attach_everywhere(entry);
        enter(std::move(entry));
    });
}

CYRT_API CUresult cuMemHostUnregister(void* memory) {
    return context_entry([&](Context& context) -> CUresult {
        require_safe_call();
        auto found = allocation_at(reinterpret_cast<uint64_t>(memory));
        require(memory);
        require(found && is_registered(*found), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        require(as_host(*found) == memory);
        context.synchronize();
        require(take_and_dispose(found->address, is_registered),
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        return context.state();
    });
}

CYRT_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned flags) {
    return context_entry([&](Context&) {
        require(out && memory && flags == 0);
        auto found = allocation_at(reinterpret_cast<uint64_t>(memory));
        require(found && !found->on_device());
        *out = reinterpret_cast<CUdeviceptr>(memory);
    });
}

CYRT_API CUresult cuMemHostGetFlags(unsigned* flags, void* memory) {
    return context_entry([&](Context&) {
        require(flags && memory);
        auto found = allocation_at(reinterpret_cast<uint64_t>(memory));
        require(found && is_pinned(*found));
        *flags = found->flags;
    });
}

CYRT_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    return context_entry([&](Context&) {
        auto found = allocation_at(address);
        require(found.has_value(), CUDA_ERROR_NOT_FOUND);
        if (base) *base = found->address;
        if (size) *size = found->size;
    });
}
