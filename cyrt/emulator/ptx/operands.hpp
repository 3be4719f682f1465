// The operands of instructions, their names resolved.
#pragma once

#include <string>

#include "ptx/ast.hpp"
#include "ptx/functions.hpp"
#include "ptx/lexer.hpp"
#include "ptx/scopes.hpp"

namespace cyrt::ptx {

class OperandParser {
  public:
    OperandParser(Lexer& lexer, const ModuleBuilder& builder, Scopes& scopes)
        : lexer_(lexer), builder_(builder), scopes_(scopes) {}

    Operand parse() { return parse(0); }
    // A vector operand between these brackets.
    Operand parse_list(std::string_view open, std::string_view close) {
        return list(open, close, 0);
    }
    // A variable's unique name in the function: the source's name unless it is in use.
    std::string unique_name(const std::string& name);

  private:
    Operand parse(int depth);
    Operand list(std::string_view open, std::string_view close, int depth);
    Operand address(int depth);
    Operand constant();
    Operand named();
    Operand vector_register(const Scopes::Symbol& symbol, const Token& name);
    std::string selector();  // the .b0 or .h1 of a video instruction's operand
    int64_t offset();        // any number of +constant and -constant

    Lexer& lexer_;
    const ModuleBuilder& builder_;
    Scopes& scopes_;
};

}  // namespace cyrt::ptx
