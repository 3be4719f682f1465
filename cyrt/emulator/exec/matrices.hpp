// The instructions of matrices: mma, ldmatrix, stmatrix, movmatrix, wmma.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/inst.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

struct MemoryOp;

enum class MatrixType : uint8_t { none, f16, bf16, tf32, f32, f64, s8, u8, s32 };

// The operands of a matrix instruction: a is m x k, b is k x n, c and d are m x n.
struct MatrixForm {
    uint8_t m = 0, n = 0, k = 0;
    MatrixType a = MatrixType::none, b = MatrixType::none;
    MatrixType c = MatrixType::none, d = MatrixType::none;
    bool opaque = false;  // wmma: the layout of elements is unspecified
    bool saturates = false;
    char part = 'd';         // the operand that wmma.load and wmma.store move
    bool by_column = false;  // layout in memory; ldmatrix, stmatrix: transposed
    uint8_t count = 0;       // 8 x 8 matrices of ldmatrix, stmatrix
};

bool is_matrix(const ptx::Instruction& instruction);

// Fills in `inst.run`, `op.matrix` and the fields of `op` for an access; false if the form is
// unknown. Results are in MemoryOp::vector, sources, fragment after fragment, in MemoryOp::values;
// only the one value of stmatrix and wmma.store is in `vector`. The address is s[0], the stride of
// wmma s[1] (kNoSlot if it is absent).
bool select_matrix_handler(const ptx::Instruction& source, Inst& inst, MemoryOp& op);

// The registers of a fragment: their number, and whether they have 64 bits. `part`: 'a' to 'd', or
// 'm' for the operand that a load or store moves.
struct FragmentRegisters {
    size_t count;
    bool is_wide;
};
FragmentRegisters fragment_registers(const MatrixForm& form, char part);

}  // namespace cyrt::emu
