// The names of one function: registers, variables and labels of nested { } scopes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::ptx {

// INVARIANT: a name is looked up in its own scope, then in the enclosing ones. A branch may precede
// its label, so scopes live until the function ends.
class Scopes {
  public:
    struct Symbol {
        bool is_register;
        int32_t index;          // the first register
        uint32_t lanes;         // registers of a .v2 or .v4 variable
        uint32_t element_size;  // bytes of an element of a variable, x[i]
        std::string name;       // a variable's, unique in the function
    };

    Scopes() { open(); }

    void open();
    void close() { current_ = scopes_[size_t(current_)].parent; }
    int current() const { return current_; }
    bool is_outermost() const { return current_ == 0; }

    // `name` itself if it is unused in this function, else a variation that PTX cannot spell.
    std::string unique(std::string_view name);
    // False if the scope has this name already.
    bool add(std::string_view name, Symbol symbol);
    bool add_label(std::string_view name, int32_t instruction);
    bool add_table(std::string_view name, std::string unique_name);

    // nullptr or -1 if the name is unknown. Symbols: from the current scope outwards.
    const Symbol* find(std::string_view name) const;
    int32_t find_label(int scope, const std::string& name) const;
    const std::string* find_table(int scope, const std::string& name) const;

  private:
    struct Scope {
        int parent;
        std::unordered_map<std::string, Symbol> symbols;
        std::unordered_map<std::string, int32_t> labels;
        std::unordered_map<std::string, std::string> tables;
    };
    std::vector<Scope> scopes_;
    std::unordered_set<std::string> used_;
    int current_ = -1;
};

}  // namespace cyrt::ptx
