// .entry and .func: signature, performance directives, body.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ptx/ast.hpp"
#include "ptx/lexer.hpp"
#include "ptx/variables.hpp"

namespace cyrt::ptx {

// A module under construction.
struct ModuleBuilder {
    Module module;
    std::unordered_map<std::string, size_t> variables;  // name to index in module.variables

    // A definition replaces an extern declaration of the same name.
    void add(Variable variable, bool is_weak);
    bool knows(const std::string& name) const;  // a variable or a function
};

// Parses the text after .entry or .func and adds the function to the module.
void parse_function(Lexer& lexer, ModuleBuilder& builder, bool is_entry, bool is_weak);

}  // namespace cyrt::ptx
