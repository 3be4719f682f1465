// The type of each operand of a register-to-register instruction, as its table in the PTX ISA says.
#pragma once

#include <string>

#include "ptx/ast.hpp"

namespace cyrt::emu {

struct OperandTypes {
    int results = 1;
    ptx::Type d[2] = {ptx::Type::b32, ptx::Type::pred};
    ptx::Type s[5] = {};
};
OperandTypes operand_types(const ptx::Instruction& instruction);

// The last modifier that is a type; packed and narrow formats as the register that holds them.
ptx::Type last_type(const ptx::Instruction& instruction);

bool has_modifier(const ptx::Instruction& instruction, const char* modifier);

// "add.rn.f32"
std::string full_name(const ptx::Instruction& instruction);

// The bits of an immediate as an operand of that type.
uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

}  // namespace cyrt::emu
