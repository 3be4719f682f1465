// The instructions of matrices: mma, ldmatrix, stmatrix, movmatrix, wmma.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/inst.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

struct MemoryOp;

enum class MatrixType : uint8_t { none, f16, bf16, tf32, f32, f64, s8, u8, s32 };

// What a matrix instruction works on: a is m x k, b is k x n, c and d are m x n.
struct MatrixForm {
    uint8_t m = 0, n = 0, k = 0;
    MatrixType a = MatrixType::none, b = MatrixType::none;
    MatrixType c = MatrixType::none, d = MatrixType::none;
    bool opaque = false;          // wmma: where an element lies is left open
    bool saturates = false;
    char part = 'd';              // which one wmma.load and wmma.store move
    bool by_column = false;       // how it lies in memory; ldmatrix, stmatrix: transposed
    uint8_t count = 0;            // 8 x 8 matrices of ldmatrix, stmatrix
};

bool is_matrix(const ptx::Instruction& instruction);

// Fills in `inst.run`, `op.matrix` and what an access needs of `op`; false where the form is not
// known. Results stand in MemoryOp::vector, sources, fragment after fragment, in MemoryOp::values;
// but the one value of stmatrix and wmma.store stands in `vector`. The address is s[0], the stride
// of wmma s[1] (kNoSlot: none is given).
bool select_matrix_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op);

// The registers that hold a fragment: how many, and whether of 64 bits. `part`: 'a' to 'd', or 'm'
// for what a load or store moves.
struct FragmentRegisters {
    size_t count;
    bool is_wide;
};
FragmentRegisters fragment_registers(const MatrixForm& form, char part);

}  // namespace cyrt::emu
