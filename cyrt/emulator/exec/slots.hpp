// Offsets in the register file for the virtual slots of a program.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/code.hpp"

namespace cyrt::emu {

struct VirtualSlot {
    uint8_t cell;
    bool is_predicate;
    int32_t function;  // the owner of the register; -1: the whole program (constants, specials)
};

// Facts about a program's slots that its code does not contain.
struct SlotUses {
    std::vector<VirtualSlot> slots;
    std::vector<bool> is_memory;       // by pc: the instruction has a MemoryOp
    std::vector<bool> vector_results;  // by MemoryOp: its vector is written, not read
};

// Replaces every slot number of `program` by an offset and sets the fields that depend on offsets.
//
// Registers of a function that are never live at the same time share an offset, so that a warp's
// registers stay in the cache. INVARIANTS
// - Only slots of one cell size share, and predicates only with predicates: a lane then never
//   accesses another lane's cell, and all bits of a predicate's cell are equal.
// - A result shares no offset with an operand of its own instruction.
void assign_slots(Program& program, const SlotUses& uses);

}  // namespace cyrt::emu
