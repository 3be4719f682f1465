// The register-to-register instructions: all except control flow and memory; and, under separate
// names (exec/handlers_memory.cpp), the handlers of loads and stores.
//
// INVARIANTS
// - An operand's cell has the type in the instruction's table of the PTX ISA: the counts of
//   shl/shr, the positions of bfe/bfi, the results of popc/clz/bfind are 32-bit even for b64, the
//   result of mul.wide is twice as wide, the sources of cvt have the second type. Packed pairs
//   (f16x2, u16x2) are 32-bit, f32x2 is 64-bit, a pair of 8-bit floats is 16-bit.
// - d[0] is a slot; it may be kNoSlot (the sink `_`) only where PTX has a pair `d|p`. d[1] may
//   always be kNoSlot.
// - An absent optional source is kNoSlot: the third operand of min.f32, the predicate of setp.and,
//   the member mask of a shfl without .sync.
#pragma once

#include <cstdint>
#include <string_view>

#include "exec/inst.hpp"

namespace cyrt::emu {

// The handler for an instruction written as in PTX, opcode and modifiers joined by dots
// ("fma.rn.ftz.f32", "setp.lt.and.s32", "shfl.sync.bfly.b32"), or nullptr if there is none. The
// order of modifiers that are no types does not matter, nor does ".aligned". The table of the
// widest instruction set of this processor is chosen once.
Handler find_handler(std::string_view name);

// Inst::extra of a video instruction, from the selectors of its operands ("b0", "h1", "b7654",
// "h32", and a destination's mask), empty if an operand has none.
uint32_t pack_video_selectors(std::string_view d, std::string_view a, std::string_view b);

}  // namespace cyrt::emu
