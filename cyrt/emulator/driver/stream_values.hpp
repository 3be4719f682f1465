// Writing a word of memory, and waiting for one, in stream order.
#pragma once

#include <cstdint>

#include "driver/api.hpp"

namespace cyrt::emu {

struct WriteValueOperation {
    uint64_t address;
    uint64_t value;
    uint32_t size;  // 4 or 8
    static constexpr bool runs_after_fault = false;
    void run(Context& context);
};

struct WaitValueOperation {
    uint64_t address;
    uint64_t value;
    uint32_t size;
    unsigned condition;  // CUstreamWaitValue_flags without the flush bit
    static constexpr bool runs_after_fault = false;
    void run(Context& context);
};

}  // namespace cyrt::emu
