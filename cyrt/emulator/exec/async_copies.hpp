// The loads of cp.async.
#pragma once

#include "exec/inst.hpp"

namespace cyrt::emu {

// Loads 4, 8 or 16 bytes into d[0]: the first s[1] bytes from the address s[0], zeros for the rest.
Handler partial_load(int bytes);

// cp.async.commit_group; and a wait for all groups but the last Inst::extra.
void commit_copies(Warp& warp, const Inst& inst);
void wait_for_copies(Warp& warp, const Inst& inst);

}  // namespace cyrt::emu
