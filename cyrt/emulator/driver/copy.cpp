#include "driver/copy.hpp"

#include <algorithm>
#include <cstring>

#include "driver/context.hpp"
#include "driver/device.hpp"
#include "driver/memory.hpp"

namespace cyrt::emu {

namespace {

// Address of row y of slice z, relative to the side's first byte.
uint64_t offset_of(const CopySide& side, uint64_t y, uint64_t z) {
    return z * side.slice + y * side.pitch;
}

// Updates the record of written bytes; false if the host would read bytes that were never written.
bool track_row(const MemoryView& dst, uint64_t to, const MemoryView& src, uint64_t from,
               uint64_t width) {
    if (dst.valid) {
        if (src.valid)
            std::memmove(dst.valid + to, src.valid + from, width);
        else
            std::memset(dst.valid + to, 1, width);
        return true;
    }
    return !src.valid || !std::memchr(src.valid + from, 0, width);
}

}  // namespace

uint64_t CopyOperation::span(const CopySide& side) const {
    uint64_t slices, rows, total;
    bool overflow = __builtin_mul_overflow(depth - 1, side.slice, &slices) ||
                    __builtin_mul_overflow(height - 1, side.pitch, &rows) ||
                    __builtin_add_overflow(slices, rows, &total) ||
                    __builtin_add_overflow(total, width, &total);
    require(!overflow);
    return total;
}

MemoryPlace place_of(uint64_t address, uint64_t span) {
    require(address != 0);
    auto found = allocation_at(address);
    bool inside = found && span <= found->size - (address - found->address);
    if (device_of(address)) {
        require(inside);
        return MemoryPlace::device;
    }
    return inside ? MemoryPlace::mapped : MemoryPlace::pageable;
}

MemoryView view_of(Context& context, uint64_t address, uint64_t span, const char* what) {
    Device* device = device_of(address);
    if (!device) return {reinterpret_cast<std::byte*>(address), nullptr};
    Region region;
    if (!device->arena.find(address, region) || !region.holds(address, span)) {
        context.fail(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + " of " + std::to_string(span) +
                                                     " bytes touches " +
                                                     device->arena.describe(address));
        return {};
    }
    return {region.at(address), region.valid ? region.valid + (address - region.lo) : nullptr};
}

void CopyOperation::run(Context& context) const {
    MemoryView to = view_of(context, dst.address, span(dst), "a copy");
    MemoryView from;
    if (staged.empty()) from = view_of(context, src.address, span(src), "a copy");
    const std::byte* source_bytes = staged.empty() ? from.bytes : staged.data();
    if (!to.bytes || !source_bytes) return;
    for (uint64_t z = 0; z < depth; ++z) {
        for (uint64_t y = 0; y < height; ++y) {
            uint64_t at = offset_of(dst, y, z), source = offset_of(src, y, z);
            std::memmove(to.bytes + at, source_bytes + source, width);
            if (track_row(to, at, from, source, width)) continue;
            auto row = from.valid + source;
            uint64_t byte = src.address + source + (std::find(row, row + width, 0) - row);
            context.fail(CUDA_ERROR_LAUNCH_FAILED,
                         "a copy to the host reads a byte that nobody wrote, " +
                             device_of(byte)->arena.describe(byte));
            return;
        }
    }
}

}  // namespace cyrt::emu
