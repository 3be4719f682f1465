// The number of blocks of a kernel that a multiprocessor holds at once.
#pragma once

#include <cstdint>

#include "driver/api.hpp"

namespace cyrt::emu {

class Function;

uint32_t blocks_per_multiprocessor(const Function& function, uint32_t threads,
                                   uint64_t dynamic_shared);

}  // namespace cyrt::emu
