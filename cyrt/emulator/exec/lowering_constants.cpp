// Instructions that need not run: their result is the same for the whole launch, or for the whole
// life of a warp, so it is in a slot before the warp runs.
//
// INVARIANT: a register is an alias of such a slot only if exactly one instruction writes it, and
// that one has no guard. The slot is never written then: program slots are filled, not computed.
#include <algorithm>

#include "exec/lowering.hpp"
#include "exec/operand_types.hpp"

namespace cyrt::emu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void FunctionLowering::count_writes() {
    writes_.assign(function_.registers.size(), 0);
    const auto count = [&](const Operand& operand) {
        if (operand.kind == Kind::reg) ++writes_[size_t(operand.index)];
        for (const Operand& element : operand.elements)
            if (operand.kind == Kind::vector && element.kind == Kind::reg)
                ++writes_[size_t(element.index)];
    };
    // Results come first; a source at that position counts too, which only costs speed.
    for (const Instruction& instruction : function_.body) {
        const size_t results =
            std::min<size_t>(instruction.paired ? 2 : 1, instruction.operands.size());
        for (size_t i = 0; i < results; ++i) count(instruction.operands[i]);
    }
    for (const auto* list : {&function_.params, &function_.results})
        for (const ptx::Variable& variable : *list)
            for (size_t i = 0; i < writes_.size(); ++i)
                if (function_.registers[i].name == variable.name) ++writes_[i];
}

void FunctionLowering::fold_constants() {
    count_writes();
    folded_.assign(function_.body.size(), false);
    for (size_t i = 0; i < function_.body.size(); ++i) {
        current_ = &function_.body[i];
        if (current_->guard < 0 && !current_->operands.empty())
            folded_[i] = fold_param(*current_) || fold_address(*current_) || fold_move(*current_);
    }
}

// True if `operand` is a register with that cell size that no other instruction writes.
bool FunctionLowering::can_rename(const Operand& operand, uint8_t cell) const {
    return operand.kind == Kind::reg && writes_[size_t(operand.index)] == 1 &&
           builder_.cell(registers_[size_t(operand.index)]) == cell;
}

void FunctionLowering::rename(const Operand& operand, uint32_t slot) {
    registers_[size_t(operand.index)] = slot;
}

// ld.param of a kernel, one value or several.
bool FunctionLowering::fold_param(const Instruction& load) {
    if (!function_.is_entry || load.opcode != "ld" || load.operands.size() != 2 ||
        !(has_modifier(load, "param") || has_modifier(load, "param::entry")))
        return false;
    const Operand& address = load.operands[1];
    uint32_t ignored;
    if (address.kind != Kind::address || address.index >= 0 || address.name.empty() ||
        find_frame_variable(address.name, ignored))
        return false;

    const Type type = last_type(load);
    const uint32_t size = ptx::size_of(type);
    const bool is_vector = load.operands[0].kind == Kind::vector;
    const std::vector<Operand> results =
        is_vector ? load.operands[0].elements : std::vector<Operand>{load.operands[0]};
    const uint64_t offset = symbol_address(address.name) + uint64_t(address.value);
    const uint64_t bytes = uint64_t(size) * results.size();
    const uint64_t all = builder_.program().param_bytes;
    if (size == 0 || size > 8 || offset % bytes || offset > all || all - offset < bytes)
        return false;
    for (const Operand& result : results) {
        if (result.kind == Kind::sink) continue;
        if (result.kind != Kind::reg ||
            !can_rename(result, builder_.cell(registers_[size_t(result.index)])))
            return false;
    }
    for (size_t k = 0; k < results.size(); ++k) {
        if (results[k].kind == Kind::sink) continue;
        const uint8_t cell = builder_.cell(registers_[size_t(results[k].index)]);
        rename(results[k], builder_.param(cell, type, uint32_t(offset + k * size)));
    }
    return true;
}

// cvta of a constant, if the generic address is the same number.
bool FunctionLowering::fold_address(const Instruction& convert) {
    if (convert.opcode != "cvta" || convert.operands.size() != 2 ||
        last_type(convert) != Type::u64 ||
        !(has_modifier(convert, "global") || has_modifier(convert, "const")))
        return false;
    const Operand& from = convert.operands[1];
    if (!can_rename(convert.operands[0], 8) || from.kind != Kind::reg || from.value != 0 ||
        !builder_.is_filled(registers_[size_t(from.index)]) ||
        builder_.cell(registers_[size_t(from.index)]) != 8)
        return false;
    rename(convert.operands[0], registers_[size_t(from.index)]);
    return true;
}

// mov of a literal, of a special register that does not change, of a kernel's symbol.
bool FunctionLowering::fold_move(const Instruction& move) {
    const Type type = last_type(move);
    if (move.opcode != "mov" || move.operands.size() != 2 || ptx::size_of(type) == 0 ||
        !can_rename(move.operands[0], cell_of(type)))
        return false;
    const Operand& from = move.operands[1];
    Special which;
    Type own;
    const bool constant =
        from.kind == Kind::imm || (from.kind == Kind::symbol && function_.is_entry) ||
        (from.kind == Kind::special && special_from(from.name, which, own) && !changes(which));
    if (constant) rename(move.operands[0], source(from, type));
    return constant;
}

}  // namespace cyrt::emu
