#include "exec/lowering.hpp"

#include <algorithm>

#include "exec/handlers.hpp"
#include "exec/operand_types.hpp"
#include "exec/support.hpp"

namespace cyrt::emu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

void FunctionLowering::lower_control(const Instruction& instruction, size_t index) {
    const std::string& opcode = instruction.opcode;
    const int line = instruction.line;
    if (opcode == "bra") return lower_branch(instruction, index);
    if (opcode == "brx") return lower_table(instruction, index);
    if (opcode == "call") return lower_call(instruction);
    if (opcode == "ret") return lower_return(line);
    if (opcode == "bar" || opcode == "barrier") return lower_barrier(instruction);
    if (waits_for_members(instruction)) return lower_on_registers(instruction);
    if (opcode == "griddepcontrol") {
        const bool waits = has_modifier(instruction, "wait");
        builder_.program().launches_dependents |= !waits;
        builder_.emit_control(
            waits ? ControlKind::wait_dependencies : ControlKind::launch_dependents, line);
        return;
    }
    const ControlKind kind = opcode == "exit"    ? ControlKind::exit
                             : opcode == "trap"  ? ControlKind::trap
                             : opcode == "brkpt" ? ControlKind::breakpoint
                                                 : ControlKind::yield;
    builder_.emit_control(kind, line);
}

// --- branches ----------------------------------------------------------------------------------

int32_t FunctionLowering::branch_cost(size_t from, size_t to) const {
    if (to > from) return 0;
    builder_.program().has_loops = true;
    return waits_before_[from] > waits_before_[to] ? kSpinCost : 1;
}

void FunctionLowering::lower_branch(const Instruction& instruction, size_t index) {
    const size_t target = size_t(instruction.operands[0].index);
    branches_.push_back({builder_.pc(), target});
    Control* control;
    if (instruction.guard < 0) {
        control = &builder_.emit_control(ControlKind::jump, instruction.line);
    } else {
        control = &builder_.emit_control(ControlKind::branch, instruction.line,
                                         registers_[size_t(instruction.guard)]);
        control->negated = instruction.guard_negated;
    }
    control->cost = branch_cost(index, target);
}

void FunctionLowering::lower_table(const Instruction& instruction, size_t index) {
    const auto targets = function_.branch_targets.find(instruction.operands[1].name);
    const uint32_t slot = source(instruction.operands[0], Type::u32);
    const uint32_t table = uint32_t(builder_.program().tables.size());
    builder_.program().tables.emplace_back();
    tables_.push_back({table, targets->second});
    Control& control = builder_.emit_control(ControlKind::table, instruction.line, slot);
    control.target = table;
    for (int32_t target : targets->second)
        control.cost = std::max(control.cost, branch_cost(index, size_t(target)));
}

void FunctionLowering::resolve_branches() {
    for (const Branch& branch : branches_)
        builder_.control_at(branch.pc).target = pc_of_[branch.target];
    for (const auto& [table, targets] : tables_)
        for (int32_t target : targets)
            builder_.program().tables[table].push_back(pc_of_[size_t(target)]);
}

// --- barriers ----------------------------------------------------------------------------------

void FunctionLowering::lower_barrier(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    if (has_modifier(instruction, "warp")) {
        builder_.emit_control(ControlKind::warp_barrier, instruction.line,
                              source(operands[0], Type::b32));
        return;
    }
    if (has_modifier(instruction, "cluster")) return lower_cluster_barrier(instruction);

    const bool reduces = has_modifier(instruction, "red");
    const size_t first = reduces ? 1 : 0;
    const size_t last = operands.size() - (reduces ? 1 : 0);  // after the id and the count
    const uint32_t id = source(operands[first], Type::u32);
    const uint32_t count = last == first + 2 ? source(operands[first + 1], Type::u32) : kNoSlot;
    const uint32_t predicate = reduces ? source(operands.back(), Type::pred) : kNoSlot;

    const bool counts = has_modifier(instruction, "popc");
    const BarrierOp op = has_modifier(instruction, "arrive") ? BarrierOp::arrive
                         : !reduces                          ? BarrierOp::sync
                         : counts                            ? BarrierOp::red_popc
                         : has_modifier(instruction, "and")  ? BarrierOp::red_and
                                                             : BarrierOp::red_or;
    const uint32_t into = reduces ? result(operands[0], counts ? Type::u32 : Type::pred) : kNoSlot;
    builder_.emit_control(ControlKind::barrier, instruction.line, id).target = uint32_t(op);
    Inst& inst = builder_.program().code.back();
    inst.s[1] = count;
    inst.s[2] = predicate;
    inst.d[0] = into;
    flush_results();
}

void FunctionLowering::lower_cluster_barrier(const Instruction& instruction) {
    builder_.program().uses_cluster_barrier = true;
    builder_
        .emit_control(has_modifier(instruction, "arrive") ? ControlKind::cluster_arrive
                                                          : ControlKind::cluster_wait,
                      instruction.line)
        .target = has_modifier(instruction, "relaxed");
}

// --- calls -------------------------------------------------------------------------------------

uint32_t FunctionLowering::register_slot(const std::string& name) const {
    for (size_t i = 0; i < function_.registers.size(); ++i)
        if (function_.registers[i].name == name) return registers_[i];
    throw ptx::Error(function_.line, "no register " + name);
}

void FunctionLowering::frame_access(const char* opcode, Type type, uint32_t slot, uint32_t base,
                                    uint32_t offset, int line) {
    Instruction form;
    form.opcode = opcode;
    const uint8_t cell = cell_of(type);
    form.modifiers = {"local", cell == 4 ? "b32" : cell == 8 ? "b64" : "b128"};
    Inst inst;
    MemoryOp op;
    std::fill(std::begin(op.vector), std::end(op.vector), kNoSlot);
    std::fill(std::begin(op.values), std::end(op.values), kNoSlot);
    op.offset = offset;
    op.cell = cell;
    inst.s[0] = base;
    const bool loads = form.opcode == "ld";
    (loads ? inst.d[0] : inst.s[1]) = slot;
    if (!select_memory_handler(form, inst, op)) throw ptx::Error(line, "a parameter of that size");
    builder_.emit_memory(inst, op, loads, line);
}

void FunctionLowering::load_register_params() {
    if (function_.is_entry) return;
    for (size_t i = 0; i < function_.params.size(); ++i)
        if (function_.params[i].space == ptx::Space::reg && function_.params[i].name != "_")
            frame_access("ld", function_.params[i].type, register_slot(function_.params[i].name),
                         code_.base_slot, code_.frame.params[i], function_.line);
}

void FunctionLowering::lower_return(int line) {
    if (function_.is_entry) {
        builder_.emit_control(ControlKind::exit, line);
        return;
    }
    for (size_t i = 0; i < function_.results.size(); ++i)
        if (function_.results[i].space == ptx::Space::reg && function_.results[i].name != "_")
            frame_access("st", function_.results[i].type, register_slot(function_.results[i].name),
                         code_.base_slot, code_.frame.results[i], line);
    builder_.emit_control(ControlKind::ret, line);
}

Type FunctionLowering::operand_type(const Operand& operand) const {
    if (operand.kind == Kind::reg) return function_.registers[size_t(operand.index)].type;
    return operand.kind == Kind::symbol ? Type::b64 : Type::b32;
}

void FunctionLowering::pass_arguments(const Instruction& call, const FrameLayout& layout,
                                      const std::vector<ptx::Variable>& declared) {
    const uint32_t stack = builder_.program().stack_slot;
    const auto& arguments = call.operands[2].elements;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const Operand& argument = arguments[i];
        uint32_t offset;
        if (argument.kind == Kind::symbol && find_frame_variable(argument.name, offset)) {
            const uint32_t end = i + 1 < layout.params.size() ? layout.params[i + 1]
                                 : layout.results.empty()     ? layout.bytes
                                                              : layout.results[0];
            const uint32_t room = end - layout.params[i];
            builder_.emit_frame_copy(
                code_.base_slot, stack,
                {offset, layout.params[i], std::min(room, frame_size(argument.name, room))},
                call.line);
        } else {
            const Type type = declared[i].type;
            frame_access("st", type, source(argument, type), stack, layout.params[i], call.line);
        }
    }
}

void FunctionLowering::take_results(const Instruction& call, const FrameLayout& layout,
                                    const std::vector<ptx::Variable>& declared) {
    const uint32_t stack = builder_.program().stack_slot;
    const auto& results = call.operands[0].elements;
    for (size_t i = 0; i < results.size(); ++i) {
        const Operand& into = results[i];
        uint32_t offset;
        if (into.kind == Kind::sink) continue;
        if (into.kind == Kind::symbol && find_frame_variable(into.name, offset)) {
            const uint32_t room = layout.bytes - layout.results[i];
            builder_.emit_frame_copy(
                stack, code_.base_slot,
                {layout.results[i], offset, std::min(room, frame_size(into.name, room))},
                call.line);
        } else {
            const Type type = declared[i].type;
            const uint32_t slot = result(into, type);
            frame_access("ld", type, slot, stack, layout.results[i], call.line);
        }
    }
    flush_results();
}

uint32_t FunctionLowering::frame_size(const std::string& name, uint32_t otherwise) const {
    for (const auto* variables : {&function_.variables, &function_.params, &function_.results})
        for (const ptx::Variable& variable : *variables)
            if (variable.name == name) return uint32_t(variable.size);
    return otherwise;
}

void FunctionLowering::lower_call(const Instruction& call) {
    const Operand& target = call.operands[1];
    const ptx::Function* callee =
        target.kind == Kind::symbol ? find_function(context_.module, target.name) : nullptr;
    const ptx::Signature& signature = *signatures_of(context_.module, function_, call).front();
    const FrameLayout layout = signature_layout(signature);
    Program& program = builder_.program();
    program.staging_bytes = std::max(program.staging_bytes, layout.bytes);

    const uint32_t address = callee ? kNoSlot : source(target, Type::u64);
    pass_arguments(call, layout, signature.params);
    SystemCall system;
    if (!callee) {
        builder_.emit_control(ControlKind::call_indirect, call.line, address);
    } else if (!callee->is_extern) {
        builder_.emit_control(ControlKind::call, call.line).target =
            context_.function_index.at(callee);
    } else if (system_call_from(callee->name, system)) {
        builder_.emit_control(ControlKind::system, call.line).target = uint32_t(system);
        program.prints |= system == SystemCall::print;
        program.uses_heap |= system == SystemCall::allocate || system == SystemCall::release;
    } else {
        fail(call);
    }
    take_results(call, layout, signature.results);
}

}  // namespace cyrt::emu
