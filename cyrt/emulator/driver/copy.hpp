// Copies between any two places, of one to three dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/api.hpp"

namespace cyrt::emu {

struct CopySide {
    uint64_t address = 0;
    uint64_t pitch = 0;      // from row to row
    uint64_t slice = 0;      // from slice to slice
};

struct CopyOperation {
    CopySide dst, src;
    uint64_t width = 0;      // bytes of a row
    uint64_t height = 1;
    uint64_t depth = 1;
    std::vector<std::byte> staged;    // the source, where it had to be read at once
    static constexpr bool runs_after_fault = false;
    void run(Context& context) const;

    // Bytes from the first to the last touched; throws where that overflows.
    uint64_t span(const CopySide& side) const;
    bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

enum class MemoryPlace : uint8_t {
    pageable,    // the host's own: the device cannot see it
    mapped,      // the host's, pinned or managed
    device,
};

// Where those bytes lie; throws CUDA_ERROR_INVALID_VALUE for device addresses that no single live
// allocation holds.
MemoryPlace place_of(uint64_t address, uint64_t span);

// The host's view of memory that lies within one live allocation (or is the host's own).
struct MemoryView {
    std::byte* bytes = nullptr;
    uint8_t* valid = nullptr;          // as Region's
};

// Breaks the context with an illegal address where the allocation is gone; `bytes` is nullptr then.
MemoryView view_of(Context& context, uint64_t address, uint64_t span, const char* what);

}  // namespace cyrt::emu
