// The loads of cp.async.
#pragma once

#include "exec/inst.hpp"

namespace cyrt::emu {

// Of 4, 8 or 16 bytes into d[0]: as many as s[1] says come from the address s[0], the rest is zero.
Handler partial_load(int bytes);

}  // namespace cyrt::emu
