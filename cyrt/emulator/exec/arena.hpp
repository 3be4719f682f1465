// Device memory: live allocations, looked up by address, with the data for checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cyrt::emu {

std::string hex(uint64_t value);  // "0x1f"

// One live allocation, or the part of the host's memory that the device may touch.
struct Region {
    uint64_t lo = 0, hi = 0;    // [lo, hi)
    std::byte* host = nullptr;  // host address of the byte at `lo`
    uint8_t* valid = nullptr;   // one byte for each: 0 = never written; nullptr: not tracked
    bool read_only = false;     // constant memory: kernels do not write it
    bool guarded = false;       // a launch with ranges uses no more of it than they say

    bool holds(uint64_t address, uint64_t size) const {
        return address >= lo && address <= hi && hi - address >= size;
    }
    std::byte* at(uint64_t address) const { return host + (address - lo); }
};

// The regions that a launch's accesses were last in; a search of the arena takes a lock.
struct RecentRegions {
    std::array<Region, 4> items;
    size_t next = 0;

    void add(const Region& region) { items[next++ % items.size()] = region; }
};

// INVARIANTS
// - Backing memory stays mapped as long as the arena lives: a stale Region never faults the host.
// - Fresh memory is poisoned (0xcb in every byte); in checking mode its `valid` bytes are 0.
// - Thread safe. `find` takes a shared lock; callers keep the Region of the last hit.
class Arena {
  public:
    // `base`: address of the first byte; `capacity`: bytes the device has; `check`: track writes.
    Arena(uint64_t base, uint64_t capacity, bool check);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // 0 if no memory is left. Alignment is at least 256, as in the driver.
    uint64_t allocate(uint64_t size);
    bool release(uint64_t address);         // false: not the start of a live allocation
    void make_read_only(uint64_t address);  // a live allocation's
    bool guard(uint64_t address);           // likewise; false: it is none

    // Host memory that kernels may use under its own address (pinned, registered, managed).
    void attach(void* host, uint64_t size);
    bool detach(void* host);

    // Another device's memory that kernels may use too.
    void add_peer(const Arena& peer);
    void remove_peer(const Arena& peer);

    bool find(uint64_t address, Region& out) const;
    // A description for faults: "4 bytes past the end of the 4096-byte allocation at 0x…", "inside
    // the freed …". `name` may describe the address itself where it lies so many bytes outside of
    // the nearest allocation, which starts at `lo`, or return "".
    using Namer = std::function<std::string(uint64_t lo, uint64_t distance)>;
    std::string describe(uint64_t address, const Namer& name = {}) const;

    uint64_t capacity() const;
    uint64_t used() const;
    bool checking() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace cyrt::emu
