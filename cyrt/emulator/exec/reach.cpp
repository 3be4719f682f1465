#include "exec/reach.hpp"

#include <algorithm>
#include <functional>

#include "exec/code.hpp"

namespace cyrt::emu {

namespace {

using Functions = std::set<const ptx::Function*>;

bool is_call(const ptx::Instruction& instruction) {
    return instruction.opcode == "call" && instruction.operands.size() >= 2;
}

template <typename Visit>
void visit_names(const ptx::Operand& operand, const Visit& visit) {
    if (operand.kind == ptx::Operand::Kind::symbol || operand.kind == ptx::Operand::Kind::address)
        if (!operand.name.empty()) visit(operand.name);
    for (const ptx::Operand& element : operand.elements) visit_names(element, visit);
}

// Functions whose address is used in the module, in an instruction or an initialiser.
Functions taken_functions(const ptx::Module& module) {
    Functions out;
    const auto take = [&](const std::string& name) {
        const ptx::Function* function = find_function(module, name);
        if (function && !function->is_extern && !function->is_entry) out.insert(function);
    };
    for (const auto& [name, function] : module.functions)
        for (const ptx::Instruction& instruction : function.body)
            for (size_t i = 0; i < instruction.operands.size(); ++i)
                if (!(is_call(instruction) && i == 1)) visit_names(instruction.operands[i], take);
    for (const ptx::Variable& variable : module.variables)
        for (const ptx::Relocation& relocation : variable.relocations) take(relocation.symbol);
    return out;
}

class Walk {
  public:
    Walk(const ptx::Module& module, Reach& reach) : module_(module), reach_(reach) {}

    void visit(const ptx::Function& function) {
        if (!seen_.insert(&function).second) return;
        Functions& callees = reach_.callees[&function];
        for (const ptx::Instruction& instruction : function.body) {
            if (instruction.opcode == "alloca") reach_.has_alloca = true;
            if (is_call(instruction)) add_callee(instruction, callees);
        }
        for (const ptx::Function* callee : Functions(callees)) visit(*callee);
        reach_.functions.push_back(&function);
    }

  private:
    void add_callee(const ptx::Instruction& call, Functions& callees) {
        const ptx::Operand& target = call.operands[1];
        if (target.kind != ptx::Operand::Kind::symbol) {
            if (!reach_.calls_by_pointer) reach_.by_pointer = taken_functions(module_);
            reach_.calls_by_pointer = true;
            callees.insert(reach_.by_pointer.begin(), reach_.by_pointer.end());
            return;
        }
        const ptx::Function* callee = find_function(module_, target.name);
        SystemCall ignored;
        if (callee && !callee->is_extern)
            callees.insert(callee);
        else if (!callee || !system_call_from(callee->name, ignored))
            throw ptx::Error(call.line, "call of undefined function " + target.name);
    }

    const ptx::Module& module_;
    Reach& reach_;
    Functions seen_;
};

bool reaches(const Reach& reach, const ptx::Function* from, const ptx::Function* to) {
    Functions seen;
    std::vector<const ptx::Function*> open{from};
    while (!open.empty()) {
        const ptx::Function* at = open.back();
        open.pop_back();
        for (const ptx::Function* callee : reach.callees.at(at)) {
            if (callee == to) return true;
            if (seen.insert(callee).second) open.push_back(callee);
        }
    }
    return false;
}

}  // namespace

const ptx::Function* find_function(const ptx::Module& module, const std::string& name) {
    const auto alias = module.aliases.find(name);
    const auto found = module.functions.find(alias == module.aliases.end() ? name : alias->second);
    return found == module.functions.end() ? nullptr : &found->second;
}

std::vector<const ptx::Signature*> signatures_of(const ptx::Module& module,
                                                 const ptx::Function& caller,
                                                 const ptx::Instruction& call) {
    std::vector<const ptx::Signature*> out;
    const auto add = [&](const std::string& name) {
        const ptx::Function* function = find_function(module, name);
        if (function && !function->is_entry) out.push_back(function);
    };
    if (call.operands[1].kind == ptx::Operand::Kind::symbol) {
        add(call.operands[1].name);
    } else if (call.operands.size() > 3) {
        const std::string& name = call.operands[3].name;
        if (const auto prototype = caller.prototypes.find(name);
            prototype != caller.prototypes.end())
            out.push_back(&prototype->second);
        if (const auto table = caller.target_tables.find(name); table != caller.target_tables.end())
            for (const std::string& target : table->second) add(target);
    }
    return out;
}

Reach reach_of(const ptx::Module& module, const ptx::Function& kernel) {
    Reach reach;
    Walk(module, reach).visit(kernel);
    for (const ptx::Function* function : reach.functions)
        if (reaches(reach, function, function)) reach.recursive.insert(function);
    return reach;
}

SharedLayout lay_out_shared(const ptx::Module& module, const Reach& reach) {
    std::map<std::string, const ptx::Variable*> of_module;
    for (const ptx::Variable& variable : module.variables)
        if (variable.space == ptx::Space::shared) of_module.emplace(variable.name, &variable);

    // In the order of their declaration, so that a kernel's layout does not depend on its code.
    std::set<std::string> used;
    std::vector<const ptx::Variable*> variables;
    for (const ptx::Function* function : reach.functions) {
        for (const ptx::Variable& variable : function->variables)
            if (variable.space == ptx::Space::shared) variables.push_back(&variable);
        if (of_module.empty()) continue;
        for (const ptx::Instruction& instruction : function->body)
            for (const ptx::Operand& operand : instruction.operands)
                visit_names(operand, [&](const std::string& name) { used.insert(name); });
    }
    for (const ptx::Variable& variable : module.variables)
        if (variable.space == ptx::Space::shared && used.count(variable.name))
            variables.push_back(&variable);

    SharedLayout out;
    uint32_t dynamic_align = 1;
    for (const ptx::Variable* variable : variables) {
        if (variable->size == 0) {
            dynamic_align = std::max(dynamic_align, variable->align);
            continue;
        }
        out.bytes = round_up(out.bytes, uint64_t(std::max(1u, variable->align)));
        out.offsets[variable] = uint32_t(out.bytes);
        out.bytes += variable->size;
    }
    out.bytes = round_up(out.bytes, uint64_t(dynamic_align));
    for (const ptx::Variable* variable : variables)
        if (variable->size == 0) out.offsets[variable] = uint32_t(out.bytes);
    return out;
}

}  // namespace cyrt::emu
