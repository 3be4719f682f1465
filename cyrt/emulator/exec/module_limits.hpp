// The check of a module against the device's memory limits.
#pragma once

#include "ptx/ast.hpp"

namespace cyrt::emu {

// Throws ptx::Error like an assembler. The module's instructions must have been checked.
void check_limits(const ptx::Module& module);

}  // namespace cyrt::emu
