#include "exec/operand_check.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "exec/matrices.hpp"
#include "exec/memory_forms.hpp"
#include "exec/operand_types.hpp"
#include "exec/reach.hpp"
#include "exec/specials.hpp"

namespace cyrt::emu {

using ptx::Space;
using ptx::Type;
using Kind = ptx::Operand::Kind;

namespace {

enum class Family { bits, integer, floating, predicate };

Family family_of(Type type) {
    switch (type) {
    case Type::pred: return Family::predicate;
    case Type::b8:
    case Type::b16:
    case Type::b32:
    case Type::b64:
    case Type::b128: return Family::bits;
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
    case Type::f32:
    case Type::f64: return Family::floating;
    default: return Family::integer;
    }
}

// PTX ISA 9.2 and 9.4.1: bit types accept any type of their size, integers accept integers of their
// size.
bool fits(Type has, Type wanted, bool may_be_wider) {
    const Family own = family_of(has), other = family_of(wanted);
    if (own == Family::predicate || other == Family::predicate) return own == other;
    const uint32_t size = ptx::size_of(has), least = ptx::size_of(wanted);
    if (size < least || (size > least && !may_be_wider)) return false;
    if (own == Family::bits || other == Family::bits) return true;
    return own == other && (own == Family::integer || has == wanted);
}

// True if `r + 1` may be written for a register r of that type.
bool can_be_added_to(Type type) {
    const Family family = family_of(type);
    return ptx::size_of(type) <= 8 && (family == Family::bits || family == Family::integer);
}

bool fits_literal(const ptx::Operand& literal, Type wanted) {
    if (wanted == Type::f16 || wanted == Type::bf16 || wanted == Type::f16x2 ||
        wanted == Type::bf16x2)
        return false;
    if (!literal.is_float) return family_of(wanted) != Family::floating;
    return wanted == Type::f32 || wanted == Type::f64 ||
           (family_of(wanted) == Family::bits && ptx::size_of(wanted) == literal.float_width);
}

std::string dotted(Type type) { return "." + std::string(ptx::name_of(type)); }

std::string described(Type type, bool is_result, bool may_be_wider) {
    return std::string(is_result ? "a register" : "a register or a constant") + " of " +
           dotted(type) + (may_be_wider ? " or wider" : "");
}

size_t lanes_of(const ptx::Instruction& instruction) {
    for (size_t lanes : {2, 4, 8})
        if (has_modifier(instruction, "v" + std::to_string(lanes))) return lanes;
    return 1;
}

// A video instruction's name ends in the number of parts of a word; a scalar one has no number.
size_t parts_of(const ptx::Instruction& instruction) {
    return instruction.opcode.back() == '2' ? 2 : instruction.opcode.back() == '4' ? 4 : 0;
}

bool is_selector(std::string_view text, const ptx::Instruction& instruction, bool is_result) {
    const size_t parts = parts_of(instruction);
    if (parts == 0)
        return text.size() == 2 &&
               (text[0] == 'b' ? text[1] <= '3' : text[0] == 'h' && text[1] <= '1');
    if (text.empty() || text[0] != (parts == 2 ? 'h' : 'b')) return false;
    const std::string_view digits = text.substr(1);
    if (!is_result)  // each part is a part of one of the operands
        return digits.size() == parts && std::all_of(digits.begin(), digits.end(), [&](char c) {
                   return size_t(c - '0') < 2 * parts;
               });
    for (size_t i = 0; i < digits.size(); ++i)  // the parts that are written, falling
        if (size_t(digits[i] - '0') >= parts || (i > 0 && digits[i] >= digits[i - 1])) return false;
    return !digits.empty();
}

bool has_selector(const ptx::Operand& operand) {
    return operand.kind == Kind::reg && !operand.name.empty();
}

bool uses_type(const OperandForm& form) {
    const auto uses = [](const OperandRule& rule) {
        return rule.kind == OperandKind::last || rule.kind == OperandKind::first ||
               rule.kind == OperandKind::move || rule.kind == OperandKind::vector;
    };
    return std::any_of(form.results.begin(), form.results.end(), uses) ||
           std::any_of(form.sources.begin(), form.sources.end(), uses);
}

// The state spaces in the modifiers: one for each address, in order.
std::vector<Space> spaces_of(const ptx::Instruction& instruction) {
    std::vector<Space> out;
    for (const std::string& modifier : instruction.modifiers) {
        Space space;
        if (space_from(modifier, space)) out.push_back(space);
    }
    return out;
}

// True if every modifier is a type or in the form's list; at most one type, and exactly one if an
// operand has it.
bool has_known_modifiers(const ptx::Instruction& instruction, const OperandForm& form) {
    if (!form.modifiers) return true;
    const size_t types = count_types(instruction);
    if (types > 1 || (types == 0 && uses_type(form))) return false;
    if (instruction.opcode == "cvta" && spaces_of(instruction).size() != 1) return false;
    const std::string known = " " + std::string(form.modifiers) + " ";
    for (size_t i = 0; i < instruction.modifiers.size(); ++i) {
        const std::string& modifier = instruction.modifiers[i];
        const auto end = instruction.modifiers.begin() + std::ptrdiff_t(i);
        if (std::find(instruction.modifiers.begin(), end, modifier) != end) return false;
        if (!is_type_name(modifier) && known.find(" " + modifier + " ") == std::string::npos)
            return false;
    }
    return true;
}

std::string unexpected(const char* what, size_t index, const std::string& wanted) {
    return what + (" " + std::to_string(index + 1)) + " is not what was expected: " + wanted;
}

const char* name_of(Space space) {
    switch (space) {
    case Space::global: return "global";
    case Space::constant: return "constant";
    case Space::shared: return "shared";
    case Space::local: return "local";
    case Space::param: return "parameter";
    default: return "generic";
    }
}

}  // namespace

OperandCheck::OperandCheck(const ptx::Module& module, const ptx::Function& function)
    : module_(module), function_(function) {
    for (const auto* list : {&function.params, &function.results, &function.variables})
        for (const ptx::Variable& variable : *list) variables_.emplace(variable.name, &variable);
    for (const ptx::Variable& variable : module.variables)
        of_module_.emplace(variable.name, &variable);
}

const ptx::Variable* OperandCheck::find_variable(const std::string& name) const {
    if (const auto own = variables_.find(name); own != variables_.end()) return own->second;
    const auto found = of_module_.find(name);
    return found == of_module_.end() ? nullptr : found->second;
}

Type OperandCheck::type_of(const Operand& reg) const {
    return function_.registers[size_t(reg.index)].type;
}

std::string OperandCheck::misfit(const Instruction& instruction) const {
    if (instruction.guard >= 0 && function_.registers[size_t(instruction.guard)].type != Type::pred)
        return "its guard is no predicate";
    if (instruction.opcode == "call") return misfit_of_call(instruction);

    const OperandForm* form = form_of(instruction);
    if (!form || !has_known_modifiers(instruction, *form)) return "there is no such form of it";
    const std::optional<OperandRules> rules = form->rules_for(instruction);
    if (!rules) {
        const size_t least = form->least(), most = form->most();
        return "it has " + std::to_string(instruction.operands.size()) + " operands, expected " +
               std::to_string(least) +
               (most > least ? " to " + std::to_string(most) : std::string());
    }
    const size_t results = instruction.paired ? 2 : std::min<size_t>(form->results.size(), 1);
    for (size_t i = 0; i < rules->size(); ++i) {
        const std::string wanted = expected(instruction, i, *(*rules)[i], i < results);
        if (!wanted.empty()) return unexpected("operand", i, wanted);
    }
    return {};
}

std::string OperandCheck::expected(const Instruction& instruction, size_t index,
                                   const OperandRule& rule, bool is_result) const {
    const Operand& operand = instruction.operands[index];
    const Type type = rule.type_in(instruction);
    if (has_selector(operand) && !selects_parts(rule)) return "a whole register";
    switch (rule.kind) {
    case OperandKind::address: return expected_address(instruction, index);
    case OperandKind::literal:
        return operand.kind == Kind::imm && !operand.is_float ? "" : "an integer constant";
    case OperandKind::label:
        return operand.kind == Kind::label && operand.index >= 0 ? "" : "a label";
    case OperandKind::branch_table: {
        const auto targets = function_.branch_targets.find(operand.name);
        const bool known = operand.kind == Kind::label &&
                           targets != function_.branch_targets.end() && !targets->second.empty();
        return known ? "" : "the name of .branchtargets";
    }
    case OperandKind::vector:
        return expected_values(instruction, operand, lanes_of(instruction), type, rule, is_result);
    case OperandKind::move: return expected_move(instruction, index, type, rule, is_result);
    case OperandKind::word_or_predicate:
        if (is_register(operand) && type_of(operand) == Type::pred)
            return expected_value(instruction, operand, Type::pred, rule, is_result);
        return expected_value(instruction, operand, Type::b32, rule, is_result);
    case OperandKind::address_value: {
        if (!is_register(operand)) return "a register that holds an address";
        const Type width = ptx::size_of(type_of(operand)) == 8 ? Type::u64 : Type::u32;
        return expected_value(instruction, operand, width, rule, is_result);
    }
    case OperandKind::scalar_lane:
    case OperandKind::scalar_result:
    case OperandKind::packed_lane:
    case OperandKind::packed_result: {
        const std::string wanted = expected_value(instruction, operand, type, rule, is_result);
        return wanted.empty() ? expected_selector(instruction, index, rule) : wanted;
    }
    case OperandKind::fragment_a: return expected_fragment(instruction, operand, 'a', is_result);
    case OperandKind::fragment_b: return expected_fragment(instruction, operand, 'b', is_result);
    case OperandKind::fragment_c: return expected_fragment(instruction, operand, 'c', is_result);
    case OperandKind::fragment_d: return expected_fragment(instruction, operand, 'd', is_result);
    case OperandKind::fragment_moved:
        return expected_fragment(instruction, operand, 'm', is_result);
    default: return expected_value(instruction, operand, type, rule, is_result);
    }
}

std::string OperandCheck::expected_value(const Instruction& instruction, const Operand& operand,
                                         Type type, const OperandRule& rule, bool is_result) const {
    bool holds = false;
    switch (operand.kind) {
    case Kind::reg:
        holds = fits(type_of(operand), type, rule.may_be_wider) &&
                (!operand.negated || (type == Type::pred && !is_result)) &&
                (operand.value == 0 || (!is_result && can_be_added_to(type_of(operand))));
        break;
    case Kind::imm: holds = !is_result && fits_literal(operand, type); break;
    case Kind::sink: holds = is_result && rule.sink; break;
    case Kind::special: {
        Special which;
        Type own;
        // The low half of a special register is readable as well.
        holds = rule.special && special_from(operand.name, which, own) &&
                fits(own, type, ptx::size_of(type) == 2);
        break;
    }
    case Kind::symbol:
        if (!is_result && rule.symbol) return expected_symbol(instruction, operand, type);
        break;
    default: break;
    }
    return holds ? "" : described(type, is_result, rule.may_be_wider);
}

std::string OperandCheck::expected_values(const Instruction& instruction, const Operand& operand,
                                          size_t count, Type type, const OperandRule& rule,
                                          bool is_result) const {
    if (count == 1 && operand.kind != Kind::vector)
        return expected_value(instruction, operand, type, rule, is_result);
    const std::string wanted =
        std::to_string(count) + " in braces, each " + described(type, is_result, rule.may_be_wider);
    if (operand.kind != Kind::vector || operand.elements.size() != count) return wanted;
    OperandRule each = rule;
    each.sink = count > 1;  // a part of a result may be dropped
    const bool holds =
        std::all_of(operand.elements.begin(), operand.elements.end(), [&](const Operand& element) {
            return !has_selector(element) && (element.kind != Kind::reg || element.value == 0) &&
                   expected_value(instruction, element, type, each, is_result).empty();
        });
    return holds ? "" : wanted;
}

// One value, or parts in braces that form one on the other side.
std::string OperandCheck::expected_move(const Instruction& instruction, size_t index, Type type,
                                        const OperandRule& rule, bool is_result) const {
    const Operand& operand = instruction.operands[index];
    if (operand.kind != Kind::vector)
        return expected_value(instruction, operand, type, rule, is_result);
    const size_t count = operand.elements.size();
    const uint32_t size = ptx::size_of(type);
    if (family_of(type) != Family::bits || instruction.operands[1 - index].kind == Kind::vector)
        return "one value";
    if (count < 2 || size % count != 0) return "parts that make one value of " + dotted(type);
    const std::array<Type, 9> parts = {Type::none, Type::b8,   Type::b16,  Type::none, Type::b32,
                                       Type::none, Type::none, Type::none, Type::b64};
    return expected_values(instruction, operand, count, parts[size / count], {}, is_result);
}

// A variable's address as a value: of 32 bits only if its space is that small.
std::string OperandCheck::expected_symbol(const Instruction& instruction, const Operand& operand,
                                          Type type) const {
    const ptx::Variable* variable = find_variable(operand.name);
    const bool is_wide = ptx::size_of(type) == 8;
    const bool is_near = variable && variable->space != Space::global &&
                         variable->space != Space::constant && ptx::size_of(type) == 4;
    const std::vector<Space> spaces = spaces_of(instruction);
    if (variable && !spaces.empty() && variable->space != spaces.front())
        return std::string("a variable of ") + name_of(spaces.front()) + " memory";
    if (variable && variable->space == Space::reg) return "a variable in memory";
    if (family_of(type) != Family::floating && (is_wide || is_near)) return {};
    return "an address in " + dotted(type);
}

std::string OperandCheck::expected_address(const Instruction& instruction, size_t index) const {
    const Operand& operand = instruction.operands[index];
    if (operand.kind != Kind::address || !operand.elements.empty()) return "an address in brackets";
    const std::vector<Space> spaces = spaces_of(instruction);
    const auto first =
        std::find_if(instruction.operands.begin(), instruction.operands.end(),
                     [](const Operand& other) { return other.kind == Kind::address; });
    const size_t order = size_t(instruction.operands.begin() + std::ptrdiff_t(index) - first);
    const Space space = order < spaces.size() ? spaces[order] : Space::generic;
    const bool stores =
        instruction.opcode == "st" || instruction.opcode == "atom" || instruction.opcode == "red";
    if (operand.index >= 0) {
        const Type base = type_of(operand);
        const bool is_near =
            space != Space::generic && space != Space::global && space != Space::constant;
        const uint32_t size = ptx::size_of(base);
        const Family family = family_of(base);
        if ((size != 8 && !(is_near && size == 4)) || family == Family::floating)
            return is_near ? "an address of 32 or 64 bits" : "an address of 64 bits";
        const bool to_parameters = stores && space == Space::param && function_.is_entry;
        return to_parameters ? "an address that can be written" : "";
    }
    if (operand.name.empty()) return {};
    const ptx::Variable* variable = find_variable(operand.name);
    if (!variable || variable->space == Space::reg) return "the address of a variable";
    const bool has_generic = variable->space != Space::param && variable->space != Space::constant;
    if (space == Space::generic ? !has_generic : variable->space != space)
        return std::string("an address of ") + name_of(space) + " memory, not of " +
               name_of(variable->space) + " memory";
    const auto is_same = [&](const ptx::Variable& param) { return &param == variable; };
    if (stores && std::any_of(function_.params.begin(), function_.params.end(), is_same))
        return "an address that can be written, not the parameter " + operand.name;
    return {};
}

std::string OperandCheck::expected_fragment(const Instruction& instruction, const Operand& operand,
                                            char part, bool is_result) const {
    Inst ignored;
    MemoryOp op;
    if (!select_matrix_handler(instruction, ignored, op)) return "a form of matrices";
    const FragmentRegisters registers = fragment_registers(op.matrix, part);
    if (operand.kind != Kind::vector) return "registers in braces";
    return expected_values(instruction, operand, registers.count,
                           registers.is_wide ? Type::b64 : Type::b32, {}, is_result);
}

std::string OperandCheck::expected_selector(const Instruction& instruction, size_t index,
                                            const OperandRule& rule) const {
    const Operand& operand = instruction.operands[index];
    const bool is_result = index == 0;
    if (has_selector(operand) && !is_selector(operand.name, instruction, is_result))
        return "bytes or halves that the instruction has";
    if (rule.kind == OperandKind::scalar_result &&
        has_selector(operand) != (instruction.operands.size() == 4))
        return "a selected part if, and only if, a last operand to merge it into follows";
    return {};
}

// --- calls --------------------------------------------------------------------------------------

std::string OperandCheck::expected_argument(const Instruction& instruction, const Operand& actual,
                                            const ptx::Variable& formal, bool is_result) const {
    if (actual.kind == Kind::sink && is_result) return {};
    if (actual.kind == Kind::symbol) {
        const ptx::Variable* variable = find_variable(actual.name);
        const bool holds = variable && variable->space == Space::param && actual.value == 0 &&
                           formal.space == Space::param && variable->size == formal.size;
        return holds ? "" : "a .param variable of " + std::to_string(formal.size) + " bytes";
    }
    if (formal.is_array) return "a .param variable of " + std::to_string(formal.size) + " bytes";
    OperandRule rule;
    return has_selector(actual) ? "a whole register"
                                : expected_value(instruction, actual, formal.type, rule, is_result);
}

std::string OperandCheck::misfit_of_call(const Instruction& call) const {
    for (const std::string& modifier : call.modifiers)
        if (modifier != "uni") return "there is no such form of it";
    const auto& operands = call.operands;  // results, callee, arguments, and possibly a prototype
    if (is_register(operands[1]) && (ptx::size_of(type_of(operands[1])) != 8 ||
                                     family_of(type_of(operands[1])) == Family::floating))
        return "what it calls is no address of 64 bits";
    const auto signatures = signatures_of(module_, function_, call);
    if (signatures.empty()) return "nothing says what it calls, or what that takes";
    for (const ptx::Signature* signature : signatures) {
        const auto& results = operands[0].elements;
        const auto& arguments = operands[2].elements;
        if (results.size() != signature->results.size() ||
            arguments.size() != signature->params.size())
            return "it has " + std::to_string(results.size()) + " results and " +
                   std::to_string(arguments.size()) + " arguments, expected " +
                   std::to_string(signature->results.size()) + " and " +
                   std::to_string(signature->params.size());
        for (size_t i = 0; i < results.size(); ++i) {
            const std::string wanted =
                expected_argument(call, results[i], signature->results[i], true);
            if (!wanted.empty()) return unexpected("result", i, wanted);
        }
        for (size_t i = 0; i < arguments.size(); ++i) {
            const std::string wanted =
                expected_argument(call, arguments[i], signature->params[i], false);
            if (!wanted.empty()) return unexpected("argument", i, wanted);
        }
    }
    return {};
}

}  // namespace cyrt::emu
