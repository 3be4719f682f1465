// Filling memory with a value of one, two or four bytes.
#pragma once

#include <cstdint>

#include "driver/api.hpp"

namespace cyrt::emu {

struct FillOperation {
    uint64_t address = 0;
    uint64_t pitch = 0;
    uint32_t value = 0;
    uint32_t element = 1;  // bytes
    uint64_t width = 0;    // elements
    uint64_t height = 1;
    static constexpr bool runs_after_fault = false;
    void run(Context& context) const;

    // Throws the driver's error for an invalid fill.
    void check() const;
    bool empty() const { return width == 0 || height == 0; }
    uint64_t span() const { return (height - 1) * pitch + width * element; }
};

}  // namespace cyrt::emu
