// The operands of each instruction, as its table in the PTX ISA says: how many, of what kind.
//
// INVARIANT: an instruction runs only in a form that stands in the table: operands are checked
// against it when a module is loaded, and lowered by the types that it gives.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::emu {

// The kinds of an operand. The letter is how the table writes it.
enum class OperandKind : char {
    last = 't',             // of the instruction's last type
    first = 'f',            // of its first type
    twice = 'w',            // of twice its width
    word = 'u',             // 32 bits
    quad = 'q',             // 64 bits
    real = 'n',             // f32
    predicate = 'p',
    word_or_predicate = 'z',
    address_value = 'x',    // an address in a register, 32 or 64 bits
    move = 'm',             // of mov: special registers, symbols, and vectors that make one value
    vector = 'v',           // as many values of the last type as .v2, .v4, .v8 says
    address = 'a',
    literal = 'i',
    label = 'l',
    branch_table = 'b',
    scalar_lane = 'h',      // of a scalar video instruction: a byte or half may be selected
    scalar_result = 'H',    // merged into the last source where a byte or half is selected
    packed_lane = 'k',      // of an instruction on two halves or four bytes
    packed_result = 'K',
    fragment_a = 'A',       // of matrices: as many registers as the shape gives
    fragment_b = 'B',
    fragment_c = 'C',
    fragment_d = 'D',
    fragment_moved = 'M',   // the one that is loaded or stored
};

struct OperandRule {
    OperandKind kind = OperandKind::last;
    bool optional = false;      // "?"
    bool may_be_wider = false;  // "+": a register of more bits stands for its low ones
    bool sink = false;          // "_" may stand there
    bool symbol = false;        // "&": a variable's address may stand there
    bool special = false;       // "%": a special register may

    // The type that the operand has in that instruction; none where it has no type.
    ptx::Type type_in(const ptx::Instruction& instruction) const;
};

// Of a video instruction: a byte or half may be selected.
inline bool selects_parts(const OperandRule& rule) {
    return rule.kind == OperandKind::scalar_lane || rule.kind == OperandKind::scalar_result ||
           rule.kind == OperandKind::packed_lane || rule.kind == OperandKind::packed_result;
}

using OperandRules = std::vector<const OperandRule*>;

// Of an instruction's modifiers: one of the words stands among them, or none does.
struct ModifierCondition {
    std::vector<std::string> words;
    bool negated = false;
};

struct OperandForm {
    std::vector<OperandRule> results;   // a second one is written behind a bar: d|p
    std::vector<OperandRule> sources;
    const char* modifiers = nullptr;    // known ones beside types; nullptr: told by the handler
    std::vector<ModifierCondition> when;   // all hold for the instructions of this form

    size_t least() const;
    size_t most() const { return results.size() + sources.size(); }
    // The rule of each operand; nothing where there are too few operands or too many.
    std::optional<OperandRules> rules_for(const ptx::Instruction& instruction) const;
};

// The form that the opcode and the modifiers name, or nullptr.
const OperandForm* form_of(const ptx::Instruction& instruction);

}  // namespace cyrt::emu
