// What a kernel can reach: its functions, and the shared variables that it and they use.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ptx/ast.hpp"

namespace cyrt::emu {

struct Reach {
    std::vector<const ptx::Function*> functions;   // callees before callers, the kernel last
    std::map<const ptx::Function*, std::set<const ptx::Function*>> callees;
    std::set<const ptx::Function*> recursive;      // can call themselves, if through others
    std::set<const ptx::Function*> by_pointer;     // can be called through a pointer
    bool calls_by_pointer = false;
    bool has_alloca = false;
};

// Throws ptx::Error for a call of a function that is nowhere defined.
Reach reach_of(const ptx::Module& module, const ptx::Function& kernel);

// Through aliases; nullptr where the module has no function of that name.
const ptx::Function* find_function(const ptx::Module& module, const std::string& name);

// What says how a call passes what it passes: its callee; called through a register, its prototype
// or all that may be called. Empty where nothing does.
std::vector<const ptx::Signature*> signatures_of(const ptx::Module& module,
                                                 const ptx::Function& caller,
                                                 const ptx::Instruction& call);

struct SharedLayout {
    std::map<const ptx::Variable*, uint32_t> offsets;
    uint64_t bytes = 0;   // of the static ones; `extern` variables all begin there
};
SharedLayout lay_out_shared(const ptx::Module& module, const Reach& reach);

template <typename Int>
constexpr Int round_up(Int value, Int step) {
    return (value + step - 1) / step * step;
}

}  // namespace cyrt::emu
