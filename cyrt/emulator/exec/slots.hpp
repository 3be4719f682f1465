// Places in the register file for the virtual slots of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/code.hpp"

namespace cyrt::emu {

struct VirtualSlot {
    uint8_t cell;
    bool is_predicate;
    int32_t function;   // whose register it is; -1: the whole program's (constants, specials)
};

// What the code alone does not tell of the slots in it.
struct SlotUses {
    std::vector<VirtualSlot> slots;
    std::vector<bool> is_memory;        // by pc: the instruction has a MemoryOp
    std::vector<bool> vector_results;   // by MemoryOp: its vector is written, not read
};

// Rewrites every slot number of `program` to an offset and fills in what follows from the places.
//
// Registers of a function that are never alive together share a place, so that a warp's registers
// stay in the cache. INVARIANTS
// - Only slots of one cell size share, and predicates only with predicates: a lane then never
//   touches another lane's cell, and a predicate's cell is never anything but all or nothing.
// - A result shares no place with an operand of its own instruction.
void assign_slots(Program& program, const SlotUses& uses);

}  // namespace cyrt::emu
