// Text to Module. Errors carry the line and what stood there.
#pragma once

#include <string_view>

#include "ptx/ast.hpp"

namespace cyrt::ptx {

// Throws Error on text that is no PTX or that uses a directive nothing here can honour.
Module parse(std::string_view text);

}  // namespace cyrt::ptx
