// Checking mode: two steps of a graph that no path orders may not touch the same bytes, one of them
// writing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/graph_plan.hpp"
#include "exec/watch.hpp"

namespace cyrt::emu {

class StepAccesses;

// One launch's. Steps are started and finished one after the other, in an order that keeps to the
// edges.
class AccessCheck {
public:
    explicit AccessCheck(const Plan& plan);
    ~AccessCheck();

    AccessWatch* start(uint32_t step);
    // What is wrong between this step and those before it; empty: nothing.
    std::string finish(uint32_t step);

private:
    using Set = std::vector<bool>;      // of steps
    void find_order(uint32_t step);
    std::string name(uint32_t step) const;

    const Plan& plan_;
    std::vector<Set> before_start_;     // what has ended when the step starts
    std::vector<Set> before_rest_;      // and what when its griddepcontrol.wait has returned
    std::vector<std::unique_ptr<StepAccesses>> accesses_;
    std::vector<uint32_t> finished_;
};

}  // namespace cyrt::emu
