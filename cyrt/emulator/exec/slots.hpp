// Places in the register file for the virtual slots of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/code.hpp"

namespace cyrt::emu {

struct VirtualSlot {
    uint8_t cell;
    int32_t function;   // whose register it is; -1: the whole program's (constants, specials)
};

// Rewrites every slot number of `program` to an offset and fills in the sizes that follow.
// vector_results[i]: memory op i writes its vector (else it reads it).
void assign_slots(Program& program, const std::vector<VirtualSlot>& slots,
                  const std::vector<bool>& vector_results);

}  // namespace cyrt::emu
