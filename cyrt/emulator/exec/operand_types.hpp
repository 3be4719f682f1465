// The types in an instruction's modifiers, and immediates as values of those types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/ast.hpp"

namespace cyrt::emu {

// The last modifier that is a type; the register type for packed and narrow formats.
ptx::Type last_type(const ptx::Instruction& instruction);
ptx::Type first_type(const ptx::Instruction& instruction);
size_t count_types(const ptx::Instruction& instruction);
bool is_type_name(std::string_view modifier);

bool has_modifier(const ptx::Instruction& instruction, std::string_view modifier);

// "add.rn.f32"
std::string full_name(const ptx::Instruction& instruction);

// The bits of an immediate as an operand of that type.
uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

}  // namespace cyrt::emu
