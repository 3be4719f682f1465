// What the modifiers of a memory instruction say, in whatever order they stand.
#pragma once

#include <string>
#include <string_view>

#include "exec/addressing.hpp"
#include "exec/memory_ops.hpp"
#include "ptx/ast.hpp"

namespace cyrt::emu {

struct MemoryForm {
    ptx::Space space = ptx::Space::generic;
    ptx::Type type = ptx::Type::none;
    int count = 1;                  // of .v2, .v4, .v8
    bool in_cluster = false;        // of .shared::cluster: another block's memory too
    bool acquire = false, release = false;
    std::string operation;          // of atom and red: "add", "cas" ...
};

// "shared::cta" -> Space::shared; false where the text names no state space.
bool space_from(std::string_view text, ptx::Space& out);

// False where a modifier is unknown, or a second one of its kind: what it asks for would not
// happen.
bool read_memory_form(const ptx::Instruction& source, MemoryForm& out);

// Where addresses of that space point.
AddressKind address_kind(ptx::Space space);

struct Wide {   // .b128
    uint64_t low, high;
};

// Copies what handlers need of the form into `op`; false where no access is that large.
bool apply_memory_form(const MemoryForm& form, MemoryOp& op);

// The handler of mbarrier, and what it needs in `op`; nullptr where the form is not known.
Handler find_mbarrier_handler(const ptx::Instruction& source, MemoryOp& op);

// The handler of atom and red, or nullptr where the form is not known.
Handler find_atomic_handler(const MemoryForm& form);

}  // namespace cyrt::emu
