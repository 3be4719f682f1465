// The check of an instruction's operands against its form.
#pragma once

#include <string>
#include <unordered_map>

#include "exec/operand_forms.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

// Checks the instructions of one function.
class OperandCheck {
  public:
    OperandCheck(const ptx::Module& module, const ptx::Function& function);

    // The error in the instruction, or empty. Its opcode and modifiers are known.
    std::string misfit(const ptx::Instruction& instruction) const;

  private:
    using Operand = ptx::Operand;
    using Instruction = ptx::Instruction;

    // Each returns a description of the expected operand, or empty if the operand is valid.
    std::string expected(const Instruction& instruction, size_t index, const OperandRule& rule,
                         bool is_result) const;
    std::string expected_value(const Instruction& instruction, const Operand& operand,
                               ptx::Type type, const OperandRule& rule, bool is_result) const;
    std::string expected_values(const Instruction& instruction, const Operand& operand,
                                size_t count, ptx::Type type, const OperandRule& rule,
                                bool is_result) const;
    std::string expected_move(const Instruction& instruction, size_t index, ptx::Type type,
                              const OperandRule& rule, bool is_result) const;
    std::string expected_address(const Instruction& instruction, size_t index) const;
    std::string expected_symbol(const Instruction& instruction, const Operand& operand,
                                ptx::Type type) const;
    std::string expected_fragment(const Instruction& instruction, const Operand& operand, char part,
                                  bool is_result) const;
    std::string expected_selector(const Instruction& instruction, size_t index,
                                  const OperandRule& rule) const;
    std::string misfit_of_call(const Instruction& call) const;
    std::string expected_argument(const Instruction& call, const Operand& actual,
                                  const ptx::Variable& formal, bool is_result) const;

    const ptx::Variable* find_variable(const std::string& name) const;
    bool is_register(const Operand& operand) const { return operand.kind == Operand::Kind::reg; }
    ptx::Type type_of(const Operand& reg) const;

    const ptx::Module& module_;
    const ptx::Function& function_;
    std::unordered_map<std::string, const ptx::Variable*> variables_;  // the function's own
    std::unordered_map<std::string, const ptx::Variable*> of_module_;
};

}  // namespace cyrt::emu
