#include "exec/slots.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "exec/liveness.hpp"

namespace cyrt::emu {

namespace {

// The offsets of one kind of slot in one function.
struct PoolKind {
    uint8_t cell;
    bool is_predicate;
    bool operator<(const PoolKind& other) const {
        return std::pair(cell, is_predicate) < std::pair(other.cell, other.is_predicate);
    }
};

struct Pool {
    struct Busy {
        uint32_t until, place;
        bool operator>(const Busy& other) const { return until > other.until; }
    };
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::vector<uint32_t> free;
};

class Assignment {
  public:
    Assignment(Program& program, const SlotUses& uses)
        : program_(program), uses_(uses), places_(uses.slots.size(), kNoSlot) {}

    void run() {
        for (size_t i = 0; i < uses_.slots.size(); ++i)
            if (uses_.slots[i].function < 0) places_[i] = extend(uses_.slots[i].cell);
        // Functions are in the code in their order.
        for (size_t i = 0; i < program_.functions.size(); ++i) {
            const uint32_t end = i + 1 < program_.functions.size() ? program_.functions[i + 1].entry
                                                                   : uint32_t(program_.code.size());
            place_function(program_.functions[i], int32_t(i), end);
        }
        program_.scratch_slot = next_;
        for (size_t i = 0; i < std::size(Inst().d) + std::size(Inst().s); ++i) extend(16);
        program_.file_bytes = next_;
        rewrite_all();
    }

  private:
    uint32_t extend(uint8_t cell) {
        const uint32_t out = next_;
        next_ += uint32_t(cell) * kWarpSize;
        return out;
    }

    void place_function(FunctionCode& function, int32_t index, uint32_t end) {
        function.first_slot = next_;
        ranges_.assign(uses_.slots.size(), {});
        find_live_ranges(program_, uses_, function.entry, end, ranges_);

        const auto place_new = [&](uint8_t cell) {
            function.cells.push_back(cell);
            return extend(cell);
        };
        if (function.base_slot != kNoSlot)  // a return reads it without naming it
            places_[function.base_slot] = place_new(8);

        std::vector<uint32_t> order;
        for (uint32_t slot = 0; slot < ranges_.size(); ++slot)
            if (uses_.slots[slot].function == index && places_[slot] == kNoSlot &&
                ranges_[slot].is_used())
                order.push_back(slot);
        std::sort(order.begin(), order.end(),
                  [&](uint32_t a, uint32_t b) { return ranges_[a].first < ranges_[b].first; });
        std::map<PoolKind, Pool> pools;
        for (uint32_t slot : order) {
            const VirtualSlot& virtual_slot = uses_.slots[slot];
            Pool& pool = pools[{virtual_slot.cell, virtual_slot.is_predicate}];
            while (!pool.busy.empty() && pool.busy.top().until < ranges_[slot].first) {
                pool.free.push_back(pool.busy.top().place);
                pool.busy.pop();
            }
            if (pool.free.empty()) {
                places_[slot] = place_new(virtual_slot.cell);
            } else {
                places_[slot] = pool.free.back();
                pool.free.pop_back();
            }
            pool.busy.push({ranges_[slot].last, places_[slot]});
            if (ranges_[slot].from_entry)
                program_.poison.push_back({places_[slot], uint32_t(virtual_slot.cell) * kWarpSize,
                                           virtual_slot.is_predicate});
        }
        function.end_slot = next_;
    }

    void rewrite(uint32_t& slot) const {
        if (slot != kNoSlot) slot = places_[slot];
    }

    void rewrite_all() {
        for (Inst& inst : program_.code) {
            for (uint32_t& slot : inst.d) rewrite(slot);
            for (uint32_t& slot : inst.s) rewrite(slot);
        }
        for (MemoryOp& op : program_.memory_ops) {
            for (uint32_t& slot : op.vector) rewrite(slot);
            for (uint32_t& slot : op.values) rewrite(slot);
        }
        for (ConstantSlot& constant : program_.constants) rewrite(constant.slot);
        for (SpecialSlot& special : program_.specials) rewrite(special.slot);
        for (ParamSlot& param : program_.params) rewrite(param.slot);
        for (FunctionCode& function : program_.functions) rewrite(function.base_slot);
        rewrite(program_.stack_slot);
    }

    Program& program_;
    const SlotUses& uses_;
    std::vector<uint32_t> places_;
    std::vector<LiveRange> ranges_;
    uint32_t next_ = 0;
};

}  // namespace

void assign_slots(Program& program, const SlotUses& uses) { Assignment(program, uses).run(); }

}  // namespace cyrt::emu
