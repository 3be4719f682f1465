// Literals and constant expressions (PTX ISA 4.5).
#pragma once

#include <cstdint>

#include "ptx/lexer.hpp"

namespace cyrt::ptx {

struct Constant {
    uint64_t bits = 0;
    bool is_unsigned = false;  // an integer is .u64 rather than .s64
    uint8_t float_width = 0;   // 4 for 0f, 8 for 0d and decimal literals, 0 for an integer

    bool is_float() const { return float_width != 0; }
    double as_double() const;  // the value, converted to double
};

// True where the next token can begin a constant.
bool at_constant(Lexer& lexer);
Constant parse_constant(Lexer& lexer);
// A constant without binary operators, as after the + or - of an address.
Constant parse_constant_term(Lexer& lexer);
// An integer constant in [0, limit].
uint64_t parse_count(Lexer& lexer, uint64_t limit);

}  // namespace cyrt::ptx
