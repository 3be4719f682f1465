// A graph as text in the DOT language.
#pragma once

#include <string>

namespace cyrt::emu {

class Graph;

std::string dot_of(const Graph& graph);

}  // namespace cyrt::emu
