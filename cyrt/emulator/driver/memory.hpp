// The memory of programs: context, kind and flags of each allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "driver/api.hpp"

namespace cyrt::emu {

class Device;
class MemoryPool;

enum class MemoryKind : uint8_t { device, managed, pinned, registered, variable };

struct Allocation {
    uint64_t address = 0;
    uint64_t size = 0;
    MemoryKind kind = MemoryKind::device;
    Device* device = nullptr;
    uintptr_t context = 0;  // handle
    unsigned flags = 0;     // from cuMemHostAlloc, cuMemHostRegister
    uint64_t id = 0;        // never reused
    std::shared_ptr<MemoryPool> pool;
    bool freeing = false;  // an operation in a stream will release it

    bool on_device() const { return kind == MemoryKind::device || kind == MemoryKind::variable; }
};

// Device memory; throws CUDA_ERROR_OUT_OF_MEMORY.
uint64_t allocate(Context& context, uint64_t size, MemoryKind kind = MemoryKind::device,
                  std::shared_ptr<MemoryPool> pool = nullptr);
// Host memory under its host address, visible to every device.
void* allocate_host(Context& context, uint64_t size, MemoryKind kind, unsigned flags);

// The live allocation that contains `address`.
std::optional<Allocation> allocation_at(uint64_t address);

// Releases at once; false if no allocation begins there.
bool release(uint64_t address);
void release_allocations(const Context& context);

// Marks device memory that an operation in a stream will release; throws CUDA_ERROR_INVALID_VALUE
// if it is not the start of such an allocation or is marked already.
void claim_for_free(uint64_t address);

struct FreeOperation {
    uint64_t address;
    static constexpr bool runs_after_fault = true;
    void run(Context& context);
};

}  // namespace cyrt::emu
