// Lowering of one function's instructions to code.
//
// INVARIANTS
// - The operands match the instruction's form: check_supported() has verified it.
// - Nothing is ignored silently: an unknown form throws ptx::Error with its line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/builder.hpp"
#include "exec/program.hpp"
#include "exec/reach.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

// Data shared by the functions of a program during lowering.
struct LoweringContext {
    const ptx::Module& module;
    const SymbolAddress& address_of;
    const SharedLayout& shared;
    const std::map<const ptx::Function*, uint32_t>& function_index;  // into Program::functions
    std::map<std::string, const ptx::Variable*> module_shared;
};

// The frame of a function: parameters and results first, so that a caller can locate them from
// their declarations alone, then its variables.
FrameLayout signature_layout(const ptx::Signature& signature);

class FunctionLowering {
  public:
    FunctionLowering(const LoweringContext& context, ProgramBuilder& builder,
                     const ptx::Function& function, uint32_t index);

    // Appends the function's code.
    void lower();

  private:
    using Operand = ptx::Operand;
    using Instruction = ptx::Instruction;

    // lowering.cpp
    void lay_out_frame();
    void lower_instruction(size_t index);
    void lower_guarded(size_t index);
    void lower_on_registers(const Instruction& instruction);
    void lower_memory(const Instruction& instruction);
    void lower_memory_data(const Instruction& instruction, Inst& inst, MemoryOp& op);
    void lower_address(const Operand& operand, Inst& inst, MemoryOp& op);
    uint64_t window_of_name(const Operand& address) const;
    void lower_move(const Instruction& instruction);
    void lower_stack(const Instruction& instruction);
    void move_vector(const Operand& results, const Operand& sources, ptx::Type type);
    void move_into(const Operand& result, const Operand& source, ptx::Type type);
    void pack(const Operand& result, const Operand& parts, ptx::Type type);
    void unpack(const Operand& parts, const Operand& source, ptx::Type type);

    uint32_t source(const Operand& operand, ptx::Type type);
    uint32_t register_source(const Operand& operand);
    uint32_t symbol_source(const Operand& operand, uint8_t cell);
    uint64_t symbol_address(const std::string& name) const;
    uint32_t special_source(const Operand& operand, uint8_t cell);
    uint32_t result(const Operand& operand, ptx::Type type);
    uint32_t resized(uint32_t slot, uint8_t cell, bool is_signed);
    void flush_results();
    bool find_frame_variable(const std::string& name, uint32_t& offset) const;
    const ptx::Variable* find_shared(const std::string& name) const;
    [[noreturn]] void fail(const Instruction& instruction) const;

    // lowering_constants.cpp
    void count_writes();
    void fold_constants();
    bool fold_param(const Instruction& load);
    bool fold_address(const Instruction& convert);
    bool fold_move(const Instruction& move);
    bool can_rename(const Operand& operand, uint8_t cell) const;
    void rename(const Operand& operand, uint32_t slot);

    // lowering_tensor.cpp
    void lower_matrix(const Instruction& instruction);
    void lower_async_copy(const Instruction& copy);

    // lowering_control.cpp
    void lower_control(const Instruction& instruction, size_t index);
    void lower_branch(const Instruction& instruction, size_t index);
    void lower_table(const Instruction& instruction, size_t index);
    void lower_barrier(const Instruction& instruction);
    void lower_cluster_barrier(const Instruction& instruction);
    void lower_call(const Instruction& instruction);
    void pass_arguments(const Instruction& call, const FrameLayout& layout,
                        const std::vector<ptx::Variable>& declared);
    void take_results(const Instruction& call, const FrameLayout& layout,
                      const std::vector<ptx::Variable>& declared);
    uint32_t frame_size(const std::string& name, uint32_t otherwise) const;
    void lower_return(int line);
    void load_register_params();
    void frame_access(const char* opcode, ptx::Type type, uint32_t slot, uint32_t base,
                      uint32_t offset, int line);
    ptx::Type operand_type(const Operand& operand) const;
    uint32_t register_slot(const std::string& name) const;
    int32_t branch_cost(size_t from, size_t to) const;
    void resolve_branches();

    struct Branch {
        uint32_t pc;
        size_t target;  // the index of an instruction of the body
    };

    struct Widening {
        uint32_t from, to;
        bool is_signed;
    };

    const LoweringContext& context_;
    ProgramBuilder& builder_;
    const ptx::Function& function_;
    FunctionCode& code_;
    std::vector<uint32_t> registers_;        // virtual slot of each register
    std::map<std::string, uint32_t> frame_;  // offsets of parameters and variables
    std::vector<uint32_t> writes_;           // instructions that write each register
    std::vector<bool> folded_;               // by instruction: no code is needed for it
    std::vector<bool> is_label_;             // by instruction, and one entry for the end
    std::vector<uint32_t> waits_before_;     // instructions before it that may wait
    std::vector<uint32_t> pc_of_;            // by instruction, and one entry for the end
    std::vector<Branch> branches_;
    std::vector<std::pair<uint32_t, std::vector<int32_t>>> tables_;  // table, targets in the body
    std::vector<Widening> widenings_;  // results that still have to be widened or copied
    const Instruction* current_ = nullptr;
};

}  // namespace cyrt::emu
