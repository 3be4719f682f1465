#include "exec/support.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "exec/code.hpp"
#include "exec/handlers.hpp"
#include "exec/matrices.hpp"
#include "exec/memory_ops.hpp"
#include "exec/module_limits.hpp"
#include "exec/operand_check.hpp"
#include "exec/operand_types.hpp"
#include "exec/program.hpp"
#include "exec/reach.hpp"

namespace cyrt::emu {

using Kind = ptx::Operand::Kind;

namespace {

bool is_any(std::string_view opcode, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), opcode) != names.end();
}

std::string text_of(const ptx::Function& function, const ptx::Operand& operand) {
    const auto list = [&](const char* between) {
        std::string out;
        for (const ptx::Operand& element : operand.elements)
            out += (out.empty() ? "" : between) + text_of(function, element);
        return out;
    };
    const std::string base = operand.index >= 0 && operand.kind != Kind::label
                                 ? function.registers[size_t(operand.index)].name
                                 : operand.name;
    switch (operand.kind) {
    case Kind::reg: return (operand.negated ? "!" : "") + base;
    case Kind::imm: return std::to_string(int64_t(operand.bits));
    case Kind::vector: return "{" + list(", ") + "}";
    case Kind::sink: return "_";
    case Kind::address: {
        std::string out = "[" + base;
        if (operand.value || base.empty())
            out += (base.empty() ? "" : "+") + std::to_string(operand.value);
        if (!operand.elements.empty()) out += ", " + list(", ");
        return out + "]";
    }
    default: return base;
    }
}

std::string text_of(const ptx::Function& function, const ptx::Instruction& instruction) {
    std::string out = full_name(instruction);
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
        const bool pair = instruction.paired && i == 1;
        out += (i == 0 ? " " : pair ? "|" : ", ") + text_of(function, instruction.operands[i]);
    }
    return out;
}

bool has_known_specials(const ptx::Operand& operand) {
    Special which;
    ptx::Type type;
    if (operand.kind == Kind::special && !special_from(operand.name, which, type)) return false;
    return std::all_of(operand.elements.begin(), operand.elements.end(), has_known_specials);
}

bool is_known_memory(ptx::Instruction instruction) {
    // Stores of a function to its parameters go to its frame.
    if (instruction.opcode == "st")
        for (std::string& modifier : instruction.modifiers)
            if (modifier == "param" || modifier == "param::func") modifier = "local";
    Inst inst;
    MemoryOp op;
    std::fill(std::begin(op.vector), std::end(op.vector), 0u);
    std::fill(std::begin(op.values), std::end(op.values), 0u);
    std::fill(std::begin(inst.d), std::end(inst.d), 0u);
    std::fill(std::begin(inst.s), std::end(inst.s), 0u);
    return select_memory_handler(instruction, inst, op);
}

bool is_known_matrix(const ptx::Instruction& instruction) {
    Inst inst;
    MemoryOp op;
    return select_matrix_handler(instruction, inst, op);
}

bool is_known_async_copy(const ptx::Instruction& copy) {
    for (const char* bulk : {"bulk", "reduce", "tensor"})
        if (has_modifier(copy, bulk)) return false;
    for (const char* sync : {"commit_group", "wait_group", "wait_all", "mbarrier"})
        if (has_modifier(copy, sync)) return true;
    const auto& operands = copy.operands;
    return operands.size() >= 3 && operands[0].kind == Kind::address &&
           operands[1].kind == Kind::address && operands[2].kind == Kind::imm &&
           (operands[2].bits == 4 || operands[2].bits == 8 || operands[2].bits == 16);
}

class Check {
  public:
    explicit Check(const ptx::Module& module) : module_(module) {}

    bool is_known(const ptx::Instruction& instruction) {
        for (const ptx::Operand& operand : instruction.operands)
            if (!has_known_specials(operand)) return false;
        if (instruction.opcode == "call") return is_known_call(instruction);
        const OperandForm* form = form_of(instruction);
        if (!form) return false;
        if (is_matrix(instruction)) return is_known_matrix(instruction);
        if (instruction.opcode == "cp") return is_known_async_copy(instruction);
        if (is_memory(instruction)) return is_known_memory(instruction);
        if (form->modifiers) return true;  // the form is sufficient
        return is_known_name(full_name(instruction));
    }

  private:
    bool is_known_name(std::string name) {
        if (known_.count(name)) return true;
        if (!find_handler(name)) return false;
        known_.insert(std::move(name));
        return true;
    }

    bool is_known_call(const ptx::Instruction& call) const {
        if (call.operands.size() < 2) return false;
        if (call.operands[1].kind == Kind::reg) return true;
        const ptx::Function* callee = find_function(module_, call.operands[1].name);
        SystemCall system;
        if (callee && callee->is_extern && !system_call_from(callee->name, system))
            throw ptx::Error(call.line, "Unresolved extern function '" + callee->name + "'");
        if (callee && callee->is_extern && !is_declared_right(*callee, system))
            throw ptx::Error(call.line, callee->name + " is declared with other parameters");
        return callee != nullptr;
    }

    const ptx::Module& module_;
    std::unordered_set<std::string> known_;
};

}  // namespace

bool is_control(const ptx::Instruction& instruction) {
    const std::string& opcode = instruction.opcode;
    return is_any(opcode, {"bra", "brx", "call", "ret", "exit", "bar", "barrier", "nanosleep",
                           "griddepcontrol", "trap", "brkpt"}) ||
           waits_for_members(instruction);
}

bool is_memory(const ptx::Instruction& instruction) {
    return is_any(instruction.opcode,
                  {"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "discard",
                   "applypriority", "cvta", "isspacep", "mapa", "getctarank", "membar", "fence",
                   "createpolicy", "mbarrier"});
}

bool waits_for_members(const ptx::Instruction& instruction) {
    return is_any(instruction.opcode, {"shfl", "vote", "match", "redux", "elect"}) &&
           has_modifier(instruction, "sync");
}

bool may_wait(const ptx::Instruction& instruction) {
    if (is_any(instruction.opcode, {"atom", "nanosleep", "call", "mbarrier"})) return true;
    if (instruction.opcode != "ld") return false;
    for (const char* strong : {"volatile", "acquire", "relaxed", "mmio"})
        if (has_modifier(instruction, strong)) return true;
    return false;
}

ptx::Error unsupported(const ptx::Function& function, const ptx::Instruction& instruction) {
    return {instruction.line,
            full_name(instruction) +
                " is not supported by the emulated device: " + text_of(function, instruction)};
}

void check_supported(const ptx::Module& module) {
    Check check(module);
    for (const auto& [name, function] : module.functions) {
        const OperandCheck operands(module, function);
        for (const ptx::Instruction& instruction : function.body) {
            if (!check.is_known(instruction)) throw unsupported(function, instruction);
            const std::string misfit = operands.misfit(instruction);
            if (!misfit.empty())
                throw ptx::Error(instruction.line, full_name(instruction) + ": " + misfit + ": " +
                                                       text_of(function, instruction));
        }
    }
    check_limits(module);
}

}  // namespace cyrt::emu
