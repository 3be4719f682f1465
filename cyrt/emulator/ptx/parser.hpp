// Parsing of a text to a Module. Errors contain the line and the unexpected text.
#pragma once

#include <string_view>

#include "ptx/ast.hpp"

namespace cyrt::ptx {

// Throws Error on text that is not PTX or that uses an unsupported directive.
Module parse(std::string_view text);

}  // namespace cyrt::ptx
