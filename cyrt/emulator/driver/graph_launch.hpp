// A launch of an executable graph as a stream runs it.
#pragma once

#include <memory>
#include <vector>

#include "driver/event.hpp"
#include "driver/graph_plan.hpp"

namespace cyrt::emu {

// What an event node does in one launch, settled when that launch got its place in the stream.
struct EventTurn {
    uint32_t step;
    uint64_t serial = 0;        // of the record
    Event::Mark mark;           // to wait for
};

// INVARIANT: holds the plan as it was at the launch; who changes the executable graph changes a
// copy.
struct GraphOperation {
    std::shared_ptr<const Plan> plan;
    uint64_t number = 0;                    // says which of the possible orders to take
    std::vector<EventTurn> events;
    static constexpr bool runs_after_fault = true;      // its events happen all the same
    void run(Context& context) const;
};

}  // namespace cyrt::emu
