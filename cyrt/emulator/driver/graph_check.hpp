// Checking mode: two steps of a graph without a path between them may not access the same bytes if
// one of them writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/graph_plan.hpp"
#include "exec/watch.hpp"

namespace cyrt::emu {

class StepAccesses;

// The check of one launch. Steps are started and finished one after the other, in an order that
// follows the edges.
class AccessCheck {
  public:
    explicit AccessCheck(const Plan& plan);
    ~AccessCheck();

    AccessWatch* start(uint32_t step);
    // A description of the conflict between this step and earlier ones; empty if there is none.
    std::string finish(uint32_t step);

  private:
    using Set = std::vector<bool>;  // set of steps
    void find_order(uint32_t step);
    std::string name(uint32_t step) const;

    const Plan& plan_;
    std::vector<Set> before_start_;  // steps that have ended when the step starts
    std::vector<Set> before_rest_;   // steps that have ended when its griddepcontrol.wait returns
    std::vector<std::unique_ptr<StepAccesses>> accesses_;
    std::vector<uint32_t> finished_;
};

}  // namespace cyrt::emu
