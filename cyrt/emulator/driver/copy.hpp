// Copies between any two memories, of one to three dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/api.hpp"

namespace cyrt::emu {

struct CopySide {
    uint64_t address = 0;
    uint64_t pitch = 0;  // bytes from row to row
    uint64_t slice = 0;  // bytes from slice to slice
};

struct CopyOperation {
    CopySide dst, src;
    uint64_t width = 0;  // bytes per row
    uint64_t height = 1;
    uint64_t depth = 1;
    std::vector<std::byte> staged;  // the source, if it had to be read at the call
    static constexpr bool runs_after_fault = false;
    void run(Context& context) const;

    // Bytes from the first to the last one accessed; throws if the sum overflows.
    uint64_t span(const CopySide& side) const;
    bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

enum class MemoryPlace : uint8_t {
    pageable,  // host memory that the device cannot access
    mapped,    // host memory, pinned or managed
    device,
};

// The kind of memory at those addresses; throws CUDA_ERROR_INVALID_VALUE for device addresses
// outside of one live allocation.
MemoryPlace place_of(uint64_t address, uint64_t span);

// The host's view of memory within one live allocation (or of pageable host memory).
struct MemoryView {
    std::byte* bytes = nullptr;
    uint8_t* valid = nullptr;  // same as Region's
};

// Sets an illegal-address fault in the context if the allocation was freed; `bytes` is nullptr
// then.
MemoryView view_of(Context& context, uint64_t address, uint64_t span, const char* what);

}  // namespace cyrt::emu
