// The ranges in which each virtual slot of a function holds a value that is still needed.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/code.hpp"
#include "exec/slots.hpp"

namespace cyrt::emu {

struct LiveRange {
    uint32_t first = 0xffffffffu, last = 0;  // pcs, both included; first > last: never used
    bool from_entry = false;                 // may be read before it is written

    bool is_used() const { return first <= last; }
    void cover(uint32_t pc) {
        first = pc < first ? pc : first;
        last = pc > last ? pc : last;
    }
};

// Ranges of all slots (by number) that the code in [begin, end), of one function, uses. The control
// flow of one lane is sufficient: lanes have separate cells.
void find_live_ranges(const Program& program, const SlotUses& uses, uint32_t begin, uint32_t end,
                      std::vector<LiveRange>& ranges);

}  // namespace cyrt::emu
