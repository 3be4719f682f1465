// The contract between the scheduler and the instruction handlers.
//
// One handler call runs one instruction for the 32 lanes of a warp. Registers are
// struct-of-arrays: a register is a *slot*, 32 cells side by side.
//
// INVARIANTS
// - A cell is 4 bytes for every type of up to 32 bits (predicates too), 8 bytes for 64-bit types,
//   16 bytes for b128. Slots are 64-byte aligned. An 8- or 16-bit value is in the low bytes of its
//   cell; the bits above are unspecified, and handlers ignore them.
// - A predicate cell is 0 or 0xffffffff, never anything else.
// - A handler writes only the cells of active lanes. It may compute all 32.
// - Constants, special registers and parameters known at launch are slots filled before the warp
//   runs: a handler has one kind of source operand.
// - Operands are in slots whose cell size is that of the instruction's own type: the scheduler
//   inserts narrowing or widening moves if PTX allows a wider register.
// - Handler files are compiled twice, for two instruction sets: they use no function with external
//   linkage that is defined in this or another header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyrt::emu {

constexpr int kWarpSize = 32;
constexpr uint32_t kFullMask = 0xffffffffu;
constexpr uint32_t kNoSlot = 0xffffffffu;  // an operand that is absent, or the sink `_`

struct Inst;
struct WarpContext;  // for memory, control and system handlers (exec/context.hpp)

struct alignas(64) Warp {
    uint32_t lane_on[kWarpSize];  // 0xffffffff for each active lane, else 0: `active`, spread out
    uint32_t active;              // bit i: lane i runs the current instruction
    std::byte* slots;             // the register file; slot offsets are in bytes
    WarpContext* context;
    uint32_t carry[kWarpSize];  // CC.CF of each lane, 0 or 1: add.cc, addc, mad.cc ...
};

using Handler = void (*)(Warp&, const Inst&);

// Operands in PTX order: results in d, sources in s.
struct Inst {
    Handler run = nullptr;
    uint32_t d[2] = {kNoSlot, kNoSlot};
    uint32_t s[5] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};  // 5: lop3 with a predicate
    uint32_t extra = 0;  // memory and control: index into tables of the program;
                         // video: the operands' selectors (exec/handlers.hpp)
    uint32_t line = 0;   // line of the PTX text
};

}  // namespace cyrt::emu
