// The instructions that access memory: ld, st, atom, red, prefetch, cvta, isspacep, fences,
// mbarrier; and those of matrices, which have more operands than an Inst.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/context.hpp"
#include "exec/inst.hpp"
#include "exec/matrices.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

// How accesses order those of other threads: `strong` ones (atomic, volatile, acquire, release) by
// the values that they hand over, `phase` ones as parts of an mbarrier.
enum class MemoryOrder : uint8_t { plain, strong, phase };

// A memory instruction's additional data, indexed by Inst::extra. The code that prepares the
// instruction fills in the slots: Inst::d, Inst::s (s[0] = address, s[1..] = values) and the first
// part here.
struct MemoryOp {
    uint64_t offset = 0;       // added to the address in Inst::s[0]; s[0] may be kNoSlot
    uint8_t address_cell = 8;  // bytes of a cell of s[0]: 4 or 8
    uint8_t cell = 4;          // bytes of a cell of the data: 4, 8, 16
    uint32_t cache = 0;        // index of this instruction's entry in WarpContext::regions

    // select_memory_handler fills in the rest.
    ptx::Space space = ptx::Space::generic;
    bool in_cluster = false;  // .shared::cluster: another block's memory too
    uint8_t count = 1;        // elements
    uint8_t size = 4;         // bytes of an element in memory
    bool acquire = false, release = false;
    MemoryOrder order = MemoryOrder::plain;
    bool async = false;  // the store of cp.async, or an mbarrier's wait for such
    uint32_t line = 0;   // line of the PTX text

    uint32_t vector[8];   // .v2 .v4 .v8: slots of the result, or of the value if there is no
                          // result
    uint32_t values[24];  // atom with a vector: slots of the value; the fragments of mma
    MatrixForm matrix;    // a matrix instruction's
};

// Fills in `inst.run` and the second part of `op`. False if the form is unknown.
//
// An address is a byte address of its space: device memory, including .const, has generic
// addresses; shared, local and (kernel) param ones are relative to the space's start, and bits
// above the 32nd are ignored, so that generic ones are valid as well. The operand of cvta, isspacep
// and mapa is a value, s[1]; all operands of isspacep are in 64-bit cells, its result too.
bool select_memory_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op);

}  // namespace cyrt::emu
