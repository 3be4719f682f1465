// INVARIANTS
// - A live allocation is followed by at least kGuard unallocated bytes, so an overrun never reaches
//   another allocation.
// - A released range stays in quarantine until kQuarantine bytes were released after it, or until
//   no other memory is left: meanwhile a stale pointer cannot refer to a new allocation.
// - `live` and `attached` are sorted by address and do not overlap.
#include "exec/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

namespace cyrt::emu {

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

// Named, for Arena::State has external linkage.
struct Range {
    uint64_t lo, size;
    bool read_only = false;
    bool guarded = false;
    uint64_t hi() const { return lo + size; }
    bool holds(uint64_t address) const { return address >= lo && address < hi(); }
};

namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kGuard = 256;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kQuarantine = 128ull << 20;
constexpr uint64_t kLarge = 64ull << 20;  // neither poisoned nor kept resident once released
constexpr size_t kRemembered = 4096;      // released ranges that describe() can name
constexpr int kPoison = 0xcb;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// The bytes of the arena that an allocation of `size` bytes occupies.
uint64_t span_of(uint64_t size) { return round_up(size + kGuard, kAlign); }

std::byte* reserve(uint64_t size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
}

// The last range that starts at or below `address`, or nullptr.
const Range* at_or_below(const std::vector<Range>& ranges, uint64_t address) {
    auto next = std::upper_bound(ranges.begin(), ranges.end(), address,
                                 [](uint64_t a, const Range& r) { return a < r.lo; });
    return next == ranges.begin() ? nullptr : &*std::prev(next);
}

// The bytes between an address and a range that does not hold it.
uint64_t distance(const Range& range, uint64_t address) {
    return address < range.lo ? range.lo - address : address - range.hi();
}

void insert_sorted(std::vector<Range>& ranges, Range range) {
    auto place = std::upper_bound(ranges.begin(), ranges.end(), range.lo,
                                  [](uint64_t a, const Range& r) { return a < r.lo; });
    ranges.insert(place, range);
}

// Removes the range that starts at `lo`; returns its size, or 0 if there is none.
uint64_t erase_sorted(std::vector<Range>& ranges, uint64_t lo) {
    const Range* found = at_or_below(ranges, lo);
    if (!found || found->lo != lo) return 0;
    uint64_t size = found->size;
    ranges.erase(ranges.begin() + (found - ranges.data()));
    return size;
}

std::string bytes(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

std::string allocation_at(const Range& range) {
    return std::to_string(range.size) + "-byte allocation at " + hex(range.lo);
}

}  // namespace

struct Arena::State {
    uint64_t base, capacity;
    bool check;
    std::byte* memory;
    uint8_t* valid = nullptr;

    mutable std::shared_mutex mutex;
    std::vector<Range> live;
    std::vector<Range> attached;
    std::map<uint64_t, uint64_t> vacant;  // address -> size, never adjacent
    std::deque<Range> quarantine;         // whole spans, oldest first
    uint64_t quarantined = 0;
    std::deque<Range> released;  // allocations as they were, newest first
    uint64_t used = 0;
    std::vector<const Arena*> peers;

    bool owns(uint64_t address) const { return address >= base && address - base < capacity; }

    void give_back(Range span) {
        auto next = vacant.lower_bound(span.lo);
        if (next != vacant.end() && span.hi() == next->first) {
            span.size += next->second;
            next = vacant.erase(next);
        }
        if (next != vacant.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == span.lo) {
                before->second += span.size;
                return;
            }
        }
        vacant.emplace_hint(next, span.lo, span.size);
    }

    void shrink_quarantine(uint64_t limit) {
        while (quarantined > limit) {
            Range oldest = quarantine.front();
            quarantine.pop_front();
            quarantined -= oldest.size;
            give_back(oldest);
        }
    }

    // The live allocation that starts at `address`, or nullptr.
    Range* allocation(uint64_t address) {
        const Range* found = at_or_below(live, address);
        return found && found->lo == address ? &live[size_t(found - live.data())] : nullptr;
    }

    // First fit; 0 if no range is wide enough.
    uint64_t take(uint64_t span) {
        for (auto it = vacant.begin(); it != vacant.end(); ++it) {
            if (it->second < span) continue;
            auto [lo, size] = *it;
            vacant.erase(it);
            if (size > span) vacant.emplace(lo + span, size - span);
            return lo;
        }
        return 0;
    }
};

Arena::Arena(uint64_t base, uint64_t capacity, bool check) : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.base = base;
    s.capacity = round_up(capacity, kPage);
    s.check = check;
    s.memory = reserve(s.capacity);
    if (check) s.valid = reinterpret_cast<uint8_t*>(reserve(s.capacity));
    s.vacant.emplace(base, s.capacity);
}

Arena::~Arena() {
    munmap(state_->memory, state_->capacity);
    if (state_->valid) munmap(state_->valid, state_->capacity);
}

uint64_t Arena::allocate(uint64_t size) {
    State& s = *state_;
    if (size == 0 || size > s.capacity) return 0;
    uint64_t span = span_of(size);
    uint64_t address;
    {
        std::unique_lock lock(s.mutex);
        address = s.take(span);
        if (!address) {
            s.shrink_quarantine(0);
            address = s.take(span);
        }
        if (!address) return 0;
        insert_sorted(s.live, {address, size});
        s.used += span;
    }
    // No other thread knows the address yet: the lock is not needed.
    uint64_t offset = address - s.base;
    if (size < kLarge || s.check) std::memset(s.memory + offset, kPoison, size);
    if (s.valid) std::memset(s.valid + offset, 0, size);
    return address;
}

bool Arena::release(uint64_t address) {
    State& s = *state_;
    std::unique_lock lock(s.mutex);
    uint64_t size = erase_sorted(s.live, address);
    if (!size) return false;
    Range span{address, span_of(size)};
    if (size >= kLarge) {
        // Whole pages only: neighbours may share the first and the last page.
        uint64_t first = round_up(address - s.base, kPage);
        uint64_t last = (address - s.base + size) / kPage * kPage;
        madvise(s.memory + first, last - first, MADV_DONTNEED);
        if (s.valid) madvise(s.valid + first, last - first, MADV_DONTNEED);
    }
    s.used -= span.size;
    s.released.push_front({address, size});
    if (s.released.size() > kRemembered) s.released.pop_back();
    s.quarantine.push_back(span);
    s.quarantined += span.size;
    s.shrink_quarantine(kQuarantine);
    return true;
}

void Arena::make_read_only(uint64_t address) {
    std::unique_lock lock(state_->mutex);
    if (Range* const found = state_->allocation(address)) found->read_only = true;
}

bool Arena::guard(uint64_t address) {
    std::unique_lock lock(state_->mutex);
    Range* const found = state_->allocation(address);
    if (found) found->guarded = true;
    return found != nullptr;
}

void Arena::attach(void* host, uint64_t size) {
    std::unique_lock lock(state_->mutex);
    insert_sorted(state_->attached, {reinterpret_cast<uint64_t>(host), size});
}

bool Arena::detach(void* host) {
    std::unique_lock lock(state_->mutex);
    return erase_sorted(state_->attached, reinterpret_cast<uint64_t>(host)) != 0;
}

void Arena::add_peer(const Arena& peer) {
    std::unique_lock lock(state_->mutex);
    state_->peers.push_back(&peer);
}

void Arena::remove_peer(const Arena& peer) {
    std::unique_lock lock(state_->mutex);
    auto& peers = state_->peers;
    auto found = std::find(peers.begin(), peers.end(), &peer);
    if (found != peers.end()) peers.erase(found);
}

bool Arena::find(uint64_t address, Region& out) const {
    const State& s = *state_;
    std::shared_lock lock(s.mutex);
    if (s.owns(address)) {
        const Range* range = at_or_below(s.live, address);
        if (!range || !range->holds(address)) return false;
        uint64_t offset = range->lo - s.base;
        out = {range->lo,         range->hi(),
               s.memory + offset, s.valid ? s.valid + offset : nullptr,
               range->read_only,  range->guarded};
        return true;
    }
    if (const Range* range = at_or_below(s.attached, address); range && range->holds(address)) {
        out = {range->lo, range->hi(), reinterpret_cast<std::byte*>(range->lo), nullptr};
        return true;
    }
    for (const Arena* peer : s.peers)
        if (peer->state_->owns(address)) return peer->find(address, out);
    return false;
}

std::string Arena::describe(uint64_t address, const Namer& name) const {
    const State& s = *state_;
    if (address < kPage) return address ? "near the null pointer" : "the null pointer";
    std::shared_lock lock(s.mutex);
    if (!s.owns(address)) {
        for (const Arena* peer : s.peers)
            if (peer->state_->owns(address)) return peer->describe(address, name);
    }
    const Range* nearest = nullptr;
    for (const std::vector<Range>* ranges : {&s.live, &s.attached})
        for (const Range& range : *ranges) {
            if (range.holds(address))
                return bytes(address - range.lo) + " into the " + allocation_at(range);
            if (!nearest || distance(range, address) < distance(*nearest, address))
                nearest = &range;
        }
    for (const Range& range : s.released)
        if (range.holds(address))
            return bytes(address - range.lo) + " inside the freed " + allocation_at(range);
    // An index that is off reaches no further than a device's memory.
    if (!nearest || distance(*nearest, address) > s.capacity)
        return s.owns(address) ? "no memory is allocated on this device"
                               : "no memory of this device";
    const uint64_t away = distance(*nearest, address);
    const std::string named = name ? name(nearest->lo, away) : "";
    return named.empty()
               ? bytes(away) + (address < nearest->lo ? " before the " : " past the end of the ") +
                     allocation_at(*nearest)
               : named;
}

uint64_t Arena::capacity() const { return state_->capacity; }

uint64_t Arena::used() const {
    std::shared_lock lock(state_->mutex);
    return state_->used;
}

bool Arena::checking() const { return state_->check; }

}  // namespace cyrt::emu
