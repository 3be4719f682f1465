// The supported instructions, determined from the instruction alone.
#pragma once

#include "ptx/ast.hpp"

namespace cyrt::emu {

bool is_control(const ptx::Instruction& instruction);
bool is_memory(const ptx::Instruction& instruction);
// shfl.sync and similar ones: each runs once all lanes of its member mask have arrived.
bool waits_for_members(const ptx::Instruction& instruction);
// True for an instruction that a loop which waits for another thread repeats.
bool may_wait(const ptx::Instruction& instruction);

// "mma.sync… is not supported by the emulated device: <the instruction as text>"
ptx::Error unsupported(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace cyrt::emu
