// Which instructions run here, told from the instruction alone.
#pragma once

#include "ptx/ast.hpp"

namespace cyrt::emu {

bool is_control(const ptx::Instruction& instruction);
bool is_memory(const ptx::Instruction& instruction);
// shfl.sync and its like: runs once all lanes of its member mask have come.
bool waits_for_members(const ptx::Instruction& instruction);
// What a loop that waits for another thread does again and again.
bool may_wait(const ptx::Instruction& instruction);

// "mma.sync… is not supported by the emulated device: <the instruction as text>"
ptx::Error unsupported(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace cyrt::emu
