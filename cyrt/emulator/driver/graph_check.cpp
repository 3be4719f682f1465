#include "driver/graph_check.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "driver/device.hpp"
#include "driver/function.hpp"

namespace cyrt::emu {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kWord = 64;
constexpr uint64_t kWords = kPage / kWord;

}  // namespace

// Three bits for each byte of a page: one for each kind of access. Its name and that of AccessMap
// are no file's own, for StepAccesses has external linkage.
struct AccessedPage {
    uint64_t marks[3][kWords] = {};
    uint64_t of(Access access, uint64_t word) const { return marks[int(access)][word]; }
};

namespace {

std::string describe(uint64_t address) {
    char text[19];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    Device* device = device_of(address);
    return std::string("address ") + text +
           (device ? " (" + device->arena.describe(address) + ")" : "");
}

uint64_t conflicts(const AccessedPage& a, const AccessedPage& b, uint64_t word) {
    const uint64_t read = a.of(Access::read, word), wrote = a.of(Access::write, word),
                   updated = a.of(Access::update, word);
    const uint64_t other_read = b.of(Access::read, word), other_wrote = b.of(Access::write, word),
                   other_updated = b.of(Access::update, word);
    return (wrote & (other_read | other_wrote | other_updated)) | (other_wrote & (read | updated)) |
           (updated & other_read) | (other_updated & read);
}

}  // namespace

// The accessed bytes, and their kinds of access.
class AccessMap {
  public:
    void mark(Access access, uint64_t address, uint64_t bytes) {
        for_words(address, bytes, [&](AccessedPage& page, uint64_t word, uint64_t mask) {
            page.marks[int(access)][word] |= mask;
        });
    }
    void clear(uint64_t address, uint64_t bytes) {
        for_words(address, bytes, [&](AccessedPage& page, uint64_t word, uint64_t mask) {
            for (auto& marks : page.marks) marks[word] &= ~mask;
        });
    }

    // The first byte on which the two conflict; 0 if there is none.
    uint64_t conflict_with(const AccessMap& other) const {
        if (other.pages_.size() < pages_.size()) return other.conflict_with(*this);
        uint64_t first = 0;
        for (const auto& [number, page] : pages_) {
            auto found = other.pages_.find(number);
            if (found == other.pages_.end()) continue;
            for (uint64_t word = 0; word < kWords; ++word) {
                const uint64_t both = conflicts(page, found->second, word);
                if (!both) continue;
                const uint64_t at = number * kPage + word * kWord + uint64_t(__builtin_ctzll(both));
                if (!first || at < first) first = at;
                break;
            }
        }
        return first;
    }

  private:
    template <class Change>
    void for_words(uint64_t address, uint64_t bytes, Change change) {
        while (bytes > 0) {
            const uint64_t bit = address % kWord, here = std::min(bytes, kWord - bit);
            change(page_at(address / kPage), address / kWord % kWords,
                   (~0ull >> (kWord - here)) << bit);
            address += here;
            bytes -= here;
        }
    }

    AccessedPage& page_at(uint64_t number) {
        if (!last_ || last_number_ != number) {
            last_ = &pages_[number];
            last_number_ = number;
        }
        return *last_;
    }

    std::unordered_map<uint64_t, AccessedPage> pages_;  // its elements never move
    AccessedPage* last_ = nullptr;
    uint64_t last_number_ = 0;
};

class StepAccesses : public AccessWatch {
  public:
    struct Unfinished {
        const AccessMap& map;
        std::string name;
    };

    // `may_run`: the steps that may still run until griddepcontrol.wait returns.
    explicit StepAccesses(std::vector<Unfinished> may_run) : may_run_(std::move(may_run)) {}

    AccessMap map;

    std::string see(Access access, uint64_t address, uint64_t bytes, bool waited) override {
        std::lock_guard lock(mutex_);
        map.mark(access, address, bytes);
        if (waited || may_run_.empty()) return {};
        AccessMap alone;
        alone.mark(access, address, bytes);
        for (const Unfinished& other : may_run_)
            if (uint64_t at = alone.conflict_with(other.map))
                return describe(at) + " before griddepcontrol.wait: " + other.name +
                       ", which it would have waited for, touches that too";
        return {};
    }

    void forget(uint64_t address, uint64_t bytes) override {
        std::lock_guard lock(mutex_);
        map.clear(address, bytes);
    }

  private:
    std::mutex mutex_;
    const std::vector<Unfinished> may_run_;
};

AccessCheck::AccessCheck(const Plan& plan)
    : plan_(plan), before_start_(plan.steps.size()), before_rest_(plan.steps.size()),
      accesses_(plan.steps.size()) {
    for (uint32_t step : plan.layout->orders[0]) find_order(step);
}

AccessCheck::~AccessCheck() = default;

void AccessCheck::find_order(uint32_t step) {
    const size_t count = plan_.steps.size();
    auto include = [&](Set& into, const Set& from) {
        for (size_t i = 0; i < count; ++i)
            if (from[i]) into[i] = true;
    };
    Set& start = before_start_[step] = Set(count);
    Set& rest = before_rest_[step] = Set(count);
    for (const Predecessor& earlier : plan_.layout->before[step]) {
        Ordering ordering = earlier.ordering;
        const KernelWork* kernel = plan_.steps[earlier.step].kernel();
        if (ordering == Ordering::triggered &&
            (!kernel || !kernel->operation.function->launches_dependents()))
            ordering = Ordering::complete;
        // A kernel that waits first has waited when it lets its dependents start.
        const bool waits_first = ordering == Ordering::complete ||
                                 (ordering == Ordering::triggered &&
                                  !kernel->operation.function->triggers_before_waiting());
        include(start, waits_first ? before_rest_[earlier.step] : before_start_[earlier.step]);
        if (ordering == Ordering::complete) start[earlier.step] = true;
        if (ordering == Ordering::started_only) continue;
        include(rest, before_rest_[earlier.step]);
        rest[earlier.step] = true;
    }
    include(rest, start);
}

std::string AccessCheck::name(uint32_t step) const {
    const Work& work = *plan_.steps[step].work;
    const std::string node = " (node " + std::to_string(step) + ")";
    if (auto kernel = std::get_if<KernelWork>(&work))
        return "kernel " + kernel->operation.function->name + node;
    return (std::holds_alternative<CopyWork>(work) ? "a copy" : "a fill") + node;
}

AccessWatch* AccessCheck::start(uint32_t step) {
    std::vector<StepAccesses::Unfinished> may_run;
    for (uint32_t other : finished_)
        if (before_rest_[step][other] && !before_start_[step][other])
            may_run.push_back({accesses_[other]->map, name(other)});
    accesses_[step] = std::make_unique<StepAccesses>(std::move(may_run));
    return accesses_[step].get();
}

std::string AccessCheck::finish(uint32_t step) {
    const Work& work = *plan_.steps[step].work;
    AccessMap& map = accesses_[step]->map;
    if (auto copy = std::get_if<CopyWork>(&work)) {
        const CopyOperation& what = copy->operation;
        for (uint64_t z = 0; z < what.depth; ++z)
            for (uint64_t y = 0; y < what.height; ++y) {
                auto row = [&](const CopySide& side) {
                    return side.address + z * side.slice + y * side.pitch;
                };
                map.mark(Access::read, row(what.src), what.width);
                map.mark(Access::write, row(what.dst), what.width);
            }
    } else if (auto fill = std::get_if<FillWork>(&work)) {
        const FillOperation& what = fill->operation;
        for (uint64_t y = 0; y < what.height; ++y)
            map.mark(Access::write, what.address + y * what.pitch, what.width * what.element);
    }
    for (uint32_t other : finished_) {
        if (before_rest_[step][other]) continue;
        if (uint64_t at = map.conflict_with(accesses_[other]->map))
            return name(other) + " and " + name(step) + " of one graph both touch " + describe(at) +
                   ", at least one of them writing, and no path of edges orders them";
    }
    finished_.push_back(step);
    return {};
}

}  // namespace cyrt::emu
