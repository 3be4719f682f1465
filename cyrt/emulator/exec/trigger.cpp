// A walk over all ways through a kernel that end at its first wait.
#include "exec/trigger.hpp"

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "exec/code.hpp"

namespace cyrt::emu {

namespace {

// A place that a way reaches, and what it knows: the predicate in `slot` is `holds`. It learns that
// at a branch, and forgets it at the next instruction: so `@p wait; @!p wait;` waits on both ways.
struct Place {
    uint32_t pc;
    uint32_t slot = kNoSlot;
    bool holds = false;
    bool operator<(const Place& other) const {
        return std::tie(pc, slot, holds) < std::tie(other.pc, other.slot, other.holds);
    }
};

class Walk {
  public:
    explicit Walk(const Program& program) : program_(program) {
        open_.push_back({program.functions.back().entry});
    }

    bool finds_trigger() {
        while (!open_.empty()) {
            const Place place = open_.back();
            open_.pop_back();
            if (seen_.insert(place).second && follow(place)) return true;
        }
        return false;
    }

  private:
    // Adds the places behind this one; true if it lets dependents start.
    bool follow(const Place& place) {
        const Inst& inst = program_.code[place.pc];
        if (inst.run) return go(place.pc + 1);
        const Control& control = program_.controls[inst.extra];
        switch (control.kind) {
        case ControlKind::launch_dependents: return true;
        case ControlKind::wait_dependencies:
        case ControlKind::call:
        case ControlKind::call_indirect:
        case ControlKind::ret:
        case ControlKind::exit:
        case ControlKind::trap:
        case ControlKind::breakpoint: return false;
        case ControlKind::join: open_.push_back({place.pc + 1, place.slot, place.holds}); break;
        case ControlKind::jump: open_.push_back({control.target, place.slot, place.holds}); break;
        case ControlKind::branch:
            for (bool holds : {false, true}) {
                if (place.slot == inst.s[0] && place.holds != holds) continue;
                const uint32_t next = holds != control.negated ? control.target : place.pc + 1;
                open_.push_back({next, inst.s[0], holds});
            }
            break;
        case ControlKind::table:
            for (uint32_t target : program_.tables[control.target]) go(target);
            break;
        default: return go(place.pc + 1);
        }
        return false;
    }

    bool go(uint32_t pc) {
        open_.push_back({pc});
        return false;
    }

    const Program& program_;
    std::vector<Place> open_;
    std::set<Place> seen_;
};

}  // namespace

bool may_trigger_before_waiting(const Program& program) {
    return program.launches_dependents && Walk(program).finds_trigger();
}

}  // namespace cyrt::emu
