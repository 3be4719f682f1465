// The modifiers of a memory instruction, parsed in any order.
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
    int count = 1;            // from .v2, .v4, .v8
    bool in_cluster = false;  // .shared::cluster: another block's memory too
    bool acquire = false, release = false;
    bool strong = false;    // volatile, relaxed, acquire, release
    std::string operation;  // what atom and red do: "add", "cas" ...
};

// "shared::cta" -> Space::shared; false if the text names no state space.
bool space_from(std::string_view text, ptx::Space& out);

// False if a modifier is unknown, or a second one of its kind: its effect would be missing.
bool read_memory_form(const ptx::Instruction& source, MemoryForm& out);

// The target of addresses in that space.
AddressKind address_kind(ptx::Space space);

struct Wide {  // .b128
    uint64_t low, high;
};

// Copies the form's fields for handlers into `op`; false if no access has that size.
bool apply_memory_form(const MemoryForm& form, MemoryOp& op);

// The handler of mbarrier, and its fields in `op`; nullptr if the form is unknown.
Handler find_mbarrier_handler(const ptx::Instruction& source, MemoryOp& op);
// cp.async.mbarrier.arrive without .noinc: the barrier only waits for the copies.
Handler find_copies_handler(ptx::Space space);

// The handler of atom and red, or nullptr if the form is unknown.
Handler find_atomic_handler(const MemoryForm& form);

}  // namespace cyrt::emu
