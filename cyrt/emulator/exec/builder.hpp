// Collects the code of a program while its functions are lowered.
//
// INVARIANT: until finish() the numbers in Inst::d, Inst::s and MemoryOp::vector are virtual slots
// (one for each register, constant and temporary); finish() assigns offsets in the register file.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "exec/code.hpp"
#include "exec/slots.hpp"

namespace cyrt::emu {

class ProgramBuilder {
  public:
    explicit ProgramBuilder(Program& program) : program_(program) {}

    Program& program() { return program_; }
    uint32_t pc() const { return uint32_t(program_.code.size()); }

    // Assigns the following code to that function (an index of Program::functions).
    void enter(uint32_t function) { function_ = int32_t(function); }

    uint32_t add_slot(uint8_t cell, bool is_predicate = false);
    uint32_t add_program_slot(uint8_t cell);
    uint32_t constant(uint8_t cell, uint64_t lo, uint64_t hi = 0);
    uint32_t special(Special which, uint8_t cell);
    uint32_t param(uint8_t cell, ptx::Type type, uint32_t offset);
    // True if the slot holds its value before the warp runs.
    bool is_filled(uint32_t slot) const { return uses_.slots[slot].function < 0; }
    uint8_t cell(uint32_t slot) const { return uses_.slots[slot].cell; }

    void emit(Inst inst, int line);
    // Appends a control instruction; the reference is valid until the next one.
    Control& emit_control(ControlKind kind, int line, uint32_t s0 = kNoSlot);
    Control& control_at(uint32_t pc) { return program_.controls[program_.code[pc].extra]; }
    void emit_memory(Inst inst, MemoryOp op, bool vector_is_result, int line);
    void emit_frame_copy(uint32_t from_base, uint32_t to_base, FrameCopy copy, int line);

    void finish();

  private:
    Program& program_;
    SlotUses uses_;
    std::map<std::tuple<uint8_t, uint64_t, uint64_t>, uint32_t> constants_;
    std::map<std::pair<Special, uint8_t>, uint32_t> specials_;
    std::map<std::tuple<uint8_t, ptx::Type, uint32_t>, uint32_t> params_;
    int32_t function_ = -1;
};

}  // namespace cyrt::emu
