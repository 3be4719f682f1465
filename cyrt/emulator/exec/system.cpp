// The functions that the CUDA runtime provides to device code: printf, assert, malloc and free.
// Their arguments are above the caller's frame, as for every call.
#include <cstring>

#include "exec/arena.hpp"
#include "exec/block.hpp"
#include "exec/format.hpp"
#include "exec/heap.hpp"

namespace cyrt::emu {

namespace {

constexpr size_t kLongestText = 1 << 16;  // the end of a format or a string without a NUL

// A lane's memory, accessed by generic addresses.
class LaneMemory {
  public:
    LaneMemory(const WarpContext& context, int lane) : context_(context), lane_(lane) {}

    template <typename Value>
    Value read(uint64_t address) {
        Value out;
        std::memcpy(&out, at(address, sizeof out), sizeof out);
        return out;
    }

    std::string text(uint64_t address) {
        std::string out;
        for (; out.size() < kLongestText; ++address) {
            const char c = char(*at(address, 1));
            if (!c) break;
            out += c;
        }
        return out;
    }

  private:
    const std::byte* at(uint64_t address, uint64_t size) {
        const uint64_t low = address & ~kWindowMask;
        switch (address & kWindowMask) {
        case kSharedWindow: return inside(context_.shared, context_.shared_bytes, low, size);
        case kLocalWindow:
            return inside(context_.local + uint64_t(lane_) * context_.local_stride,
                          context_.local_bytes, low, size);
        case kParamWindow: return inside(context_.params, context_.param_bytes, low, size);
        }
        if (!region_.holds(address, size)) {
            if (!context_.arena->find(address, region_) || !region_.holds(address, size))
                fail(address, context_.arena->describe(address));
            const UsableRanges* const ranges = context_.launch->ranges;
            if (region_.guarded && ranges && !ranges->narrow(address, size, region_))
                fail(address, ranges->describe(address, size));
        }
        return region_.at(address);
    }

    const std::byte* inside(const std::byte* base, uint64_t bytes, uint64_t offset, uint64_t size) {
        if (offset > bytes || bytes - offset < size) fail(offset, context_.arena->describe(offset));
        return base + offset;
    }

    [[noreturn]] void fail(uint64_t address, const std::string& place) {
        throw FaultSignal{FaultKind::illegal_address, lane_,
                          "a system call reads address " + hex(address) + " (" + place + ")"};
    }

    const WarpContext& context_;
    int lane_;
    Region region_;
};

// The arguments of a call, and its result.
class CallArea {
  public:
    CallArea(const WarpState& warp, const Program& program, int lane)
        : at_(warp.storage->local.get() + uint64_t(lane) * warp.context.local_stride +
              cells<const uint64_t>(warp.warp, program.stack_slot)[lane]) {}

    template <typename Value>
    Value get(uint32_t offset) const {
        Value out;
        std::memcpy(&out, at_ + offset, sizeof out);
        return out;
    }
    template <typename Value>
    void set(uint32_t offset, Value value) {
        std::memcpy(at_ + offset, &value, sizeof value);
    }

  private:
    std::byte* at_;
};

std::string coordinates(const Dim3& at) {
    return "[" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) +
           "]";
}

}  // namespace

void Block::call_system(WarpState& warp, SystemCall call) {
    switch (call) {
    case SystemCall::print: return print_formatted(warp);
    case SystemCall::assert_fail: return fail_assertion(warp);
    case SystemCall::allocate: return allocate_heap(warp);
    case SystemCall::release: return release_heap(warp);
    }
}

// int vprintf(const char* format, void* arguments)
void Block::print_formatted(WarpState& warp) {
    for_lanes(warp.warp.active, [&](int lane) {
        CallArea area(warp, *program_, lane);
        LaneMemory format_memory(warp.context, lane);
        LaneMemory memory(warp.context, lane);
        const auto base = area.get<uint64_t>(8);
        const FormatArguments arguments{
            [&](uint64_t offset) { return memory.read<uint32_t>(base + offset); },
            [&](uint64_t offset) { return memory.read<uint64_t>(base + offset); },
            [&](uint64_t address) { return format_memory.text(address); }};
        int count = 0;
        const std::string text =
            format_printf(format_memory.text(area.get<uint64_t>(0)), arguments, count);
        grid_->print(text);
        area.set<int32_t>(16, count);
    });
}

// void __assertfail(const char* message, const char* file, unsigned line, const char* function,
//                   size_t char_size)
void Block::fail_assertion(WarpState& warp) {
    std::string first;
    for_lanes(warp.warp.active, [&](int lane) {
        CallArea area(warp, *program_, lane);
        LaneMemory memory(warp.context, lane);
        const std::string text =
            memory.text(area.get<uint64_t>(8)) + ":" + std::to_string(area.get<uint32_t>(16)) +
            ": " + memory.text(area.get<uint64_t>(24)) + ": block: " + coordinates(index_) +
            ", thread: " + coordinates(thread_of(warp, lane)) + " Assertion `" +
            memory.text(area.get<uint64_t>(0)) + "` failed.";
        grid_->print(text + "\n");
        if (first.empty()) first = text;
    });
    throw FaultSignal{FaultKind::assertion, first_lane(warp.warp.active), first};
}

// void* malloc(size_t size)
void Block::allocate_heap(WarpState& warp) {
    for_lanes(warp.warp.active, [&](int lane) {
        CallArea area(warp, *program_, lane);
        const Launch& launch = grid_->launch;
        area.set<uint64_t>(8, launch.heap->allocate(*launch.arena, area.get<uint64_t>(0)));
    });
}

// void free(void* pointer)
void Block::release_heap(WarpState& warp) {
    for_lanes(warp.warp.active, [&](int lane) {
        const auto pointer = CallArea(warp, *program_, lane).get<uint64_t>(0);
        const Launch& launch = grid_->launch;
        if (pointer && !launch.heap->release(*launch.arena, pointer))
            throw FaultSignal{FaultKind::illegal_address, lane,
                              "free of " + hex(pointer) + ", which malloc never gave (" +
                                  launch.arena->describe(pointer) + ")"};
    });
}

}  // namespace cyrt::emu
