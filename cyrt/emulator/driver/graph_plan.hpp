// An executable graph as it runs: steps, and the orders they may be run in.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/graph.hpp"

namespace cyrt::emu {

// When, after its predecessor, a step may start, and whether its griddepcontrol.wait waits for that
// predecessor's end.
enum class Ordering : uint8_t {
    complete,           // at its end
    triggered,          // once it lets dependents start; waits for its end
    started,            // once it has started; waits for its end
    started_only,       // once it has started
};

struct Predecessor {
    uint32_t step;
    Ordering ordering;
};

// INVARIANT: immutable; the steps of child graphs stand between two empty ones that begin and end
// them, so that there is one level only.
struct Layout {
    std::vector<std::vector<Predecessor>> before;
    std::vector<std::vector<uint32_t>> after;
    // Two orders that keep to the edges: of all that could run next, the oldest, or the newest. A
    // missing edge shows in one of them.
    std::vector<uint32_t> orders[2];
    bool has_early_starts = false;      // an edge that is not Ordering::complete
    std::vector<uint32_t> event_steps;
};

struct Step {
    WorkPtr work;
    bool enabled = true;
    const KernelWork* kernel() const { return enabled ? std::get_if<KernelWork>(&*work) : nullptr; }
};

struct Plan {
    std::shared_ptr<const Layout> layout;
    std::vector<Step> steps;
};

// Numbers the steps in the nodes. `cyclic` receives a node of a cycle where there is one, and
// nullptr is returned.
std::shared_ptr<Plan> make_plan(Graph& graph, const Node** cyclic);

}  // namespace cyrt::emu
