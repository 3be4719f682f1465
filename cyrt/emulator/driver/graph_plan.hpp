// An executable graph in executable form: steps, and the orders in which they may run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/graph.hpp"

namespace cyrt::emu {

// The moment after its predecessor at which a step may start, and whether its griddepcontrol.wait
// waits for that predecessor's end.
enum class Ordering : uint8_t {
    complete,      // at its end
    triggered,     // once it lets dependents start; waits for its end
    started,       // once it has started; waits for its end
    started_only,  // once it has started
};

struct Predecessor {
    uint32_t step;
    Ordering ordering;
};

// INVARIANT: immutable; the steps of a child graph are enclosed by two empty steps, so that there
// is one level only.
struct Layout {
    std::vector<std::vector<Predecessor>> before;
    std::vector<std::vector<uint32_t>> after;
    // Two orders that follow the edges: of all steps that could run next, the oldest, or the
    // newest. A missing edge becomes visible in one of them.
    std::vector<uint32_t> orders[2];
    bool has_early_starts = false;  // an edge that is not Ordering::complete
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

// Numbers the steps in the nodes. If there is a cycle, `cyclic` receives one of its nodes and
// nullptr is returned.
std::shared_ptr<Plan> make_plan(Graph& graph, const Node** cyclic);

}  // namespace cyrt::emu
