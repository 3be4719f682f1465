// The operands of each instruction, from its table in the PTX ISA: their number and kinds.
//
// INVARIANT: an instruction runs only in a form of the table: operands are checked against it when
// a module is loaded, and lowered with its types.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::emu {

// The kinds of an operand. The letter is its spelling in the table.
enum class OperandKind : char {
    last = 't',   // the instruction's last type
    first = 'f',  // its first type
    twice = 'w',  // twice its width
    word = 'u',   // 32 bits
    quad = 'q',   // 64 bits
    real = 'n',   // f32
    predicate = 'p',
    word_or_predicate = 'z',
    address_value = 'x',  // an address in a register, 32 or 64 bits
    move = 'm',           // mov's: special registers, symbols, and vectors that form one value
    vector = 'v',         // values of the last type, as many as .v2, .v4, .v8 specify
    address = 'a',
    literal = 'i',
    label = 'l',
    branch_table = 'b',
    scalar_lane = 'h',    // a scalar video instruction's: a byte or half may be selected
    scalar_result = 'H',  // merged into the last source where a byte or half is selected
    packed_lane = 'k',    // two halves or four bytes
    packed_result = 'K',
    fragment_a = 'A',  // a part of a matrix: as many registers as the shape requires
    fragment_b = 'B',
    fragment_c = 'C',
    fragment_d = 'D',
    fragment_moved = 'M',  // the fragment that is loaded or stored
};

struct OperandRule {
    OperandKind kind = OperandKind::last;
    bool optional = false;      // "?"
    bool may_be_wider = false;  // "+": the low bits of a wider register may be used
    bool sink = false;          // "_" is allowed
    bool symbol = false;        // "&": a variable's address is allowed
    bool special = false;       // "%": a special register is allowed

    // The type of the operand in that instruction; none if it has no type.
    ptx::Type type_in(const ptx::Instruction& instruction) const;
};

// True for the kinds of a video instruction of which a byte or half may be selected.
inline bool selects_parts(const OperandRule& rule) {
    return rule.kind == OperandKind::scalar_lane || rule.kind == OperandKind::scalar_result ||
           rule.kind == OperandKind::packed_lane || rule.kind == OperandKind::packed_result;
}

using OperandRules = std::vector<const OperandRule*>;

// A condition on an instruction's modifiers: they contain one of the words, or none of them.
struct ModifierCondition {
    std::vector<std::string> words;
    bool negated = false;
};

struct OperandForm {
    std::vector<OperandRule> results;  // a second one is written behind a bar: d|p
    std::vector<OperandRule> sources;
    const char* modifiers = nullptr;  // known ones besides types; nullptr: the handler knows them
    std::vector<ModifierCondition> when;  // all hold for the instructions of this form

    size_t least() const;
    size_t most() const { return results.size() + sources.size(); }
    // The rule of each operand; nothing if the number of operands is wrong.
    std::optional<OperandRules> rules_for(const ptx::Instruction& instruction) const;
};

// The form for the opcode and the modifiers, or nullptr.
const OperandForm* form_of(const ptx::Instruction& instruction);

}  // namespace cyrt::emu
