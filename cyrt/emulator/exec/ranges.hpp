// What a launch may use of guarded memory: one allocation may hold the arrays of many owners.
//
// INVARIANTS
// - UsableRanges are data of a launch, as its parameters are: an update of a graph's node replaces both.
// - A remembered region of guarded memory lies within one range, so that an access that hits it
//   needs no test of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/arena.hpp"
#include "exec/program.hpp"

namespace cyrt::emu {

struct UsableRange {
    uint64_t lo = 0, hi = 0;  // [lo, hi); an empty one names nothing
};

struct UsableRanges {
    const UsableRange* items = nullptr;
    size_t count = 0;
    // For the texts of faults: the parameters, and a C++ declaration of each ("float* x").
    const KernelInfo* info = nullptr;
    const std::byte* params = nullptr;
    const std::vector<std::string>* declarations = nullptr;

    // Cuts the region, which holds the bytes, to the range that holds them; false: none does.
    bool narrow(uint64_t address, uint64_t size, Region& region) const;
    // "8 bytes past the end of argument 2 (float* x), 400 bytes at 0x…", for the nearest one.
    std::string describe(uint64_t address, uint64_t size) const;

    // Whether one is at most so many bytes away from the access.
    bool are_within(uint64_t bytes, uint64_t address, uint64_t size) const;

    // "argument 2 (float* x), 400 bytes at 0x…" if there is such a range; else "".
    std::string name(uint64_t lo, uint64_t hi) const;

  private:
    std::string owner(const UsableRange& range) const;
};

}  // namespace cyrt::emu
