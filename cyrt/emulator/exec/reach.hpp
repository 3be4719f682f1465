// The code reachable from a kernel: its functions, and the shared variables that they use.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::emu {

struct Reach {
    std::vector<const ptx::Function*> functions;  // callees before callers, the kernel last
    std::map<const ptx::Function*, std::set<const ptx::Function*>> callees;
    std::set<const ptx::Function*> recursive;   // can call themselves, directly or indirectly
    std::set<const ptx::Function*> by_pointer;  // can be called through a pointer
    bool calls_by_pointer = false;
    bool has_alloca = false;
};

// Throws ptx::Error for a call of an undefined function.
Reach reach_of(const ptx::Module& module, const ptx::Function& kernel);

// Follows aliases; nullptr if the module has no function of that name.
const ptx::Function* find_function(const ptx::Module& module, const std::string& name);

// The signatures of a call: its callee's; for a call through a register, its prototype's or those
// of all possible callees. Empty if there is none.
std::vector<const ptx::Signature*>
signatures_of(const ptx::Module& module, const ptx::Function& caller, const ptx::Instruction& call);

struct SharedLayout {
    std::map<const ptx::Variable*, uint32_t> offsets;
    uint64_t bytes = 0;  // size of the static ones; `extern` variables all begin there
};
SharedLayout lay_out_shared(const ptx::Module& module, const Reach& reach);

template <typename Int>
constexpr Int round_up(Int value, Int step) {
    return (value + step - 1) / step * step;
}

}  // namespace cyrt::emu
