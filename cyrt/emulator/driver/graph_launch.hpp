// A launch of an executable graph, as an operation of a stream.
#pragma once

#include <memory>
#include <vector>

#include "driver/event.hpp"
#include "driver/graph_plan.hpp"

namespace cyrt::emu {

// The action of an event node in one launch, fixed when that launch got its ticket.
struct EventTurn {
    uint32_t step;
    uint64_t serial = 0;  // serial of the record
    Event::Mark mark;     // the mark to wait for
};

// INVARIANT: it owns the plan as it was at the launch; an update of the executable graph modifies a
// copy.
struct GraphOperation {
    std::shared_ptr<const Plan> plan;
    uint64_t number = 0;  // selects one of the possible orders
    std::vector<EventTurn> events;
    static constexpr bool runs_after_fault = true;  // its events are recorded even then
    void run(Context& context) const;
};

}  // namespace cyrt::emu
