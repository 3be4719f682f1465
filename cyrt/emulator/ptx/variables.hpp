// Declarations of variables, parameters and registers, and their initialisers.
#pragma once

#include <vector>

#include "ptx/ast.hpp"
#include "ptx/lexer.hpp"

namespace cyrt::ptx {

// The part of a declaration before its names: `.shared .align 16 .v4 .f32`.
struct DeclarationHead {
    Space space = Space::reg;
    Type type = Type::none;
    uint32_t lanes = 1;  // 2, 4, 8: .v2, .v4, .v8
    uint32_t align = 0;  // 0: natural
    bool is_managed = false;
    int line = 0;
};

// True if the next token names a state space for variables.
bool at_declaration(Lexer& lexer);
DeclarationHead parse_declaration_head(Lexer& lexer);

// One name with its dimensions and initialiser. The caller parses the next token (a comma, a
// semicolon, a bracket).
Variable parse_declarator(Lexer& lexer, const DeclarationHead& head, bool is_extern);

// "(" declarations ")" of a function's parameters or results.
struct Parameter {
    Variable variable;
    uint32_t lanes;
};
std::vector<Parameter> parse_parameters(Lexer& lexer);

}  // namespace cyrt::ptx
