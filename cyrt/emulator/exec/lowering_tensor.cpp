// Matrices, and copies from device memory to shared memory.
#include <algorithm>

#include "exec/async_copies.hpp"
#include "exec/handlers.hpp"
#include "exec/lowering.hpp"
#include "exec/matrices.hpp"
#include "exec/memory_forms.hpp"
#include "exec/operand_types.hpp"

namespace cyrt::emu {

using ptx::Type;
using Kind = ptx::Operand::Kind;

namespace {

MemoryOp empty_op() {
    MemoryOp op;
    std::fill(std::begin(op.vector), std::end(op.vector), kNoSlot);
    std::fill(std::begin(op.values), std::end(op.values), kNoSlot);
    return op;
}

}  // namespace

// All lanes of the warp run it together, so it waits for the others.
void FunctionLowering::lower_matrix(const Instruction& instruction) {
    Inst inst;
    MemoryOp op = empty_op();
    if (!select_matrix_handler(instruction, inst, op)) fail(instruction);
    const bool stores = instruction.opcode == "stmatrix" || has_modifier(instruction, "store");
    const auto type_of = [&](const Operand& operand) {
        return operand_type(operand) == Type::f64 ? Type::b64 : Type::b32;
    };
    size_t results = 0, values = 0;
    const auto take = [&](const Operand& operand, bool is_result) {
        size_t& count = is_result || stores ? results : values;
        if (is_result)
            op.vector[count++] = result(operand, type_of(operand));
        else
            (stores ? op.vector : op.values)[count++] = source(operand, type_of(operand));
    };
    bool has_address = false;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
        const Operand& operand = instruction.operands[i];
        const bool is_result = i == 0 && !stores;
        if (operand.kind == Kind::address) {
            lower_address(operand, inst, op);
            has_address = true;
        } else if (operand.kind == Kind::vector) {
            for (const Operand& part : operand.elements) take(part, is_result);
        } else if (has_address && instruction.opcode == "wmma" &&
                   i + 1 == instruction.operands.size()) {
            inst.s[1] = source(operand, Type::u32);
        } else {
            take(operand, is_result);
        }
    }
    builder_.emit_control(ControlKind::member_sync, instruction.line,
                          builder_.constant(4, kFullMask));
    builder_.emit_memory(inst, op, !stores, instruction.line);
    flush_results();
}

// cp.async may run at any time until it is awaited: it runs at once. Only the search for hazards
// has to know of commits and waits.
void FunctionLowering::lower_async_copy(const Instruction& copy) {
    Program& program = builder_.program();
    program.copies_async = true;
    const auto emit = [&](Handler handler, uint32_t left) {
        Inst inst;
        inst.run = handler;
        inst.extra = left;
        builder_.emit(inst, copy.line);
    };
    const bool waits_for_all = has_modifier(copy, "wait_all");
    if (waits_for_all || has_modifier(copy, "commit_group")) emit(commit_copies, 0);
    if (waits_for_all) emit(wait_for_copies, 0);
    if (has_modifier(copy, "wait_group")) emit(wait_for_copies, uint32_t(copy.operands[0].bits));
    if (waits_for_all || has_modifier(copy, "commit_group") || has_modifier(copy, "wait_group"))
        return;
    if (has_modifier(copy, "mbarrier")) {
        Instruction arrive = copy;
        arrive.opcode = "mbarrier";
        arrive.modifiers = {"arrive", "shared", "b64"};
        lower_memory(arrive);
        MemoryOp& op = program.memory_ops.back();
        op.async = true;
        if (!has_modifier(copy, "noinc")) program.code.back().run = find_copies_handler(op.space);
        return;
    }
    const auto& operands = copy.operands;
    const uint8_t bytes = uint8_t(operands[2].bits);
    const char* type = bytes == 4 ? "b32" : bytes == 8 ? "b64" : "b128";
    const uint32_t between = builder_.add_slot(bytes);

    Inst load;
    MemoryOp from = empty_op();
    lower_address(operands[1], load, from);
    load.d[0] = between;
    from.cell = bytes;
    Instruction form;
    form.opcode = "ld";
    form.modifiers = {"global", type};
    if (!select_memory_handler(form, load, from)) fail(copy);
    const size_t last = operands.size() - has_modifier(copy, "L2::cache_hint");
    if (last > 3) {  // fewer bytes than the size, or with a predicate none; the rest is zero
        load.s[1] = source(operands[3], Type::u32);
        if (operand_type(operands[3]) == Type::pred) {
            Inst select;
            select.run = find_handler("selp.b32");
            select.s[0] = builder_.constant(4, 0);
            select.s[1] = builder_.constant(4, bytes);
            select.s[2] = load.s[1];
            select.d[0] = load.s[1] = builder_.add_slot(4);
            builder_.emit(select, copy.line);
        }
        load.run = partial_load(bytes);
    }
    builder_.emit_memory(load, from, true, copy.line);

    Inst store;
    MemoryOp to = empty_op();
    lower_address(operands[0], store, to);
    store.s[1] = between;
    to.cell = bytes;
    form.opcode = "st";
    form.modifiers = {"shared", type};
    if (!select_memory_handler(form, store, to)) fail(copy);
    to.async = true;
    builder_.emit_memory(store, to, false, copy.line);
}

}  // namespace cyrt::emu
