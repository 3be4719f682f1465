#include "exec/builder.hpp"

#include <algorithm>

#include "exec/moves.hpp"

namespace cyrt::emu {

uint32_t ProgramBuilder::add_slot(uint8_t cell, bool is_predicate) {
    uses_.slots.push_back({cell, is_predicate, function_});
    return uint32_t(uses_.slots.size() - 1);
}

uint32_t ProgramBuilder::add_program_slot(uint8_t cell) {
    uses_.slots.push_back({cell, false, -1});
    return uint32_t(uses_.slots.size() - 1);
}

uint32_t ProgramBuilder::constant(uint8_t cell, uint64_t lo, uint64_t hi) {
    const auto [found, is_new] = constants_.try_emplace({cell, lo, hi}, 0);
    if (is_new) {
        found->second = add_program_slot(cell);
        program_.constants.push_back({lo, hi, cell, found->second});
    }
    return found->second;
}

uint32_t ProgramBuilder::special(Special which, uint8_t cell) {
    const auto [found, is_new] = specials_.try_emplace({which, cell}, 0);
    if (is_new) {
        found->second = add_program_slot(cell);
        program_.specials.push_back({which, cell, found->second});
        program_.uses_workspace |= which == Special::workspace_low;
        program_.uses_reserved_shared |= which == Special::reserved_begin;
    }
    return found->second;
}

uint32_t ProgramBuilder::param(uint8_t cell, ptx::Type type, uint32_t offset) {
    const auto [found, is_new] = params_.try_emplace({cell, type, offset}, 0);
    if (is_new) {
        found->second = add_program_slot(cell);
        program_.params.push_back({type, cell, offset, found->second});
    }
    return found->second;
}

void ProgramBuilder::emit(Inst inst, int line) {
    inst.line = uint32_t(line);
    program_.code.push_back(inst);
    uses_.is_memory.push_back(false);
}

Control& ProgramBuilder::emit_control(ControlKind kind, int line, uint32_t s0) {
    Inst inst;
    inst.s[0] = s0;
    inst.extra = uint32_t(program_.controls.size());
    emit(inst, line);
    program_.controls.emplace_back();
    program_.controls.back().kind = kind;
    return program_.controls.back();
}

void ProgramBuilder::emit_memory(Inst inst, MemoryOp op, bool vector_is_result, int line) {
    inst.extra = uint32_t(program_.memory_ops.size());
    op.cache = inst.extra;
    op.line = uint32_t(line);
    const uint32_t bytes = uint32_t(op.size) * op.count;
    const bool may_be_shared = op.space == ptx::Space::shared || op.space == ptx::Space::generic;
    if (may_be_shared && bytes) program_.least_access = std::min(program_.least_access, bytes);
    program_.memory_ops.push_back(op);
    uses_.vector_results.push_back(vector_is_result);
    emit(inst, line);
    uses_.is_memory.back() = true;
}

void ProgramBuilder::emit_frame_copy(uint32_t from_base, uint32_t to_base, FrameCopy copy,
                                     int line) {
    if (copy.bytes == 0) return;
    Inst inst;
    inst.run = copy_frame;
    inst.s[0] = from_base;
    inst.s[1] = to_base;
    inst.extra = uint32_t(program_.frame_copies.size());
    program_.frame_copies.push_back(copy);
    emit(inst, line);
}

void ProgramBuilder::finish() { assign_slots(program_, uses_); }

}  // namespace cyrt::emu
