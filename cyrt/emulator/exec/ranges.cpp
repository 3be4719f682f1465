#include "exec/ranges.hpp"

#include <algorithm>
#include <cstring>

namespace cyrt::emu {

namespace {

std::string bytes(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

// The bytes between an access and a range; 0: they touch or overlap.
uint64_t distance(const UsableRange& range, uint64_t address, uint64_t size) {
    if (address >= range.hi) return address - range.hi;
    return address + size <= range.lo ? range.lo - (address + size) : 0;
}

}  // namespace

bool UsableRanges::narrow(uint64_t address, uint64_t size, Region& region) const {
    for (const UsableRange* range = items; range != items + count; ++range) {
        if (address < range->lo || address > range->hi || range->hi - address < size) continue;
        const uint64_t lo = std::max(region.lo, range->lo);
        region.host += lo - region.lo;
        if (region.valid) region.valid += lo - region.lo;
        region.lo = lo;
        region.hi = std::min(region.hi, range->hi);
        return true;
    }
    return false;
}

// The parameters that point into a range tell whose it is.
std::string UsableRanges::owner(const UsableRange& range) const {
    for (size_t i = 0; i < info->params.size(); ++i) {
        uint64_t value = 0;
        if (info->params[i].size != sizeof value) continue;
        std::memcpy(&value, params + info->params[i].offset, sizeof value);
        if (value < range.lo || value > range.hi || (value == range.hi && range.lo != range.hi))
            continue;
        return "argument " + std::to_string(i + 1) +
               (i < declarations->size() ? " (" + (*declarations)[i] + ")" : "");
    }
    return "memory that reads= or writes= names";
}

std::string UsableRanges::name(uint64_t lo, uint64_t hi) const {
    for (const UsableRange* range = items; range != items + count; ++range)
        if (range->lo == lo && range->hi == hi)
            return owner(*range) + ", " + bytes(hi - lo) + " at " + hex(lo);
    return "";
}

bool UsableRanges::are_within(uint64_t bytes, uint64_t address, uint64_t size) const {
    return std::any_of(items, items + count, [&](const UsableRange& range) {
        return range.lo && distance(range, address, size) <= bytes;
    });
}

std::string UsableRanges::describe(uint64_t address, uint64_t size) const {
    const UsableRange* nearest = nullptr;
    for (const UsableRange* range = items; range != items + count; ++range)
        if (range->lo &&
            (!nearest || distance(*range, address, size) < distance(*nearest, address, size)))
            nearest = range;
    if (!nearest) return "the launch names no memory of the device";
    const std::string what = name(nearest->lo, nearest->hi);
    if (address >= nearest->hi) return bytes(address - nearest->hi) + " past the end of " + what;
    if (address < nearest->lo) return bytes(nearest->lo - address) + " before " + what;
    return "the last " + bytes(address + size - nearest->hi) + " past the end of " + what;
}

}  // namespace cyrt::emu
