// Whether a module needs more than the device has.
#pragma once

#include "ptx/ast.hpp"

namespace cyrt::emu {

// Throws ptx::Error as an assembler does. The module's instructions have been checked.
void check_limits(const ptx::Module& module);

}  // namespace cyrt::emu
